/**
 * The counted B+tree: inner pages, the way to a leaf, ranks, and how splits and merges spread upwards.
 * What leaves hold is the business of subclasses: entries ordered by key (tree-keyed.ts), list elements
 * (tree-list.ts), bytes (tree-extent.ts).
 *
 * An inner page is a slotted page (page.ts); a slot is the words of a separator, the child's page
 * number, the number of elements below it, and a data word for the separator's bytes. A separator is
 * not greater than anything below its child and greater than anything before; that of slot 0 is not
 * used. Leaves are not linked: neighbours are reached through the path, so that a split changes no
 * third page.
 *
 * One tree object serves many trees, one after the other: `open` points it at one; `root`, `height` and
 * `count` belong to the collection's descriptor, which its owner saves after each change.
 */
import { freeOverflow } from './page-overflow.ts';
import {
  closeSlots,
  compactPage,
  copyBytes,
  COUNT_MASK,
  claimData,
  gapBytes,
  HEADER_WORDS,
  KEY_SHIFT,
  LENGTH_MASK,
  LENGTH_SHIFT,
  middleSlot,
  moveTail,
  OFFSET_MASK,
  openSlot,
  OVERFLOW_BIT,
  PageType,
  releaseData,
  resetSlotted,
  usedBytes,
} from './page.ts';
import { SLAB_BYTES } from './arena.ts';
import type { Pages } from './pages.ts';
import { TreeCursor } from './tree-cursor.ts';

/** Counts are positive signed words. */
const MAX_COUNT = 0x7fffffff;
/** Pages are merged below the first share of use when together they stay below the second. */
const MERGE_BELOW = 0.35;
const MERGED_MAX = 0.85;

/** Slabs that a change of more than one tree or block wants to spare before it begins. */
export const SPARE_SLABS = 4;

export abstract class Tree extends TreeCursor {
  /** Bytes of use below which a page is merged with a neighbour, and which both together must not exceed. */
  protected readonly mergeBelow: number;
  protected readonly mergedMax: number;

  /** The separator that is on its way to an inner page. */
  protected separator0 = 0;
  protected separator1 = 0;
  protected separatorU8: Buffer;
  protected separatorStart = 0;
  /** The data word without its offset. */
  protected separatorData = 0;

  constructor(pages: Pages, keyWords: number) {
    super(pages, keyWords);
    this.mergeBelow = Math.floor(pages.pageBytes * MERGE_BELOW);
    this.mergedMax = Math.floor(pages.pageBytes * MERGED_MAX);
    this.separatorU8 = Buffer.alloc(0);
  }

  /** Begins an empty tree: one leaf. */
  create(): void {
    const ref = this.pages.allocate(PageType.Leaf);
    this.resetLeaf(ref);
    this.open(this.pages.number(ref), 0, 0);
  }

  /** Makes a page an empty leaf. */
  protected abstract resetLeaf(ref: number): void;

  /** Before something is added: there is memory for it, with slabs to spare, and for every page of the path to split. */
  protected reserve(extraPages: number, spareSlabs = 0): void {
    if (this.count === MAX_COUNT) throw new RangeError(`a collection holds at most ${MAX_COUNT} elements`);
    const pages = this.height + 2 + extraPages;
    this.arena.reserve(pages * this.pages.pageBytes + spareSlabs * SLAB_BYTES);
  }

  /** Elements were added to or taken from the cursor's leaf. */
  protected addToCounts(delta: number): void {
    const { arena, innerStride: stride } = this;
    const offset = HEADER_WORDS + this.keyWords + 1;
    this.count += delta;
    this.selected = -1;
    for (let level = 0; level < this.height; level++) {
      const ref = this.pathRef[level];
      arena.touch(ref);
      arena.i32[ref >>> arena.chunkShift][
        ((ref & arena.unitMask) << 2) + offset + this.pathSlot[level] * stride
      ] += delta;
    }
  }

