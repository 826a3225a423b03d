/**
 * Small collections, packed in their record: a byte that counts the elements, then the elements one
 * after the other. An element of a set, a hash or a sorted set is a fixed prefix (none, or a score of
 * eight bytes) and one or two items (a member; a field and a value), each a length of one byte, or of
 * two when it is above 127, and its bytes. Elements of lists are framed (framing.ts).
 */
import { Slice } from '../bytes/slice.ts';
import { freshMemory } from './page-overflow.ts';
import { copyBytes } from './page.ts';
import { ValueRef } from './record.ts';

/**
 * Above either limit a collection moves to a tree (docs/memory-tier.md, "Small collections"). The count
 * must fit its byte, a length 15 bits.
 */
export const PACKED_BYTES_MAX = 768;
export const PACKED_COUNT_MAX = 128;

/** The payload as it is now, in memory of its own: what moves to a tree is read from there. */
export function detachedPayload(value: ValueRef): ValueRef {
  const memory = new Slice();
  freshMemory(value.length, memory);
  value.u8.copy(memory.u8, memory.start, value.start, value.start + value.length);
  const detached = new ValueRef(value.ground);
  detached.look(memory.u8, memory.view, memory.start, value.length, false);
  return detached;
}

/** The payload of one open value, seen as packed elements. Offsets are from the payload's start. */
export abstract class Packed {
  protected readonly value: ValueRef;

  constructor(value: ValueRef) {
    this.value = value;
  }

  get count(): number {
    const { value } = this;
    return value.length === 0 ? 0 : value.u8[value.start];
  }

  /** Bytes of the element at an index into the chunk. */
  abstract elementBytes(u8: Buffer, at: number): number;

  /** Where the element of that rank begins; the end for the count. */
  offset(rank: number): number {
    const { u8, start, length } = this.value;
    if (rank >= this.count) return Math.max(1, length);
    let at = start + 1;
    for (; rank > 0; rank--) at += this.elementBytes(u8, at);
    return at - start;
  }

  /** Where the element after the one at an offset begins. */
  after(offset: number): number {
    const { u8, start } = this.value;
    return offset + this.elementBytes(u8, start + offset);
  }

  /** Whether one more element of `bytes` bytes may be packed. */
  hasRoom(bytes: number): boolean {
    return this.value.length + bytes <= PACKED_BYTES_MAX && this.count < PACKED_COUNT_MAX;
  }

  /** Opens a gap for a new element of `bytes` bytes and counts it; the caller fills it. */
  open(offset: number, bytes: number): void {
    const { value } = this;
    const count = this.count;
    const length = Math.max(1, value.length);
    value.resize(length + bytes);
    const { u8, start } = value;
    if (offset < length) u8.copyWithin(start + offset + bytes, start + offset, start + length);
    u8[start] = count + 1;
  }

  /** Takes `count` elements that begin at an offset out; with the last the key goes. */
  remove(offset: number, count: number): void {
    const { value } = this;
    const left = this.count - count;
    if (left === 0) {
      value.removeKey();
      return;
    }
    const { u8, start, length } = value;
    let end = start + offset;
    for (let j = 0; j < count; j++) end += this.elementBytes(u8, end);
    value.touch();
    u8.copyWithin(start + offset, end, start + length);
    u8[start] = left;
    value.resize(length - (end - start - offset));
  }

  /** Changes the bytes that a part of an element takes, moving what comes after it. */
  protected stretch(offset: number, from: number, to: number): void {
    const { value } = this;
    const length = value.length;
    if (to > from) value.resize(length + to - from);
    else value.touch();
    const { u8, start } = value;
    if (to !== from) u8.copyWithin(start + offset + to, start + offset + from, start + length);
    if (to < from) value.resize(length + to - from);
  }

  /** The same for bytes that may be damaged, and end at `end`; -1 when there is no element. */
  protected abstract checkedBytes(u8: Buffer, at: number, end: number): number;

  /** Null, or what is wrong with the payload. */
  check(): string | null {
    const { u8, start, length } = this.value;
    if (length === 0) return null;
    const end = start + length;
    let at = start + 1;
    for (let rank = 0; rank < this.count; rank++) {
      const bytes = this.checkedBytes(u8, at, end);
      if (bytes < 0) return `element ${rank} is damaged`;
      at += bytes;
    }
    if (this.count === 0) return 'there are no elements';
    return at === end ? null : 'the elements do not fill the record';
  }
}

