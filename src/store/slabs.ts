/**
 * Chunks of memory outside the JS heap, cut into slabs, cut into blocks: a slab allocator. What blocks are
 * for, and the marks that they carry, is the arena's business (`arena.ts`).
 *
 * A slab without blocks can serve any class. A chunk without slabs in use is **spare**: it is taken again when
 * one is needed, and otherwise given back to the system (`chunks.ts`).
 *
 * A slab or a chunk may be **closed**: nothing is handed out from it any more, so that it becomes empty when
 * its blocks have moved elsewhere (`defragmenter.ts`).
 */
import { OutOfTierError } from './api.ts';
import type { ArenaSnapshot } from './arena-snapshot.ts';
import { NO_CHUNK, SpareChunks, type Chunk } from './chunks.ts';
import {
  CLASS_BYTES,
  CLASS_CAPACITY,
  CLASS_COUNT,
  CLASS_UNITS,
  classFor,
  MAX_SHARED_BYTES,
  SLAB_BYTES,
  UNIT_BYTES,
  UNIT_SHIFT,
} from './size-classes.ts';

export const SLAB_UNIT_SHIFT = 12;
export const SLAB_UNIT_MASK = (1 << SLAB_UNIT_SHIFT) - 1;

/** References are 32 bits of 16-byte units. */
const MAX_ARENA_BYTES = 2 ** 32 * UNIT_BYTES;

/**
 * Small enough for its release, which the system takes some 0.1 ms a megabyte for, to be one slice of work;
 * with its padding just above what the C library's malloc may keep for itself when it is freed.
 */
const CHUNK_BYTES = 32 * 1024 * 1024;

/** What a block is, in bits 31..30 of its first word. Only records and pages have rows in the engine. */
export const Kind = { Free: 0, Record: 1, Page: 2, Plain: 3 } as const;
export type Kind = (typeof Kind)[keyof typeof Kind];
export const KIND_SHIFT = 30;

/** In the class table: a slab that belongs to nobody, the first slab of a run, a further one. */
export const SLAB_FREE = 0;
export const SLAB_RUN = 254;
export const SLAB_RUN_REST = 255;

/** Instead of the slabs in use of a chunk: there is none; another arena makes it (`chunk-exchange.ts`). */
export const ABSENT = -1;
export const PROMISED = -2;

/** How the slabs are cut into blocks, by slab number. */
export interface SlabTables {
  /** Size class, 0 for a free slab, SLAB_RUN and SLAB_RUN_REST. */
  classes: Uint8Array;
  /** Blocks in use; of the first slab of a run its slabs. */
  live: Uint16Array;
  /** Units from here on were never handed out. */
  fresh: Uint16Array;
}

export interface SlabOptions {
  /** Power of two, at least two slabs; 32 MB unless a test lowers it. */
  chunkBytes?: number;
  /** Chunks are numbered from here on: lets a test work at the upper end of the references. */
  firstChunk?: number;
}

export class Slabs {
  readonly chunkBytes: number;
  /** Bits of a reference below the chunk number. */
  readonly chunkShift: number;
  readonly unitMask: number;
  readonly slabsPerChunk: number;

  /** The chunks' memory, by chunk number. */
  readonly u8: Buffer[] = [];
  readonly i32: Int32Array[] = [];
  readonly view: DataView[] = [];
  /** Four words for 32 units. */
  protected readonly marks: Int32Array<ArrayBuffer>[] = [];

  /** Bytes in slabs that are in use, whole. */
  slabBytes = 0;
  /** Bytes in blocks that are in use, whole. */
  blockBytes = 0;
  /** What is to be kept as it was while it is read; see ArenaSnapshot. */
  snapshot: ArenaSnapshot | null = null;
  /** The chunk that is closed; -1: none. */
  closedChunk = -1;

  protected readonly firstChunk: number;
  protected readonly maxChunks: number;
  /** Slabs in use, by chunk; ABSENT, PROMISED. */
  protected readonly chunkSlabs: Int32Array;
  /** Chunks without slabs in use. */
  readonly spare: SpareChunks;
  /** Chunks with slabs in use. */
  protected chunks = 0;

  /** By slab number (ref >>> 12): class; blocks in use (run: its slabs); first free block + 1; units never handed out from; closed. */
  protected slabClass = new Uint8Array(1);
  protected slabLive = new Uint16Array(1);
  protected slabFree = new Uint16Array(1);
  protected slabFresh = new Uint16Array(1);
  private slabClosed = new Uint8Array(1);
  /** Links of the list of free slabs and of each class's list of slabs with room; 0 ends a list (slab 0 is never used). */
  private next = new Int32Array(1);
  private previous = new Int32Array(1);
  protected readonly roomy = new Int32Array(CLASS_COUNT);
  protected freeSlab = 0;
  protected readonly classBlocks = new Int32Array(CLASS_COUNT);
  protected readonly classSlabs = new Int32Array(CLASS_COUNT);

