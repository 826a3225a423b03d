/**
 * What goes with not all data being in memory, kept in step in the background: bringing it in after a start,
 * filters of absent keys, and the end of it all when everything is there.
 */
import type { Residency } from './api.ts';
import { FilterBuilder } from './filter-builder.ts';
import type { Keyspace } from './keyspace.ts';
import { Warmer, type WarmerGround } from './warmer.ts';
import { Wholeness } from './wholeness.ts';

/** A log shorter than this is replayed with the keys that it names fetched. */
const FETCHED_LOG_BYTES = 4 * 1024 * 1024;
/**
 * Also one with fewer bytes for each key: to fetch the key of a request of some 130 bytes takes as long as reading
 * some twenty keys in order.
 */
const LOG_BYTES_A_KEY = 8;

export class ResidencyKeeper {
  readonly warmer: Warmer;
  private readonly ground: WarmerGround;
  private readonly filterBuilder: FilterBuilder;
  private readonly wholeness: Wholeness;

  constructor(ground: WarmerGround) {
    this.ground = ground;
    this.warmer = new Warmer(ground);
    this.filterBuilder = new FilterBuilder(ground.residents);
    this.wholeness = new Wholeness(ground);
  }

  /** A start has left all keys of `keyspaces` in the engine; those of databases are `served`. */
  begin(served: readonly Keyspace[], keyspaces: readonly Keyspace[]): void {
    this.warmer.prepare(served);
    if (keyspaces.every(({ complete }) => complete)) return;
    const { residents } = this.ground;
    residents.tracking = true;
    residents.missing = true;
  }

  /** See RowSource.beforeReplay. */
  async beforeReplay(keyspaces: readonly Keyspace[], logBytes: number): Promise<void> {
    const keys = keyspaces.reduce((sum, { away }) => sum + away.count, 0);
    if (logBytes < Math.max(FETCHED_LOG_BYTES, keys * LOG_BYTES_A_KEY)) return;
    await this.warmer.finish();
    this.settle(keyspaces, Infinity);
  }

  /** For about `budgetMs`, between two units of work. */
  settle(keyspaces: readonly Keyspace[], budgetMs: number): void {
    const { residents } = this.ground;
    this.filterBuilder.wake(keyspaces);
    if (!residents.tracking) return;
    if (!this.wholeness.restored(keyspaces, budgetMs)) return;
    // Keys without a name are found by those look-ups alone that ask for more than the table.
    residents.tracking = keyspaces.some(({ nameless }) => nameless !== null);
    residents.missing = false;
    for (const { away } of keyspaces) away.forgetFilter();
  }

  /** See Store.residency. */
  report(keyspaces: readonly Keyspace[], filterBytes: number): Residency {
    const { arena, residents, evictor } = this.ground;
    const { warmer } = this;
    let keys = 0;
    let residentKeys = 0;
    for (const { size, away } of keyspaces) {
      keys += size;
      residentKeys += size - away.count;
    }
    return {
      complete: !residents.missing,
      residentKeys,
      keys,
      faults: residents.faults,
      fetchRounds: residents.fetchRounds,
      fetchedRows: residents.fetchedRows,
      absentRows: residents.absentRows,
      roundsMax: residents.roundsMax,
      waiting: residents.waiting,
      evictedKeys: evictor.evictedKeys,
      evictedPages: evictor.evictedPages,
      pinnedBytes: arena.dirtyBytes + arena.cutBytes + residents.pinnedBytes,
      warming: warmer.running,
      warmedRows: warmer.rows,
      warmUpMs: warmer.elapsedMs,
      filterBytes,
      filterHits: residents.filterHits,
    };
  }
}
