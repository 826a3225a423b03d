/**
 * The tree of entries ordered by key: sets (hash words, member), hashes (the same with a value), both
 * orders of sorted sets, the expiry index, streams (by id) and their groups.
 *
 * A leaf is a slotted page; a slot is the words of the key, payload words (a sorted set's score by
 * member) and the data word, whose data is the bytes of the key followed by those of the value.
 * Entries of more than a third of a page go to overflow pages, so that a page split in two always has
 * room for one more.
 */
import { copyBetween } from '../bytes/copy.ts';
import { Slice } from '../bytes/slice.ts';
import { CELL_BYTES, copyOverflow, freeOverflow, overflowPages, writeOverflow } from './page-overflow.ts';
import {
  claimData,
  closeSlots,
  compactPage,
  COUNT_MASK,
  gapBytes,
  HEADER_BYTES,
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
  usedBytes,
} from './page.ts';
import type { Pages } from './pages.ts';
import { SearchTree } from './tree-search.ts';
import { SPARE_SLABS } from './tree.ts';

/** No value: the entries of a set. */
export const NO_VALUE = new Slice();

export class KeyedTree extends SearchTree {
  /** Most bytes of key and value that an entry keeps in its leaf. */
  readonly inlineMax: number;

  private readonly cell = Slice.from(Buffer.alloc(CELL_BYTES));
  private readonly separatorCopy: Buffer;
  private readonly keyOfLeft = new Slice();
  private readonly keyOfRight = new Slice();

  constructor(pages: Pages, keyWords: 1 | 2, payloadWords = 0) {
    super(pages, keyWords, payloadWords);
    const widest = Math.max(this.leafStride, this.innerStride) * 4;
    this.inlineMax = Math.floor((pages.pageBytes - HEADER_BYTES) / 3) - widest;
    this.separatorCopy = Buffer.alloc(this.inlineMax);
  }

  protected override resetLeaf(ref: number): void {
    this.resetSlottedLeaf(ref);
  }

  /**
   * Adds the key, which the last `find` did not meet, with its value and payload words. The slices must
   * not lie in this collection's pages. The cursor is lost.
   */
  insert(word0: number, word1: number, key: Slice, value: Slice, payload0 = 0, payload1 = 0): void {
    const length = key.end - key.start + value.end - value.start;
    const large = length > this.inlineMax;
    this.reserve(large ? overflowPages(length, this.pages.pageBytes) : 0);
    const need = this.leafStride * 4 + (large ? CELL_BYTES : length);
    if (!this.makeRoom(need)) {
      this.split(word0, word1, key);
      this.find(word0, word1, key);
      if (!this.makeRoom(need)) throw new Error('a page that was split has no room for the entry');
    }
    this.arena.touch(this.leaf);
    this.addToCounts(1);
    const { arena, keyWords } = this;
    const ref = this.leaf;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const at = openSlot(i32, w, this.slot, this.leafStride);
    i32[at] = word0;
    if (keyWords > 1) i32[at + 1] = word1;
    const rest = this.leafStride - keyWords;
    if (rest > 1) {
      i32[at + keyWords] = payload0;
      if (rest > 2) i32[at + keyWords + 1] = payload1;
    }
    i32[at + this.leafStride - 1] = this.putData(ref, key, value);
  }

  /** Writes an entry's bytes, or its overflow chain and cell, for which there is room; returns the data word. */
  private putData(ref: number, key: Slice, value: Slice): number {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const keyLength = key.end - key.start;
    const valueLength = value.end - value.start;
    const length = keyLength + valueLength;
    if (length > this.inlineMax) {
      const top = claimData(i32, w, CELL_BYTES);
      const first = writeOverflow(this.pages, key, value);
      const view = arena.view[chunk];
      const at = (w << 2) + top;
      view.setInt32(at, first, true);
      view.setInt32(at + 4, keyLength, true);
      view.setInt32(at + 8, valueLength, true);
      return OVERFLOW_BIT | (CELL_BYTES << LENGTH_SHIFT) | top;
    }
    const top = claimData(i32, w, length);
    const at = (w << 2) + top;
    const u8 = arena.u8[chunk];
    const view = arena.view[chunk];
    copyBetween(key.u8, key.view, key.start, u8, view, at, keyLength);
    if (valueLength > 0)
      copyBetween(value.u8, value.view, value.start, u8, view, at + keyLength, valueLength);
    return top | (keyLength << KEY_SHIFT) | (length << LENGTH_SHIFT);
  }

