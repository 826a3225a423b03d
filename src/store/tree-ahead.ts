/**
 * Ways through a tree found ahead: pipelined requests for members of one large hash or set would each
 * wait for memory at every level, one after the other. Here all of them go down together, level by
 * level, in loops short enough for their waits to overlap, and what they find is kept: a request that
 * runs goes on from the lowest inner page.
 *
 * What is found holds as long as no inner page comes, goes or splits (`CollectionTable.shape`). The slot
 * within the lowest inner page and that within the leaf are where searches begin: other requests may
 * have moved them meanwhile.
 */
import type { Slice } from '../bytes/slice.ts';
import { PREFETCH_KEYS_MAX } from './api.ts';
import type { Arena } from './arena.ts';
import type { Hasher } from './hash.ts';
import { COUNT_MASK, HEADER_WORDS, OFFSET_MASK } from './page.ts';
import type { Pages } from './pages.ts';

/** Words of a line of the processor's cache. */
const LINE_WORDS = 16;
const LINE_BYTES = 64;
/** Trees that are lower have few pages, which are in the caches. */
const HEIGHT_MIN = 2;
/** Trees that are higher are not read ahead. */
const HEIGHT_MAX = 6;
/** Words of a slot of an inner page and of a leaf, in trees of one key word and no payload. */
const INNER_STRIDE = 4;
const LEAF_STRIDE = 2;
/** In place of the end of a member whose way is not known. */
const NO_WAY = -1;
const LOWEST = -0x80000000;
const HIGHEST = 0x7fffffff;

export class TreeAhead {
  /** Inner pages and slots on the ways: by level and member, `level * PREFETCH_KEYS_MAX + member`. */
  readonly pathRef = new Int32Array(HEIGHT_MAX * PREFETCH_KEYS_MAX);
  readonly pathSlot = new Int32Array(HEIGHT_MAX * PREFETCH_KEYS_MAX);
  readonly hashes = new Int32Array(PREFETCH_KEYS_MAX);
  /** Words that bound what is below the lowest inner page. */
  readonly lows = new Int32Array(PREFETCH_KEYS_MAX);
  readonly highs = new Int32Array(PREFETCH_KEYS_MAX);
  /** Slots in the leaves. */
  readonly leafSlot = new Int32Array(PREFETCH_KEYS_MAX);

  private readonly arena: Arena;
  private readonly hasher: Hasher;
  private readonly pages: Pages;
  /** The members: bytes [starts[i], ends[i]) of `memory`, in ascending order. */
  private memory: Buffer | null = null;
  private readonly starts = new Int32Array(PREFETCH_KEYS_MAX);
  private readonly ends = new Int32Array(PREFETCH_KEYS_MAX);
  private readonly refs = new Int32Array(PREFETCH_KEYS_MAX);
  private readonly dataAt = new Int32Array(PREFETCH_KEYS_MAX);
  private count = 0;
  private next = 0;
  private root = 0;
  private height = 0;
  /** `CollectionTable.shape` when the ways were found. */
  private shape = 0;
  /** Takes what is read, so that the compiler cannot leave the reads out. */
  taken = 0;

  constructor(pages: Pages, hasher: Hasher) {
    this.pages = pages;
    this.arena = pages.arena;
    this.hasher = hasher;
  }

  /**
   * Goes the ways to `members` in the tree of one key word whose descriptor stands at a place. They lie in
   * one memory, in this order, which stays as it is until the next round or `end`.
   */
  begin(
    i32: Int32Array,
    payload: number,
    descriptor: number,
    members: readonly Slice[],
    count: number,
  ): void {
    this.end();
    const height = i32[descriptor + 1];
    if (height < HEIGHT_MIN || height > HEIGHT_MAX) return;
    const { pages, starts, ends, hashes, hasher } = this;
    pages.open(i32[payload], i32[descriptor + 3], i32[descriptor + 4]);
    this.root = i32[descriptor];
    this.height = height;
    this.shape = pages.table.shape;
    for (let i = 0; i < count; i++) {
      const { view, start, end } = members[i];
      starts[i] = start;
      ends[i] = end;
      hashes[i] = hasher.hashRange(view, start, end);
    }
    const root = pages.peek(this.root);
    if (root === 0) return;
    this.refs.fill(root, 0, count);
    this.lows.fill(LOWEST, 0, count);
    this.highs.fill(HIGHEST, 0, count);
    for (let level = 0; level < height; level++) {
      if (level > 0) this.readInner(count);
      if (!this.descend(level, count)) return;
    }
    this.readLeaves(count);
    this.searchLeaves(count);
    this.memory = members[0].u8;
    this.count = count;
  }

  /** The memory of the members changes, or the tree was put back to what it was. */
  end(): void {
    this.memory = null;
    this.count = 0;
    this.next = 0;
  }

  /** The number of the member in the round; -1 when it is not one of those that are still to come. */
  indexOf(member: Slice): number {
    if (this.count === 0 || member.u8 !== this.memory) return -1;
    const { starts, ends, count } = this;
    let { next } = this;
    while (next < count && starts[next] < member.start) next++;
    this.next = next;
    return next < count && starts[next] === member.start && ends[next] === member.end ? next : -1;
  }

