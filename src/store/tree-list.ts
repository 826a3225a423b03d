/**
 * The tree of a list: elements by position. Leaves are packed: framed elements (framing.ts) one after
 * the other with room at both ends, so that pushes and pops at either end move nothing and a range of
 * the list is a copy of whole leaves.
 *
 * Word 1 of a leaf: bits 0..15 offset of the first element, 16..31 offset after the last. An element
 * that does not fit a whole leaf is a stub there and a chain of overflow pages.
 */
import type { ByteSink } from '../bytes/sink.ts';
import type { Slice } from '../bytes/slice.ts';
import {
  checkedElementBytes,
  elementAt,
  elementBytes,
  framedBytes,
  STUB,
  STUB_BYTES,
  writeFramed,
  writeFrameHead,
} from './framing.ts';
import {
  copyOverflow,
  forEachOverflow,
  freeOverflow,
  overflowPages,
  writeOverflow,
} from './page-overflow.ts';
import { copyBytes, COUNT_MASK, FLAG_STUBS, HEADER_BYTES, pageHead, PageType } from './page.ts';
import type { Pages } from './pages.ts';
import { Tree } from './tree.ts';
import { NO_VALUE } from './tree-keyed.ts';

export class ListTree extends Tree {
  /** Bytes of elements that a leaf holds. */
  private readonly capacity: number;
  /** Offsets of a leaf's elements, for walks backwards. */
  private readonly offsets: Int32Array;
  /** The gap that was made for an element: leaf and offset in it. */
  private gapRef = 0;
  private gapOffset = 0;

  constructor(pages: Pages) {
    super(pages, 0);
    this.capacity = pages.pageBytes - HEADER_BYTES;
    this.offsets = new Int32Array(Math.ceil(this.capacity / framedBytes(0)));
  }

  protected override resetLeaf(ref: number): void {
    this.setSpace(ref, pageHead(PageType.Leaf), HEADER_BYTES, HEADER_BYTES);
  }

  private setSpace(ref: number, head: number, start: number, end: number): void {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    i32[w] = head;
    i32[w + 1] = start | (end << 16);
  }

  /** Offset in the leaf of its element number `slot`; that after the last for the number of elements. */
  private offsetOf(ref: number, slot: number): number {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const space = i32[w + 1];
    if (slot === (i32[w] & COUNT_MASK)) return space >>> 16;
    const u8 = arena.u8[chunk];
    const view = arena.view[chunk];
    const page = w << 2;
    let at = page + (space & 0xffff);
    let head = 0;
    let fifth = 0;
    let bytes = 0;
    for (; slot > 0; slot--) {
      // Elements often are as long as the one before, and a processor that expects so need not wait for each
      // length to find the next one. Five bytes hold any length of an element in a leaf, which has at most four digits.
      if (view.getInt32(at, true) !== head || u8[at + 4] !== fifth) {
        head = view.getInt32(at, true);
        fifth = u8[at + 4];
        bytes = elementBytes(u8, at);
      }
      at += bytes;
    }
    return at - page;
  }

  /** Offset of the element at the cursor in its leaf. */
  private offset(): number {
    if (this.selected < 0) return this.offsetOf(this.leaf, this.slot);
    if (this.selectedOffset < 0) this.selectedOffset = this.offsetOf(this.leaf, this.slot);
    return this.selectedOffset;
  }

  /** Inserts an element before position `index`. The slice must not lie in this list. */
  insert(index: number, element: Slice): void {
    const length = element.end - element.start;
    const framed = framedBytes(length);
    const large = framed > this.capacity;
    this.reserve(large ? overflowPages(length, this.pages.pageBytes) : 0);
    const need = large ? STUB_BYTES : framed;
    if (index < this.count) this.select(index);
    else this.toEnd();
    if (this.openGap(need)) this.addToCounts(1);
    else if (this.slot === 0 && this.isFirstLeaf()) this.beginLeaf(need);
    else this.splitFor(index, need);
    const { arena } = this;
    const chunk = this.gapRef >>> arena.chunkShift;
    const page = (this.gapRef & arena.unitMask) << 4;
    if (!large) {
      writeFramed(arena.u8[chunk], arena.view[chunk], page + this.gapOffset, element);
      return;
    }
    const view = arena.view[chunk];
    const at = page + this.gapOffset;
    view.setUint8(at, STUB);
    view.setInt32(at + 1, writeOverflow(this.pages, element, NO_VALUE), true);
    view.setInt32(at + 5, length, true);
    arena.i32[chunk][page >>> 2] |= FLAG_STUBS;
  }

