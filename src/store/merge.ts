/**
 * What was imported becomes a part of a database that has keys.
 *
 * In one step the larger of both keyspaces becomes the database's, and what the smaller one holds counts as a
 * part of it. Its keys then move, one by one: in the background, and before anybody looks at one of them. So
 * every look-up finds what it would if all had moved in that step, and the step costs nothing. What concerns all
 * keys (DBSIZE, SCAN, a dump) waits until the last has moved. The pair stands in the meta row until then.
 */
import { Slice } from '../bytes/slice.ts';
import type { Keyspace } from './keyspace.ts';
import { LoopLoad, rest } from './loop-load.ts';
import type { Residents } from './residents.ts';
import type { Tier } from './tier.ts';
import { unitOfWork } from './unit-of-work.ts';

/**
 * What happens to keys that exist: there are none; the imported ones win; those that are there win; all
 * that is there goes.
 */
export type ImportMode = 'new' | 'replace' | 'skip' | 'instead';

/** Keys moved in one unit of work. */
const KEYS_A_STEP = 256;
const RETRY_MS = 1000;
const HASHES = 2 ** 32;

export class Merge {
  /** The smaller one, which becomes empty. */
  readonly from: Keyspace;
  /** The database's. */
  readonly into: Keyspace;
  /** Of keys that are in both, those that move stay. */
  readonly wins: boolean;
  /** Unix ms: what was due by then is not there, though nothing has removed it yet. */
  readonly now: number;
  /** Keys found in both so far. */
  both = 0;
  /** Keys whose hash, unsigned, is below this have moved. */
  passed = 0;
  /** All keys have moved, or the database was emptied. */
  readonly moved: Promise<void>;
  /** The engine has it, too: nothing is left of the pair. */
  readonly done: Promise<void>;
  settleMoved!: () => void;
  settleDone!: () => void;
  private readonly residents: Residents;
  private readonly key = new Slice();

  constructor(from: Keyspace, into: Keyspace, wins: boolean, now: number) {
    this.now = now;
    this.from = from;
    this.into = into;
    this.wins = wins;
    this.residents = from.ground.collections.residents;
    this.moved = new Promise((resolve) => (this.settleMoved = resolve));
    this.done = new Promise((resolve) => (this.settleDone = resolve));
  }

  /** Whether a key of that hash may still have to move. */
  concerns(hash: number): boolean {
    return hash >>> 0 >= this.passed && this.from.size > 0;
  }

  /** Wants of a key what must be in memory before it can move. */
  want(key: Slice, hash: number): void {
    const { from, into, residents } = this;
    const ref = from.table.find(hash, key.view, key.start, key.end);
    if (ref !== 0 ? from.type(ref) === 0 : !from.away.mayHave(hash)) return;
    if (ref === 0) residents.wantKey(from, key, hash);
    const there = into.table.find(hash, key.view, key.start, key.end);
    if (there === 0 && into.away.mayHave(hash)) residents.wantKey(into, key, hash);
  }

  /** Before a key is looked up: moves it, if it is there to be moved. A fault when something is not in memory. */
  bring(key: Slice, hash: number): void {
    this.want(key, hash);
    if (this.residents.wanted.length > 0) this.residents.fault();
    const ref = this.from.table.find(hash, key.view, key.start, key.end);
    if (ref !== 0 && this.from.type(ref) !== 0) this.move(ref, hash);
  }

  /** Moves a record. */
  private move(ref: number, hash: number): void {
    const { from, into } = this;
    from.key(ref, this.key);
    // In memory of its own: the record is about to go.
    const key = this.key.clone();
    let there = into.table.find(hash, key.view, key.start, key.end);
    if (there === 0 || into.type(there) === 0) there = into.name(key, hash);
    if (there !== 0) {
      const due = [this.isDue(from, ref), this.isDue(into, there)];
      if (!due.includes(true)) this.countBoth();
      if (due[0] || (!this.wins && !due[1])) {
        from.removeRecord(ref, hash);
        return;
      }
      into.removeRecord(there, hash);
    }
    from.move(ref, hash, into, key, hash);
  }

  private isDue(keyspace: Keyspace, ref: number): boolean {
    const deadline = keyspace.deadline(ref);
    return deadline !== 0 && deadline <= this.now;
  }

