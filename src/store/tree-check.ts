/**
 * Structural check of trees: what `ardent check` runs over every collection, and tests after every few
 * changes. It reads everything and trusts nothing but the arena's references.
 */
import { Slice } from '../bytes/slice.ts';
import { CELL_BYTES, overflowCapacity } from './page-overflow.ts';
import {
  COUNT_MASK,
  HEADER_BYTES,
  HEADER_WORDS,
  KEY_SHIFT,
  LENGTH_MASK,
  LENGTH_SHIFT,
  OFFSET_MASK,
  OVERFLOW_BIT,
  PageType,
  pageType,
} from './page.ts';
import type { Pages } from './pages.ts';
import { MAX_HEIGHT, type TreeCursor } from './tree-cursor.ts';
import type { KeyedTree } from './tree-keyed.ts';

/** What is wrong, where. */
class Damage extends Error {}

/** Goes over the pages of one collection; one object checks all its trees and then the free list. */
export class TreeCheck {
  private readonly pages: Pages;
  private readonly seen: Uint8Array;
  /** By byte of a page: how many entries it belongs to. */
  private readonly cover: Uint8Array;
  private seenPages = 0;

  constructor(pages: Pages) {
    this.pages = pages;
    this.cover = new Uint8Array(pages.pageBytes);
    // What is beyond the page table is missing, whatever the root says.
    this.seen = new Uint8Array(Math.max(0, Math.min(pages.next, pages.table.capacity(pages.slot))));
  }

  /** Null when the tree is sound, else the reason with the page's number. */
  keyed(tree: KeyedTree): string | null {
    return this.run(tree, new KeyedLeaves(tree));
  }

  /** The same for other trees, whose leaves `leaf` checks: null, or what is wrong with that leaf. */
  positional(tree: TreeCursor, leaf: (ref: number, check: TreeCheck) => string | null): string | null {
    return this.run(tree, { inlineMax: 0, leaf, separator: () => null });
  }

  /** After all trees: every page number is in a tree or free. */
  finish(): string | null {
    const free = this.pages.countFree();
    if (free < 0) return 'the list of free pages is damaged';
    const used = this.pages.next - 1 - free;
    return used === this.seenPages ? null : `${used} pages in use, ${this.seenPages} of them in trees`;
  }

  /** Counts an overflow chain of `length` bytes; null or what is wrong with it. */
  chain(first: number, length: number): string | null {
    try {
      let number = first;
      for (let left = length; ;) {
        const { i32, w } = this.enter(number, PageType.Overflow);
        const here = i32[w + 1];
        if (here !== Math.min(left, overflowCapacity(this.pages.pageBytes))) {
          return `overflow page ${number} holds ${here} bytes`;
        }
        left -= here;
        number = i32[w + 4];
        if (left === 0) return number === 0 ? null : `overflow chain ${first} is longer than its entry`;
      }
    } catch (error) {
      if (error instanceof Damage) return error.message;
      throw error;
    }
  }

  /** Checks the data words of a slotted page against its space; an entry keeps up to `inlineMax` bytes there. */
  slotted(ref: number, stride: number, inlineMax: number): string | null {
    const { cover } = this;
    const { arena, pageBytes } = this.pages;
    const chunk = ref >>> arena.chunkShift;
    const i32 = arena.i32[chunk];
    const w = (ref & arena.unitMask) << 2;
    const entries = i32[w] & COUNT_MASK;
    const top = i32[w + 1] & 0xffff;
    let live = 0;
    if (HEADER_BYTES + entries * stride * 4 > top || top > pageBytes) return 'slots overlap data';
    cover.fill(0, top, pageBytes);
    for (let slot = 0, at = w + HEADER_WORDS + stride - 1; slot < entries; slot++, at += stride) {
      const data = i32[at];
      const length = (data >>> LENGTH_SHIFT) & LENGTH_MASK;
      const offset = data & OFFSET_MASK;
      live += length;
      if (length > 0 && (offset < top || offset + length > pageBytes))
        return `data of slot ${slot} lies outside`;
      for (let byte = offset; byte < offset + length; byte++)
        if (cover[byte]++ !== 0) return `data of slot ${slot} are those of another, too`;
      if ((data & OVERFLOW_BIT) !== 0) {
        if (length !== CELL_BYTES) return `the overflow cell of slot ${slot} has ${length} bytes`;
        const view = arena.view[chunk];
        const cell = (w << 2) + offset;
        const key = view.getInt32(cell + 4, true);
        const value = view.getInt32(cell + 8, true);
        if (key < 0 || value < 0) return `the overflow cell of slot ${slot} has negative lengths`;
        const reason = this.chain(view.getInt32(cell, true), key + value);
        if (reason !== null) return reason;
      } else if (((data >>> KEY_SHIFT) & LENGTH_MASK) > length) {
        return `slot ${slot} has a key longer than its entry`;
      } else if (length > inlineMax) {
        return `slot ${slot} has an entry of ${length} bytes`;
      }
    }
    const dead = i32[w + 1] >>> 16;
    return live + dead === pageBytes - top
      ? null
      : `${pageBytes - top} data bytes, ${live} live, ${dead} dead`;
  }

