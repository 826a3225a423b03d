/**
 * The tree of a long string: its bytes by position, so that a change rewrites only the pages that it
 * touches. A leaf is its header and up to a page of bytes, each an element; all leaves but the last
 * are full.
 */
import type { Slice } from '../bytes/slice.ts';
import { copyBytes, HEADER_BYTES, pageHead, PageType } from './page.ts';
import type { Pages } from './pages.ts';
import { Tree } from './tree.ts';

export class ExtentTree extends Tree {
  /** Bytes that a leaf holds. */
  readonly capacity: number;

  constructor(pages: Pages) {
    super(pages, 0);
    this.capacity = pages.pageBytes - HEADER_BYTES;
  }

  protected override resetLeaf(ref: number): void {
    const { arena } = this;
    const w = (ref & arena.unitMask) << 2;
    arena.i32[ref >>> arena.chunkShift][w] = pageHead(PageType.Leaf);
    arena.i32[ref >>> arena.chunkShift][w + 1] = 0;
  }

  /** Makes sure that `bytes` more can be appended. */
  reserveBytes(bytes: number): void {
    this.reserve(Math.ceil(bytes / this.capacity) + 2);
  }

  /** Appends bytes [start, end) of a memory. */
  append(u8: Buffer, start: number, end: number): void {
    while (start < end) start += this.extend(end - start, u8, start);
  }

  /** Appends zero bytes. */
  appendZeros(count: number): void {
    for (let left = count; left > 0;) left -= this.extend(left, null, 0);
  }

  /** Fills the last leaf, or a new one, with up to `length` bytes, zero without a source; returns how many fitted. */
  private extend(length: number, source: Buffer | null, start: number): number {
    const { arena } = this;
    this.toEnd();
    if (this.slot === this.capacity) {
      const right = this.pages.allocate(PageType.Leaf);
      this.resetLeaf(right);
      this.separatorData = 0;
      this.linkRight(right, 0);
      this.toEnd();
    }
    const run = Math.min(length, this.capacity - this.slot);
    const chunk = this.leaf >>> arena.chunkShift;
    const page = (this.leaf & arena.unitMask) << 4;
    const at = page + HEADER_BYTES + this.slot;
    arena.touch(this.leaf);
    if (source === null) arena.u8[chunk].fill(0, at, at + run);
    else copyBytes(source, start, arena.u8[chunk], at, run);
    arena.i32[chunk][page >>> 2] += run;
    this.addToCounts(run);
    return run;
  }

  /** Overwrites bytes from `offset` on; all of them exist. */
  overwrite(offset: number, u8: Buffer, start: number, end: number): void {
    const { arena } = this;
    if (start >= end) return;
    this.select(offset);
    do {
      const run = Math.min(end - start, this.entries(this.leaf) - this.slot);
      arena.touch(this.leaf);
      const at = ((this.leaf & arena.unitMask) << 4) + HEADER_BYTES + this.slot;
      copyBytes(u8, start, arena.u8[this.leaf >>> arena.chunkShift], at, run);
      start += run;
    } while (start < end && this.nextLeaf());
  }

  /** Calls `visit` with each run of the bytes [start, end), in order. */
  forEachRun(start: number, end: number, into: Slice, visit: (run: Slice) => void): void {
    const { arena } = this;
    let left = Math.min(end, this.count) - start;
    if (left <= 0 || !this.select(start)) return;
    do {
      const chunk = this.leaf >>> arena.chunkShift;
      const at = ((this.leaf & arena.unitMask) << 4) + HEADER_BYTES + this.slot;
      const run = Math.min(left, this.entries(this.leaf) - this.slot);
      into.set(arena.u8[chunk], arena.view[chunk], at, at + run);
      visit(into);
      left -= run;
    } while (left > 0 && this.nextLeaf());
  }

  /** Copies the bytes [start, end), which exist, to `to` at `at`. */
  read(start: number, end: number, to: Buffer, at: number): void {
    const { arena } = this;
    if (start >= end) return;
    this.select(start);
    for (let left = end - start; ;) {
      const from = ((this.leaf & arena.unitMask) << 4) + HEADER_BYTES + this.slot;
      const run = Math.min(left, this.entries(this.leaf) - this.slot);
      copyBytes(arena.u8[this.leaf >>> arena.chunkShift], from, to, at, run);
      at += run;
      left -= run;
      if (left === 0 || !this.nextLeaf()) return;
    }
  }

  byteAt(offset: number): number {
    const { arena } = this;
    if (!this.select(offset)) return 0;
    const at = ((this.leaf & arena.unitMask) << 4) + HEADER_BYTES + this.slot;
    return arena.u8[this.leaf >>> arena.chunkShift][at];
  }

  /** What is wrong with a leaf, or null; for TreeCheck.positional. */
  checkLeaf(ref: number): string | null {
    const entries = this.entries(ref);
    if (entries > this.capacity) return `${entries} bytes in a leaf`;
    return null;
  }
}
