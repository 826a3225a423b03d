import type { Slice } from '../bytes/slice.ts';
import type { Database, WorkingSet } from './api.ts';
import type { TierDatabase } from './database.ts';
import type { Keyspace } from './keyspace.ts';
import type { RowFetcher } from './row-fetcher.ts';
import type { RowWant } from './row-want.ts';

/** A stretch of hashes, unsigned, whose keys are all in memory while the working set is held. */
interface KnownKeys {
  keyspace: Keyspace;
  from: number;
  to: number;
}

/** Rows that one unit of work wants and has. */
export class RowSet implements WorkingSet {
  rounds = 0;
  /** In the test mode: rows that have had their chance of a fault. */
  readonly met = new Set<string>();
  released = false;
  /** Bytes of what it holds. */
  pinnedBytes = 0;

  private readonly fetcher: RowFetcher;
  private wants: RowWant[] = [];
  private readonly pinned = new Set<number>();
  private readonly known: KnownKeys[] = [];

  constructor(fetcher: RowFetcher) {
    this.fetcher = fetcher;
    fetcher.residents.waiting++;
  }

  want(database: Database, key: Slice): void {
    const tierDatabase = database as TierDatabase;
    const { keyspace } = tierDatabase;
    const { merge } = keyspace;
    if (keyspace.complete && merge === null) return;
    const hash = tierDatabase.hashOf(key);
    if (merge?.concerns(hash) === true) this.wantOf(merge.from, key, hash);
    this.wantOf(keyspace, key, hash);
  }

  private wantOf(keyspace: Keyspace, key: Slice, hash: number): void {
    const present = keyspace.table.find(hash, key.view, key.start, key.end);
    if (present !== 0) {
      this.pin(present);
      return;
    }
    if (!keyspace.away.mayHave(hash)) return;
    this.wants.push({ kind: 'key', keyspace, hash, key: key.clone() });
  }

  async fetch(): Promise<void> {
    const { residents } = this.fetcher;
    this.rounds++;
    residents.fetchRounds++;
    residents.roundsMax = Math.max(residents.roundsMax, this.rounds);
    for (const row of residents.met) this.met.add(row);
    const wants = [...this.wants, ...residents.wanted];
    this.wants = [];
    residents.wanted = [];
    residents.met.clear();
    await this.fetcher.fetch(this, wants);
  }

  /** Keeps a block in memory until `release`. */
  pin(ref: number): void {
    if (this.pinned.has(ref)) return;
    const { residents, arena } = this.fetcher;
    residents.pin(ref);
    this.pinned.add(ref);
    this.pinnedBytes += arena.sizeOf(ref);
    residents.pinnedBytes += arena.sizeOf(ref);
  }

  /** All keys of the hashes [from, to), unsigned, are in memory. */
  addKnown(keyspace: Keyspace, from: number, to: number): void {
    if (!this.known.some((known) => known.keyspace === keyspace)) keyspace.held++;
    const last = this.known.at(-1);
    if (last?.keyspace === keyspace && last.to === from) last.to = to;
    else this.known.push({ keyspace, from, to });
  }

  /** Up to which hash, exclusive, all keys from `hash` on are in memory; `hash` itself when they are not. */
  knownUntil(keyspace: Keyspace, hash: number): number {
    for (const { keyspace: of, from, to } of this.known)
      if (of === keyspace && from <= hash && hash < to) return to;
    return hash;
  }

  release(): void {
    if (this.released) return;
    this.released = true;
    const { residents } = this.fetcher;
    residents.waiting--;
    residents.pinnedBytes -= this.pinnedBytes;
    for (const ref of this.pinned) residents.unpin(ref);
    for (const keyspace of new Set(this.known.map((known) => known.keyspace))) keyspace.held--;
    this.fetcher.released();
  }
}
