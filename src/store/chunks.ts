/**
 * The memory of chunks, which lies outside the JS heap: from the system, kept while it may be needed again, and
 * given back.
 *
 * An ArrayBuffer that nothing refers to goes only with V8's next major collection, which an idle server does not
 * come to. So the memory is transferred in a message to a port that is being closed: the message is never
 * received, and is deleted with the port at the end of this turn of the event loop. Whoever kept a view of it
 * has an empty one then.
 */
import { MessageChannel } from 'node:worker_threads';
import { SLICE_PADDING } from '../bytes/slice.ts';
import { UNIT_BYTES } from './size-classes.ts';
import { SliceClock } from './slice-clock.ts';

/** Words of marks for 32 units: dirty, cut, flight, used. */
export const MARK_WORDS = 4;

/** The memory of a chunk three ways, each with SLICE_PADDING readable bytes at its end, and its marks. */
export interface Chunk {
  readonly u8: Buffer;
  readonly i32: Int32Array;
  readonly view: DataView;
  readonly marks: Int32Array<ArrayBuffer>;
}

export function chunkOf(memory: ArrayBuffer, marks: ArrayBuffer): Chunk {
  return {
    u8: Buffer.from(memory),
    i32: new Int32Array(memory),
    view: new DataView(memory),
    marks: new Int32Array(marks),
  };
}

export const NO_CHUNK = chunkOf(new ArrayBuffer(0), new ArrayBuffer(0));

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
    const { chunkBytes } = this;
    return (
      this.spare.pop() ??
      chunkOf(
        new ArrayBuffer(chunkBytes + SLICE_PADDING),
        new ArrayBuffer((chunkBytes / UNIT_BYTES / 8) * MARK_WORDS),
      )
    );
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
    const { u8, marks } = spare.shift() as Chunk;
    setImmediate(() => this.discard([u8.buffer as ArrayBuffer, marks.buffer]));
    return true;
  }

  /** In the last step of a turn but one: ports are closed in the last, where it is known how long that takes. */
  private discard(buffers: ArrayBuffer[]): void {
    const clock = (this.clock ??= new SliceClock());
    const { port1, port2 } = new MessageChannel();
    clock.start();
    port2.once('close', () => {
      clock.stop();
      this.onRelease(clock.elapsedMs, clock.workMs);
    });
    port2.close();
    port1.postMessage(null, buffers);
    port1.close();
  }
}
