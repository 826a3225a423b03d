/**
 * The memory that all stored data lies in: blocks (`slabs.ts`) with the marks that checkpoints, eviction, the
 * undo journal and snapshots go by.
 *
 * A block is named by its **reference**: its address in units of 16 bytes, a 32-bit number kept as a
 * signed integer (so the upper half of 64 GB is negative; 0 names nothing). For a reference `ref` the
 * chunk is `ref >>> chunkShift` and the byte offset in it `(ref & unitMask) << 4`.
 *
 * The first word of a block tells its kind in bits 31..30; whoever allocates a block writes that word
 * before anything else is called, and only `free` makes it `Kind.Free` again.
 *
 * Marks are bits of a block's first unit: **dirty** (changed since the last cut), **cut** (dirty at the
 * cut, not yet copied out), **flight** (copied out, not yet in the engine). A block without any mark is
 * as the engine has it. **Used** is a mark of its own, by which eviction tells what has been looked at
 * since it last came by. The marks of 32 units are four words side by side, so that a change of a block waits for one line of memory only. When a cut
 * begins, dirty and cut words exchange their meaning: no mark is moved.
 */
import { OutOfTierError } from './api.ts';
import { ChunkExchange, type ChunkExchangeOptions, type ChunkState } from './chunk-exchange.ts';
import { MARK_WORDS } from './chunks.ts';
import type { Journal } from './journal.ts';
import { classFor, MAX_SHARED_BYTES, PAGE_CLASS, SLAB_BYTES, UNIT_BYTES } from './size-classes.ts';

export { classUnits, MAX_SHARED_BYTES, PAGE_BYTES, SLAB_BYTES } from './size-classes.ts';
export { Kind, KIND_SHIFT, SLAB_RUN, SLAB_RUN_REST, type SlabTables } from './slabs.ts';

/** A change opens slabs of classes that it did not know of beforehand: its record, a segment of the key table, pages. */
const RESERVE_MARGIN = 4 * SLAB_BYTES;

/** Which words of marks hold those of flight and use; those of dirty and cut change. */
const FLIGHT_AT = 2;
const USED_AT = 3;
/** Bytes of marks for a byte of memory. */
export const MARKS_SHARE = MARK_WORDS / 8 / UNIT_BYTES;

/** A walk through the cut looks at the clock after so many stretches of 32 units, of which a copied block counts as several. */
const STEPS_A_LOOK = 2048;
const COPY_STEPS = 32;

export interface ArenaOptions extends ChunkExchangeOptions {
  /** Bytes of slabs after which `reserve` refuses. */
  limit?: number;
}

export class Arena extends ChunkExchange {
  /** Bytes that `reserve` keeps slabs within. */
  limit: number;
  /** Bytes of the directories of key tables, which lie beside the slabs. */
  directoryBytes = 0;
  /** Bytes in blocks marked dirty, and in blocks of the cut that are still to be copied out. */
  dirtyBytes = 0;
  cutBytes = 0;

  /** Writes the row of a block of the cut, before the block changes. Set by the tier. */
  copyOut: (ref: number) => void = () => {};
  /** Called when `bytes` more do not fit; throws. */
  onFull: (bytes: number) => void = () => {
    throw new OutOfTierError(`the memory tier is full (tier-memory ${this.limit} bytes)`);
  };

  /** Takes notes while a unit of work may have to be undone; null while not. */
  journal: Journal | null = null;

  /** Which of the four words are the dirty and the cut marks. */
  private dirtyAt = 0;
  private cutAt = 1;
  /** Marked blocks of each chunk in `flight`, so that untouched chunks are passed over. */
  private readonly flightBlocks: Int32Array;
  /** Where the walk through the cut goes on, as an index of marks; chunk -1 when there is no cut to copy. */
  private walkChunk = -1;
  private walkWord = 0;

  constructor(options: ArenaOptions = {}) {
    super(options);
    this.limit = options.limit ?? Infinity;
    this.flightBlocks = new Int32Array(this.maxChunks);
  }

  /** Makes sure that about `bytes` more fit; called before a change begins. Throws OutOfTierError, or a fault when room can be made. */
  reserve(bytes: number): void {
    if (this.slabBytes + this.roomFor(bytes) > this.limit) this.onFull(bytes);
  }

  /** Bytes of slabs that must be to spare before a change that needs about `bytes`. */
  roomFor(bytes: number): number {
    return bytes + RESERVE_MARGIN;
  }

  /** A block of at least `bytes`, its content undefined, without marks. */
  alloc(bytes: number): number {
    if (bytes > MAX_SHARED_BYTES) return this.noted(this.takeRun(Math.ceil(bytes / SLAB_BYTES)));
    return this.noted(this.take(classFor(bytes)));
  }