  /** Makes a gap of `need` bytes in the leaf at the cursor and counts its element there. False when there is no room. */
  private openGap(need: number): boolean {
    const { arena } = this;
    const { pageBytes } = this.pages;
    const ref = this.leaf;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const start = i32[w + 1] & 0xffff;
    const end = i32[w + 1] >>> 16;
    const size = end - start;
    if (size + need > this.capacity) return false;
    arena.touch(ref);
    const u8 = arena.u8[chunk];
    const page = w << 2;
    const count = i32[w] & COUNT_MASK;
    const before = start - HEADER_BYTES;
    const after = pageBytes - end;
    let gap: number;
    if (this.slot === 0 && (count > 0 || after < need)) {
      // Without room before them all elements move to the end: more will be put before them.
      const to = before >= need ? start : pageBytes - size;
      if (to !== start) u8.copyWithin(page + to, page + start, page + end);
      gap = to - need;
      i32[w + 1] = gap | ((to + size) << 16);
    } else if (this.slot === count) {
      const to = after >= need ? start : HEADER_BYTES;
      if (to !== start) u8.copyWithin(page + to, page + start, page + end);
      gap = to + size;
      i32[w + 1] = to | ((gap + need) << 16);
    } else {
      const at = this.offsetOf(ref, this.slot);
      const nearStart = at - start < end - at;
      const down = before >= need && (nearStart || after < need) ? need : after >= need ? 0 : before;
      if (down > 0) u8.copyWithin(page + start - down, page + start, page + at);
      if (down < need) u8.copyWithin(page + at + need - down, page + at, page + end);
      gap = at - down;
      i32[w + 1] = (start - down) | ((end + need - down) << 16);
    }
    i32[w]++;
    this.gapRef = ref;
    this.gapOffset = gap;
    return true;
  }

  /** Puts a new leaf before the first one, to be filled from its end on, and makes the gap there. */
  private beginLeaf(need: number): void {
    const { pageBytes } = this.pages;
    const first = this.pages.allocate(PageType.Leaf);
    this.setSpace(first, pageHead(PageType.Leaf), pageBytes, pageBytes);
    this.leaf = first;
    this.openGap(need);
    this.addToCounts(1);
    this.linkLeft(first, 1);
  }

  /**
   * Splits the cursor's leaf, which has no room, and makes the gap for the element that is to have the
   * position `index`. Leaves filled from the end are cut there and so stay full. When the
   * halves have no room either (the element is larger than both leave), the element gets a leaf between.
   */
  private splitFor(index: number, need: number): void {
    const small = need <= this.capacity >>> 2;
    for (let round = 0; ; round++) {
      const entries = this.entries(this.leaf);
      const atEnd = this.slot === entries && this.isLastLeaf();
      const halve = round === 0 && small && !atEnd && entries > 1;
      const middle = halve ? this.middleElement(this.leaf, entries) : this.slot;
      const left = this.leaf;
      const right = this.splitLeaf(left, middle, entries);
      if (this.slot > middle || (this.slot === middle && middle === entries)) {
        this.leaf = right;
        this.slot -= middle;
      }
      let done = this.openGap(need);
      if (!done && this.slot === middle && this.leaf === left) {
        this.leaf = right;
        this.slot = 0;
        done = this.openGap(need);
      }
      if (done) this.addToCounts(1);
      this.separatorData = 0;
      this.linkRight(right, this.entries(right));
      if (done) return;
      this.select(index - 1);
      this.selected = -1;
      this.slot++;
    }
  }

