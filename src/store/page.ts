/**
 * Pages: the blocks that larger collections are made of. A page's bytes in memory are its bytes on
 * disk, except for the word that names the collection's slot (docs/memory-tier.md has the layout).
 *
 * Header, four little-endian words:
 *   0  bits 0..15 entries, 16..18 type, 19 flag of the leaf's own use, 30..31 block kind (2: page)
 *   1  slotted pages: bits 0..15 offset of the lowest data byte, 16..31 dead bytes above it
 *      packed leaves: bits 0..15 offset of the first data byte, 16..31 offset after the last
 *      overflow pages: data bytes; free pages: number of the next free page
 *   2  the page's number within its collection
 *   3  the collection's slot in the collection table (volatile)
 *
 * A slotted page grows from both ends: fixed-size slots upwards from the header, data (members,
 * fields with values, separators) downwards from the end. The last word of a slot is its data word:
 * bits 0..10 offset in the page, 11..20 length of the key, 21..30 length of key and value together,
 * 31 set when the data is an overflow cell (page-overflow.ts) in place of the bytes.
 */

import { copyBetween } from '../bytes/copy.ts';
import { viewOf } from '../bytes/slice.ts';
import { Kind, KIND_SHIFT, type Arena } from './arena.ts';

export const HEADER_WORDS = 4;
export const HEADER_BYTES = 16;

export const PageType = { Leaf: 0, Inner: 1, Overflow: 2, Free: 3 } as const;
export type PageType = (typeof PageType)[keyof typeof PageType];

export const COUNT_MASK = 0xffff;
const TYPE_SHIFT = 16;
/** A packed leaf holds overflow stubs and so cannot be copied out as it lies. */
export const FLAG_STUBS = 1 << 19;

export const OFFSET_MASK = 0x7ff;
export const KEY_SHIFT = 11;
export const LENGTH_SHIFT = 21;
export const LENGTH_MASK = 0x3ff;
export const OVERFLOW_BIT = 1 << 31;

/** Slot moves of more words than this go through copyWithin, shorter ones through a loop. */
const LOOP_WORDS_MAX = 24;
/** The same for data bytes. */
const LOOP_BYTES_MAX = 48;

export function pageType(head: number): number {
  return (head >>> TYPE_SHIFT) & 7;
}

/** Bytes of a page that its row holds: a free page is its header alone. */
export function pageRowBytes(head: number, pageBytes: number): number {
  return pageType(head) === PageType.Free ? HEADER_BYTES : pageBytes;
}

export function pageHead(type: PageType): number {
  return (Kind.Page << KIND_SHIFT) | (type << TYPE_SHIFT);
}

/** Copies bytes between two memories, or within one. */
export function copyBytes(from: Buffer, start: number, to: Buffer, at: number, length: number): void {
  if (length <= LOOP_BYTES_MAX) {
    for (const end = start + length; start < end;) to[at++] = from[start++];
  } else if (from === to) {
    to.copyWithin(at, start, start + length);
  } else {
    from.copy(to, at, start, start + length);
  }
}

/** Makes a page an empty slotted one of the given type. */
export function resetSlotted(i32: Int32Array, w: number, type: PageType, pageBytes: number): void {
  i32[w] = pageHead(type);
  i32[w + 1] = pageBytes;
}

/** Bytes between the slots and the data. `w` is the word index of the page, here and below. */
export function gapBytes(i32: Int32Array, w: number, stride: number): number {
  return (i32[w + 1] & 0xffff) - HEADER_BYTES - (i32[w] & COUNT_MASK) * stride * 4;
}

/** Bytes in use by slots and live data. */
export function usedBytes(i32: Int32Array, w: number, stride: number, pageBytes: number): number {
  const space = i32[w + 1];
  return (i32[w] & COUNT_MASK) * stride * 4 + pageBytes - (space & 0xffff) - (space >>> 16);
}

/** Opens a gap of one slot and counts it. There must be room. Returns its word index. */
export function openSlot(i32: Int32Array, w: number, slot: number, stride: number): number {
  const count = i32[w] & COUNT_MASK;
  const from = w + HEADER_WORDS + slot * stride;
  const words = (count - slot) * stride;
  if (words > LOOP_WORDS_MAX) i32.copyWithin(from + stride, from, from + words);
  else for (let j = from + words - 1; j >= from; j--) i32[j + stride] = i32[j];
  i32[w]++;
  return from;
}

