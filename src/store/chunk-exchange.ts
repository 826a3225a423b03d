/**
 * Slabs whose chunks may go from one arena to another as they lie: a thread makes them under numbers that the
 * arena which takes them over has promised it, so that every reference is right there.
 */
import { chunkOf, MARK_WORDS, NO_CHUNK } from './chunks.ts';
import { CLASS_BYTES, CLASS_CAPACITY, CLASS_UNITS, SLAB_BYTES } from './size-classes.ts';
import {
  ABSENT,
  PROMISED,
  SLAB_FREE,
  SLAB_RUN,
  SLAB_RUN_REST,
  SLAB_UNIT_MASK,
  SLAB_UNIT_SHIFT,
  Slabs,
  type SlabOptions,
} from './slabs.ts';

/** A chunk on its way: its memory with its marks, and how its slabs are cut into blocks. */
export interface ChunkState {
  chunk: number;
  memory: ArrayBuffer;
  classes: Uint8Array<ArrayBuffer>;
  live: Uint16Array<ArrayBuffer>;
  free: Uint16Array<ArrayBuffer>;
  fresh: Uint16Array<ArrayBuffer>;
}

/** What becomes of a block: whether it is in use. */
export type VisitBlock = (ref: number, bytes: number) => boolean;

export interface ChunkExchangeOptions extends SlabOptions {
  /** Numbers the chunks of an arena that hands them over; see `promiseChunk`. */
  nextChunk?: () => number;
}

export class ChunkExchange extends Slabs {
  constructor(options: ChunkExchangeOptions) {
    super(options);
    if (options.nextChunk !== undefined) this.nextChunk = options.nextChunk;
  }

  /** A number under which another arena may make a chunk for this one to take over, or to be withdrawn. */
  promiseChunk(): number {
    const chunk = this.nextChunk();
    this.placeChunk(chunk, NO_CHUNK);
    this.chunkSlabs[chunk] = PROMISED;
    return chunk;
  }

  withdrawChunk(chunk: number): void {
    this.chunkSlabs[chunk] = ABSENT;
  }

  /** So many slabs in a row, to be filled with what lay in slabs elsewhere, and then each `cut`. Returns the first. */
  openSlabs(count: number): number {
    const first = this.findRun(count);
    for (let slab = first; slab < first + count; slab++) {
      this.takeSlab(slab);
      this.slabClass[slab] = SLAB_RUN_REST;
    }
    return first;
  }

  /** Says how a slab of `openSlabs` is cut: into blocks of a class, those in use and others, which are free. */
  cut(slab: number, cls: number, visit: VisitBlock): void {
    const capacity = CLASS_CAPACITY[cls];
    const units = CLASS_UNITS[cls];
    const first = slab << SLAB_UNIT_SHIFT;
    const words = this.i32[first >>> this.chunkShift];
    this.slabClass[slab] = cls;
    this.slabFree[slab] = 0;
    let live = 0;
    let fresh = 0;
    for (let block = 0; block < capacity; block++) {
      if (!visit(first + block * units, CLASS_BYTES[cls])) continue;
      live++;
      // Blocks after the last in use stay as if never handed out.
      for (; fresh < block; fresh++) this.chainFree(words, slab, first + fresh * units);
      fresh = block + 1;
    }
    this.slabLive[slab] = live;
    this.slabFresh[slab] = fresh * units;
    if (live === 0) {
      this.releaseSlab(slab);
      return;
    }
    this.addClass(slab, cls, live);
  }

  private addClass(slab: number, cls: number, live: number): void {
    this.classSlabs[cls]++;
    this.classBlocks[cls] += live;
    this.blockBytes += live * CLASS_BYTES[cls];
    if (live < CLASS_CAPACITY[cls]) this.linkRoomy(slab, cls);
  }

  private chainFree(words: Int32Array, slab: number, ref: number): void {
    words[(ref & this.unitMask) << 2] = this.slabFree[slab];
    this.slabFree[slab] = (ref & SLAB_UNIT_MASK) + 1;
  }

  /** The same for slabs that are one block. */
  cutRun(first: number, slabs: number, visit: VisitBlock): void {
    this.slabClass[first] = SLAB_RUN;
    this.slabLive[first] = slabs;
    this.blockBytes += slabs * SLAB_BYTES;
    if (!visit(first << SLAB_UNIT_SHIFT, slabs * SLAB_BYTES)) this.giveRun(first);
  }

  /** Gives all chunks away: nothing is left here. There must be no snapshot. */
  protected giveChunks(): ChunkState[] {
    const states: ChunkState[] = [];
    for (let chunk = 0; chunk < this.u8.length; chunk++) {
      if (this.chunkSlabs[chunk] < 0) continue;
      const from = chunk * this.slabsPerChunk;
      const end = from + this.slabsPerChunk;
      states.push({
        chunk,
        memory: this.marks[chunk].buffer,
        classes: this.slabClass.slice(from, end),
        live: this.slabLive.slice(from, end),
        free: this.slabFree.slice(from, end),
        fresh: this.slabFresh.slice(from, end),
      });
      this.placeChunk(chunk, NO_CHUNK);
      this.chunkSlabs[chunk] = ABSENT;
      this.slabClass.fill(SLAB_FREE, from, end);
    }
    this.chunks = this.freeSlab = this.slabBytes = this.blockBytes = 0;
    this.roomy.fill(0);
    this.classBlocks.fill(0);
    this.classSlabs.fill(0);
    return states;
  }

  /**
   * Takes a chunk over that was promised.
   * @param dirtyAt which of the words of marks are those of dirty here; in the arena that it comes from it is the first
   */
  protected takeChunk({ chunk, memory, classes, live, free, fresh }: ChunkState, dirtyAt: number): void {
    const taken = chunkOf(memory, this.chunkBytes);
    const { marks } = taken;
    if (dirtyAt !== 0) {
      for (let at = 0; at < marks.length; at += MARK_WORDS) {
        marks[at + dirtyAt] = marks[at];
        marks[at] = 0;
      }
    }
    this.placeChunk(chunk, taken);
    this.chunks++;
    const begin = chunk * this.slabsPerChunk;
    this.slabLive.set(live, begin);
    this.slabFree.set(free, begin);
    this.slabFresh.set(fresh, begin);
    this.slabClass.set(classes, begin);
    let used = 0;
    for (let slab = begin + this.slabsPerChunk - 1; slab >= Math.max(1, begin); slab--) {
      const cls = this.slabClass[slab];
      if (cls === SLAB_FREE) {
        this.listSlab(slab);
        continue;
      }
      used++;
      if (cls === SLAB_RUN) this.blockBytes += this.slabLive[slab] * SLAB_BYTES;
      else if (cls < SLAB_RUN) this.addClass(slab, cls, this.slabLive[slab]);
    }
    this.slabBytes += used * SLAB_BYTES;
    this.chunkSlabs[chunk] = used;
  }
}