  /** Moves a leaf's elements from number `middle` on to a new leaf, which is returned. */
  private splitLeaf(ref: number, middle: number, entries: number): number {
    const { arena } = this;
    const { pageBytes } = this.pages;
    arena.touch(ref);
    const right = this.pages.allocate(PageType.Leaf);
    const from = ref >>> arena.chunkShift;
    const to = right >>> arena.chunkShift;
    const w = (ref & arena.unitMask) << 2;
    const space = arena.i32[from][w + 1];
    const flags = arena.i32[from][w] & ~COUNT_MASK;
    const at = this.offsetOf(ref, middle);
    const length = (space >>> 16) - at;
    // An empty page is filled from its outer end.
    const target = length === 0 ? HEADER_BYTES : pageBytes - length;
    copyBytes(arena.u8[from], (w << 2) + at, arena.u8[to], ((right & arena.unitMask) << 4) + target, length);
    this.setSpace(right, flags | (entries - middle), target, target + length);
    if (middle === 0) this.setSpace(ref, pageHead(PageType.Leaf), pageBytes, pageBytes);
    else this.setSpace(ref, flags | middle, space & 0xffff, at);
    return right;
  }

  /** The element in the middle of a leaf's bytes, not the first. */
  private middleElement(ref: number, entries: number): number {
    const { arena } = this;
    const u8 = arena.u8[ref >>> arena.chunkShift];
    const start = this.offsetOf(ref, 0);
    const half = (start + this.offsetOf(ref, entries)) >>> 1;
    const page = (ref & arena.unitMask) << 4;
    let slot = 0;
    for (let at = start; at < half && slot < entries - 1; slot++) at += elementBytes(u8, page + at);
    return slot === 0 ? 1 : slot;
  }

  /** Removes `count` elements from a position on. */
  removeRange(index: number, count: number): void {
    for (let left = Math.min(count, this.count - index); left > 0;) {
      this.select(index);
      const run = Math.min(left, this.entries(this.leaf) - this.slot);
      this.removeRun(run);
      left -= run;
    }
  }

  /** Removes `run` elements from the cursor on, all in its leaf. The cursor is lost. */
  private removeRun(run: number): void {
    const { arena } = this;
    const ref = this.leaf;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const page = w << 2;
    const start = i32[w + 1] & 0xffff;
    const end = i32[w + 1] >>> 16;
    const stubs = (i32[w] & FLAG_STUBS) !== 0;
    const from = this.offset();
    let to = from;
    if (!stubs && this.slot + run === (i32[w] & COUNT_MASK)) to = end;
    else for (let j = 0; j < run; j++) to += elementBytes(arena.u8[chunk], page + to);
    arena.touch(ref);
    if (stubs) this.dropStubs(ref, from, to);
    if (from - start < end - to) {
      if (from > start) arena.u8[chunk].copyWithin(page + start + to - from, page + start, page + from);
      i32[w + 1] = (start + to - from) | (end << 16);
    } else {
      if (end > to) arena.u8[chunk].copyWithin(page + from, page + to, page + end);
      i32[w + 1] = start | ((end - (to - from)) << 16);
    }
    i32[w] -= run;
    this.addToCounts(-run);
    if ((i32[w] & COUNT_MASK) === 0) this.removeLeaf();
    else if (end - start - (to - from) < this.mergeBelow) this.mergeLeaf();
  }

  /** Frees the chains of the stubs between two offsets of a leaf. */
  private dropStubs(ref: number, from: number, to: number): void {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const u8 = arena.u8[chunk];
    const page = (ref & arena.unitMask) << 4;
    for (let at = page + from; at < page + to; at += elementBytes(u8, at)) {
      if (u8[at] === STUB) freeOverflow(this.pages, arena.view[chunk].getInt32(at + 1, true));
    }
  }