  /** True when the cursor's leaf has room for `need` bytes, if need be after compaction. */
  private makeRoom(need: number): boolean {
    const { arena, leafStride: stride } = this;
    const ref = this.leaf;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const gap = gapBytes(i32, w, stride);
    if (gap >= need) return true;
    if (gap + (i32[w + 1] >>> 16) < need) return false;
    arena.touch(ref);
    compactPage(arena, ref, stride, this.pages.pageBytes);
    return true;
  }

  /**
   * Splits the cursor's leaf, which has no room at the cursor for the key: in the middle, or, when the
   * key comes after all others, behind its end, so that leaves filled in order stay full.
   */
  private split(word0: number, word1: number, key: Slice): void {
    const { arena, leafStride: stride } = this;
    const ref = this.leaf;
    const entries = this.entries(ref);
    const append = this.slot === entries && this.isLastLeaf();
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    arena.touch(ref);
    const middle = append ? entries : middleSlot(i32, w, stride, this.pages.pageBytes);
    const right = this.splitPage(ref, middle, PageType.Leaf, stride);
    if (append) {
      this.separate(ref, word0, word1, key);
    } else {
      const first = ((right & arena.unitMask) << 2) + HEADER_WORDS;
      const words = arena.i32[right >>> arena.chunkShift];
      this.keyAt(right, 0, this.keyOfRight);
      this.separate(ref, words[first], this.keyWords > 1 ? words[first + 1] : 0, this.keyOfRight);
    }
    this.linkRight(right, entries - middle);
  }

  /** Sets the separator: the shortest that is above the last entry of `left` and not above the key. */
  private separate(left: number, word0: number, word1: number, key: Slice): void {
    const { arena } = this;
    const last = this.entries(left) - 1;
    const i32 = arena.i32[left >>> arena.chunkShift];
    const at = ((left & arena.unitMask) << 2) + HEADER_WORDS + last * this.leafStride;
    this.separator0 = word0;
    this.separator1 = word1;
    this.separatorData = 0;
    if (i32[at] !== word0 || (this.keyWords > 1 && i32[at + 1] !== word1)) return;
    this.keyAt(left, last, this.keyOfLeft);
    const length = commonPrefix(this.keyOfLeft, key) + 1;
    if (length <= this.inlineMax) {
      key.u8.copy(this.separatorCopy, 0, key.start, key.start + length);
      this.separatorData = (length << KEY_SHIFT) | (length << LENGTH_SHIFT);
      this.separatorU8 = this.separatorCopy;
      this.separatorStart = 0;
      return;
    }
    const prefix = this.keyOfLeft;
    prefix.set(key.u8, key.view, key.start, key.start + length);
    const cell = this.cell;
    cell.view.setInt32(0, writeOverflow(this.pages, prefix, NO_VALUE), true);
    cell.view.setInt32(4, length, true);
    cell.view.setInt32(8, 0, true);
    this.separatorData = OVERFLOW_BIT | (CELL_BYTES << LENGTH_SHIFT);
    this.separatorU8 = cell.u8;
    this.separatorStart = 0;
  }

  /** Makes sure that a few changes of this and other trees, with keys of `bytes` bytes in all, do not run out of memory. */
  reserveFor(bytes: number): void {
    this.reserve(overflowPages(bytes, this.pages.pageBytes) + this.height + 2, SPARE_SLABS);
  }

  /** Removes the entry at the cursor. The cursor is lost. */
  remove(): void {
    this.removeRun(1);
  }

  /** Removes `run` entries from the cursor on, all in its leaf. The cursor is lost. */
  private removeRun(run: number): void {
    const { arena, leafStride: stride } = this;
    const ref = this.leaf;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    arena.touch(ref);
    let at = w + HEADER_WORDS + this.slot * stride + stride - 1;
    for (let j = 0; j < run; j++, at += stride) this.dropData(ref, i32[at]);
    closeSlots(i32, w, this.slot, run, stride);
    this.addToCounts(-run);
    if ((i32[w] & COUNT_MASK) === 0) this.removeLeaf();
    else if (usedBytes(i32, w, stride, this.pages.pageBytes) < this.mergeBelow) this.mergeLeaf();
  }