  /** Whether the ways are still ways through this tree. */
  isOf(pages: Pages, root: number, height: number): boolean {
    return (
      this.shape === pages.table.shape &&
      this.pages.slot === pages.slot &&
      this.root === root &&
      this.height === height &&
      !pages.table.residents.tracking
    );
  }

  /** Reads where the searches of the next level will be. */
  private readInner(count: number): void {
    const { refs, hashes, lows, highs } = this;
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    const wordMask = (unitMask << 2) | 3;
    let taken = 0;
    for (let i = 0; i < count; i++) {
      const words = chunks[refs[i] >>> chunkShift];
      const w = (refs[i] & unitMask) << 2;
      const low = lows[i];
      const slot = (((hashes[i] - low) / (highs[i] - low)) * (words[w] & COUNT_MASK)) | 0;
      taken ^= words[(w + HEADER_WORDS + slot * INNER_STRIDE) & wordMask];
    }
    this.taken = taken;
  }

  /** Finds the slots in the inner pages of one level, and the pages below; false when one of these is not in memory. */
  private descend(level: number, count: number): boolean {
    const path = level * PREFETCH_KEYS_MAX;
    const above = level < this.height - 1;
    const { ends, refs, hashes, lows, highs, pathRef, pathSlot, pages } = this;
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    for (let i = 0; i < count; i++) {
      const ref = refs[i];
      const words = chunks[ref >>> chunkShift];
      const base = ((ref & unitMask) << 2) + HEADER_WORDS;
      const entries = words[base - HEADER_WORDS] & COUNT_MASK;
      const word = hashes[i];
      const low = lows[i];
      const high = highs[i];
      // As SearchTree: the first slot from 1 on whose word is not below, which bounds the child before it.
      let slot = high > low ? (((word - low) / (high - low)) * entries) | 0 : 1;
      if (slot < 1) slot = 1;
      while (slot < entries && words[base + slot * INNER_STRIDE] < word) slot++;
      while (slot > 1 && words[base + (slot - 1) * INNER_STRIDE] >= word) slot--;
      if (slot < entries) {
        highs[i] = words[base + slot * INNER_STRIDE];
        // Which way it is here, the bytes of the keys tell.
        if (above && highs[i] === word) ends[i] = NO_WAY;
      }
      if (slot > 1) lows[i] = words[base + (slot - 1) * INNER_STRIDE];
      pathRef[path + i] = ref;
      pathSlot[path + i] = slot - 1;
      refs[i] = words[base + (slot - 1) * INNER_STRIDE + 1];
    }
    let all = true;
    for (let i = 0; i < count; i++) if ((refs[i] = pages.peek(refs[i])) === 0) all = false;
    return all;
  }

  /** Reads the first lines of the leaves, and their marks. */
  private readLeaves(count: number): void {
    const { refs, arena } = this;
    const { i32: chunks, chunkShift, unitMask } = arena;
    let taken = 0;
    for (let i = 0; i < count; i++) {
      const words = chunks[refs[i] >>> chunkShift];
      const w = (refs[i] & unitMask) << 2;
      taken ^= words[w] ^ words[w + LINE_WORDS] ^ arena.peekMarks(refs[i]);
    }
    this.taken = taken;
  }

  /** Finds the slots in the leaves, and reads the entries there, or where new ones will be written. */
  private searchLeaves(count: number): void {
    const { refs, hashes, lows, highs, leafSlot, dataAt } = this;
    const { i32: chunks, chunkShift, unitMask } = this.arena;
    for (let i = 0; i < count; i++) {
      const ref = refs[i];
      const words = chunks[ref >>> chunkShift];
      const w = (ref & unitMask) << 2;
      const base = w + HEADER_WORDS;
      const entries = words[w] & COUNT_MASK;
      const word = hashes[i];
      const low = lows[i];
      const high = highs[i];
      let slot = high > low ? (((word - low) / (high - low)) * entries) | 0 : 0;
      while (slot < entries && words[base + slot * LEAF_STRIDE] < word) slot++;
      while (slot > 0 && words[base + (slot - 1) * LEAF_STRIDE] >= word) slot--;
      leafSlot[i] = slot;
      const at = base + slot * LEAF_STRIDE;
      const met = slot < entries && words[at] === word;
      const offset = met ? words[at + 1] & OFFSET_MASK : (words[w + 1] & 0xffff) - 2 * LINE_BYTES;
      dataAt[i] = w + (Math.max(0, offset) >>> 2);
    }
    // Where an entry lies at the end of a chunk, the next line is that at the chunk's beginning.
    const wordMask = (unitMask << 2) | 3;
    let taken = 0;
    for (let i = 0; i < count; i++) {
      const words = chunks[refs[i] >>> chunkShift];
      taken ^= words[dataAt[i]] ^ words[(dataAt[i] + LINE_WORDS) & wordMask];
    }
    this.taken = taken;
  }
}
