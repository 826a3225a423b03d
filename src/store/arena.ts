/**
 * The memory that all stored data lies in: chunks outside the JS heap, cut into blocks by a slab
 * allocator, with the marks that checkpoints go by.
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
import { SLICE_PADDING } from '../bytes/slice.ts';
import { OutOfTierError } from './api.ts';
import type { ArenaSnapshot } from './arena-snapshot.ts';
import type { Journal } from './journal.ts';

const UNIT_BYTES = 16;
const UNIT_SHIFT = 4;

/** Slabs are aligned runs of this size, each holding blocks of one class. */
export const SLAB_BYTES = 64 * 1024;
const SLAB_UNIT_SHIFT = 12;
const SLAB_UNIT_MASK = (1 << SLAB_UNIT_SHIFT) - 1;

/** A page of a collection, and the only size whose slabs hold nothing else. */
export const PAGE_BYTES = 1984;

/** What a block is, in bits 31..30 of its first word. Only records and pages have rows in the engine. */
export const Kind = { Free: 0, Record: 1, Page: 2, Plain: 3 } as const;
export type Kind = (typeof Kind)[keyof typeof Kind];
export const KIND_SHIFT = 30;

/** A change opens slabs of classes that it did not know of beforehand: its record, a segment of the key table, pages. */
const RESERVE_MARGIN = 4 * SLAB_BYTES;

/** Words of marks for 32 units, and which of them holds the flight marks; those of dirty and cut change. */
const MARK_WORDS = 4;
const FLIGHT_AT = 2;
const USED_AT = 3;
/** Bytes of marks for a byte of memory. */
export const MARKS_SHARE = MARK_WORDS / 8 / UNIT_BYTES;

/** References are 32 bits of 16-byte units. */
const MAX_ARENA_BYTES = 2 ** 32 * UNIT_BYTES;

/*
 * Size classes: every multiple of 16 up to 256, eight to a doubling up to 2 KB (at most 1/8 wasted),
 * then what divides a slab evenly, down to two blocks a slab. Larger blocks are runs of whole slabs.
 */
const CLASS_BYTES = sizeClasses();
const CLASS_COUNT = CLASS_BYTES.length;
const PAGE_CLASS = CLASS_COUNT - 1;
/** Largest block that shares its slab. */
const MAX_SHARED_BYTES = SLAB_BYTES / 2;
/** Class by size in units. */
const CLASS_OF_UNITS = classOfUnits();
const CLASS_UNITS = Int32Array.from(CLASS_BYTES, (bytes) => bytes >>> UNIT_SHIFT);
const CLASS_CAPACITY = Int32Array.from(CLASS_BYTES, (bytes) => Math.floor(SLAB_BYTES / bytes));

/** In the class table: a slab that belongs to nobody, the first slab of a run, a further one. */
const SLAB_FREE = 0;
export const SLAB_RUN = 254;
export const SLAB_RUN_REST = 255;

/** Entry 0 is unused: class 0 marks a free slab. The last entry is the class of pages. */
function sizeClasses(): number[] {
  const sizes = [0];
  for (let bytes = UNIT_BYTES; bytes <= 256; bytes += UNIT_BYTES) sizes.push(bytes);
  for (let base = 256; base < 2048; base *= 2) {
    for (let step = 1; step <= 8; step++) sizes.push(base + (base / 8) * step);
  }
  for (let perSlab = 31; perSlab >= 2; perSlab--) {
    const bytes = Math.floor(SLAB_BYTES / perSlab / UNIT_BYTES) * UNIT_BYTES;
    if (bytes >= (sizes.at(-1) as number) * 1.05) sizes.push(bytes);
  }
  sizes.push(PAGE_BYTES);
  return sizes;
}

function classOfUnits(): Uint8Array {
  const classes = new Uint8Array(MAX_SHARED_BYTES / UNIT_BYTES + 1);
  for (let units = 0, cls = 1; units < classes.length; units++) {
    if (units * UNIT_BYTES > CLASS_BYTES[cls]) cls++;
    classes[units] = cls;
  }
  return classes;
}

/** A walk through the cut looks at the clock after so many stretches of 32 units, of which a copied block counts as several. */
const STEPS_A_LOOK = 2048;
const COPY_STEPS = 32;

