/**
 * The arena as it was at one moment, slab by slab, while it goes on changing: what SAVE and BGSAVE
 * read. Taking one costs a copy of the slab tables; each slab is copied later, in slices.
 *
 * A block that changes, goes away or is handed out while its slab is still to be copied is kept first: its
 * bytes as they were go to a pool, and over the slab's copy when that is made. So what a snapshot
 * costs beside the copies is the bytes of blocks that change under it, once each. Only records and pages are
 * kept so, and the links of free blocks; blocks of kind Plain stand in the copy as they are
 * by then.
 */
import { classUnits, SLAB_BYTES, SLAB_RUN, SLAB_RUN_REST, type Arena, type SlabTables } from './arena.ts';

const SLAB_UNIT_SHIFT = 12;
const SLAB_UNIT_MASK = (1 << SLAB_UNIT_SHIFT) - 1;

/** Memory of the pool is taken in pieces of this size; a larger block has a piece of its own. */
const PIECE_BYTES = 1024 * 1024;
const PIECE_SHIFT = 18;
const PIECE_MASK = (1 << PIECE_SHIFT) - 1;
/** Words before kept bytes: the slab's entry before this one, unit in the slab, bytes. */
const ENTRY_WORDS = 3;
/** Of a free block: the link in its first word. */
const LINK_BYTES = 4;

/** Above so many kept bytes the slabs are copied without pause, and writers and background work wait. */
export const KEPT_BYTES_HIGH = 64 * 1024 * 1024;
const KEPT_BYTES_MAX = 4 * KEPT_BYTES_HIGH;

/** States of a slab. Settled: all its blocks of then are kept, whatever becomes of it. */
const DONE = 0;
const PENDING = 1;
const SETTLED = 2;

export class ArenaSnapshot {
  /** The slab tables as they were. */
  readonly tables: SlabTables;
  /** Bytes of the pool. */
  keptBytes = 0;
  /** Slabs that were in use, and those of them not copied yet. */
  readonly slabs: number;
  remaining: number;

  private readonly arena: Arena;
  private readonly state: Uint8Array;
  /** One bit a unit, by chunk: the block that begins there is kept, or has come later. */
  private readonly seen: (Int32Array | undefined)[] = [];
  /** By slab, the word of its last entry in the pool; 0: none. */
  private readonly last: Int32Array;
  private readonly pieces: Int32Array[] = [];
  private pieceEnd = 1;
  private cursor = 0;

  constructor(arena: Arena) {
    this.arena = arena;
    this.tables = arena.slabTables();
    const { classes } = this.tables;
    this.state = new Uint8Array(classes.length);
    this.last = new Int32Array(classes.length);
    let slabs = 0;
    for (let slab = 0; slab < classes.length; slab++) {
      if (classes[slab] === 0) continue;
      slabs++;
      // The slabs of a run go by its first.
      if (classes[slab] !== SLAB_RUN_REST) this.state[slab] = PENDING;
    }
    this.slabs = slabs;
    this.remaining = slabs;
  }

  /** Before a block changes or goes away. */
  keep(ref: number): void {
    const slab = ref >>> SLAB_UNIT_SHIFT;
    if (this.state[slab] !== PENDING || this.mark(ref)) return;
    this.store(ref, this.arena.sizeOf(ref));
  }

  /** Before a free block is handed out. */
  keepFree(ref: number): void {
    const slab = ref >>> SLAB_UNIT_SHIFT;
    if (this.state[slab] !== PENDING || this.mark(ref)) return;
    if ((ref & SLAB_UNIT_MASK) < this.tables.fresh[slab]) this.store(ref, LINK_BYTES);
  }

  /** A slab has lost its last block: what it will hold from now on is none of this. */
  settle(slab: number): void {
    if (this.state[slab] !== PENDING) return;
    const units = classUnits(this.tables.classes[slab]);
    for (let unit = 0; units > 0 && unit < this.tables.fresh[slab]; unit += units) {
      this.keepFree((slab << SLAB_UNIT_SHIFT) | unit);
    }
    this.state[slab] = SETTLED;
  }

  /** Marks a block as seen; true when it was. */
  private mark(ref: number): boolean {
    const { arena } = this;
    const chunk = ref >>> arena.chunkShift;
    const seen = (this.seen[chunk] ??= new Int32Array(arena.chunkBytes / 16 / 32));
    const unit = ref & arena.unitMask;
    const bit = 1 << unit;
    if ((seen[unit >>> 5] & bit) !== 0) return true;
    seen[unit >>> 5] |= bit;
    return false;
  }

  private store(ref: number, bytes: number): void {
    const { arena } = this;
    const words = bytes >>> 2;
    if (this.pieces.length === 0 || this.pieceEnd + ENTRY_WORDS + words > this.pieces.at(-1)!.length) {
      const needed = Math.max(PIECE_BYTES / 4, words + ENTRY_WORDS + 1);
      this.pieces.push(new Int32Array(needed));
      this.keptBytes += needed * 4;
      this.pieceEnd = 1;
    }
    const piece = this.pieces.length - 1;
    const pool = this.pieces[piece];
    const at = this.pieceEnd;
    const slab = ref >>> SLAB_UNIT_SHIFT;
    pool[at] = this.last[slab];
    pool[at + 1] = ref & SLAB_UNIT_MASK;
    pool[at + 2] = words;
    const from = (ref & arena.unitMask) << 2;
    const source = arena.i32[ref >>> arena.chunkShift];
    if (words <= 64) for (let j = 0; j < words; j++) pool[at + ENTRY_WORDS + j] = source[from + j];
    else pool.set(source.subarray(from, from + words), at + ENTRY_WORDS);
    this.last[slab] = (piece << PIECE_SHIFT) | at;
    this.pieceEnd = at + ENTRY_WORDS + words;
  }

  /** How near the pool is to what it should hold at most: 0 below the first bound, 1 at the second. */
  get pressure(): number {
    const above = this.keptBytes - KEPT_BYTES_HIGH;
    return above <= 0 ? 0 : Math.min(1, above / (KEPT_BYTES_MAX - KEPT_BYTES_HIGH));
  }

  /** The next slab to be copied, -1 when there is none. */
  get nextSlab(): number {
    const { state } = this;
    while (this.cursor < state.length && state[this.cursor] === DONE) this.cursor++;
    return this.cursor < state.length ? this.cursor : -1;
  }

  /** How many slabs are copied together with `slab`: those of its run, or one. */
  runLength(slab: number): number {
    const { classes, live } = this.tables;
    return classes[slab] === SLAB_RUN ? live[slab] : 1;
  }

  /** Copies a slab or run, as it was, to word `at` of `to`. Once each. */
  copy(slab: number, to: Int32Array, at: number): void {
    const { arena } = this;
    const ref = slab << SLAB_UNIT_SHIFT;
    const chunk = arena.i32[ref >>> arena.chunkShift];
    const slabs = this.runLength(slab);
    // A chunk that was given up had lost all its blocks: every one of then is in the pool.
    if (chunk.length > 0) {
      const from = (ref & arena.unitMask) << 2;
      to.set(chunk.subarray(from, from + (slabs * SLAB_BYTES) / 4), at);
    }
    for (let entry = this.last[slab]; entry !== 0;) {
      const pool = this.pieces[entry >>> PIECE_SHIFT];
      const word = entry & PIECE_MASK;
      const first = word + ENTRY_WORDS;
      to.set(pool.subarray(first, first + pool[word + 2]), at + (pool[word + 1] << 2));
      entry = pool[word];
    }
    this.state[slab] = DONE;
    this.remaining -= slabs;
  }
}