  private run(tree: TreeCursor, rules: LeafRules): string | null {
    try {
      if (tree.height < 0 || tree.height > MAX_HEIGHT) throw new Damage(`a height of ${tree.height}`);
      const count = this.walk(tree, tree.root, tree.height, rules);
      return count === tree.count ? null : `root ${tree.root}: ${count} elements, ${tree.count} recorded`;
    } catch (error) {
      if (error instanceof Damage) return error.message;
      throw error;
    }
  }

  /** Elements below a page. */
  private walk(tree: TreeCursor, number: number, height: number, rules: LeafRules): number {
    const { ref, i32, w } = this.enter(number, height === 0 ? PageType.Leaf : PageType.Inner);
    const entries = i32[w] & COUNT_MASK;
    if (height === 0) {
      this.demand(number, rules.leaf(ref, this));
      if (entries === 0 && tree.height > 0) throw new Damage(`page ${number}: an empty leaf`);
      return entries;
    }
    this.demand(number, this.slotted(ref, tree.innerStride, rules.inlineMax));
    if (entries === 0) throw new Damage(`page ${number}: an inner page without children`);
    let sum = 0;
    for (let slot = 0; slot < entries; slot++) {
      const at = w + HEADER_WORDS + slot * tree.innerStride + tree.keyWords;
      if (slot > 0) this.demand(number, rules.separator(ref, slot));
      const below = this.walk(tree, i32[at], height - 1, rules);
      if (below !== i32[at + 1]) {
        throw new Damage(`page ${number}: ${below} elements below slot ${slot}, ${i32[at + 1]} recorded`);
      }
      sum += below;
    }
    return sum;
  }

  /** Looks a page up and checks its header. */
  private enter(number: number, type: PageType): { ref: number; i32: Int32Array; w: number } {
    const { arena, table, slot, next } = this.pages;
    if (number <= 0 || number >= next) throw new Damage(`page ${number} is beyond the last, ${next - 1}`);
    const ref = table.find(slot, number);
    if (ref === 0) throw new Damage(`page ${number} is missing`);
    if (this.seen[number]++ !== 0) throw new Damage(`page ${number} is used twice`);
    this.seenPages++;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const w = (ref & arena.unitMask) << 2;
    if (pageType(i32[w]) !== type)
      throw new Damage(`page ${number} is of type ${pageType(i32[w])}, not ${type}`);
    if (i32[w + 2] !== number) throw new Damage(`page ${number} says that it is ${i32[w + 2]}`);
    if (i32[w + 3] !== slot) throw new Damage(`page ${number} says that it is of collection ${i32[w + 3]}`);
    return { ref, i32, w };
  }

  private demand(number: number, reason: string | null): void {
    if (reason !== null) throw new Damage(`page ${number}: ${reason}`);
  }
}

interface LeafRules {
  /** Most bytes that an entry or a separator keeps in its page. */
  readonly inlineMax: number;
  leaf(ref: number, check: TreeCheck): string | null;
  /** A separator, before the pages that it is about are entered. */
  separator(ref: number, slot: number): string | null;
}

/** Order of entries and separators. */
class KeyedLeaves implements LeafRules {
  readonly inlineMax: number;
  private readonly tree: KeyedTree;
  private readonly last = new Slice();
  private lastWords: [number, number] | null = null;
  /** The separator that the next entry must not be below: its page and slot. */
  private pending = 0;
  private pendingSlot = 0;

  constructor(tree: KeyedTree) {
    this.tree = tree;
    this.inlineMax = tree.inlineMax;
  }

  separator(ref: number, slot: number): string | null {
    const reason =
      this.lastWords === null ? null : this.compareSeparator(ref, slot, this.lastWords, this.last);
    this.pending = ref;
    this.pendingSlot = slot;
    return reason === null || reason > 0 ? null : `separator ${slot} is not above what is before it`;
  }

  leaf(ref: number, check: TreeCheck): string | null {
    const { tree } = this;
    const reason = check.slotted(ref, tree.leafStride, tree.inlineMax);
    if (reason !== null) return reason;
    const { arena } = tree;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const entries = tree.entries(ref);
    const key = new Slice();
    for (let slot = 0; slot < entries; slot++) {
      const at = ((ref & arena.unitMask) << 2) + HEADER_WORDS + slot * tree.leafStride;
      const words: [number, number] = [i32[at], tree.keyWords > 1 ? i32[at + 1] : 0];
      tree.keyAt(ref, slot, key);
      if (this.pending !== 0) {
        if (this.compareSeparator(this.pending, this.pendingSlot, words, key) > 0)
          return 'below its separator';
        this.pending = 0;
      }
      if (this.lastWords !== null) {
        const order = words[0] - this.lastWords[0] || words[1] - this.lastWords[1] || key.compare(this.last);
        if (order <= 0) return `entry ${slot} is not above the one before`;
      }
      this.lastWords = words;
      this.last.setSlice(key);
    }
    return null;
  }

  private compareSeparator(ref: number, slot: number, words: [number, number], key: Slice): number {
    const { tree } = this;
    const { arena } = tree;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const at = ((ref & arena.unitMask) << 2) + HEADER_WORDS + slot * tree.innerStride;
    return (
      i32[at] - words[0] ||
      (tree.keyWords > 1 ? i32[at + 1] - words[1] : 0) ||
      tree.compareData(ref, i32[at + tree.innerStride - 1], key)
    );
  }
}
