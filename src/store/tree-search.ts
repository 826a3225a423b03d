/**
 * Searches within one page of a keyed tree.
 *
 * Keys are ordered by their words, as signed numbers, then by their bytes. Trees of one word hold
 * hashes, which are uniform: a page is searched by interpolation between the bounds that the way down
 * gave (the separators around the page), so that no word besides the neighbourhood of the result is
 * read. Trees of two words are searched by bisection.
 */
import type { Slice } from '../bytes/slice.ts';
import { PREFETCH_KEYS_MAX } from './api.ts';
import { compareOverflow } from './page-overflow.ts';
import { COUNT_MASK, HEADER_WORDS, KEY_SHIFT, LENGTH_MASK, OFFSET_MASK } from './page.ts';
import type { Pages } from './pages.ts';
import type { TreeAhead } from './tree-ahead.ts';
import { Tree } from './tree.ts';

const LOWEST = -0x80000000;
const HIGHEST = 0x7fffffff;

export abstract class SearchTree extends Tree {
  /** Words of a leaf slot, payload and data word included. */
  readonly leafStride: number;
  /** The last `find` met the key. */
  found = false;

  /** Words that bound the keys of the page that is searched next. */
  private low = LOWEST;
  private high = HIGHEST;
  /** Bytes that the key has in common with its nearest neighbours so far on either side that have its words. */
  private commonBelow = 0;
  private commonAbove = 0;
  /** Bytes that the last comparison found to be the same, in whole words. */
  private common = 0;

  constructor(pages: Pages, keyWords: 1 | 2, payloadWords: number) {
    super(pages, keyWords);
    this.leafStride = keyWords + payloadWords + 1;
  }

  /**
   * Moves the cursor to the key, or where it would be put; tells which. `word1` is ignored when keys
   * have one word.
   */
  find(word0: number, word1: number, key: Slice): boolean {
    const { arena, height, keyWords, innerStride: stride, pathRef, pathSlot } = this;
    this.selected = -1;
    this.low = LOWEST;
    this.high = HIGHEST;
    this.commonBelow = 0;
    this.commonAbove = 0;
    let ref = this.pages.ref(this.root);
    for (let level = 0; level < height; level++) {
      const slot =
        keyWords === 1 ? this.innerByHash(ref, word0, key) : this.innerByPair(ref, word0, word1, key);
      pathRef[level] = ref;
      pathSlot[level] = slot;
      const w = ((ref & arena.unitMask) << 2) + HEADER_WORDS + slot * stride + keyWords;
      ref = this.pages.ref(arena.i32[ref >>> arena.chunkShift][w]);
    }
    this.leaf = ref;
    this.found = false;
    this.slot =
      keyWords === 1
        ? this.leafByHash(ref, word0, key)
        : this.bisect(ref, 0, this.entries(ref), this.leafStride, word0, word1, key);
    return this.found;
  }

  /** The same in a tree of one key word, with member `i` of a way that `ahead` has found and that is still one. */
  findAlong(ahead: TreeAhead, i: number, key: Slice): boolean {
    const { arena, height, innerStride: stride, pathRef, pathSlot } = this;
    const word = ahead.hashes[i];
    this.selected = -1;
    this.low = ahead.lows[i];
    this.high = ahead.highs[i];
    this.commonBelow = 0;
    this.commonAbove = 0;
    for (let level = 0, at = i; level < height; level++, at += PREFETCH_KEYS_MAX) {
      pathRef[level] = ahead.pathRef[at];
      pathSlot[level] = ahead.pathSlot[at];
    }
    const parent = pathRef[height - 1];
    const slot = this.innerFrom(parent, pathSlot[height - 1] + 1, word, key);
    pathSlot[height - 1] = slot;
    const w = ((parent & arena.unitMask) << 2) + HEADER_WORDS + slot * stride + 1;
    this.leaf = this.pages.ref(arena.i32[parent >>> arena.chunkShift][w]);
    this.found = false;
    this.slot = this.leafFrom(this.leaf, ahead.leafSlot[i], word, key);
    return this.found;
  }

  private innerByHash(ref: number, word: number, key: Slice): number {
    const { low, high } = this;
    const slot = high > low ? (((word - low) / (high - low)) * this.entries(ref)) | 0 : 1;
    return this.innerFrom(ref, slot, word, key);
  }