const NO_BYTES = Buffer.from(new ArrayBuffer(0));
const NO_WORDS = new Int32Array(0);
const NO_VIEW = new DataView(NO_BYTES.buffer);

/** How the slabs are cut into blocks, by slab number. */
export interface SlabTables {
  /** Size class, 0 for a free slab, SLAB_RUN and SLAB_RUN_REST. */
  classes: Uint8Array;
  /** Blocks in use; of the first slab of a run its slabs. */
  live: Uint16Array;
  /** Units from here on were never handed out. */
  fresh: Uint16Array;
}

/** Units of a block of a size class; 0 for what is none. */
export function classUnits(cls: number): number {
  return cls < CLASS_COUNT ? CLASS_UNITS[cls] : 0;
}

export interface ArenaOptions {
  /** Power of two, at least two slabs; 64 MB unless a test lowers it. */
  chunkBytes?: number;
  /** Chunks are numbered from here on: lets a test work at the upper end of the references. */
  firstChunk?: number;
  /** Bytes of slabs after which `reserve` refuses. */
  limit?: number;
}

export class Arena {
  readonly chunkBytes: number;
  /** Bits of a reference below the chunk number. */
  readonly chunkShift: number;
  readonly unitMask: number;

  /** The chunks' memory, by chunk number, three ways; each keeps SLICE_PADDING readable bytes at its end. */
  readonly u8: Buffer[];
  readonly i32: Int32Array[];
  readonly view: DataView[];

  /** Bytes that `reserve` keeps slabs within. */
  limit: number;
  /** Bytes in slabs that are in use, whole. */
  slabBytes = 0;
  /** Bytes of the directories of key tables, which lie beside the slabs. */
  directoryBytes = 0;
  /** Bytes in blocks that are in use, whole. */
  blockBytes = 0;
  /** Bytes of chunks held, used or not. */
  committedBytes = 0;
  /** Bytes in blocks marked dirty, and in blocks of the cut that are still to be copied out. */
  dirtyBytes = 0;
  cutBytes = 0;

  /** Writes the row of a block of the cut, before the block changes. Set by the tier. */
  copyOut: (ref: number) => void = () => {};
  /** What is to be kept as it was while it is read; see ArenaSnapshot. */
  snapshot: ArenaSnapshot | null = null;
  /** Called when `bytes` more do not fit; throws. */
  onFull: (bytes: number) => void = () => {
    throw new OutOfTierError(`the memory tier is full (tier-memory ${this.limit} bytes)`);
  };

  /** Takes notes while a unit of work may have to be undone; null while not. */
  journal: Journal | null = null;

  private readonly firstChunk: number;
  private readonly maxChunks: number;
  private readonly slabsPerChunk: number;
  /** Slabs in use, by chunk; -1 where there is no chunk. */
  private readonly chunkSlabs: Int32Array;
  private emptyChunks = 0;

  /** By slab number (ref >>> 12): class; blocks in use (run: its slabs); first free block + 1; units never handed out from. */
  private readonly slabClass: Uint8Array;
  private readonly slabLive: Uint16Array;
  private readonly slabFree: Uint16Array;
  private readonly slabFresh: Uint16Array;
  /** Links of the list of free slabs and of each class's list of slabs with room; 0 ends a list (slab 0 is never used). */
  private readonly next: Int32Array;
  private readonly previous: Int32Array;
  private readonly roomy = new Int32Array(CLASS_COUNT);
  private freeSlab = 0;
  private readonly classBlocks = new Int32Array(CLASS_COUNT);

  /** By chunk; four words for 32 units. */
  private readonly marks: Int32Array[];
  /** Which of the four words are the dirty and the cut marks. */
  private dirtyAt = 0;
  private cutAt = 1;
  /** Marked blocks of each chunk in `flight`, so that untouched chunks are passed over. */
  private readonly flightBlocks: Int32Array;
  /** Where the walk through the cut goes on, as an index of marks; chunk -1 when there is no cut to copy. */
  private walkChunk = -1;
  private walkWord = 0;