  constructor(options: SlabOptions) {
    this.chunkBytes = options.chunkBytes ?? CHUNK_BYTES;
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
    this.slabsPerChunk = this.chunkBytes / SLAB_BYTES;
    this.chunkSlabs = new Int32Array(this.maxChunks).fill(ABSENT);
    this.spare = new SpareChunks(this.chunkBytes);
    for (let chunk = 0; chunk < this.firstChunk; chunk++) this.placeChunk(chunk, NO_CHUNK);
  }

  /** Bytes of chunks held, used or spare. */
  get committedBytes(): number {
    return (this.chunks + this.spare.count) * this.chunkBytes;
  }

  /** Takes a block of a class; its content is undefined. */
  protected take(cls: number): number {
    let slab = this.roomy[cls];
    if (slab === 0) slab = this.openSlab(cls);
    let unit = this.slabFree[slab];
    let ref: number;
    if (unit !== 0) {
      unit--;
      ref = (slab << SLAB_UNIT_SHIFT) | unit;
      if (this.snapshot !== null) this.snapshot.keepFree(ref);
      this.slabFree[slab] = this.i32[ref >>> this.chunkShift][(ref & this.unitMask) << 2];
    } else {
      unit = this.slabFresh[slab];
      ref = (slab << SLAB_UNIT_SHIFT) | unit;
      if (this.snapshot !== null) this.snapshot.keepFree(ref);
      this.slabFresh[slab] = unit + CLASS_UNITS[cls];
    }
    if (++this.slabLive[slab] === CLASS_CAPACITY[cls]) this.unlinkRoomy(slab, cls);
    this.classBlocks[cls]++;
    this.blockBytes += CLASS_BYTES[cls];
    return ref;
  }

  /** Gives a block back. */
  protected give(ref: number): void {
    const slab = ref >>> SLAB_UNIT_SHIFT;
    const cls = this.slabClass[slab];
    if (cls >= SLAB_RUN) {
      this.i32[ref >>> this.chunkShift][(ref & this.unitMask) << 2] = 0;
      this.giveRun(slab);
      return;
    }
    this.i32[ref >>> this.chunkShift][(ref & this.unitMask) << 2] = this.slabFree[slab];
    this.slabFree[slab] = (ref & SLAB_UNIT_MASK) + 1;
    this.classBlocks[cls]--;
    this.blockBytes -= CLASS_BYTES[cls];
    const live = --this.slabLive[slab];
    if (live === CLASS_CAPACITY[cls] - 1 && this.slabClosed[slab] === 0) this.linkRoomy(slab, cls);
    if (live === 0) this.closeEmpty(slab, cls);
  }

  private closeEmpty(slab: number, cls: number): void {
    if (this.slabClosed[slab] === 0) this.unlinkRoomy(slab, cls);
    this.slabClosed[slab] = 0;
    this.classSlabs[cls]--;
    this.releaseSlab(slab);
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
    return CLASS_BYTES[classFor(bytes)];
  }

  /** Blocks in use by block size, for INFO and tests. */
  classes(): { bytes: number; blocks: number }[] {
    return CLASS_BYTES.map((bytes, cls) => ({ bytes, blocks: this.classBlocks[cls] })).slice(1);
  }

  private openSlab(cls: number): number {
    if (this.freeSlab === 0) this.addSlabs();
    const slab = this.freeSlab;
    this.takeSlab(slab);
    this.slabClass[slab] = cls;
    this.slabLive[slab] = 0;
    this.slabFree[slab] = 0;
    this.slabFresh[slab] = 0;
    this.classSlabs[cls]++;
    this.linkRoomy(slab, cls);
    return slab;
  }

