/**
 * What is in memory and what is not: who may have to fault, what the run under way has wanted, and
 * which blocks may not leave because a unit of work waits for them.
 */
import type { Slice } from '../bytes/slice.ts';
import type { Engine } from '../engines/engine.ts';
import { ROW_FAULT } from './api.ts';
import type { Arena } from './arena.ts';
import type { OnSlice } from './checkpoint.ts';
import type { Keyspace } from './keyspace.ts';
import type { RowSet } from './row-set.ts';
import { DAMAGED_NAMED_MAX, RowError } from './row-source.ts';
import type { RowWant } from './row-want.ts';

/** What rows are fetched from, and who is told of what is found there. */
export interface EngineLink {
  readonly engine: Pick<Engine, 'getMany' | 'getPrefixed' | 'scan'>;
  /** Takes a checkpoint, so that what is dirty becomes clean; null while none can be taken. */
  readonly checkpoint: (() => Promise<void>) | null;
  readonly onNotice?: (message: string) => void;
  readonly onWarning?: (message: string) => void;
  /** Rows are missing, or do not tell whose they are: what keys there are is in doubt. */
  readonly onLost?: (what: string) => void;
  readonly onSlice?: OnSlice;
}

export class Residents {
  /** Look-ups must ask here: something is not in memory or may leave it, or a test wants faults. */
  tracking = false;
  /** Something may not be in memory. */
  missing = false;
  /** The working set of the unit of work that runs; null in its first run. */
  set: RowSet | null = null;
  /** What the run under way has missed. */
  wanted: RowWant[] = [];
  /** In the test mode: rows that the run under way has met. */
  readonly met = new Set<string>();
  link: EngineLink | null = null;
  /**
   * Checkpoints that the engine has had since the start. What was read from it may be put into memory
   * only if this has not changed meanwhile: otherwise the row may have been brought in, changed,
   * written and evicted again since.
   */
  applied = 0;

  faults = 0;
  fetchRounds = 0;
  fetchedRows = 0;
  absentRows = 0;
  /** Look-ups that a filter has spared, and rows that filters were made from. */
  filterHits = 0;
  filterRows = 0;
  /** What the filter of one database may take. */
  filterBytesMax = Infinity;
  /** Damaged rows that were met, one perhaps more than once. */
  damagedRows = 0;
  roundsMax = 0;
  waiting = 0;
  /** Bytes of blocks that waiting units of work hold; what two of them hold counts twice. */
  pinnedBytes = 0;

  /** By block: how many working sets hold it. */
  private readonly pins = new Map<number, number>();
  private readonly arena: Pick<Arena, 'journal'>;
  private chance = 0;
  private state = 0;

  constructor(arena: Pick<Arena, 'journal'>) {
    this.arena = arena;
  }

  begin(set: RowSet | null): void {
    this.set = set;
    this.wanted.length = 0;
    if (this.chance > 0) this.met.clear();
  }

  /** As Store.faultAtRandom. */
  faultAtRandom(seed: number, chance: number): void {
    this.state = seed | 0;
    this.chance = chance;
  }

  get testing(): boolean {
    return this.chance > 0;
  }

  /** In the test mode: a row is used, which `kind` and two numbers name; faults once in a unit of work, if at all. */
  access(kind: 'k' | 'p', id: number, number: number): void {
    if (this.chance === 0) return;
    const row = `${kind}${id}/${number}`;
    const { set } = this;
    if (this.met.has(row) || set?.met.has(row) === true) return;
    this.met.add(row);
    // The more often a unit has faulted, the less: its runs stay in proportion to what it does.
    if (this.random() < this.chance / (1 + (set?.rounds ?? 0))) this.fault();
  }

  /** A key that the table does not lead to and the engine may have. */
  missKey(keyspace: Keyspace, key: Slice, hash: number): never {
    this.wantKey(keyspace, key, hash);
    this.fault();
  }

  /** Notes such a key; the run goes on. */
  wantKey(keyspace: Keyspace, key: Slice, hash: number): void {
    this.wanted.push({ kind: 'key', keyspace, hash, key: key.clone() });
  }

  /** A page that is not in memory; `next` is the number after the collection's last. */
  missPage(slot: number, id: number, number: number, next: number): never {
    this.wanted.push({ kind: 'page', slot, id, number, next, ahead: false });
    this.fault();
  }

  fault(): never {
    if (this.arena.journal === null)
      throw new Error('what is not in memory is needed outside a unit of work');
    this.faults++;
    throw ROW_FAULT;
  }

  /** A row of that name, in hex, is not what was written. */
  damaged(row: string, more = ''): void {
    if (++this.damagedRows <= DAMAGED_NAMED_MAX)
      this.link?.onWarning?.(`row ${row} is damaged: it is not what was written${more}`);
  }

  lost(what: string): never {
    this.link?.onLost?.(what);
    throw new RowError(what);
  }

  isPinned(ref: number): boolean {
    return this.pins.size > 0 && this.pins.has(ref);
  }

  pin(ref: number): void {
    this.pins.set(ref, (this.pins.get(ref) ?? 0) + 1);
  }

  /** The block may have been given up meanwhile; then its reference means nothing, or something else. */
  unpin(ref: number): void {
    const count = this.pins.get(ref) ?? 0;
    if (count > 1) {
      this.pins.set(ref, count - 1);
      return;
    }
    this.pins.delete(ref);
  }

  /** mulberry32. */
  private random(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
}
