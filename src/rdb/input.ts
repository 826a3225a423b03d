/**
 * The bytes of a file as they come, and what they are made of: lengths, strings, numbers.
 *
 * What is not complete yet is read again from the start of its item when more bytes have come: every
 * method here throws INCOMPLETE when bytes are missing, and the reader goes back to where the item began.
 */
import { constants } from 'node:buffer';
import { allocatePadded, viewOf, type Slice } from '../bytes/slice.ts';
import { Crc64 } from './crc64.ts';
import { Damage } from './error.ts';
import { StringEncoding } from './format.ts';
import { lzfDecompress, LZF_RATIO_MAX } from './lzf.ts';
import type { Text } from './text.ts';

/** Thrown when the item needs bytes that have not come. */
export const INCOMPLETE = new Error('more bytes are needed');

/** The length that stands for "not known" in a stream group: 2^64 - 1. */
export const LENGTH_UNKNOWN = -1;

const TWO_32 = 0x1_0000_0000;
const NOTHING = allocatePadded(0);
/** Bytes of an item that is not complete, which most often fit behind a piece without new memory. */
const SLACK = 64 * 1024;

export class RdbInput {
  u8: Buffer = NOTHING;
  view: DataView = viewOf(this.u8.buffer);
  /** Next byte to read. */
  pos = 0;
  /** Where the bytes that have come end. */
  end = 0;
  /** Where the item begins that is being read. */
  item = 0;
  /** Offset in the file of `u8[0]`. */
  base = 0;
  /** Bytes of the whole file; Infinity when not known. */
  size: number;
  /** The item needs the file up to this offset. */
  private needed = 0;
  readonly crc = new Crc64();
  /** The checksum covers what is before this place. */
  private summed = 0;

  constructor(size: number) {
    this.size = size;
  }

  /** Offset in the file. */
  get offset(): number {
    return this.base + this.pos;
  }

  /** Takes bytes. False as long as the item in progress is known to need more. */
  append(bytes: Uint8Array): boolean {
    const length = bytes.length;
    if (this.end + length > this.u8.length) this.makeRoom(length);
    this.u8.set(bytes, this.end);
    this.end += length;
    return this.base + this.end >= this.needed;
  }

  private makeRoom(length: number): void {
    this.sum(this.item);
    const { u8, item, end } = this;
    const kept = end - item;
    if (kept + length <= u8.length) {
      u8.copyWithin(0, item, end);
    } else {
      if (kept + length > constants.MAX_LENGTH - 16) throw new Damage('a value is too long to be read');
      // With room for the beginning of an item, or for as much again of a long one.
      const wanted = Math.max(kept + length + Math.min(length, SLACK), 2 * kept);
      const grown = allocatePadded(Math.min(constants.MAX_LENGTH - 16, wanted));
      u8.copy(grown, 0, item, end);
      this.u8 = grown;
      this.view = viewOf(grown.buffer);
    }
    this.base += item;
    this.pos -= item;
    this.end = kept;
    this.summed = 0;
    this.item = 0;
  }

  /** Brings the checksum up to a place. */
  sum(to: number): void {
    this.crc.update(this.u8, this.view, this.summed, to);
    this.summed = to;
  }

  /** What was read up to here is not read again. */
  commit(): void {
    this.item = this.pos;
  }

  /** Makes sure that `length` more bytes are there. */
  need(length: number): void {
    if (this.pos + length > this.end) this.short(this.pos + length);
  }

  private short(to: number): never {
    const needed = this.base + to;
    if (needed > this.size) {
      throw new Damage(`the file ends at ${this.size}, and what begins here goes on to ${needed}`);
    }
    this.needed = needed;
    throw INCOMPLETE;
  }

  byte(): number {
    this.need(1);
    return this.u8[this.pos++];
  }

  /** A length or count. LENGTH_UNKNOWN for 2^64 - 1. */
  length(): number {
    const first = this.byte();
    switch (first >>> 6) {
      case 0:
        return first;
      case 1:
        return ((first & 0x3f) << 8) | this.byte();
      case 2:
        return this.longLength(first);
      default:
        this.pos--;
        throw new Damage('a length was expected and a string stands there');
    }
  }

  private longLength(first: number): number {
    if (first === 0x80) {
      this.need(4);
      this.pos += 4;
      return this.view.getUint32(this.pos - 4, false);
    }
    if (first !== 0x81) throw new Damage(`no length begins with byte ${first}`);
    this.need(8);
    this.pos += 8;
    const high = this.view.getUint32(this.pos - 8, false);
    const low = this.view.getUint32(this.pos - 4, false);
    if (high === 0xffffffff && low === 0xffffffff) return LENGTH_UNKNOWN;
    if (high >= 1 << 21) throw new Damage('a length is beyond 2^53');
    return high * TWO_32 + low;
  }

