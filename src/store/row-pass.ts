/** Long ways over the engine's rows, for work in the background. */
import type { Engine, Range } from '../engines/engine.ts';
import type { Residents } from './residents.ts';
import { RowWalk } from './row-walk.ts';

/** Chunks that one scan reads: the engine has to keep what it shows. */
const CHUNKS_A_SCAN = 64;
/** The next scan begins after a key. */
const AFTER = Buffer.alloc(1);

export interface RowPassOptions extends Range {
  chunkBytes: number;
  keysOnly?: boolean;
  /** Waited for before each scan. */
  ready?: () => Promise<void>;
}

/**
 * All rows of a range in their order, a chunk at a time, by as many scans as it takes. `applied` is what
 * `Residents.applied` was when the chunk's scan began. Who leaves rows of a chunk unread, because they may have
 * become stale, gets them anew from another scan.
 */
export async function* rowPass(
  engine: Pick<Engine, 'scan'>,
  residents: Residents,
  { start, end, chunkBytes, keysOnly, ready }: RowPassOptions,
): AsyncGenerator<{ walk: RowWalk; applied: number }> {
  for (let from: Uint8Array | null = start; from !== null;) {
    await ready?.();
    const { applied } = residents;
    let chunks = 0;
    let next: Uint8Array | null = null;
    for await (const chunk of engine.scan({ start: from, end, chunkBytes, keysOnly })) {
      const walk = new RowWalk(chunk);
      yield { walk, applied };
      if (walk.end > 0) from = Buffer.concat([walk.bytes.subarray(walk.keyStart, walk.valueStart), AFTER]);
      if (!walk.left && ++chunks < CHUNKS_A_SCAN) continue;
      next = from;
      break;
    }
    from = next;
  }
}
