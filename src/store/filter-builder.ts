/** Makes filters of all keys of a keyspace, one after the other, in the background. */
import type { Keyspace } from './keyspace.ts';
import { LoopLoad, rest } from './loop-load.ts';
import type { EngineLink, Residents } from './residents.ts';
import { EXPIRY_ROW_BYTES, hashRange, RowKind } from './row-format.ts';
import { rowPass } from './row-pass.ts';

const CHUNK_BYTES = 256 * 1024;
/** CPU time of one slice. */
const SLICE_MS = 2;

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

  /** From the key table, and from the engine's rows unless all keys were in memory when it began. */
  private async build(keyspace: Keyspace, link: EngineLink): Promise<void> {
    const { complete } = keyspace;
    keyspace.away.build(keyspace.size);
    await this.addResident(keyspace);
    if (complete) return;
    for (const kind of [RowKind.LongKey, RowKind.Key]) await this.addRows(keyspace, link, kind);
  }

  private async addResident(keyspace: Keyspace): Promise<void> {
    const { table, away } = keyspace;
    const load = new LoopLoad();
    let more = true;
    const add = (hash: number): void => {
      more = away.found(hash);
    };
    for (let cursor = 0; more && keyspace.droppedAt === 0;) {
      const began = performance.now();
      do cursor = table.forEachHash(cursor, add);
      while (cursor !== 0 && performance.now() < began + SLICE_MS);
      if (cursor === 0) return;
      await rest(load.restAfter(performance.now() - began));
    }
  }

  private async addRows(keyspace: Keyspace, { engine }: EngineLink, kind: number): Promise<void> {
    const range = { ...hashRange(kind, keyspace.id), chunkBytes: CHUNK_BYTES, keysOnly: true };
    for await (const { walk } of rowPass(engine, this.residents, range)) {
      while (walk.next()) {
        if (!keyspace.away.found(walk.bytes.readInt32BE(walk.keyStart + EXPIRY_ROW_BYTES))) return;
        this.residents.filterRows++;
      }
      if (keyspace.droppedAt !== 0) return;
      await rest(0);
    }
  }
}