  allocPage(): number {
    return this.noted(this.take(PAGE_CLASS));
  }

  private noted(ref: number): number {
    if (this.journal !== null) this.journal.allocated(ref);
    return ref;
  }

  /** Gives a block back, with the end of the unit of work if there is a journal; a block of the cut is copied out first. */
  free(ref: number): void {
    if (this.journal !== null && this.journal.retains(ref)) return;
    this.clearMarks(ref);
    if (this.snapshot !== null) this.snapshot.keep(ref);
    this.give(ref);
  }

  /**
   * Moves a block to another place, its marks with it (what is in the cut is copied out first), and returns
   * that; what leads to the block is the caller's. Between units of work.
   */
  relocate(ref: number): number {
    this.preserve(ref);
    const to = this.takeLike(ref);
    const words = this.sizeOf(ref) >>> 2;
    const from = (ref & this.unitMask) << 2;
    const i32 = this.i32[ref >>> this.chunkShift];
    this.i32[to >>> this.chunkShift].set(i32.subarray(from, from + words), (to & this.unitMask) << 2);
    this.copyMarks(ref, to);
    this.free(ref);
    return to;
  }

  private copyMarks(from: number, to: number): void {
    const unit = from & this.unitMask;
    const marks = this.marks[from >>> this.chunkShift];
    const at = (unit >>> 5) << 2;
    const bit = 1 << unit;
    const toUnit = to & this.unitMask;
    const toMarks = this.marks[to >>> this.chunkShift];
    const toAt = (toUnit >>> 5) << 2;
    const toBit = 1 << toUnit;
    for (const word of [this.dirtyAt, FLIGHT_AT, USED_AT]) {
      if ((marks[at + word] & bit) === 0) toMarks[toAt + word] &= ~toBit;
      else toMarks[toAt + word] |= toBit;
    }
    if ((marks[at + this.dirtyAt] & bit) !== 0) this.dirtyBytes += this.sizeOf(to);
    if ((marks[at + FLIGHT_AT] & bit) !== 0) this.flightBlocks[to >>> this.chunkShift]++;
  }

  /** Gives all chunks away: nothing is left here. There must be no cut, snapshot or unit of work. */
  handOver(): ChunkState[] {
    this.dirtyBytes = 0;
    return this.giveChunks();
  }

  /** Takes a chunk over that was promised. The bytes of its dirty blocks are the caller's to add. */
  takeOver(state: ChunkState): void {
    this.takeChunk(state, this.dirtyAt);
  }

  /** Before every change of a block that has a row: copies it out if it is in the cut, and marks it dirty. */
  touch(ref: number): void {
    if (this.snapshot !== null) this.snapshot.keep(ref);
    const unit = ref & this.unitMask;
    const at = (unit >>> 5) << 2;
    const bit = 1 << unit;
    const marks = this.marks[ref >>> this.chunkShift];
    // A block that is dirty already was copied out when it became so.
    if ((marks[at + this.dirtyAt] & bit) === 0) {
      if ((marks[at + this.cutAt] & bit) !== 0) this.copy(ref);
      marks[at + this.dirtyAt] |= bit;
      this.dirtyBytes += this.sizeOf(ref);
    }
    if (this.journal !== null) this.journal.keep(ref);
  }

  /** Copies a block out if it is in the cut: before it goes away. */
  preserve(ref: number): void {
    const unit = ref & this.unitMask;
    const marks = this.marks[ref >>> this.chunkShift];
    if ((marks[((unit >>> 5) << 2) + this.cutAt] & (1 << unit)) !== 0) this.copy(ref);
  }

  /** Some of the block's marks, read so that they are in the caches when it is changed. */
  peekMarks(ref: number): number {
    return this.marks[ref >>> this.chunkShift][((ref & this.unitMask) >>> 5) << 2];
  }

  isDirty(ref: number): boolean {
    const unit = ref & this.unitMask;
    const marks = this.marks[ref >>> this.chunkShift];
    return (marks[((unit >>> 5) << 2) + this.dirtyAt] & (1 << unit)) !== 0;
  }

  /** The engine has this block as it lies here. */
  isClean(ref: number): boolean {
    const unit = ref & this.unitMask;
    const at = (unit >>> 5) << 2;
    const marks = this.marks[ref >>> this.chunkShift];
    return ((marks[at] | marks[at + 1] | marks[at + FLIGHT_AT]) & (1 << unit)) === 0;
  }

  /** The block is looked at: eviction passes it over once. */
  use(ref: number): void {
    const unit = ref & this.unitMask;
    this.marks[ref >>> this.chunkShift][((unit >>> 5) << 2) + USED_AT] |= 1 << unit;
  }