  /** A count of things that take at least `bytesEach` bytes each. */
  count(bytesEach: number): number {
    const count = this.length();
    if (count === LENGTH_UNKNOWN || this.base + this.pos + count * bytesEach > this.size) {
      throw new Damage(
        `${count === LENGTH_UNKNOWN ? '2^64 - 1' : count} elements are announced, more than the file can hold`,
      );
    }
    return count;
  }

  /** A length of 64 bits, as it is. */
  length64(into: DataView, at: number): void {
    const first = this.byte();
    if (first === 0x81) {
      this.need(8);
      into.setBigUint64(at, this.view.getBigUint64(this.pos, false), false);
      this.pos += 8;
    } else {
      this.pos--;
      const length = this.length();
      into.setUint32(at, Math.floor(length / TWO_32), false);
      into.setUint32(at + 4, length % TWO_32, false);
    }
  }

  /** Milliseconds of Unix time: i64 little endian, kept within safe integers. */
  milliseconds(): number {
    this.need(8);
    const low = this.view.getUint32(this.pos, true);
    const high = this.view.getInt32(this.pos + 4, true);
    this.pos += 8;
    if (high >= 1 << 21) return Number.MAX_SAFE_INTEGER;
    return high < -(1 << 21) ? Number.MIN_SAFE_INTEGER : high * TWO_32 + low;
  }

  double(): number {
    this.need(8);
    this.pos += 8;
    return this.view.getFloat64(this.pos - 8, true);
  }

  /** A string. The text is valid until the item ends. */
  text(into: Text): void {
    const { u8, pos } = this;
    if (pos + 2 > this.end) this.need(1);
    const first = u8[pos];
    let start: number;
    let length: number;
    if (first < 0x40) {
      start = pos + 1;
      length = first;
    } else if (first < 0x80) {
      this.need(2);
      start = pos + 2;
      length = ((first & 0x3f) << 8) | u8[pos + 1];
    } else if (first < 0xc0) {
      length = this.length();
      if (length === LENGTH_UNKNOWN) throw new Damage('a string of 2^64 - 1 bytes');
      start = this.pos;
    } else {
      this.pos++;
      this.encodedText(first & 0x3f, into);
      return;
    }
    const end = start + length;
    if (end > this.end) this.short(end);
    into.show(u8, this.view, start, end);
    this.pos = end;
  }

  private encodedText(encoding: number, into: Text): void {
    switch (encoding) {
      case StringEncoding.Int8:
        this.need(1);
        into.setInteger(this.view.getInt8(this.pos));
        this.pos += 1;
        return;
      case StringEncoding.Int16:
        this.need(2);
        into.setInteger(this.view.getInt16(this.pos, true));
        this.pos += 2;
        return;
      case StringEncoding.Int32:
        this.need(4);
        into.setInteger(this.view.getInt32(this.pos, true));
        this.pos += 4;
        return;
      case StringEncoding.Lzf: {
        const compressed = this.length();
        const length = this.length();
        if (
          compressed === LENGTH_UNKNOWN ||
          length === LENGTH_UNKNOWN ||
          length > compressed * LZF_RATIO_MAX
        ) {
          throw new Damage(`${compressed} compressed bytes cannot be a string of ${length}`);
        }
        this.need(compressed);
        if (length > constants.MAX_LENGTH - 16) throw new Damage('a value is too long to be read');
        const to = into.make(length);
        if (!lzfDecompress(this.u8, this.pos, this.pos + compressed, to, 0, length)) {
          throw new Damage('a compressed string is damaged');
        }
        this.pos += compressed;
        return;
      }
      default:
        this.pos--;
        throw new Damage(`unknown string encoding ${encoding}`);
    }
  }

  /** The length of a string that is written as it is, if it is above `above` bytes; else -1 and nothing is read. */
  plainLengthAbove(above: number): number {
    this.need(1);
    const first = this.u8[this.pos];
    if (first < 0x80 || first >= 0xc0) return -1;
    const from = this.pos;
    const length = this.length();
    if (length > above) return length;
    this.pos = from;
    return -1;
  }

  /** Passes over `length` bytes that must be there. */
  skip(length: number): void {
    this.need(length);
    this.pos += length;
  }

  /** The next `length` bytes, to be read before the item ends. */
  bytes(length: number, into: Slice): void {
    this.need(length);
    into.set(this.u8, this.view, this.pos, this.pos + length);
    this.pos += length;
  }
}