  protected linkRoomy(slab: number, cls: number): void {
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

  protected takeSlab(slab: number): void {
    this.unlistSlab(slab);
    this.chunkSlabs[this.chunkOf(slab)]++;
    this.slabBytes += SLAB_BYTES;
  }

  protected listSlab(slab: number): void {
    this.next[slab] = this.freeSlab;
    this.previous[slab] = 0;
    this.previous[this.freeSlab] = slab;
    this.freeSlab = slab;
  }

  private unlistSlab(slab: number): void {
    const next = this.next[slab];
    const previous = this.previous[slab];
    this.previous[next] = previous;
    if (previous === 0) this.freeSlab = next;
    else this.next[previous] = next;
  }

  private chunkOf(slab: number): number {
    return slab >>> (this.chunkShift - SLAB_UNIT_SHIFT);
  }

  protected releaseSlab(slab: number): void {
    if (this.snapshot !== null) this.snapshot.settle(slab);
    const chunk = this.chunkOf(slab);
    this.slabClass[slab] = SLAB_FREE;
    if (chunk !== this.closedChunk) this.listSlab(slab);
    this.slabBytes -= SLAB_BYTES;
    if (--this.chunkSlabs[chunk] === 0) this.dropChunk(chunk);
  }

  /** Takes a block of whole slabs. */
  protected takeRun(slabs: number): number {
    const first = this.findRun(slabs);
    for (let slab = first; slab < first + slabs; slab++) {
      this.takeSlab(slab);
      this.slabClass[slab] = SLAB_RUN_REST;
    }
    this.slabClass[first] = SLAB_RUN;
    this.slabLive[first] = slabs;
    this.blockBytes += slabs * SLAB_BYTES;
    return first << SLAB_UNIT_SHIFT;
  }

  protected findRun(slabs: number): number {
    if (slabs > this.slabsPerChunk - 1) {
      throw new OutOfTierError(`a block of ${slabs * SLAB_BYTES} bytes is larger than a chunk`);
    }
    for (;;) {
      for (let chunk = this.firstChunk; chunk < this.u8.length; chunk++) {
        const first = this.findRunIn(chunk, slabs);
        if (first !== 0) return first;
      }
      this.addSlabs();
    }
  }

  /** First slab of so many free ones in a row; 0 when there are none. */
  private findRunIn(chunk: number, slabs: number): number {
    const used = this.chunkSlabs[chunk];
    if (used < 0 || chunk === this.closedChunk || this.slabsPerChunk - used < slabs) return 0;
    const begin = chunk * this.slabsPerChunk;
    let run = 0;
    for (let slab = Math.max(1, begin); slab < begin + this.slabsPerChunk; slab++) {
      run = this.slabClass[slab] === SLAB_FREE ? run + 1 : 0;
      if (run === slabs) return slab - slabs + 1;
    }
    return 0;
  }

  protected giveRun(first: number): void {
    const slabs = this.slabLive[first];
    this.blockBytes -= slabs * SLAB_BYTES;
    for (let slab = first + slabs - 1; slab >= first; slab--) this.releaseSlab(slab);
  }

  /** More free slabs: those of the closed chunk, or a chunk's. */
  private addSlabs(): void {
    if (this.closedChunk >= 0) this.openChunk();
    else this.addChunk();
  }

  /** A number for a new chunk. */
  protected nextChunk(): number {
    let chunk = this.firstChunk;
    while (chunk < this.u8.length && this.chunkSlabs[chunk] !== ABSENT) chunk++;
    if (chunk === this.maxChunks) throw new OutOfTierError('the memory tier is at its end, 64 GB');
    return chunk;
  }

  private addChunk(): void {
    const chunk = this.nextChunk();
    this.placeChunk(chunk, this.spare.take());
    this.chunkSlabs[chunk] = 0;
    this.chunks++;
    this.forEachFreeSlab(chunk, (slab) => this.listSlab(slab));
  }

  /** Room in the tables for all slabs of so many chunks. */
  private growTables(chunks: number): void {
    const { slabClass, slabLive, slabFree, slabFresh, slabClosed, next, previous } = this;
    if (chunks * this.slabsPerChunk <= slabClass.length) return;
    const slabs = Math.min(this.maxChunks, chunks * 2) * this.slabsPerChunk;
    (this.slabClass = new Uint8Array(slabs)).set(slabClass);
    (this.slabLive = new Uint16Array(slabs)).set(slabLive);
    (this.slabFree = new Uint16Array(slabs)).set(slabFree);
    (this.slabFresh = new Uint16Array(slabs)).set(slabFresh);
    (this.slabClosed = new Uint8Array(slabs)).set(slabClosed);
    (this.next = new Int32Array(slabs)).set(next);
    (this.previous = new Int32Array(slabs)).set(previous);
  }

  protected placeChunk(chunk: number, { u8, i32, view, marks }: Chunk): void {
    this.growTables(chunk + 1);
    while (this.u8.length < chunk) this.placeChunk(this.u8.length, NO_CHUNK);
    this.u8[chunk] = u8;
    this.i32[chunk] = i32;
    this.view[chunk] = view;
    this.marks[chunk] = marks;
  }

  /** A chunk has no slabs in use. */
  private dropChunk(chunk: number): void {
    if (chunk === this.closedChunk) this.closedChunk = -1;
    else this.forEachFreeSlab(chunk, (slab) => this.unlistSlab(slab));
    const { u8, i32, view, marks } = this;
    this.spare.give({ u8: u8[chunk], i32: i32[chunk], view: view[chunk], marks: marks[chunk] });
    this.placeChunk(chunk, NO_CHUNK);
    this.chunkSlabs[chunk] = ABSENT;
    this.chunks--;
  }

  private forEachFreeSlab(chunk: number, visit: (slab: number) => void): void {
    const begin = chunk * this.slabsPerChunk;
    for (let slab = begin + this.slabsPerChunk - 1; slab >= Math.max(1, begin); slab--)
      if (this.slabClass[slab] === SLAB_FREE) visit(slab);
  }

  get slabsInUse(): number {
    return this.slabBytes / SLAB_BYTES;
  }

  /** Slabs of chunks that are not in use. */
  get freeSlabs(): number {
    return this.chunks * this.slabsPerChunk - this.slabsInUse;
  }

  /** The next slab after `slab` with blocks in use; 0 after the last. */
  nextSlab(slab: number): number {
    const end = this.u8.length * this.slabsPerChunk;
    for (slab = Math.max(slab + 1, this.firstChunk * this.slabsPerChunk); slab < end; slab++) {
      const cls = this.slabClass[slab];
      if (cls !== SLAB_FREE && cls !== SLAB_RUN_REST) return slab;
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

  /** Slabs that the blocks of a class could do without. */
  private surplus(cls: number): number {
    return this.classSlabs[cls] - Math.ceil(this.classBlocks[cls] / CLASS_CAPACITY[cls]);
  }

  /** Bytes of slabs that all blocks could do without if they lay close together. */
  get sparseBytes(): number {
    let slabs = 0;
    for (let cls = 1; cls < CLASS_COUNT; cls++) slabs += this.surplus(cls);
    return slabs * SLAB_BYTES;
  }

  /** No more of its class in use than in the others, where at least one part in `share` of the class's slabs could be spared. */
  isSparse(slab: number, share: number): boolean {
    const cls = this.slabClass[slab];
    if (cls === SLAB_FREE || cls >= SLAB_RUN) return false;
    const slabs = this.classSlabs[cls];
    const surplus = this.surplus(cls);
    return surplus > 0 && surplus * share >= slabs && this.slabLive[slab] * slabs <= this.classBlocks[cls];
  }

  /** Hands nothing out from a slab until it is empty or opened. */
  closeSlab(slab: number): void {
    const cls = this.slabClass[slab];
    if (cls === SLAB_FREE || cls >= SLAB_RUN || this.slabClosed[slab] !== 0) return;
    if (this.slabLive[slab] < CLASS_CAPACITY[cls]) this.unlinkRoomy(slab, cls);
    this.slabClosed[slab] = 1;
  }

  openSlabAgain(slab: number): void {
    if (this.slabClosed[slab] === 0) return;
    this.slabClosed[slab] = 0;
    const cls = this.slabClass[slab];
    if (this.slabLive[slab] < CLASS_CAPACITY[cls]) this.linkRoomy(slab, cls);
  }

  /** The chunk with the fewest slabs in use; -1 when there is none. */
  emptiestChunk(): number {
    let emptiest = -1;
    for (let chunk = this.firstChunk; chunk < this.u8.length; chunk++) {
      const used = this.chunkSlabs[chunk];
      if (used > 0 && (emptiest < 0 || used < this.chunkSlabs[emptiest])) emptiest = chunk;
    }
    return emptiest;
  }

  /** Closes a chunk, its free slabs too, until it is gone or opened. None must be closed. */
  closeChunk(chunk: number): void {
    this.forEachFreeSlab(chunk, (slab) => this.unlistSlab(slab));
    this.closedChunk = chunk;
    const begin = chunk * this.slabsPerChunk;
    for (let slab = begin; slab < begin + this.slabsPerChunk; slab++) this.closeSlab(slab);
  }

  /** The closed chunk serves again. */
  openChunk(): void {
    const chunk = this.closedChunk;
    if (chunk < 0) return;
    this.closedChunk = -1;
    this.forEachFreeSlab(chunk, (slab) => this.listSlab(slab));
    const begin = chunk * this.slabsPerChunk;
    for (let slab = begin; slab < begin + this.slabsPerChunk; slab++) this.openSlabAgain(slab);
  }

  /** A block like that at `ref` can be had without opening what is closed, or a chunk. */
  hasRoomLike(ref: number): boolean {
    const slab = ref >>> SLAB_UNIT_SHIFT;
    const cls = this.slabClass[slab];
    if (cls < SLAB_RUN) return this.roomy[cls] !== 0 || this.freeSlab !== 0;
    for (let chunk = this.firstChunk; chunk < this.u8.length; chunk++)
      if (this.findRunIn(chunk, this.slabLive[slab]) !== 0) return true;
    return false;
  }

  /** Takes a block of the size of that at `ref`. */
  protected takeLike(ref: number): number {
    const slab = ref >>> SLAB_UNIT_SHIFT;
    const cls = this.slabClass[slab];
    return cls === SLAB_RUN ? this.takeRun(this.slabLive[slab]) : this.take(cls);
  }
}