  constructor(options: ArenaOptions = {}) {
    this.chunkBytes = options.chunkBytes ?? 64 * 1024 * 1024;
    const chunkBits = 31 - Math.clz32(this.chunkBytes);
    if (this.chunkBytes !== 2 ** chunkBits || this.chunkBytes < 2 * SLAB_BYTES) {
      throw new RangeError(
        `chunk size ${this.chunkBytes}: a power of two of at least ${2 * SLAB_BYTES} is needed`,
      );
    }
    this.chunkShift = chunkBits - UNIT_SHIFT;
    this.unitMask = (1 << this.chunkShift) - 1;
    this.firstChunk = options.firstChunk ?? 0;
    this.maxChunks = MAX_ARENA_BYTES / this.chunkBytes;
    this.limit = options.limit ?? Infinity;
    this.slabsPerChunk = this.chunkBytes / SLAB_BYTES;
    const slabs = MAX_ARENA_BYTES / SLAB_BYTES;
    this.slabClass = new Uint8Array(slabs);
    this.slabLive = new Uint16Array(slabs);
    this.slabFree = new Uint16Array(slabs);
    this.slabFresh = new Uint16Array(slabs);
    this.next = new Int32Array(slabs);
    this.previous = new Int32Array(slabs);
    this.u8 = [];
    this.i32 = [];
    this.view = [];
    this.marks = [];
    this.chunkSlabs = new Int32Array(this.maxChunks).fill(-1);
    this.flightBlocks = new Int32Array(this.maxChunks);
    for (let chunk = 0; chunk < this.firstChunk; chunk++)
      this.placeChunk(chunk, NO_BYTES, NO_WORDS, NO_VIEW, 0);
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
    if (bytes > MAX_SHARED_BYTES) return this.allocRun(Math.ceil(bytes / SLAB_BYTES));
    return this.allocClass(CLASS_OF_UNITS[(bytes + UNIT_BYTES - 1) >>> UNIT_SHIFT]);
  }

  allocPage(): number {
    return this.allocClass(PAGE_CLASS);
  }

  private allocClass(cls: number): number {
    let slab = this.roomy[cls];
    if (slab === 0) slab = this.openSlab(cls);
    let unit = this.slabFree[slab];
    if (unit !== 0) {
      unit--;
      const free = (slab << SLAB_UNIT_SHIFT) | unit;
      if (this.snapshot !== null) this.snapshot.keepFree(free);
      this.slabFree[slab] = this.i32[free >>> this.chunkShift][(free & this.unitMask) << 2];
    } else {
      unit = this.slabFresh[slab];
      if (this.snapshot !== null) this.snapshot.keepFree((slab << SLAB_UNIT_SHIFT) | unit);
      this.slabFresh[slab] = unit + CLASS_UNITS[cls];
    }
    if (++this.slabLive[slab] === CLASS_CAPACITY[cls]) this.unlinkRoomy(slab, cls);
    this.classBlocks[cls]++;
    this.blockBytes += CLASS_BYTES[cls];
    const ref = (slab << SLAB_UNIT_SHIFT) | unit;
    if (this.journal !== null) this.journal.allocated(ref);
    return ref;
  }

  /** Gives a block back, with the end of the unit of work if there is a journal; a block of the cut is copied out first. */
  free(ref: number): void {
    if (this.journal !== null && this.journal.retains(ref)) return;
    this.clearMarks(ref);
    if (this.snapshot !== null) this.snapshot.keep(ref);
    const slab = ref >>> SLAB_UNIT_SHIFT;
    const cls = this.slabClass[slab];
    if (cls >= SLAB_RUN) {
      this.i32[ref >>> this.chunkShift][(ref & this.unitMask) << 2] = 0;
      this.freeRun(slab);
      return;
    }
    this.i32[ref >>> this.chunkShift][(ref & this.unitMask) << 2] = this.slabFree[slab];
    this.slabFree[slab] = (ref & SLAB_UNIT_MASK) + 1;
    this.classBlocks[cls]--;
    this.blockBytes -= CLASS_BYTES[cls];
    const live = --this.slabLive[slab];
    if (live === CLASS_CAPACITY[cls] - 1) this.linkRoomy(slab, cls);
    if (live === 0) {
      this.unlinkRoomy(slab, cls);
      this.releaseSlab(slab);
    }
  }

  /** Copies of the slab tables, up to the last chunk. */
  slabTables(): SlabTables {
    const slabs = this.u8.length * this.slabsPerChunk;
    return {
      classes: this.slabClass.slice(0, slabs),
      live: this.slabLive.slice(0, slabs),
      fresh: this.slabFresh.slice(0, slabs),
    };
  }