  /** Removes `count` entries from a rank on. */
  removeRange(rank: number, count: number): void {
    for (let left = Math.min(count, this.count - rank); left > 0;) {
      this.select(rank);
      const run = Math.min(left, this.entries(this.leaf) - this.slot);
      this.removeRun(run);
      left -= run;
    }
  }

  /** Removes the entries that `doomed` names, which is asked with the cursor at each of them, in their order. */
  removeWhere(doomed: () => boolean): void {
    for (let rank = 0; this.select(rank);) {
      this.selected = -1;
      const entries = this.entries(this.leaf);
      const begin = this.slot;
      while (this.slot < entries && !doomed()) this.slot++;
      const first = this.slot;
      while (this.slot < entries && doomed()) this.slot++;
      const run = this.slot - first;
      this.slot = first;
      rank += first - begin;
      if (run > 0) this.removeRun(run);
    }
  }

  private dropData(ref: number, data: number): void {
    const { arena } = this;
    const w = (ref & arena.unitMask) << 2;
    if ((data & OVERFLOW_BIT) !== 0) {
      const at = (w << 2) + (data & OFFSET_MASK);
      freeOverflow(this.pages, arena.view[ref >>> arena.chunkShift].getInt32(at, true));
    }
    releaseData(arena.i32[ref >>> arena.chunkShift], w, data);
  }

  /** Merges the cursor's leaf with a neighbour when both are small enough. */
  private mergeLeaf(): void {
    const level = this.height - 1;
    if (level < 0) return;
    const parent = this.pathRef[level];
    const slot = this.pathSlot[level];
    if (slot + 1 < this.entries(parent) && this.mergeLeafPair(level, slot)) return;
    if (slot > 0) this.mergeLeafPair(level, slot - 1);
  }

  private mergeLeafPair(level: number, slot: number): boolean {
    const { arena, leafStride: stride } = this;
    const { pageBytes } = this.pages;
    const parent = this.pathRef[level];
    const left = this.pages.resident(this.childNumber(parent, slot));
    const right = this.pages.resident(this.childNumber(parent, slot + 1));
    if (left === 0 || right === 0) return false;
    const to = left >>> arena.chunkShift;
    const from = right >>> arena.chunkShift;
    const l = (left & arena.unitMask) << 2;
    const r = (right & arena.unitMask) << 2;
    const moved = usedBytes(arena.i32[from], r, stride, pageBytes);
    if (usedBytes(arena.i32[to], l, stride, pageBytes) + moved > this.mergedMax) return false;
    arena.touch(parent);
    arena.touch(left);
    arena.touch(right);
    if (gapBytes(arena.i32[to], l, stride) < moved) compactPage(arena, left, stride, pageBytes);
    moveTail(arena, right, 0, left, stride, pageBytes);
    this.pages.free(right);
    this.joinCounts(level, slot);
    return true;
  }

  /** Replaces the value of the entry at the cursor, whose key is given. The cursor is lost. */
  replaceValue(key: Slice, value: Slice): void {
    const { arena } = this;
    const ref = this.leaf;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const at = ((ref & arena.unitMask) << 2) + HEADER_WORDS + this.slot * this.leafStride;
    const data = i32[at + this.leafStride - 1];
    const keyLength = (data >>> KEY_SHIFT) & LENGTH_MASK;
    const length = (data >>> LENGTH_SHIFT) & LENGTH_MASK;
    const valueLength = value.end - value.start;
    if ((data & OVERFLOW_BIT) === 0 && length - keyLength === valueLength) {
      arena.touch(ref);
      const offset = ((ref & arena.unitMask) << 4) + (data & OFFSET_MASK) + keyLength;
      copyBetween(value.u8, value.view, value.start, arena.u8[chunk], arena.view[chunk], offset, valueLength);
      return;
    }
    // Whatever slabs are begun meanwhile, what is taken out below must be possible to put back.
    this.reserve(overflowPages(keyLength + valueLength, this.pages.pageBytes), SPARE_SLABS);
    arena.touch(ref);
    this.dropData(ref, data);
    i32[at + this.leafStride - 1] = 0;
    const need = key.end - key.start + valueLength;
    if (this.makeRoom(need <= this.inlineMax ? need : CELL_BYTES)) {
      i32[at + this.leafStride - 1] = this.putData(ref, key, value);
      return;
    }
    const word0 = i32[at];
    const word1 = this.keyWords > 1 ? i32[at + 1] : 0;
    this.remove();
    this.find(word0, word1, key);
    this.insert(word0, word1, key, value);
  }