  private mergeLeaf(): void {
    const level = this.height - 1;
    if (level < 0) return;
    const parent = this.pathRef[level];
    const slot = this.pathSlot[level];
    if (slot + 1 < this.entries(parent) && this.mergePair(level, slot)) return;
    if (slot > 0) this.mergePair(level, slot - 1);
  }

  /** Merges the children `slot` and `slot + 1` when both are small enough. */
  private mergePair(level: number, slot: number): boolean {
    const { arena } = this;
    const parent = this.pathRef[level];
    const left = this.pages.resident(this.childNumber(parent, slot));
    const right = this.pages.resident(this.childNumber(parent, slot + 1));
    if (left === 0 || right === 0) return false;
    const l = (left & arena.unitMask) << 2;
    const r = (right & arena.unitMask) << 2;
    const to = left >>> arena.chunkShift;
    const from = right >>> arena.chunkShift;
    const leftSpace = arena.i32[to][l + 1];
    const rightSpace = arena.i32[from][r + 1];
    const leftBytes = (leftSpace >>> 16) - (leftSpace & 0xffff);
    const rightBytes = (rightSpace >>> 16) - (rightSpace & 0xffff);
    if (leftBytes + rightBytes > this.mergedMax) return false;
    arena.touch(parent);
    arena.touch(left);
    arena.touch(right);
    const start = HEADER_BYTES + ((this.capacity - leftBytes - rightBytes) >>> 1);
    const page = l << 2;
    arena.u8[to].copyWithin(page + start, page + (leftSpace & 0xffff), page + (leftSpace >>> 16));
    copyBytes(
      arena.u8[from],
      (r << 2) + (rightSpace & 0xffff),
      arena.u8[to],
      page + start + leftBytes,
      rightBytes,
    );
    const head = (arena.i32[to][l] + (arena.i32[from][r] & COUNT_MASK)) | (arena.i32[from][r] & FLAG_STUBS);
    this.setSpace(left, head, start, start + leftBytes + rightBytes);
    this.pages.free(right);
    this.joinCounts(level, slot);
    return true;
  }

  /** Points `into` at the element at the cursor. */
  element(into: Slice): void {
    this.elementIn(this.leaf, this.offset(), into);
  }

  private elementIn(ref: number, offset: number, into: Slice): void {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const at = ((ref & arena.unitMask) << 4) + offset;
    const view = arena.view[chunk];
    if (arena.u8[chunk][at] === STUB) {
      copyOverflow(this.pages, view.getInt32(at + 1, true), view.getInt32(at + 5, true), into);
    } else {
      elementAt(arena.u8[chunk], view, at, into);
    }
  }

  /** Replaces the element at a position. */
  replace(index: number, element: Slice): void {
    this.select(index);
    const { arena } = this;
    const ref = this.leaf;
    const u8 = arena.u8[ref >>> arena.chunkShift];
    const at = ((ref & arena.unitMask) << 4) + this.offsetOf(ref, this.slot);
    if (u8[at] !== STUB && elementBytes(u8, at) === framedBytes(element.length)) {
      arena.touch(ref);
      writeFramed(u8, arena.view[ref >>> arena.chunkShift], at, element);
      return;
    }
    this.insert(index, element);
    this.removeRange(index + 1, 1);
  }

  /** As List.forEachFrom. */
  forEachFrom(
    index: number,
    step: 1 | -1,
    into: Slice,
    visit: (element: Slice, index: number) => boolean,
  ): void {
    if (!this.select(index)) return;
    if (step === 1) this.forEachUp(index, into, visit);
    else this.forEachDown(index, into, visit);
  }

  private forEachUp(index: number, into: Slice, visit: (element: Slice, index: number) => boolean): void {
    do {
      const ref = this.leaf;
      const entries = this.entries(ref);
      const u8 = this.arena.u8[ref >>> this.arena.chunkShift];
      const page = (ref & this.arena.unitMask) << 4;
      let offset = this.offsetOf(ref, this.slot);
      for (let slot = this.slot; slot < entries; slot++, index++) {
        this.elementIn(ref, offset, into);
        if (!visit(into, index)) return;
        offset += elementBytes(u8, page + offset);
      }
    } while (this.nextLeaf());
  }