  /** Links the page that the cursor's leaf was split into, with the separator in `separator…`. */
  protected linkRight(right: number, rightCount: number): void {
    this.selected = -1;
    const number = this.pages.number(right);
    if (this.height === 0) {
      this.growRoot(this.count - rightCount, number, rightCount);
      return;
    }
    this.moveCount(this.height - 1, rightCount);
    this.insertChild(this.height - 1, this.pathSlot[this.height - 1] + 1, number, rightCount);
  }

  /** Links a page that comes before the cursor's leaf, in a tree without separators; the leaf's count includes its elements. */
  protected linkLeft(left: number, leftCount: number): void {
    this.selected = -1;
    this.separatorData = 0;
    const number = this.pages.number(left);
    if (this.height === 0) {
      const right = this.root;
      this.root = number;
      this.growRoot(leftCount, right, this.count - leftCount);
      return;
    }
    this.moveCount(this.height - 1, leftCount);
    this.insertChild(this.height - 1, this.pathSlot[this.height - 1], number, leftCount);
  }

  /** Takes what went to a new page off the count of the page on the path. */
  private moveCount(level: number, moved: number): void {
    const { arena } = this;
    const ref = this.pathRef[level];
    arena.touch(ref);
    const w = (ref & arena.unitMask) << 2;
    const at = w + HEADER_WORDS + this.pathSlot[level] * this.innerStride + this.keyWords + 1;
    arena.i32[ref >>> arena.chunkShift][at] -= moved;
  }

  private growRoot(leftCount: number, right: number, rightCount: number): void {
    const { arena, keyWords } = this;
    const ref = this.pages.allocate(PageType.Inner);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const at = openSlot(i32, (ref & arena.unitMask) << 2, 0, this.innerStride);
    for (let j = 0; j < keyWords; j++) i32[at + j] = -0x80000000;
    i32[at + keyWords] = this.root;
    i32[at + keyWords + 1] = leftCount;
    i32[at + keyWords + 2] = 0;
    this.putChild(ref, 1, right, rightCount);
    this.root = this.pages.number(ref);
    this.height++;
  }

  /** Writes a slot with the separator; there is room. */
  private putChild(ref: number, slot: number, child: number, count: number): void {
    const { arena, keyWords } = this;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const length = (this.separatorData >>> LENGTH_SHIFT) & LENGTH_MASK;
    let at = openSlot(i32, w, slot, this.innerStride);
    if (keyWords > 0) i32[at++] = this.separator0;
    if (keyWords > 1) i32[at++] = this.separator1;
    i32[at++] = child;
    i32[at++] = count;
    const top = claimData(i32, w, length);
    copyBytes(this.separatorU8, this.separatorStart, arena.u8[chunk], (w << 2) + top, length);
    i32[at] = this.separatorData | top;
  }

  private fitsAfterCompaction(ref: number, need: number): boolean {
    const { arena, innerStride: stride } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const gap = gapBytes(i32, w, stride);
    if (gap >= need) return true;
    if (gap + (i32[w + 1] >>> 16) < need) return false;
    compactPage(arena, ref, stride, this.pages.pageBytes);
    return true;
  }

  /** Puts a child with the separator into the inner page at `level` of the path, splitting it when it is full. */
  private insertChild(level: number, slot: number, child: number, count: number): void {
    const { arena, innerStride: stride } = this;
    const ref = this.pathRef[level];
    const need = stride * 4 + ((this.separatorData >>> LENGTH_SHIFT) & LENGTH_MASK);
    arena.touch(ref);
    if (this.fitsAfterCompaction(ref, need)) {
      this.putChild(ref, slot, child, count);
      return;
    }
    const entries = this.entries(ref);
    // At the end nothing moves, so that pages filled in order stay full.
    const middle =
      slot === entries
        ? entries
        : middleSlot(
            arena.i32[ref >>> arena.chunkShift],
            (ref & arena.unitMask) << 2,
            stride,
            this.pages.pageBytes,
          );
    const right = this.splitPage(ref, middle, PageType.Inner, stride);
    const toRight = slot > middle || middle === entries;
    const target = toRight ? right : ref;
    if (!this.fitsAfterCompaction(target, need)) throw new Error('an inner page that was split has no room');
    this.putChild(target, toRight ? slot - middle : slot, child, count);
    const rightCount = this.countBelow(right);
    this.takeSeparator(right, 0);
    const number = this.pages.number(right);
    if (level === 0) {
      this.growRoot(this.count - rightCount, number, rightCount);
      return;
    }
    this.moveCount(level - 1, rightCount);
    this.insertChild(level - 1, this.pathSlot[level - 1] + 1, number, rightCount);
  }