  /** Bytes of the block at `ref`, at least what was asked for. */
  sizeOf(ref: number): number {
    const slab = ref >>> SLAB_UNIT_SHIFT;
    const cls = this.slabClass[slab];
    return cls === SLAB_RUN ? this.slabLive[slab] * SLAB_BYTES : CLASS_BYTES[cls];
  }

  /** Bytes that a block for `bytes` takes. */
  sizeFor(bytes: number): number {
    if (bytes > MAX_SHARED_BYTES) return Math.ceil(bytes / SLAB_BYTES) * SLAB_BYTES;
    return CLASS_BYTES[CLASS_OF_UNITS[(bytes + UNIT_BYTES - 1) >>> UNIT_SHIFT]];
  }

  /** Blocks in use by block size, for INFO and tests. */
  classes(): { bytes: number; blocks: number }[] {
    return CLASS_BYTES.map((bytes, cls) => ({ bytes, blocks: this.classBlocks[cls] })).slice(1);
  }

  private openSlab(cls: number): number {
    if (this.freeSlab === 0) this.addChunk();
    const slab = this.freeSlab;
    this.takeSlab(slab);
    this.slabClass[slab] = cls;
    this.slabLive[slab] = 0;
    this.slabFree[slab] = 0;
    this.slabFresh[slab] = 0;
    this.linkRoomy(slab, cls);
    return slab;
  }

  private linkRoomy(slab: number, cls: number): void {
    const head = this.roomy[cls];
    this.next[slab] = head;
    this.previous[slab] = 0;
    this.previous[head] = slab;
    this.roomy[cls] = slab;
  }

  private unlinkRoomy(slab: number, cls: number): void {
    const next = this.next[slab];
    const previous = this.previous[slab];
    this.previous[next] = previous;
    if (previous === 0) this.roomy[cls] = next;
    else this.next[previous] = next;
  }

  private takeSlab(slab: number): void {
    const next = this.next[slab];
    const previous = this.previous[slab];
    this.previous[next] = previous;
    if (previous === 0) this.freeSlab = next;
    else this.next[previous] = next;
    const chunk = Math.floor(slab / this.slabsPerChunk);
    if (this.chunkSlabs[chunk]++ === 0) this.emptyChunks--;
    this.slabBytes += SLAB_BYTES;
  }

  private listFreeSlab(slab: number): void {
    this.slabClass[slab] = SLAB_FREE;
    this.next[slab] = this.freeSlab;
    this.previous[slab] = 0;
    this.previous[this.freeSlab] = slab;
    this.freeSlab = slab;
  }

  private releaseSlab(slab: number): void {
    if (this.snapshot !== null) this.snapshot.settle(slab);
    this.listFreeSlab(slab);
    this.slabBytes -= SLAB_BYTES;
    const chunk = Math.floor(slab / this.slabsPerChunk);
    if (--this.chunkSlabs[chunk] === 0) {
      // One empty chunk stays, so that work around a chunk's edge does not map and unmap it again and again.
      if (this.emptyChunks > 0) this.dropChunk(chunk);
      else this.emptyChunks++;
    }
  }

  private allocRun(slabs: number): number {
    const first = this.findRun(slabs);
    for (let slab = first; slab < first + slabs; slab++) {
      this.takeSlab(slab);
      this.slabClass[slab] = SLAB_RUN_REST;
    }
    this.slabClass[first] = SLAB_RUN;
    this.slabLive[first] = slabs;
    this.blockBytes += slabs * SLAB_BYTES;
    const ref = first << SLAB_UNIT_SHIFT;
    if (this.journal !== null) this.journal.allocated(ref);
    return ref;
  }

  private findRun(slabs: number): number {
    if (slabs > this.slabsPerChunk - 1) {
      throw new OutOfTierError(`a block of ${slabs * SLAB_BYTES} bytes is larger than a chunk`);
    }
    for (let chunk = this.firstChunk; chunk < this.u8.length; chunk++) {
      if (this.chunkSlabs[chunk] < 0 || this.slabsPerChunk - this.chunkSlabs[chunk] < slabs) continue;
      const first = this.findRunIn(chunk, slabs);
      if (first !== 0) return first;
    }
    return this.findRunIn(this.addChunk(), slabs);
  }

