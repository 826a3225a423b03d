/**
 * Takes clean blocks out of memory when it is nearly used up: CLOCK. A hand goes round the slabs of the
 * arena; a record or page that has been used since the hand was there stays once more, one that was
 * not goes, if the engine has it as it lies and no unit of work waits for it. Where only dirty blocks
 * are left, a checkpoint makes them clean.
 */
import { OutOfTierError } from './api.ts';
import { Kind, KIND_SHIFT, type Arena } from './arena.ts';
import type { CollectionTable } from './collection-table.ts';
import type { Keyspace } from './keyspace.ts';
import { FLAG_DAMAGED, FLAG_TREE, TYPE_MASK, TYPE_SHIFT, TYPE_SYSTEM } from './record.ts';
import type { Residents } from './residents.ts';
import type { RowWriter } from './row-format.ts';
import type { SliceOf } from './slice-clock.ts';

/** CPU time of one slice. */
const SLICE_MS = 2;
/** What a fetch may spend on room for its rows. */
const FETCH_SLICE_MS = 5;
/**
 * After a round that found nothing the hand rests so long: what it passed over has just been used, is waited
 * for or is dirty. Without it a tier of nothing (`tier-memory 0`) would be gone over for every row.
 */
const REST_MS = 5;
/** With so much to spare the hand stops: this part of where it began. */
const STOP_SHARE = 1 / 32;
/** Bytes above the limit that rows of waiting units of work may take, all together. */
export const OVERDRAFT_BYTES = 128 * 1024 * 1024;
/** What an arena of any limit may hold: dirty rows and what one command needs. */
export const WORKING_BYTES = 16 * 1024 * 1024;

type Outcome = 'done' | 'more' | 'nothing';

export interface EvictorGround {
  readonly arena: Arena;
  readonly collections: CollectionTable;
  readonly residents: Residents;
  readonly rows: RowWriter;
  readonly slice: SliceOf;
  keyspaceOf(record: number): Keyspace | undefined;
}

export class Evictor {
  evictedKeys = 0;
  evictedPages = 0;
  /** Bytes of slabs from which on the hand moves. */
  from = Infinity;
  /** Bytes of slabs that commands may fill. */
  limit = Infinity;

  private readonly ground: EvictorGround;
  private readonly arena: Arena;
  private slab = 0;
  private awake = false;
  private restsUntil = 0;
  /** Slabs that the hand has passed since it last freed or warned a block, in however many slices. */
  private idle = 0;
  /** The last checkpoint that it has seen reach the engine: what was dirty before it may leave since. */
  private applied = 0;
  private checkpointing: Promise<void> | null = null;

  constructor(ground: EvictorGround) {
    this.ground = ground;
    this.arena = ground.arena;
  }

  /** Begins, or goes on, in turns of its own while there is too much in memory. */
  wake(): void {
    if (this.awake || this.arena.slabBytes <= this.from || this.ground.residents.link === null) return;
    this.awake = true;
    const rest = this.restsUntil - performance.now();
    if (rest > 0) setTimeout(() => this.run(), rest).unref();
    else setImmediate(() => this.run());
  }

  private run(): void {
    this.awake = false;
    const { residents } = this.ground;
    if (residents.link === null) return;
    const outcome = this.sweep(SLICE_MS, this.from * (1 - STOP_SHARE));
    if (outcome === 'more') this.wake();
    else if (outcome === 'nothing' && this.arena.dirtyBytes * 4 > this.from) {
      this.checkpoint().then(
        () => this.wake(),
        () => undefined,
      );
    }
  }

  /** One checkpoint for all that want one. */
  private checkpoint(): Promise<void> {
    const take = this.ground.residents.link?.checkpoint ?? null;
    if (take === null) return Promise.reject(new Error('no checkpoint can be taken'));
    this.checkpointing ??= take().finally(() => {
      this.checkpointing = null;
    });
    return this.checkpointing;
  }

  /** Room for rows that are fetched: within the limit if possible, else within the overdraft. */
  roomForFetch(bytes: number): void {
    const { arena } = this;
    if (arena.slabBytes + bytes > this.from) {
      if (performance.now() >= this.restsUntil) this.sweep(FETCH_SLICE_MS, this.from - bytes);
      this.wake();
    }
    if (arena.slabBytes + bytes > this.most) {
      throw new OutOfTierError(
        `the rows that waiting commands need exceed tier-memory (${this.limit} bytes) and the overdraft (${OVERDRAFT_BYTES} bytes)`,
      );
    }
  }