/** Bytes that an item of `length` bytes takes. */
export function itemBytes(length: number): number {
  return length < 128 ? length + 1 : length + 2;
}

/** Of elements that are compared: where each begins, and a number that tells most of them apart. */
const offsets = new Int32Array(256);
const signs = new Int32Array(256);

export class PackedItems extends Packed {
  private readonly prefix: number;
  private readonly items: number;

  constructor(value: ValueRef, prefix: number, items: number) {
    super(value);
    this.prefix = prefix;
    this.items = items;
  }

  elementBytes(u8: Buffer, at: number): number {
    let end = at + this.prefix;
    for (let item = 0; item < this.items; item++) {
      const length = u8[end];
      end += length < 128 ? length + 1 : (((length & 127) << 8) | u8[end + 1]) + 2;
    }
    return end - at;
  }

  protected override checkedBytes(u8: Buffer, at: number, end: number): number {
    let pos = at + this.prefix;
    for (let item = 0; item < this.items; item++) {
      if (pos >= end) return -1;
      let length = u8[pos++];
      if (length > 127) {
        length = ((length & 127) << 8) | u8[pos++];
        if (length < 128) return -1;
      }
      pos += length;
      if (pos > end) return -1;
    }
    return pos - at;
  }

  /** After `check`: null, or which first item occurs twice. */
  checkTwins(): string | null {
    const { u8, start } = this.value;
    const { count, prefix } = this;
    for (let rank = 0, at = start + 1; rank < count; rank++, at += this.elementBytes(u8, at)) {
      const from = at + prefix;
      const length = u8[from] < 128 ? u8[from] : ((u8[from] & 127) << 8) | u8[from + 1];
      const last = from + (length < 128 ? length : length + 1);
      const sign = length | (u8[last - (length >>> 1)] << 16) | (u8[last] << 24);
      for (let other = 0; other < rank; other++)
        if (
          signs[other] === sign &&
          u8.compare(u8, offsets[other], offsets[other] + last + 1 - from, from, last + 1) === 0
        )
          return `elements ${other} and ${rank} are the same`;
      signs[rank] = sign;
      offsets[rank] = from;
    }
    return null;
  }

  /** Offset of the element whose first item is `key`; -1 when there is none. */
  find(key: Slice): number {
    const { u8, start, length } = this.value;
    const { prefix, items } = this;
    const from = key.u8;
    const keyStart = key.start;
    const keyLength = key.end - keyStart;
    // Names in one collection tend to begin alike and to end differently. (Before an empty item lies its length, 0.)
    const last = keyLength === 0 ? 0 : from[key.end - 1];
    const end = start + length;
    for (let element = start + 1; element < end;) {
      let at = element + prefix;
      let size = u8[at++];
      if (size > 127) size = ((size & 127) << 8) | u8[at++];
      if (size === keyLength && u8[at + size - 1] === last) {
        let same = 0;
        while (same < size && u8[at + same] === from[keyStart + same]) same++;
        if (same === size) return element - start;
      }
      at += size;
      for (let item = 1; item < items; item++) {
        size = u8[at++];
        if (size > 127) size = ((size & 127) << 8) | u8[at++];
        at += size;
      }
      element = at;
    }
    return -1;
  }

  /** Points `into` at an item of the element at an offset. */
  item(offset: number, index: number, into: Slice): void {
    const { u8, view, start } = this.value;
    let at = start + offset + this.prefix;
    for (; ; index--) {
      let size = u8[at++];
      if (size > 127) size = ((size & 127) << 8) | u8[at++];
      if (index === 0) {
        into.set(u8, view, at, at + size);
        return;
      }
      at += size;
    }
  }

  /** Writes an item at an offset; returns the offset after it. */
  write(offset: number, item: Slice): number {
    const { u8, start } = this.value;
    const length = item.end - item.start;
    let at = start + offset;
    if (length > 127) u8[at++] = 0x80 | (length >>> 8);
    u8[at++] = length & 0xff;
    copyBytes(item.u8, item.start, u8, at, length);
    return at + length - start;
  }

  /** Replaces the second item of the element at an offset. */
  replaceSecond(offset: number, first: Slice, second: Slice): void {
    const { u8, start } = this.value;
    const at = offset + this.prefix + itemBytes(first.end - first.start);
    const old = u8[start + at];
    const bytes = old < 128 ? old + 1 : (((old & 127) << 8) | u8[start + at + 1]) + 2;
    this.stretch(at, bytes, itemBytes(second.end - second.start));
    this.write(at, second);
  }
}