  private findRunIn(chunk: number, slabs: number): number {
    const begin = chunk * this.slabsPerChunk;
    let run = 0;
    for (let slab = Math.max(1, begin); slab < begin + this.slabsPerChunk; slab++) {
      run = this.slabClass[slab] === SLAB_FREE ? run + 1 : 0;
      if (run === slabs) return slab - slabs + 1;
    }
    return 0;
  }

  private freeRun(first: number): void {
    const slabs = this.slabLive[first];
    this.blockBytes -= slabs * SLAB_BYTES;
    for (let slab = first + slabs - 1; slab >= first; slab--) this.releaseSlab(slab);
  }

  private addChunk(): number {
    let chunk = this.firstChunk;
    while (chunk < this.u8.length && this.chunkSlabs[chunk] >= 0) chunk++;
    if (chunk === this.maxChunks) throw new OutOfTierError('the memory tier is at its end, 64 GB');
    const memory = new ArrayBuffer(this.chunkBytes + SLICE_PADDING);
    const markWords = (this.chunkBytes / UNIT_BYTES / 32) * MARK_WORDS;
    this.placeChunk(chunk, Buffer.from(memory), new Int32Array(memory), new DataView(memory), markWords);
    this.chunkSlabs[chunk] = 0;
    this.emptyChunks++;
    this.committedBytes += this.chunkBytes;
    const begin = chunk * this.slabsPerChunk;
    for (let slab = begin + this.slabsPerChunk - 1; slab >= Math.max(1, begin); slab--)
      this.listFreeSlab(slab);
    return chunk;
  }

  private dropChunk(chunk: number): void {
    const begin = chunk * this.slabsPerChunk;
    for (let slab = Math.max(1, begin); slab < begin + this.slabsPerChunk; slab++) {
      const next = this.next[slab];
      const previous = this.previous[slab];
      this.previous[next] = previous;
      if (previous === 0) this.freeSlab = next;
      else this.next[previous] = next;
    }
    this.placeChunk(chunk, NO_BYTES, NO_WORDS, NO_VIEW, 0);
    this.chunkSlabs[chunk] = -1;
    this.committedBytes -= this.chunkBytes;
  }

  private placeChunk(chunk: number, u8: Buffer, i32: Int32Array, view: DataView, markWords: number): void {
    this.u8[chunk] = u8;
    this.i32[chunk] = i32;
    this.view[chunk] = view;
    this.marks[chunk] = markWords === 0 ? NO_WORDS : new Int32Array(markWords);
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

  get slabsInUse(): number {
    return this.slabBytes / SLAB_BYTES;
  }

  /** The next slab after `slab` with blocks in use; 0 after the last. */
  nextSlab(slab: number): number {
    const end = this.u8.length * this.slabsPerChunk;
    for (slab = Math.max(slab + 1, this.firstChunk * this.slabsPerChunk); slab < end; slab++) {
      const cls = this.slabClass[slab];
      if (
        cls !== SLAB_FREE &&
        cls !== SLAB_RUN_REST &&
        this.u8[Math.floor(slab / this.slabsPerChunk)].length > 0
      )
        return slab;
    }
    return 0;
  }

  /** Gives `visit`, which may free it, every block in use of a slab. */
  forEachBlock(slab: number, visit: (ref: number) => void): void {
    const first = slab << SLAB_UNIT_SHIFT;
    const cls = this.slabClass[slab];
    if (cls === SLAB_RUN) {
      visit(first);
      return;
    }
    const words = this.i32[first >>> this.chunkShift];
    const fresh = this.slabFresh[slab];
    for (let unit = 0; unit < fresh; unit += CLASS_UNITS[cls]) {
      const ref = first | unit;
      if (words[(ref & this.unitMask) << 2] >>> KIND_SHIFT === Kind.Free) continue;
      visit(ref);
      // Freeing the last block gives the slab back, and perhaps its chunk.
      if (this.slabClass[slab] !== cls) return;
    }
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
   * The cut is over. `applied`: its rows are in the engine. Otherwise it was given up, and all that
   * was in it is dirty again.
   */
  endCut(applied: boolean): void {
    for (let chunk = this.firstChunk; chunk < this.u8.length; chunk++) {
      if (this.flightBlocks[chunk] === 0 && this.cutBytes === 0) continue;
      this.endCutIn(chunk, applied);
      this.flightBlocks[chunk] = 0;
    }
    this.walkChunk = -1;
    this.cutBytes = 0;
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