  /** Bytes of slabs that there may be with what waiting units of work borrow. */
  get most(): number {
    return this.limit + OVERDRAFT_BYTES;
  }

  /** Room for a change that needs `bytes`: within the limit if possible, else within the overdraft; rejects when there is none to be had. */
  async makeRoom(bytes: number): Promise<void> {
    const { arena } = this;
    const target = Math.max(0, this.limit - arena.roomFor(bytes));
    await new Promise((resolve) => setImmediate(resolve));
    for (let checkpoints = 0; ; checkpoints++) {
      while (arena.slabBytes > target && this.sweep(SLICE_MS, target) === 'more') {
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (arena.slabBytes <= target) return;
      if (checkpoints === 2) break;
      await this.checkpoint();
    }
    if (arena.slabBytes <= this.most - arena.roomFor(bytes)) return;
    throw new OutOfTierError(`the memory tier is full (tier-memory ${arena.limit} bytes)`);
  }

  /** Makes room as far as eviction would by itself: for work that adds much without anybody waiting for it. */
  async relax(): Promise<void> {
    const { arena } = this;
    const target = Math.max(this.from, this.limit / 2);
    if (arena.slabBytes > target) await this.makeRoom(this.limit - target - arena.roomFor(0));
  }

  /**
   * Moves the hand for about `budgetMs` or until slabs take at most `target` bytes. `nothing`: it went
   * round without finding a block that could leave.
   */
  sweep(budgetMs: number, target: number): Outcome {
    return this.ground.slice('eviction', () => this.sweepUntil(budgetMs, target));
  }

  private sweepUntil(budgetMs: number, target: number): Outcome {
    const { arena } = this;
    const { applied } = this.ground.residents;
    const started = performance.now();
    if (applied !== this.applied) this.idle = 0;
    this.applied = applied;
    let slabs = 0;
    let outcome: Outcome = 'done';
    while (arena.slabBytes > target) {
      this.slab = arena.nextSlab(this.slab);
      this.idle++;
      if (this.slab !== 0) arena.forEachBlock(this.slab, this.visit);
      if (this.idle > 2 * arena.slabsInUse + 2) {
        this.idle = 0;
        outcome = 'nothing';
        break;
      }
      if ((++slabs & 3) === 0 && performance.now() - started >= budgetMs) {
        outcome = 'more';
        break;
      }
    }
    if (outcome === 'nothing') this.restsUntil = performance.now() + REST_MS;
    return outcome;
  }

  private readonly visit = (ref: number): void => {
    const { arena } = this;
    const { residents } = this.ground;
    const head = arena.i32[ref >>> arena.chunkShift][(ref & arena.unitMask) << 2];
    const kind = head >>> KIND_SHIFT;
    if (kind === Kind.Plain || kind === Kind.Free || !arena.isClean(ref)) return;
    if (arena.wasUsed(ref)) {
      this.idle = 0;
      return;
    }
    if (residents.isPinned(ref)) return;
    if (kind === Kind.Page ? this.evictPage(ref) : this.evictRecord(ref, head)) {
      this.idle = 0;
      residents.tracking = true;
      residents.missing = true;
    }
  };

  private evictPage(ref: number): boolean {
    const { arena } = this;
    const { collections } = this.ground;
    const word = (ref & arena.unitMask) << 2;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const slot = i32[word + 3];
    if (collections.record[slot] === 0) return false;
    const keyspace = this.ground.keyspaceOf(collections.record[slot]);
    if (keyspace === undefined || keyspace.droppedAt !== 0) return false;
    collections.place(slot, i32[word + 2], 0);
    arena.free(ref);
    this.evictedPages++;
    return true;
  }

  private evictRecord(ref: number, head: number): boolean {
    const { collections, rows } = this.ground;
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    // A mark of damage is in memory alone.
    if (type === TYPE_SYSTEM || (head & FLAG_DAMAGED) !== 0) return false;
    const keyspace = this.ground.keyspaceOf(ref);
    if (keyspace === undefined || keyspace.droppedAt !== 0 || keyspace.held > 0) return false;
    if ((head & FLAG_TREE) !== 0) {
      const slot = keyspace.collection(ref);
      if (collections.resident[slot] !== 0) return false;
      collections.unload(slot);
    }
    keyspace.evict(ref, rows.hashOf(ref), type);
    if (type !== 0) this.evictedKeys++;
    return true;
  }
}