  /** Moves the slots from `slot` on to a new page, which is returned. */
  protected splitPage(ref: number, slot: number, type: PageType, stride: number): number {
    const right = this.pages.allocate(type);
    moveTail(this.arena, ref, slot, right, stride, this.pages.pageBytes);
    return right;
  }

  /** Elements below an inner page. */
  private countBelow(ref: number): number {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    let at = w + HEADER_WORDS + this.keyWords + 1;
    let sum = 0;
    for (let left = i32[w] & COUNT_MASK; left > 0; left--, at += this.innerStride) sum += i32[at];
    return sum;
  }

  /** Takes the separator of a slot into `separator…`; the slot is left without bytes. */
  private takeSeparator(ref: number, slot: number): void {
    const { arena, keyWords } = this;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const at = w + HEADER_WORDS + slot * this.innerStride;
    const data = i32[at + keyWords + 2];
    this.separator0 = i32[at];
    this.separator1 = i32[at + 1];
    this.separatorU8 = arena.u8[chunk];
    this.separatorStart = (w << 2) + (data & OFFSET_MASK);
    this.separatorData = data & ~OFFSET_MASK;
    if (data !== 0) releaseData(i32, w, data);
    i32[at + keyWords + 2] = 0;
  }

  /** Gives up the bytes of a slot's separator. */
  private dropSeparator(ref: number, slot: number): void {
    this.takeSeparator(ref, slot);
    if ((this.separatorData & OVERFLOW_BIT) === 0) return;
    const { arena } = this;
    const view = arena.view[ref >>> arena.chunkShift];
    freeOverflow(this.pages, view.getInt32(this.separatorStart, true));
  }

  /** The cursor's leaf became empty: takes it out of the tree, with the inner pages that become empty. */
  protected removeLeaf(): void {
    if (this.height === 0) {
      this.resetLeaf(this.leaf);
      return;
    }
    this.pages.free(this.leaf);
    this.removeChild(this.height - 1);
  }

  /** Takes the slot on the path out of the inner page at `level`; its child is gone already. */
  protected removeChild(level: number): void {
    const { arena, innerStride: stride } = this;
    const ref = this.pathRef[level];
    const slot = this.pathSlot[level];
    arena.touch(ref);
    this.dropSeparator(ref, slot);
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    closeSlots(i32, w, slot, 1, stride);
    const entries = i32[w] & COUNT_MASK;
    if (entries === 0) {
      if (level > 0) {
        this.pages.free(ref);
        this.removeChild(level - 1);
      } else {
        this.height = 0;
        this.resetLeaf(ref);
      }
      return;
    }
    if (slot === 0) this.dropSeparator(ref, 0);
    if (level === 0) this.shrinkRoot();
    else if (usedBytes(i32, w, stride, this.pages.pageBytes) < this.mergeBelow) this.mergeInner(level);
  }

  /** A root with one child gives way to the child. */
  private shrinkRoot(): void {
    let ref = this.pages.ref(this.root);
    while (this.height > 0 && this.entries(ref) === 1) {
      this.arena.touch(ref);
      this.dropSeparator(ref, 0);
      this.root = this.childNumber(ref, 0);
      this.pages.free(ref);
      this.height--;
      ref = this.pages.ref(this.root);
    }
  }

