/**
 * The memory of chunks, which lies outside the JS heap: from the system, kept while it may be needed again, and
 * given back. Whoever kept a view of what was given back has an empty one then.
 */
import { release } from '../bytes/release.ts';
import { SLICE_PADDING } from '../bytes/slice.ts';
import { UNIT_BYTES } from './size-classes.ts';
import { SliceClock } from './slice-clock.ts';

/** Words of marks for 32 units: dirty, cut, flight, used. */
export const MARK_WORDS = 4;

/**
 * The memory of a chunk three ways, each with SLICE_PADDING readable bytes at its end, and its marks, which lie behind
 * it: of their own, each would be a block of those that malloc keeps to itself, and of which one keeps many.
 */
export interface Chunk {
  readonly u8: Buffer;
  readonly i32: Int32Array;
  readonly view: DataView;
  readonly marks: Int32Array<ArrayBuffer>;
}

/** @param memory of a chunk of `chunkBytes`, made by `newChunk` */
export function chunkOf(memory: ArrayBuffer, chunkBytes: number): Chunk {
  const bytes = chunkBytes + SLICE_PADDING;
  return {
    u8: Buffer.from(memory, 0, bytes),
    i32: new Int32Array(memory, 0, bytes / Int32Array.BYTES_PER_ELEMENT),
    view: new DataView(memory, 0, bytes),
    marks: new Int32Array(memory, bytes),
  };
}

function newChunk(chunkBytes: number): Chunk {
  const marksBytes = (chunkBytes / UNIT_BYTES / 8) * MARK_WORDS;
  return chunkOf(new ArrayBuffer(chunkBytes + SLICE_PADDING + marksBytes), chunkBytes);
}

/** Nothing at all, padding included: whoever reads in it has lost its way. */
export const NO_CHUNK: Chunk = {
  u8: Buffer.alloc(0),
  i32: new Int32Array(0),
  view: new DataView(new ArrayBuffer(0)),
  marks: new Int32Array(0),
};

/** The last chunk that is spare is kept so long, so that work around a chunk's edge does not map and unmap it again and again. */
const KEPT_MS = 1000;

export class SpareChunks {
  private readonly chunkBytes: number;
  private readonly spare: Chunk[] = [];
  private since = 0;
  private clock: SliceClock | null = null;
  /** Told how long it took the system to take a chunk back; see SliceClock. */
  onRelease: (ms: number, workMs: number) => void = () => {};

  constructor(chunkBytes: number) {
    this.chunkBytes = chunkBytes;
  }

  get count(): number {
    return this.spare.length;
  }

  /** A chunk of undefined content and without marks. */
  take(): Chunk {
    return this.spare.pop() ?? newChunk(this.chunkBytes);
  }

  give(chunk: Chunk): void {
    this.spare.push(chunk);
    this.since = performance.now();
  }

  /** Gives one chunk back to the system; false when none is due. */
  release(keptMs = KEPT_MS): boolean {
    const { spare } = this;
    if (spare.length === 0) return false;
    if (spare.length === 1 && performance.now() - this.since < keptMs) return false;
    const { marks } = spare.shift() as Chunk;
    setImmediate(() => this.discard(marks.buffer));
    return true;
  }

  /** In the last step of a turn but one: ports are closed in the last, where it is known how long that takes. */
  private discard(memory: ArrayBuffer): void {
    const clock = (this.clock ??= new SliceClock());
    clock.start();
    release([memory], () => {
      clock.stop();
      this.onRelease(clock.elapsedMs, clock.workMs);
    });
  }
}