  /** The payload words of the entry at the cursor. */
  payload(index: number): number {
    return this.wordAt(this.keyWords + index);
  }

  setPayload(payload0: number, payload1: number): void {
    const { arena } = this;
    arena.touch(this.leaf);
    const i32 = arena.i32[this.leaf >>> arena.chunkShift];
    const at = ((this.leaf & arena.unitMask) << 2) + HEADER_WORDS + this.slot * this.leafStride;
    i32[at + this.keyWords] = payload0;
    i32[at + this.keyWords + 1] = payload1;
  }

  /** A word of the slot at the cursor: those of the key first. */
  wordAt(index: number): number {
    const { arena } = this;
    const w = ((this.leaf & arena.unitMask) << 2) + HEADER_WORDS + this.slot * this.leafStride;
    return arena.i32[this.leaf >>> arena.chunkShift][w + index];
  }

  /** Points `key` at the key's bytes of the entry at the cursor. */
  key(key: Slice): void {
    this.keyAt(this.leaf, this.slot, key);
  }

  /** The same for an entry of any leaf. */
  keyAt(ref: number, slot: number, key: Slice): void {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const w = (ref & arena.unitMask) << 2;
    const data = arena.i32[chunk][w + HEADER_WORDS + slot * this.leafStride + this.leafStride - 1];
    const at = (w << 2) + (data & OFFSET_MASK);
    if (data < 0) {
      const view = arena.view[chunk];
      copyOverflow(this.pages, view.getInt32(at, true), view.getInt32(at + 4, true), key);
      return;
    }
    key.set(arena.u8[chunk], arena.view[chunk], at, at + ((data >>> KEY_SHIFT) & LENGTH_MASK));
  }

  /** Points `key` and `value` at the bytes of the entry at the cursor. */
  entry(key: Slice, value: Slice): void {
    const { arena } = this;
    const ref = this.leaf;
    const chunk = ref >>> arena.chunkShift;
    const u8 = arena.u8[chunk];
    const view = arena.view[chunk];
    const w = (ref & arena.unitMask) << 2;
    const data = arena.i32[chunk][w + HEADER_WORDS + this.slot * this.leafStride + this.leafStride - 1];
    const at = (w << 2) + (data & OFFSET_MASK);
    if (data < 0) {
      const keyLength = view.getInt32(at + 4, true);
      copyOverflow(this.pages, view.getInt32(at, true), keyLength + view.getInt32(at + 8, true), key);
      value.set(key.u8, key.view, key.start + keyLength, key.end);
      key.end = key.start + keyLength;
      return;
    }
    const split = at + ((data >>> KEY_SHIFT) & LENGTH_MASK);
    key.set(u8, view, at, split);
    value.set(u8, view, split, at + ((data >>> LENGTH_SHIFT) & LENGTH_MASK));
  }

  /** Moves the cursor, if it stands behind a leaf's last entry, to the next leaf. False at the end. */
  settle(): boolean {
    return this.slot < this.entries(this.leaf) || this.nextLeaf();
  }

  /** Moves the cursor to the next entry. False at the end. */
  next(): boolean {
    this.selected = -1;
    this.slot++;
    return this.settle();
  }

  /** Moves the cursor to the entry before. False at the beginning. */
  previous(): boolean {
    if (this.slot > 0) {
      this.selected = -1;
      this.slot--;
      return true;
    }
    return this.previousLeaf();
  }
}

function commonPrefix(a: Slice, b: Slice): number {
  const shorter = Math.min(a.length, b.length);
  let length = 0;
  while (length < shorter && a.u8[a.start + length] === b.u8[b.start + length]) length++;
  return length;
}
