/**
 * A counted B+tree as it is read: finding elements by rank, ranks of elements, steps from leaf to leaf.
 * tree.ts describes the pages.
 */
import type { Arena } from './arena.ts';
import { COUNT_MASK, HEADER_WORDS } from './page.ts';
import type { Pages } from './pages.ts';

/** Higher than any tree that fits the page numbers. */
export const MAX_HEIGHT = 40;

export class TreeCursor {
  readonly arena: Arena;
  readonly pages: Pages;
  /** Words of a key, 0 to 2. */
  readonly keyWords: number;
  /** Words of an inner slot. */
  readonly innerStride: number;

  root = 0;
  height = 0;
  count = 0;

  /** The cursor: a leaf's block and an entry in it, with the inner pages and slots that lead there. */
  leaf = 0;
  slot = 0;
  /** The cursor's rank while it stands where `select` put it and nothing changed; -1 otherwise. */
  protected selected = -1;
  /** Offset of the selected element in its leaf once a tree that must walk to it has done so; -1 before. */
  protected selectedOffset = -1;
  protected readonly pathRef = new Int32Array(MAX_HEIGHT);
  protected readonly pathSlot = new Int32Array(MAX_HEIGHT);

  constructor(pages: Pages, keyWords: number) {
    this.pages = pages;
    this.arena = pages.arena;
    this.keyWords = keyWords;
    this.innerStride = keyWords + 3;
  }

  open(root: number, height: number, count: number): void {
    this.root = root;
    this.height = height;
    this.count = count;
    this.selected = -1;
  }

  /** Entries of a page. */
  entries(ref: number): number {
    return this.arena.i32[ref >>> this.arena.chunkShift][(ref & this.arena.unitMask) << 2] & COUNT_MASK;
  }

  /** The block of a child. */
  childRef(ref: number, slot: number): number {
    return this.pages.ref(this.childNumber(ref, slot));
  }

  /** The page number of a child. */
  childNumber(ref: number, slot: number): number {
    const { arena } = this;
    const w = ((ref & arena.unitMask) << 2) + HEADER_WORDS + slot * this.innerStride + this.keyWords;
    return arena.i32[ref >>> arena.chunkShift][w];
  }

  /** Moves the cursor to the element of that rank; without a search when it is there. False when there is none. */
  select(rank: number): boolean {
    if (rank < 0 || rank >= this.count) return false;
    if (rank !== this.selected) this.descend(rank);
    return true;
  }

  private descend(rank: number): void {
    this.selected = rank;
    this.selectedOffset = -1;
    const { arena, height, innerStride: stride, pathRef, pathSlot } = this;
    const offset = HEADER_WORDS + this.keyWords + 1;
    let ref = this.pages.ref(this.root);
    let total = this.count;
    for (let level = 0; level < height; level++) {
      const i32 = arena.i32[ref >>> arena.chunkShift];
      const w = (ref & arena.unitMask) << 2;
      const first = w + offset;
      let slot = 0;
      let at = first;
      let below: number;
      // Counts are added up from the nearer end.
      if (rank * 2 <= total) {
        for (; rank >= (below = i32[at]); at += stride, slot++) rank -= below;
      } else {
        slot = (i32[w] & COUNT_MASK) - 1;
        at += slot * stride;
        let after = total - rank;
        for (; after > (below = i32[at]); at -= stride, slot--) after -= below;
        rank = below - after;
      }
      pathRef[level] = ref;
      pathSlot[level] = slot;
      total = below;
      ref = this.pages.ref(i32[at - 1]);
    }
    this.leaf = ref;
    this.slot = rank;
  }

  /** The cursor's rank: elements before it. */
  rank(): number {
    const { arena, innerStride: stride } = this;
    const offset = HEADER_WORDS + this.keyWords + 1;
    let rank = this.slot;
    let total = this.count;
    for (let level = 0; level < this.height; level++) {
      const ref = this.pathRef[level];
      const slot = this.pathSlot[level];
      const i32 = arena.i32[ref >>> arena.chunkShift];
      const w = (ref & arena.unitMask) << 2;
      const entries = i32[w] & COUNT_MASK;
      const here = w + offset + slot * stride;
      if (slot * 2 <= entries) {
        for (let at = w + offset; at < here; at += stride) rank += i32[at];
      } else {
        rank += total;
        for (let at = w + offset + (entries - 1) * stride; at >= here; at -= stride) rank -= i32[at];
      }
      total = i32[here];
    }
    return rank;
  }

  /** Moves the cursor to the first entry of the next leaf. False at the end, the cursor stays. */
  nextLeaf(): boolean {
    let level = this.height - 1;
    while (level >= 0 && this.pathSlot[level] + 1 >= this.entries(this.pathRef[level])) level--;
    if (level < 0) return false;
    this.selected = -1;
    this.pathSlot[level]++;
    this.leaf = this.descendEdge(level, false);
    this.slot = 0;
    return true;
  }

  /** Moves the cursor to the last entry of the leaf before. False at the beginning, the cursor stays. */
  previousLeaf(): boolean {
    let level = this.height - 1;
    while (level >= 0 && this.pathSlot[level] === 0) level--;
    if (level < 0) return false;
    this.selected = -1;
    this.pathSlot[level]--;
    this.leaf = this.descendEdge(level, true);
    this.slot = this.entries(this.leaf) - 1;
    return true;
  }

  /** From the path at `level` down along the left or right edge; returns the leaf. */
  private descendEdge(level: number, right: boolean): number {
    let ref = this.childRef(this.pathRef[level], this.pathSlot[level]);
    for (level++; level < this.height; level++) {
      const slot = right ? this.entries(ref) - 1 : 0;
      this.pathRef[level] = ref;
      this.pathSlot[level] = slot;
      ref = this.childRef(ref, slot);
    }
    return ref;
  }

  /** Moves the cursor behind the last entry. */
  protected toEnd(): void {
    this.selected = -1;
    this.leaf = this.height === 0 ? this.pages.ref(this.root) : this.enterRight();
    this.slot = this.entries(this.leaf);
  }

  private enterRight(): number {
    const root = this.pages.ref(this.root);
    this.pathRef[0] = root;
    this.pathSlot[0] = this.entries(root) - 1;
    return this.descendEdge(0, true);
  }

  protected isFirstLeaf(): boolean {
    for (let level = 0; level < this.height; level++) if (this.pathSlot[level] !== 0) return false;
    return true;
  }

  protected isLastLeaf(): boolean {
    for (let level = 0; level < this.height; level++) {
      if (this.pathSlot[level] !== this.entries(this.pathRef[level]) - 1) return false;
    }
    return true;
  }
}