  /** Whether the block has been used since the last call for it. */
  wasUsed(ref: number): boolean {
    const unit = ref & this.unitMask;
    const marks = this.marks[ref >>> this.chunkShift];
    const at = ((unit >>> 5) << 2) + USED_AT;
    if ((marks[at] & (1 << unit)) === 0) return false;
    marks[at] &= ~(1 << unit);
    return true;
  }

  private clearMarks(ref: number): void {
    const unit = ref & this.unitMask;
    const at = (unit >>> 5) << 2;
    const bit = 1 << unit;
    const chunk = ref >>> this.chunkShift;
    const marks = this.marks[chunk];
    if (((marks[at] | marks[at + 1] | marks[at + FLIGHT_AT]) & bit) === 0) return;
    if ((marks[at + this.cutAt] & bit) !== 0) this.copy(ref);
    if ((marks[at + this.dirtyAt] & bit) !== 0) {
      marks[at + this.dirtyAt] &= ~bit;
      this.dirtyBytes -= this.sizeOf(ref);
    }
    if ((marks[at + FLIGHT_AT] & bit) !== 0) {
      marks[at + FLIGHT_AT] &= ~bit;
      this.flightBlocks[chunk]--;
    }
  }

  private copy(ref: number): void {
    const chunk = ref >>> this.chunkShift;
    const unit = ref & this.unitMask;
    const at = (unit >>> 5) << 2;
    const bit = 1 << unit;
    const marks = this.marks[chunk];
    marks[at + this.cutAt] &= ~bit;
    marks[at + FLIGHT_AT] |= bit;
    this.flightBlocks[chunk]++;
    this.cutBytes -= this.sizeOf(ref);
    this.copyOut(ref);
  }

  /** What is dirty now becomes the cut. The previous cut must have ended. */
  beginCut(): void {
    if (this.walkChunk >= 0 || this.cutBytes !== 0) throw new Error('a cut is still being copied out');
    const dirtyAt = this.dirtyAt;
    this.dirtyAt = this.cutAt;
    this.cutAt = dirtyAt;
    this.cutBytes = this.dirtyBytes;
    this.dirtyBytes = 0;
    this.walkChunk = this.firstChunk;
    this.walkWord = 0;
  }

  /**
   * Copies out blocks of the cut, in the order of their addresses, until all are or `more` says to
   * pause; `more` is asked after every few blocks or stretches without any. True when all are out.
   */
  copyCut(more: () => boolean): boolean {
    if (this.walkChunk < 0) return true;
    let steps = 0;
    while (this.walkChunk < this.u8.length && this.cutBytes > 0) {
      const marks = this.marks[this.walkChunk];
      while (this.walkWord < marks.length) {
        const bits = marks[this.walkWord + this.cutAt];
        if (bits === 0) {
          this.walkWord += MARK_WORDS;
          steps++;
        } else {
          const unit = (this.walkWord << 3) + (31 - Math.clz32(bits & -bits));
          this.copy((this.walkChunk << this.chunkShift) | unit);
          steps += COPY_STEPS;
        }
        if (steps >= STEPS_A_LOOK) {
          steps = 0;
          if (!more()) return false;
        }
      }
      this.walkChunk++;
      this.walkWord = 0;
    }
    this.walkChunk = -1;
    return true;
  }

  /**
   * The cut is over. `applied`: its rows are in the engine. Otherwise it was given up, and all that was in it is
   * dirty again. `more` is asked after each chunk; when it says to pause, false is returned, and the next call goes on.
   */
  endCut(applied: boolean, more: () => boolean = () => true): boolean {
    for (let chunk = this.firstChunk; chunk < this.u8.length; chunk++) {
      if (this.flightBlocks[chunk] === 0 && this.cutBytes === 0) continue;
      this.endCutIn(chunk, applied);
      this.flightBlocks[chunk] = 0;
      if (!more()) return false;
    }
    this.walkChunk = -1;
    this.cutBytes = 0;
    return true;
  }

  private endCutIn(chunk: number, applied: boolean): void {
    const { dirtyAt, cutAt } = this;
    const marks = this.marks[chunk];
    for (let at = 0; at < marks.length; at += MARK_WORDS) {
      const left = marks[at + cutAt] | marks[at + FLIGHT_AT];
      if (left === 0) continue;
      marks[at + cutAt] = 0;
      marks[at + FLIGHT_AT] = 0;
      if (applied) continue;
      let added = left & ~marks[at + dirtyAt];
      marks[at + dirtyAt] |= added;
      for (; added !== 0; added &= added - 1) {
        const unit = (at << 3) + (31 - Math.clz32(added & -added));
        this.dirtyBytes += this.sizeOf((chunk << this.chunkShift) | unit);
      }
    }
  }
}
