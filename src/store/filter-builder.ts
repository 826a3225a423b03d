/** Makes filters of absent keys from the engine's rows, one after the other, in the background. */
import { RowKind, hashRange, EXPIRY_ROW_BYTES } from './row-format.ts';
import type { Keyspace } from './keyspace.ts';
import type { EngineLink, Residents } from './residents.ts';
import { RowWalk } from './row-walk.ts';

const CHUNK_BYTES = 256 * 1024;
/** Chunks that one scan reads: the engine has to keep what it shows. Keys that leave memory between two scans are told by themselves. */
const CHUNKS_A_SCAN = 64;
/** Where the next scan begins: after a key. */
const AFTER = Buffer.alloc(1);

export class FilterBuilder {
  private readonly residents: Residents;
  private running = false;

  constructor(residents: Residents) {
    this.residents = residents;
  }

  /** Begins with a keyspace that wants a filter, if none is being made. */
  wake(keyspaces: Iterable<Keyspace>): void {
    const { link } = this.residents;
    if (this.running || link === null || link.checkpoint === null) return;
    for (const keyspace of keyspaces) {
      if (keyspace.droppedAt !== 0 || !keyspace.away.wantsFilter(keyspace.size)) continue;
      this.running = true;
      // An engine that fails has told so to those that wait for it.
      this.build(keyspace, link)
        .then(
          () => keyspace.away.built(),
          () => keyspace.away.failed(),
        )
        .finally(() => {
          this.running = false;
        });
      return;
    }
  }

  private async build(keyspace: Keyspace, link: EngineLink): Promise<void> {
    keyspace.away.build(keyspace.size);
    for (const kind of [RowKind.LongKey, RowKind.Key]) {
      const { start, end } = hashRange(kind, keyspace.id, 0, 2 ** 32);
      for (let from: Uint8Array | null = start; from !== null;)
        from = await this.scan(keyspace, link, from, end as Uint8Array);
    }
  }

  /** Adds the hashes of some rows from `start` on; returns where to go on, null at the end. */
  private async scan(
    keyspace: Keyspace,
    { engine }: EngineLink,
    start: Uint8Array,
    end: Uint8Array,
  ): Promise<Uint8Array | null> {
    let chunks = 0;
    for await (const chunk of engine.scan({ start, end, chunkBytes: CHUNK_BYTES, keysOnly: true })) {
      const walk = new RowWalk(chunk);
      while (walk.next()) {
        if (!keyspace.away.found(walk.bytes.readInt32BE(walk.keyStart + EXPIRY_ROW_BYTES))) return null;
      }
      this.residents.filterRows += chunk.rows;
      if (keyspace.droppedAt !== 0) return null;
      if (++chunks === CHUNKS_A_SCAN)
        return Buffer.concat([walk.bytes.subarray(walk.keyStart, walk.valueStart), AFTER]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    return null;
  }
}
