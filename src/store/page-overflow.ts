/**
 * Overflow: what is too large for a page's share lies in a chain of pages of its own. In place of the
 * bytes the page holds a cell of 12: number of the chain's first page, length of the key, length of
 * the value; the chain holds key and value as one run.
 *
 * An overflow page: header (word 1: data bytes in it), word 4 the number of the next page (0 ends the
 * chain), data.
 */
import { allocatePadded, SLICE_PADDING, viewOf, type Slice } from '../bytes/slice.ts';
import { copyBytes, HEADER_BYTES, PageType, pageType } from './page.ts';
import { PageError, type Pages } from './pages.ts';

export const CELL_BYTES = 12;
const DATA_OFFSET = HEADER_BYTES + 4;

/** Bytes of a chain that one page takes. */
export function overflowCapacity(pageBytes: number): number {
  return pageBytes - DATA_OFFSET;
}

/** Pages that a run of `length` bytes takes. */
export function overflowPages(length: number, pageBytes: number): number {
  return Math.max(1, Math.ceil(length / overflowCapacity(pageBytes)));
}

/** Writes the two runs as one chain; returns its first page's number. */
export function writeOverflow(pages: Pages, key: Slice, value: Slice): number {
  const { arena } = pages;
  const capacity = overflowCapacity(pages.pageBytes);
  const keyLength = key.end - key.start;
  const length = keyLength + value.end - value.start;
  let next = 0;
  // From the end backwards, so that each page can name the one after it.
  for (let index = overflowPages(length, pages.pageBytes) - 1; index >= 0; index--) {
    const ref = pages.allocate(PageType.Overflow);
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const from = index * capacity;
    const to = Math.min(length, from + capacity);
    i32[w + 1] = to - from;
    i32[w + 4] = next;
    const at = (w << 2) + DATA_OFFSET;
    const split = Math.min(Math.max(keyLength, from), to);
    copyBytes(key.u8, key.start + from, arena.u8[chunk], at, split - from);
    copyBytes(value.u8, value.start + split - keyLength, arena.u8[chunk], at + split - from, to - split);
    next = i32[w + 2];
  }
  return next;
}

export function freeOverflow(pages: Pages, first: number): void {
  const { arena } = pages;
  for (let number = first; number !== 0;) {
    const ref = overflowPage(pages, number);
    number = arena.i32[ref >>> arena.chunkShift][((ref & arena.unitMask) << 2) + 4];
    pages.free(ref);
  }
}

/** The block of a page that must belong to a chain. */
function overflowPage(pages: Pages, number: number): number {
  const ref = pages.ref(number);
  const { arena } = pages;
  if (pageType(arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2]) !== PageType.Overflow) {
    throw new PageError(`page ${number} of collection ${pages.table.id[pages.slot]} is not an overflow page`);
  }
  return ref;
}

/** Compares the first `length` bytes of a chain with a key: as memcmp and then by length. */
export function compareOverflow(pages: Pages, first: number, length: number, key: Slice): number {
  const { arena } = pages;
  const keyLength = key.end - key.start;
  let done = 0;
  for (let number = first; number !== 0 && done < length && done < keyLength;) {
    const ref = overflowPage(pages, number);
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const run = Math.min(i32[w + 1], length - done, keyLength - done);
    const at = (w << 2) + DATA_OFFSET;
    const from = key.start + done;
    const order = arena.u8[chunk].compare(key.u8, from, from + run, at, at + run);
    if (order !== 0) return order;
    done += run;
    number = i32[w + 4];
  }
  return length - keyLength;
}

/** Copies `length` bytes of a chain to `to`. */
function readOverflow(pages: Pages, first: number, to: Buffer, at: number, length: number): void {
  const { arena } = pages;
  const end = at + length;
  for (let number = first; at < end;) {
    if (number === 0)
      throw new PageError(`an overflow chain of collection ${pages.table.id[pages.slot]} is short`);
    const ref = overflowPage(pages, number);
    const chunk = ref >>> arena.chunkShift;
    const w = (ref & arena.unitMask) << 2;
    const run = Math.min(arena.i32[chunk][w + 1], end - at);
    copyBytes(arena.u8[chunk], (w << 2) + DATA_OFFSET, to, at, run);
    at += run;
    number = arena.i32[chunk][w + 4];
  }
}

/** Calls `visit` with each run of a chain, in order. */
export function forEachOverflow(
  pages: Pages,
  first: number,
  visit: (u8: Buffer, start: number, end: number) => void,
): void {
  const { arena } = pages;
  for (let number = first; number !== 0;) {
    const ref = overflowPage(pages, number);
    const chunk = ref >>> arena.chunkShift;
    const w = (ref & arena.unitMask) << 2;
    const at = (w << 2) + DATA_OFFSET;
    visit(arena.u8[chunk], at, at + arena.i32[chunk][w + 1]);
    number = arena.i32[chunk][w + 4];
  }
}

/** Memory for contiguous copies is handed out from blocks of this size, which live as long as a slice shows them. */
const COPY_BLOCK_BYTES = 64 * 1024;
let copyBlock = allocatePadded(COPY_BLOCK_BYTES);
let copyPos = 0;

/** Points `into` at fresh, padded memory of `length` bytes that is never written again by others. */
export function freshMemory(length: number, into: Slice): void {
  if (length > COPY_BLOCK_BYTES / 4) {
    const own = allocatePadded(length);
    into.set(own, viewOf(own.buffer), 0, length);
    return;
  }
  if (copyPos + length > COPY_BLOCK_BYTES) {
    copyBlock = allocatePadded(COPY_BLOCK_BYTES);
    copyPos = 0;
  }
  into.set(copyBlock, viewOf(copyBlock.buffer), copyPos, copyPos + length);
  copyPos = (copyPos + length + SLICE_PADDING) & ~7;
}

/** Points `into` at a contiguous copy of the first `length` bytes of a chain. */
export function copyOverflow(pages: Pages, first: number, length: number, into: Slice): void {
  freshMemory(length, into);
  readOverflow(pages, first, into.u8, into.start, length);
}