  /** Merges the inner page at `level` with a neighbour when both are small enough. */
  private mergeInner(level: number): void {
    const parent = this.pathRef[level - 1];
    const slot = this.pathSlot[level - 1];
    if (slot + 1 < this.entries(parent)) {
      if (this.mergeInnerPair(level - 1, slot)) return;
    }
    if (slot > 0) this.mergeInnerPair(level - 1, slot - 1);
  }

  /** Merges the children `slot` and `slot + 1` of the inner page at `level`. False when they do not fit, or one is not in memory. */
  private mergeInnerPair(level: number, slot: number): boolean {
    const { arena, keyWords, innerStride: stride } = this;
    const { pageBytes } = this.pages;
    const parent = this.pathRef[level];
    const left = this.pages.resident(this.childNumber(parent, slot));
    const right = this.pages.resident(this.childNumber(parent, slot + 1));
    if (left === 0 || right === 0) return false;
    if (
      this.innerUsed(left) + this.innerUsed(right) + this.separatorBytes(parent, slot + 1) >
      this.mergedMax
    ) {
      return false;
    }
    arena.touch(parent);
    arena.touch(left);
    arena.touch(right);
    const chunk = left >>> arena.chunkShift;
    const l = (left & arena.unitMask) << 2;
    compactPage(arena, left, stride, pageBytes);
    const joint = arena.i32[chunk][l] & COUNT_MASK;
    moveTail(arena, right, 0, left, stride, pageBytes);
    // The parent's separator comes down before the first slot that moved, which had none.
    this.takeSeparator(parent, slot + 1);
    const at = l + HEADER_WORDS + joint * stride;
    if (keyWords > 0) arena.i32[chunk][at] = this.separator0;
    if (keyWords > 1) arena.i32[chunk][at + 1] = this.separator1;
    const length = (this.separatorData >>> LENGTH_SHIFT) & LENGTH_MASK;
    const top = claimData(arena.i32[chunk], l, length);
    copyBytes(this.separatorU8, this.separatorStart, arena.u8[chunk], (l << 2) + top, length);
    arena.i32[chunk][at + keyWords + 2] = this.separatorData | top;
    this.pages.free(right);
    this.joinCounts(level, slot);
    return true;
  }

  /** The child after `slot` was merged into it: its count moves and its slot goes. */
  protected joinCounts(level: number, slot: number): void {
    const { arena } = this;
    const parent = this.pathRef[level];
    const i32 = arena.i32[parent >>> arena.chunkShift];
    const w = (parent & arena.unitMask) << 2;
    const at = w + HEADER_WORDS + slot * this.innerStride + this.keyWords + 1;
    i32[at] += i32[at + this.innerStride];
    this.pathSlot[level] = slot + 1;
    this.removeChild(level);
  }

  private innerUsed(ref: number): number {
    const { arena } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    return usedBytes(i32, (ref & arena.unitMask) << 2, this.innerStride, this.pages.pageBytes);
  }

  private separatorBytes(ref: number, slot: number): number {
    const { arena } = this;
    const w = ((ref & arena.unitMask) << 2) + HEADER_WORDS + slot * this.innerStride + this.keyWords + 2;
    return (arena.i32[ref >>> arena.chunkShift][w] >>> LENGTH_SHIFT) & LENGTH_MASK;
  }

  /** Resets a page as an empty slotted leaf. */
  protected resetSlottedLeaf(ref: number): void {
    const { arena } = this;
    resetSlotted(
      arena.i32[ref >>> arena.chunkShift],
      (ref & arena.unitMask) << 2,
      PageType.Leaf,
      this.pages.pageBytes,
    );
  }

  protected static dataWord(keyLength: number, length: number): number {
    return (keyLength << KEY_SHIFT) | (length << LENGTH_SHIFT);
  }
}