/** Takes `run` slots out. Their data must have been given up. */
export function closeSlots(i32: Int32Array, w: number, slot: number, run: number, stride: number): void {
  const count = i32[w] & COUNT_MASK;
  const to = w + HEADER_WORDS + slot * stride;
  const gap = run * stride;
  const words = (count - slot - run) * stride;
  if (words > LOOP_WORDS_MAX) i32.copyWithin(to, to + gap, to + gap + words);
  else for (let j = to, end = to + words; j < end; j++) i32[j] = i32[j + gap];
  i32[w] -= run;
}

/** Counts the data that a data word names as dead, or takes it off the top of the data. */
export function releaseData(i32: Int32Array, w: number, data: number): void {
  const length = (data >>> LENGTH_SHIFT) & LENGTH_MASK;
  if ((data & OFFSET_MASK) === (i32[w + 1] & 0xffff)) i32[w + 1] += length;
  else i32[w + 1] += length << 16;
}

/** Lowers the data by `length` bytes and returns the new offset of its lowest byte. */
export function claimData(i32: Int32Array, w: number, length: number): number {
  i32[w + 1] -= length;
  return i32[w + 1] & 0xffff;
}

const scratch = Buffer.from(new ArrayBuffer(2048));
const scratchView = viewOf(scratch.buffer);

/** Writes the live data anew, without dead bytes. */
export function compactPage(arena: Arena, ref: number, stride: number, pageBytes: number): void {
  const chunk = ref >>> arena.chunkShift;
  const i32 = arena.i32[chunk];
  const u8 = arena.u8[chunk];
  const view = arena.view[chunk];
  const w = (ref & arena.unitMask) << 2;
  const page = w << 2;
  const count = i32[w] & COUNT_MASK;
  u8.copy(scratch, 0, page, page + pageBytes);
  let top = pageBytes;
  let at = w + HEADER_WORDS + stride - 1;
  for (let j = 0; j < count; j++, at += stride) {
    const data = i32[at];
    const length = (data >>> LENGTH_SHIFT) & LENGTH_MASK;
    top -= length;
    copyBetween(scratch, scratchView, data & OFFSET_MASK, u8, view, page + top, length);
    i32[at] = (data & ~OFFSET_MASK) | top;
  }
  i32[w + 1] = top;
}

/**
 * The slot at which a page is cut into two as equal as can be, both with at least one of its entries,
 * which are at least two. Neither part exceeds half by more than half an entry: with entries of at most
 * a third of a page there is room for one more in either.
 */
export function middleSlot(i32: Int32Array, w: number, stride: number, pageBytes: number): number {
  const count = i32[w] & COUNT_MASK;
  const used = usedBytes(i32, w, stride, pageBytes);
  let slot = 0;
  let at = w + HEADER_WORDS + stride - 1;
  for (let bytes = 0; slot < count - 1; slot++, at += stride) {
    const size = stride * 4 + ((i32[at] >>> LENGTH_SHIFT) & LENGTH_MASK);
    if (2 * bytes + size > used) break;
    bytes += size;
  }
  return slot === 0 ? 1 : slot;
}

/**
 * Appends the slots [slot, count) of one page, with their data, to another that has room for them
 * without compaction, and takes them out of the first.
 */
export function moveTail(
  arena: Arena,
  from: number,
  slot: number,
  to: number,
  stride: number,
  pageBytes: number,
): void {
  const fromChunk = from >>> arena.chunkShift;
  const fromWords = arena.i32[fromChunk];
  const fromU8 = arena.u8[fromChunk];
  const fromView = arena.view[fromChunk];
  const f = (from & arena.unitMask) << 2;
  const toChunk = to >>> arena.chunkShift;
  const toWords = arena.i32[toChunk];
  const toU8 = arena.u8[toChunk];
  const toView = arena.view[toChunk];
  const t = (to & arena.unitMask) << 2;
  const moved = (fromWords[f] & COUNT_MASK) - slot;
  const toCount = toWords[t] & COUNT_MASK;
  let source = f + HEADER_WORDS + slot * stride;
  let target = t + HEADER_WORDS + toCount * stride;
  let top = toWords[t + 1] & 0xffff;
  const oldTop = top;
  for (let j = 0; j < moved; j++) {
    for (let k = 0; k < stride - 1; k++) toWords[target++] = fromWords[source++];
    const data = fromWords[source++];
    const length = (data >>> LENGTH_SHIFT) & LENGTH_MASK;
    top -= length;
    copyBetween(fromU8, fromView, (f << 2) + (data & OFFSET_MASK), toU8, toView, (t << 2) + top, length);
    toWords[target++] = (data & ~OFFSET_MASK) | top;
  }
  toWords[t] += moved;
  toWords[t + 1] -= oldTop - top;
  fromWords[f] -= moved;
  if (slot === 0) fromWords[f + 1] = pageBytes;
  else fromWords[f + 1] += (oldTop - top) << 16;
}
