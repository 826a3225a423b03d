/**
 * What is in memory and what is not: who may have to fault, what the run under way has wanted, and
 * the working sets of the units of work that wait.
 */
import type { Slice } from '../bytes/slice.ts';
import { ROW_FAULT, type Database, type WorkingSet } from './api.ts';

/** Rows that one unit of work wants and has. */
export class RowSet implements WorkingSet {
  rounds = 0;
  /** In the test mode: rows that have had their chance of a fault. */
  met = new Set<string>();

  private readonly residents: Residents;

  constructor(residents: Residents) {
    this.residents = residents;
    residents.waiting++;
  }

  want(_database: Database, _key: Slice): void {
    // Everything is in memory.
  }

  async fetch(): Promise<void> {
    const { residents } = this;
    this.rounds++;
    residents.fetchRounds++;
    residents.roundsMax = Math.max(residents.roundsMax, this.rounds);
    for (const row of residents.met) this.met.add(row);
    residents.met.clear();
    await Promise.resolve();
  }

  release(): void {
    this.residents.waiting--;
  }
}

export class Residents {
  /** Look-ups must ask here: something is not in memory, or a test wants faults. */
  tracking = false;
  /** The working set of the unit of work that runs; null for a first run. */
  set: RowSet | null = null;
  /** Rows that the run under way has met, in the test mode. */
  readonly met = new Set<string>();

  faults = 0;
  fetchRounds = 0;
  roundsMax = 0;
  waiting = 0;

  private chance = 0;
  private state = 0;

  begin(set: WorkingSet | null): void {
    this.set = set as RowSet | null;
    if (this.chance > 0) this.met.clear();
  }

  /** As Store.faultAtRandom. */
  faultAtRandom(seed: number, chance: number): void {
    this.state = seed | 0;
    this.chance = chance;
    this.tracking = chance > 0;
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

  fault(): never {
    this.faults++;
    throw ROW_FAULT;
  }

  /** mulberry32. */
  private random(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }
}