  private forEachDown(index: number, into: Slice, visit: (element: Slice, index: number) => boolean): void {
    const { offsets } = this;
    do {
      const ref = this.leaf;
      const u8 = this.arena.u8[ref >>> this.arena.chunkShift];
      const page = (ref & this.arena.unitMask) << 4;
      let offset = this.offsetOf(ref, 0);
      for (let slot = 0; slot <= this.slot; slot++) {
        offsets[slot] = offset;
        offset += elementBytes(u8, page + offset);
      }
      for (let slot = this.slot; slot >= 0; slot--, index--) {
        this.elementIn(ref, offsets[slot], into);
        if (!visit(into, index)) return;
      }
    } while (this.previousLeaf());
  }

  /** As List.copyFramed. */
  copyFramed(index: number, count: number, out: ByteSink): void {
    if (!this.select(index)) return;
    let left = count;
    do {
      const run = Math.min(left, this.entries(this.leaf) - this.slot);
      this.copyRun(run, out);
      left -= run;
    } while (left > 0 && this.nextLeaf());
  }

  /** Copies `run` elements from the cursor on, all in its leaf. */
  private copyRun(run: number, out: ByteSink): void {
    const { arena } = this;
    const ref = this.leaf;
    const chunk = ref >>> arena.chunkShift;
    const u8 = arena.u8[chunk];
    const w = (ref & arena.unitMask) << 2;
    const page = w << 2;
    const head = arena.i32[chunk][w];
    const from = page + this.offsetOf(ref, this.slot);
    if ((head & FLAG_STUBS) !== 0) {
      this.copyWithStubs(ref, from, run, out);
      return;
    }
    let to = from;
    if (this.slot + run === (head & COUNT_MASK)) to = page + (arena.i32[chunk][w + 1] >>> 16);
    else for (; run > 0; run--) to += elementBytes(u8, to);
    out.copy(u8, from, to);
  }

  private copyWithStubs(ref: number, at: number, run: number, out: ByteSink): void {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const u8 = arena.u8[chunk];
    for (; run > 0; run--) {
      const bytes = elementBytes(u8, at);
      if (u8[at] === STUB) {
        const length = arena.view[chunk].getInt32(at + 5, true);
        out.ensure(framedBytes(length));
        out.pos = writeFrameHead(out.u8, out.pos, length);
        forEachOverflow(this.pages, arena.view[chunk].getInt32(at + 1, true), (memory, start, end) =>
          out.copy(memory, start, end),
        );
        out.ascii('\r\n');
      } else {
        out.copy(u8, at, at + bytes);
      }
      at += bytes;
    }
  }

  /** What is wrong with a leaf, or null; for TreeCheck.positional. */
  checkLeaf(ref: number, chain: (first: number, length: number) => string | null): string | null {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const u8 = arena.u8[chunk];
    const w = (ref & arena.unitMask) << 2;
    const page = w << 2;
    const start = arena.i32[chunk][w + 1] & 0xffff;
    const end = arena.i32[chunk][w + 1] >>> 16;
    if (start < HEADER_BYTES || start > end || end > this.pages.pageBytes) return 'elements lie outside';
    let at = start;
    for (let slot = 0; slot < this.entries(ref); slot++) {
      const bytes = checkedElementBytes(u8, page + at, page + end);
      if (bytes < 0) return `element ${slot} is damaged`;
      if (u8[page + at] === STUB) {
        if ((arena.i32[chunk][w] & FLAG_STUBS) === 0) return 'a stub in a page without the flag';
        const view = arena.view[chunk];
        const reason = chain(view.getInt32(page + at + 1, true), view.getInt32(page + at + 5, true));
        if (reason !== null) return reason;
      }
      at += bytes;
    }
    return at === end ? null : `${end - at} bytes after the last element`;
  }
}