  /** The last child whose separator is not above the key, searched for from a slot on; narrows the bounds. */
  private innerFrom(ref: number, slot: number, word: number, key: Slice): number {
    const { arena, innerStride: stride } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const entries = i32[w] & COUNT_MASK;
    // First slot from 1 on whose word is not below.
    if (slot < 1) slot = 1;
    else if (slot > entries) slot = entries;
    let at = w + HEADER_WORDS + slot * stride;
    if (slot < entries && i32[at] < word) {
      do {
        slot++;
        at += stride;
      } while (slot < entries && i32[at] < word);
    } else {
      for (; slot > 1 && i32[at - stride] >= word; slot--) at -= stride;
    }
    if (slot < entries && i32[at] === word) {
      slot = this.firstAbove(ref, slot, entries, word, 0, key);
      at = w + HEADER_WORDS + slot * stride;
    }
    if (slot > 1) this.low = i32[at - stride];
    if (slot < entries) this.high = i32[at];
    return slot - 1;
  }

  private leafByHash(ref: number, word: number, key: Slice): number {
    const { low, high } = this;
    const slot = high > low ? (((word - low) / (high - low)) * this.entries(ref)) | 0 : 0;
    return this.leafFrom(ref, slot, word, key);
  }

  /** The key's slot, or the first one above it, searched for from a slot on. */
  private leafFrom(ref: number, slot: number, word: number, key: Slice): number {
    const { arena, leafStride: stride } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    const entries = i32[w] & COUNT_MASK;
    if (slot > entries) slot = entries;
    let at = w + HEADER_WORDS + slot * stride;
    if (slot < entries && i32[at] < word) {
      do {
        slot++;
        at += stride;
      } while (slot < entries && i32[at] < word);
    } else {
      for (; slot > 0 && i32[at - stride] >= word; slot--) at -= stride;
    }
    if (slot === entries || i32[at] !== word) return slot;
    const order = this.compareData(ref, i32[at + stride - 1], key);
    if (order === 0) this.found = true;
    return order >= 0 ? slot : this.bisect(ref, slot + 1, entries, stride, word, 0, key);
  }

  private innerByPair(ref: number, word0: number, word1: number, key: Slice): number {
    return this.firstAbove(ref, 1, this.entries(ref), word0, word1, key) - 1;
  }

  /** First slot of an inner page within [from, end) whose separator is above the key. */
  private firstAbove(
    ref: number,
    from: number,
    end: number,
    word0: number,
    word1: number,
    key: Slice,
  ): number {
    this.found = false;
    const slot = this.bisect(ref, from, end, this.innerStride, word0, word1, key);
    return this.found ? slot + 1 : slot;
  }

  /**
   * The key's slot or the first above it, within [from, end) of a page. Everything between two
   * neighbours of the key begins with what both of them have in common with it, here and in the pages
   * below: the comparison passes over that.
   */
  private bisect(
    ref: number,
    from: number,
    end: number,
    stride: number,
    word0: number,
    word1: number,
    key: Slice,
  ): number {
    const { arena, keyWords } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const base = ((ref & arena.unitMask) << 2) + HEADER_WORDS;
    while (from < end) {
      const middle = (from + end) >>> 1;
      const at = base + middle * stride;
      const first = i32[at];
      if (first < word0) {
        from = middle + 1;
      } else if (first > word0) {
        end = middle;
      } else {
        const second = keyWords > 1 ? i32[at + 1] : word1;
        if (second < word1) {
          from = middle + 1;
        } else if (second > word1) {
          end = middle;
        } else {
          const same = Math.min(this.commonBelow, this.commonAbove);
          const order = this.compareData(ref, i32[at + stride - 1], key, same);
          if (order === 0) {
            this.found = true;
            return middle;
          }
          if (order < 0) {
            this.commonBelow = this.common;
            from = middle + 1;
          } else {
            this.commonAbove = this.common;
            end = middle;
          }
        }
      }
    }
    return from;
  }

  /**
   * Compares the key bytes that a data word of a page names with a key: as memcmp and then by length.
   * The first `same` bytes, a multiple of four, are known to be the same.
   */
  compareData(ref: number, data: number, key: Slice, same = 0): number {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const view = arena.view[chunk];
    let at = ((ref & arena.unitMask) << 4) + (data & OFFSET_MASK);
    if (data < 0) {
      this.common = 0;
      return compareOverflow(this.pages, view.getInt32(at, true), view.getInt32(at + 4, true), key);
    }
    const length = (data >>> KEY_SHIFT) & LENGTH_MASK;
    const other = key.view;
    const keyLength = key.end - key.start;
    let from = key.start + same;
    at += same;
    let left = (length < keyLength ? length : keyLength) - same;
    for (; left >= 4; left -= 4, at += 4, from += 4) {
      if (view.getInt32(at, true) !== other.getInt32(from, true)) {
        this.common = from - key.start;
        return view.getUint32(at) < other.getUint32(from) ? -1 : 1;
      }
    }
    this.common = from - key.start;
    for (; left > 0; left--) {
      const order = view.getUint8(at++) - other.getUint8(from++);
      if (order !== 0) return order;
    }
    return length - keyLength;
  }
}