  private countBoth(): void {
    const { both } = this;
    this.into.arena.journal?.onRollback(() => (this.both = both));
    this.both++;
  }

  /** Moves what is left; all keys are in memory. */
  finish(): void {
    while (this.from.size > 0 && this.passed < HASHES) this.passed = this.step();
    this.from.moveNameless(this.into);
  }

  /** A unit of work: moves the keys of the next hashes; returns up to which. */
  step(): number {
    const { from, residents, passed } = this;
    let end = HASHES;
    if (!from.complete) {
      end = residents.set?.knownUntil(from, passed) ?? passed;
      if (end === passed) {
        residents.wanted.push({ kind: 'keys', keyspace: from, from: passed, count: KEYS_A_STEP });
        residents.fault();
      }
    }
    const refs: number[] = [];
    const hashes: number[] = [];
    const next = from.table.scan(passed, KEYS_A_STEP, (ref) => void refs.push(ref), end);
    for (const ref of refs) {
      from.key(ref, this.key);
      const hash = from.ground.hasher.hash32(this.key);
      hashes.push(hash);
      if (from.type(ref) !== 0) this.want(this.key, hash);
    }
    if (residents.wanted.length > 0) residents.fault();
    for (let i = 0; i < refs.length; i++) if (from.type(refs[i]) !== 0) this.move(refs[i], hashes[i]);
    return next === 0 ? HASHES : next;
  }
}

/** Moves what is to be moved, one merge after the other. */
export class Merger {
  private readonly tier: Tier;
  private readonly merges = new Set<Merge>();
  private running = false;

  constructor(tier: Tier) {
    this.tier = tier;
  }

  /** Resolves when nothing is being merged. */
  async idle(): Promise<void> {
    for (const merge of this.merges) await merge.done;
  }

  add(merge: Merge): void {
    this.merges.add(merge);
    merge.into.merge = merge;
    this.wake();
  }

  /** Begins, unless it is at it or no checkpoint can be taken yet. */
  wake(): void {
    const { link } = this.tier.residents;
    if (this.running || this.merges.size === 0 || link === null || link.checkpoint === null) return;
    this.running = true;
    void this.run(link.checkpoint).finally(() => {
      this.running = false;
    });
  }

  private async run(checkpoint: () => Promise<void>): Promise<void> {
    for (const merge of this.merges) {
      await this.patiently(() => this.moveAll(merge));
      await this.patiently(() => this.moveNameless(merge, checkpoint));
      merge.settleMoved();
      // Then rows of what has moved do not name it as the smaller one's any more.
      if (merge.into.droppedAt === 0) await this.patiently(checkpoint);
      this.merges.delete(merge);
      if (merge.into.droppedAt === 0) {
        merge.into.merge = null;
        this.tier.discard(merge.from);
      }
      merge.settleDone();
    }
  }

  /** Does something until it succeeds: what it lacks (room, a disk) comes back or ends the server. */
  private async patiently(work: () => Promise<void>): Promise<void> {
    let told = '';
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        const { message } = error as Error;
        if (message !== told) this.tier.residents.link?.onWarning?.(`merging waits: ${message}`);
        told = message;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
      }
    }
  }

  /** Keys that are left when all have moved are those of damaged rows that do not tell them. */
  private async moveNameless({ from, into }: Merge, checkpoint: () => Promise<void>): Promise<void> {
    if (into.droppedAt !== 0 || from.size === 0) return;
    // Then of the others no rows are left.
    await checkpoint();
    await this.tier.warmer.expectRest(from);
    if (into.droppedAt === 0) from.moveNameless(into);
  }

  private async moveAll(merge: Merge): Promise<void> {
    const load = new LoopLoad();
    // Never within the command that began it.
    await new Promise((resolve) => setImmediate(resolve));
    while (merge.into.droppedAt === 0 && merge.from.size > 0 && merge.passed < HASHES) {
      const began = performance.now();
      let next = merge.passed;
      await unitOfWork(this.tier, () => (next = merge.into.droppedAt === 0 ? merge.step() : HASHES));
      merge.passed = next;
      await rest(load.restAfter(performance.now() - began));
    }
  }
}
