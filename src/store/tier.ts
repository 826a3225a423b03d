/**
 * The memory tier: the databases, all that they share, and what leaves it for the disk or comes back.
 */
import { ByteSink } from '../bytes/sink.ts';
import { OutOfTierError, type Residency, type Store, type WorkingSet } from './api.ts';
import { Arena, Kind, KIND_SHIFT, MARKS_SHARE, PAGE_BYTES } from './arena.ts';
import { ColdStart } from './cold-start.ts';
import { CollectionTable } from './collection-table.ts';
import { TierDatabase } from './database.ts';
import type { DumpedDatabase } from './dump/slab-reader.ts';
import { Evictor, OVERDRAFT_BYTES, WORKING_BYTES } from './evictor.ts';
import { Defragmenter } from './defragmenter.ts';
import type { DeadlineTree } from './expiry-index.ts';
import { HandlePool } from './handle-pool.ts';
import { Hasher } from './hash.ts';
import { HashHandle } from './hash-value.ts';
import { Journal } from './journal.ts';
import { Keyspace, type KeyspaceGround } from './keyspace.ts';
import { ListHandle } from './list.ts';
import { LookAhead } from './look-ahead.ts';
import { Merge, Merger, type ImportMode } from './merge.ts';
import { HEADER_BYTES } from './page.ts';
import { Pages } from './pages.ts';
import { PurgeList } from './purge-list.ts';
import {
  FLAG_PERSISTED,
  NEXT_PAGE_WORD,
  payloadOffset,
  TYPE_MASK,
  TYPE_SHIFT,
  TYPE_SYSTEM,
  writeRoot,
} from './record.ts';
import { ResidencyKeeper } from './residency.ts';
import { Residents, type EngineLink } from './residents.ts';
import { RowFetcher } from './row-fetcher.ts';
import { RowKind, RowWriter } from './row-format.ts';
import { RowReader, type ExpectedCounts } from './row-reader.ts';
import { RowSet } from './row-set.ts';
import { RowError, type PurgeRange, type RowSource } from './row-source.ts';
import { SetHandle } from './set.ts';
import { StreamHandle } from './stream.ts';
import { StringHandle } from './string-value.ts';
import type { SliceOf } from './slice-clock.ts';
import { TierMemory } from './tier-memory.ts';
import { readTierMeta, writeTierMeta, type MetaKeyspace } from './tier-meta.ts';
import { TreeAhead } from './tree-ahead.ts';
import { KeyedTree } from './tree-keyed.ts';
import type { Warmer } from './warmer.ts';
import { ZSetHandle } from './zset.ts';

export interface TierOptions {
  /** Logical databases; 16 unless given, as in Redis. */
  databases?: number;
  /** Bytes that the tier may hold (`tier-memory`); no limit unless given. */
  limit?: number;
  /** Key of the hash that keys and members are ordered by; random unless given. A restored meta row brings its own. */
  hashKey?: readonly [number, number];
  /** See ArenaOptions; for tests. */
  chunkBytes?: number;
  firstChunk?: number;
  nextChunk?: () => number;
}

/** Numbers of keyspaces are 16 bits wide in records. */
const MAX_KEYSPACES = 1 << 16;
/** So near to the limit a unit of work may run out of room half-way, and must be possible to undo. */
const UNDO_BYTES = 64 * 1024 * 1024;
/** The key table is made at a start for so many keys as there may be room for, if each takes so much. */
const RESERVED_KEY_BYTES = 128;
/** Due entries whose keys are fetched together. */
const EXPIRED_A_STEP = 1024;
/** Pages freed between two looks at the clock. */
const PAGES_A_STEP = 64;
/** The filter of a database may take this part of the limit. */
const FILTER_SHARE = 8;

/** Kept free for commands that have begun, and again for what waits to be evicted: an eighth of the limit, within these bounds. */
const RESERVE_SHARE = 8;
const RESERVE_MIN = 1024 * 1024;
const RESERVE_MAX = 64 * 1024 * 1024;

/** Keyspaces that nothing leads to yet, by the database that they are for. */
export type Staging = (Keyspace | undefined)[];

export class Tier implements Store, RowSource, KeyspaceGround {
  readonly arena: Arena;
  readonly hasher: Hasher;
  readonly collections: CollectionTable;
  readonly lookAhead: LookAhead;
  readonly ahead: TreeAhead;
  readonly deadlines: DeadlineTree;
  readonly residents: Residents;
  readonly evictor: Evictor;
  readonly defragmenter: Defragmenter;
  readonly fetchReader: RowReader;
  readonly databaseCount: number;
  onExpired: Store['onExpired'] = () => {};
  /** For background work that the server does not ask for. */
  slice: SliceOf = (_, work) => work();
  /** `now` in whole seconds, for access clocks. */
  clockSeconds = 0;
  readonly memory: Store['memory'];

  readonly strings = new HandlePool(() => new StringHandle(this));
  readonly lists = new HandlePool(() => new ListHandle(this));
  readonly sets = new HandlePool(() => new SetHandle(this));
  readonly hashes = new HandlePool(() => new HashHandle(this));
  readonly zsets = new HandlePool(() => new ZSetHandle(this));
  readonly streams = new HandlePool(() => new StreamHandle(this));

  readonly fetcher: RowFetcher;
  private readonly keeper: ResidencyKeeper;
  private readonly journal: Journal;
  /** Bytes of slabs from which on units of work keep a journal. */
  private journalFrom = Infinity;
  private slabBytesAtBegin = 0;
  /** Bytes of filters that limits allow for. */
  private filterBytes = 0;

  private nowMs = 0;
  keepsDue = false;
  private readonly databases: TierDatabase[];
  /** By number; undefined where a number is free. */
  private readonly keyspaces: (Keyspace | undefined)[] = [];
  private readonly dropped: Keyspace[] = [];
  private nextDatabaseId = 1;
  readonly merger = new Merger(this);
  /** What is being imported, by the name of the import: keyspaces that nothing leads to yet, by database. */
  private readonly stagings = new Map<string, Staging>();
  /** Dirty bytes of what is being imported that no cut has taken yet: a checkpoint need not begin for them. */
  stagedDirtyBytes = 0;

  rows: RowWriter;
  private reader: RowReader | null = null;
  private cold: ColdStart | null = null;
  /** To go on with when all rows have been read. */
  private restoredMerges: Merge[] = [];
  cutSink = new ByteSink(64);
  cutRows = 0;
  cutNumber = 0;
  appliedCut = 0;
  /** The cut is in the engine, and has not ended yet. */
  private ending = false;
  /** By collection slot, for collections that are dropped: the first cut that must not contain them. */
  private readonly droppedAt: number[] = [];
  private readonly purgeList = new PurgeList();
  /** Records of type None whose delete rows are in this cut, as keyspace number, hash, record; and those that are in the engine. */
  private deleted: number[] = [];
  private settled: number[] = [];

  constructor(options: TierOptions = {}) {
    const [key0, key1] = options.hashKey ?? crypto.getRandomValues(new Int32Array(2));
    const arena = new Arena(options);
    this.arena = arena;
    this.hasher = new Hasher(key0, key1);
    this.lookAhead = new LookAhead(arena, this.hasher);
    this.residents = new Residents(arena);
    this.collections = new CollectionTable(arena, this.residents);
    this.ahead = new TreeAhead(new Pages(this.collections), this.hasher);
    const pages = new Pages(this.collections);
    this.deadlines = { pages, tree: new KeyedTree(pages, 2) };
    this.rows = new RowWriter(arena, this.hasher);
    this.fetchReader = new RowReader(this, [], () => {});
    this.evictor = new Evictor(this);
    this.defragmenter = new Defragmenter(this);
    this.fetcher = new RowFetcher(this);
    this.keeper = new ResidencyKeeper(this);
    arena.onFull = (bytes) => this.onFull(bytes);
    arena.copyOut = (ref) => this.copyOut(ref);
    this.databaseCount = options.databases ?? 16;
    this.databases = Array.from(
      { length: this.databaseCount },
      (_, index) => new TierDatabase(this, index, this.newKeyspace(this.nextDatabaseId++)),
    );
    this.journal = new Journal(arena);
    this.memory = new TierMemory(this);
    this.memory.limit = options.limit ?? Infinity;
  }

  /** Where rows are fetched from and evicted to. */
  link(link: EngineLink): void {
    this.residents.link = link;
    this.applyLimit();
    if (link.checkpoint === null) return;
    this.warmer.start();
    this.merger.wake();
  }

  /** Derives from `memory.limit` where units begin to keep a journal, eviction begins, and changes are refused. */
  applyLimit(): void {
    const { arena, evictor } = this;
    const { link } = this.residents;
    this.residents.filterBytesMax = Math.max(WORKING_BYTES, this.memory.limit / FILTER_SHARE);
    this.filterBytes = this.bytesOfFilters();
    const limit = Math.max(0, this.memory.limit - this.filterBytes) / (1 + MARKS_SHARE);
    const reserve = Math.min(RESERVE_MAX, Math.max(RESERVE_MIN, limit / RESERVE_SHARE));
    evictor.from = link === null ? Infinity : Math.max(0, limit - 2 * reserve);
    evictor.limit = link === null ? limit : Math.max(limit, WORKING_BYTES);
    // What was acknowledged is brought back whatever the limit is.
    arena.limit = link !== null && link.checkpoint === null ? Infinity : evictor.limit;
    this.journalFrom = Math.min(limit - UNDO_BYTES, evictor.from);
    evictor.wake();
  }

  private bytesOfFilters(): number {
    let bytes = 0;
    for (const keyspace of this.keyspaces) bytes += keyspace?.away.filterBytes ?? 0;
    return bytes;
  }

  /** While indexes are loaded: the rest stays in the engine. */
  get full(): boolean {
    return this.arena.slabBytes > this.evictor.from;
  }

  /** A change does not fit: room can be made if there is an engine, and the unit can run again. */
  private onFull(bytes: number): never {
    const { arena, residents, evictor } = this;
    const full = `the memory tier is full (tier-memory ${this.memory.limit} bytes)`;
    if (residents.link === null || arena.journal === null) throw new OutOfTierError(full);
    // What the unit has taken so far is given back before it runs again, and needed again.
    const needed = arena.slabBytes - this.slabBytesAtBegin + bytes;
    if (arena.roomFor(needed) > evictor.most) throw new OutOfTierError(full);
    // How much more it needs cannot be known; twice as much each time keeps its runs few.
    const wished = residents.set === null ? needed : Math.min(2 * needed, evictor.most - arena.roomFor(0));
    residents.wanted.push({ kind: 'room', bytes: wished });
    return residents.fault();
  }

  /** See TierMemory. */
  usedBytes(): number {
    const { slabBytes, directoryBytes } = this.arena;
    return slabBytes * (1 + MARKS_SHARE) + directoryBytes + this.journal.memoryBytes + this.bytesOfFilters();
  }

  get now(): number {
    return this.nowMs;
  }

  set now(ms: number) {
    this.nowMs = ms;
    this.clockSeconds = Math.floor(ms / 1000);
  }

  begin(set: WorkingSet | null = null): void {
    const { arena, residents } = this;
    this.beginCommand();
    if (arena.journal !== null) throw new Error('a unit of work begins within another');
    if (!residents.tracking && arena.slabBytes <= this.journalFrom) return;
    this.beginTracked(set as RowSet | null);
  }

  private beginTracked(set: RowSet | null): void {
    const { arena, residents, evictor } = this;
    if (arena.slabBytes > evictor.from) {
      // From here on it must be known what is used.
      residents.tracking = residents.link !== null;
      evictor.wake();
    }
    // A unit that has waited, for rows or for room, may borrow: what it changes must not fail for want of either.
    if (evictor.limit !== Infinity && residents.link?.checkpoint != null)
      arena.limit = evictor.limit + (set === null ? 0 : OVERDRAFT_BYTES);
    residents.begin(set);
    this.slabBytesAtBegin = arena.slabBytes;
    this.journal.begin();
  }

  commit(): void {
    if (this.arena.journal !== null) this.journal.commit();
  }

  rollback(): void {
    if (this.arena.journal !== null) this.journal.rollback();
    this.ahead.end();
    this.beginCommand();
  }

  workingSet(): WorkingSet {
    return new RowSet(this.fetcher);
  }

  faultAtRandom(seed: number, chance: number): void {
    const { residents } = this;
    residents.faultAtRandom(seed, chance);
    residents.tracking = chance > 0 || residents.tracking;
  }

  /** Bytes of blocks that the engine has, or will have after a checkpoint, and that no unit of work holds. */
  evictableBytes(): number {
    const { residents, arena } = this;
    if (residents.link === null) return 0;
    let fixed = residents.pinnedBytes;
    for (const keyspace of this.keyspaces) if (keyspace !== undefined) fixed += keyspace.table.segmentBytes;
    return Math.max(0, (arena.slabBytes - fixed) * (1 + MARKS_SHARE));
  }

  residency(): Residency {
    return this.keeper.report(this.served(), this.bytesOfFilters());
  }

  /** The keyspaces that databases lead to. */
  served(): Keyspace[] {
    return this.databases.map(({ keyspace }) => keyspace);
  }

  /** Those, and what is merged into them or staged. */
  private living(): Keyspace[] {
    return this.keyspaces.filter((keyspace) => keyspace?.droppedAt === 0) as Keyspace[];
  }

  /** What brings in, after a start, what is in the engine. */
  get warmer(): Warmer {
    return this.keeper.warmer;
  }

  /** Handles that are used again at once are in the processor's caches: hundreds of them, one for each command of a turn, are not. */
  beginCommand(): void {
    this.strings.reset();
    this.lists.reset();
    this.sets.reset();
    this.hashes.reset();
    this.zsets.reset();
    this.streams.reset();
  }

  prefetched(): void {
    this.lookAhead.end();
    this.ahead.end();
  }

  database(index: number): TierDatabase {
    return this.databases[index];
  }

  swap(a: number, b: number): void {
    this.exchange(a, b);
    this.arena.journal?.onRollback(() => this.exchange(a, b));
  }

  private exchange(a: number, b: number): void {
    const first = this.databases[a];
    const second = this.databases[b];
    const keyspace = first.keyspace;
    first.keyspace = second.keyspace;
    second.keyspace = keyspace;
  }

  flush(index: number): void {
    const database = this.databases[index];
    const keyspace = database.keyspace;
    const { merge } = keyspace;
    if (merge === null && keyspace.size === 0 && keyspace.table.count === 0 && keyspace.expiry.record === 0)
      return;
    const purges = this.purgeList.waitingLength;
    const dropped = this.dropped.length;
    this.arena.journal?.onRollback(() => {
      this.keyspaces[database.keyspace.number] = undefined;
      database.keyspace = keyspace;
      for (const one of this.dropped.splice(dropped)) one.droppedAt = 0;
      this.purgeList.truncate(purges);
    });
    this.discard(keyspace);
    if (merge !== null) this.discard(merge.from);
    database.keyspace = this.newKeyspace(this.nextDatabaseId++);
  }

  /** Keyspaces for what is imported under a name, none yet. A crash before they are published gives them up. */
  stage(name: string): Staging {
    const staging: Staging = [];
    this.stagings.set(name, staging);
    return staging;
  }

  /** The keyspace that takes in what is imported for a database. */
  staged(staging: Staging, index: number): Keyspace {
    return (staging[index] ??= this.newKeyspace(this.nextDatabaseId++));
  }

  /** What was staged under a name, and is in the engine. */
  stagedAs(name: string): Staging | undefined {
    return this.stagings.get(name);
  }

  /**
   * Makes what was staged under a name a part of the databases, in one step, and returns the merges that
   * follow: none where the database was empty.
   * @param now Unix ms: keys that were due by then do not stand in the way
   */
  publish(name: string, mode: ImportMode, now: number): Merge[] {
    const staging = this.takeStaging(name);
    const merges: Merge[] = [];
    if (mode === 'instead') for (let index = 0; index < this.databaseCount; index++) this.flush(index);
    staging.forEach((keyspace, index) => {
      if (keyspace === undefined) return;
      const database = this.databases[index];
      const present = database.keyspace;
      if (!keyspace.complete) this.residents.tracking = this.residents.missing = true;
      if (database.size === 0) {
        this.flush(index);
        this.discard(database.keyspace);
        database.keyspace = keyspace;
        return;
      }
      const smaller = keyspace.size <= present.size ? keyspace : present;
      const larger = smaller === keyspace ? present : keyspace;
      merges.push(new Merge(smaller, larger, mode === (smaller === keyspace ? 'replace' : 'skip'), now));
      database.keyspace = larger;
    });
    for (const merge of merges) this.merge(merge);
    return merges;
  }

  private merge(merge: Merge): void {
    this.residents.tracking = this.residents.missing = true;
    this.merger.add(merge);
  }

  /** Gives up what was staged under a name; without one all that is staged, which a crash has left. */
  unstage(name?: string): void {
    for (const one of name === undefined ? [...this.stagings.keys()] : [name])
      for (const keyspace of this.takeStaging(one)) if (keyspace !== undefined) this.discard(keyspace);
  }

  private takeStaging(name: string): Staging {
    const staging = this.stagings.get(name) ?? [];
    this.stagings.delete(name);
    this.stagedDirtyBytes = 0;
    return staging;
  }

  /** Gives a keyspace up: nothing of it is in a cut any more, and its memory is freed in slices. */
  discard(keyspace: Keyspace): void {
    keyspace.droppedAt = this.cutNumber + 1;
    this.dropped.push(keyspace);
    if (keyspace.bornAt < this.cutNumber) {
      const moved = keyspace.movedSince(this.appliedCut);
      for (const kind of [RowKind.ExpiryIndex, RowKind.LongKey, RowKind.Key]) {
        this.purgeList.add(kind, keyspace.id, keyspace.droppedAt, moved);
      }
    }
  }

  private newKeyspace(id: number, bornAt = this.cutNumber): Keyspace {
    let number = this.keyspaces.indexOf(undefined);
    while (number < 0 && this.keyspaces.length === MAX_KEYSPACES) {
      this.dropKeyspaceStep();
      number = this.keyspaces.indexOf(undefined);
    }
    if (number < 0) number = this.keyspaces.length;
    const keyspace = new Keyspace(this, number, id, bornAt);
    this.keyspaces[number] = keyspace;
    return keyspace;
  }

  expireDue(budgetMs: number): number {
    const end = performance.now() + budgetMs;
    let expired = 0;
    for (const database of this.databases) {
      // While keys are merged, those that are due go when somebody looks at them.
      if ((database.keyspace.merge?.from.size ?? 0) > 0) continue;
      for (;;) {
        const removed = this.expireFirst(database, expired > 0);
        if (removed < 0) break;
        expired += removed;
        if ((expired & 15) === 0 && performance.now() >= end) return expired;
      }
    }
    return expired;
  }

  /**
   * Whether the keys of the first entry's hash are in memory. If not, it ends the step (`begun`), or
   * wants those of a number of due entries at once.
   */
  private knowsFirst(keyspace: Keyspace, begun: boolean): boolean {
    if (keyspace.complete) return true;
    const { residents } = this;
    const known = (hash: number): boolean =>
      (residents.set?.knownUntil(keyspace, hash >>> 0) ?? -1) > hash >>> 0;
    if (known(keyspace.expiry.firstHash)) return true;
    if (begun) return false;
    keyspace.expiry.forEachDue(this.nowMs, EXPIRED_A_STEP, (hash) => {
      if (!known(hash)) residents.wanted.push({ kind: 'hash', keyspace, hash });
    });
    return residents.fault();
  }

  /** Removes the keys of the earliest deadline's first hash; -1 when nothing is due or the step ends. */
  private expireFirst(database: TierDatabase, begun: boolean): number {
    const { keyspace } = database;
    const deadline = keyspace.expiry.first();
    if (deadline > this.nowMs || !this.knowsFirst(keyspace, begun)) return -1;
    const hash = keyspace.expiry.firstHash;
    const due: number[] = [];
    keyspace.table.forHash(hash, (ref) => {
      if (keyspace.deadline(ref) === deadline) due.push(ref);
    });
    for (const ref of due) database.expireIfDue(ref, hash);
    // An entry that no key has is of a damaged one.
    if (due.length === 0) keyspace.forgetDeadline(deadline, hash);
    return due.length;
  }

  backgroundSlice(budgetMs: number): boolean {
    this.keeper.settle(this.living(), budgetMs);
    if (this.bytesOfFilters() !== this.filterBytes) this.applyLimit();
    // What is freed under a snapshot must be kept for it.
    if ((this.arena.snapshot?.pressure ?? 0) > 0) return false;
    const end = performance.now() + budgetMs;
    do {
      if (this.settled.length > 0) this.forgetDeleted();
      else if (this.dropped.length > 0) this.dropKeyspaceStep();
      else if (!this.collections.freeSlice(PAGES_A_STEP)) return false;
    } while (performance.now() < end);
    return true;
  }

  defragment(budgetMs: number): boolean {
    // What is about to be freed need not be moved.
    const busy = this.settled.length > 0 || this.dropped.length > 0 || this.collections.freeing;
    const more = !busy && this.defragmenter.slice(budgetMs);
    return this.arena.spare.release() || more;
  }

  /** Frees some of the records that waited for their delete rows. */
  private forgetDeleted(): void {
    const { settled, arena } = this;
    for (let i = 0; i < 256 && settled.length > 0; i++) {
      const ref = settled.pop() as number;
      const hash = settled.pop() as number;
      const keyspace = this.keyspaces[settled.pop() as number];
      if (keyspace === undefined || keyspace.droppedAt !== 0 || !keyspace.table.has(hash, ref)) continue;
      if (keyspace.type(ref) === 0 && arena.isClean(ref)) keyspace.forget(ref, hash);
    }
  }

  private dropKeyspaceStep(): void {
    const keyspace = this.dropped[0];
    if (keyspace.dropStep()) return;
    this.keyspaces[keyspace.number] = undefined;
    this.dropped.shift();
  }

  dropCollection(slot: number): void {
    const { arena, collections } = this;
    const record = collections.record[slot];
    const head = arena.i32[record >>> arena.chunkShift][(record & arena.unitMask) << 2];
    const purges = this.purgeList.waitingLength;
    this.arena.journal?.onRollback(() => this.purgeList.truncate(purges));
    // With a flushed database it has left already, from an earlier cut on.
    this.droppedAt[slot] = this.keyspaceOf(record).droppedAt || this.cutNumber + 1;
    if ((head & FLAG_PERSISTED) !== 0) {
      this.purgeList.add(RowKind.Page, collections.id[slot], this.cutNumber + 1);
    }
    collections.drop(slot);
  }

  copyCollection(from: number, record: number): void {
    const { arena, collections } = this;
    const slot = collections.open(record);
    const word = (record & arena.unitMask) << 2;
    const i32 = arena.i32[record >>> arena.chunkShift];
    const prefix = word + (payloadOffset(i32[word]) >>> 2);
    this.wantPages(from, i32[prefix + NEXT_PAGE_WORD]);
    arena.reserve(collections.resident[from] * PAGE_BYTES);
    writeRoot(arena.view[record >>> arena.chunkShift], prefix << 2, slot, collections.id[slot]);
    collections.forEachPage(from, (number, ref) => {
      const free = arena.sizeOf(ref) < PAGE_BYTES;
      const copy = free ? arena.alloc(HEADER_BYTES) : arena.allocPage();
      const source = (ref & arena.unitMask) << 4;
      const target = (copy & arena.unitMask) << 4;
      arena.u8[ref >>> arena.chunkShift].copy(
        arena.u8[copy >>> arena.chunkShift],
        target,
        source,
        source + (free ? HEADER_BYTES : PAGE_BYTES),
      );
      arena.i32[copy >>> arena.chunkShift][(target >>> 2) + 3] = slot;
      collections.place(slot, number, copy);
      arena.touch(copy);
    });
  }

  /** Faults unless all pages of a collection, whose numbers end before `next`, are in memory. */
  private wantPages(slot: number, next: number): void {
    const { collections, residents } = this;
    if (collections.resident[slot] === next - 1) return;
    for (let number = 1; number < next; number++) {
      if (collections.find(slot, number) === 0) residents.missPage(slot, collections.id[slot], number, next);
    }
  }

  /** Bytes that the blocks of a collection take, or would if all of its pages, which end before `next`, were in memory. */
  collectionBytes(slot: number, next: number): number {
    const { collections } = this;
    let bytes = collections.tableBytes(slot) + (next - 1 - collections.resident[slot]) * PAGE_BYTES;
    collections.forEachPage(slot, (_, ref) => (bytes += this.arena.sizeOf(ref)));
    return bytes;
  }

  get dirtyBytes(): number {
    return Math.max(0, this.arena.dirtyBytes - this.stagedDirtyBytes);
  }

  get cutBytes(): number {
    return this.arena.cutBytes;
  }

  /** What cannot leave memory before a checkpoint should stay a part of it. */
  get dirtyShare(): number {
    return this.residents.link === null ? Infinity : this.evictor.limit / 4;
  }

  beginCut(sink: ByteSink): Buffer {
    this.arena.beginCut();
    this.stagedDirtyBytes = 0;
    this.cutNumber++;
    this.cutSink = sink;
    this.cutRows = 0;
    for (const { keyspace } of this.databases) this.cutRows += keyspace.nameless?.beginCut(sink) ?? 0;
    return this.meta();
  }

  copyCut(budgetMs: number, maxBytes: number): boolean {
    const end = performance.now() + budgetMs;
    const full = this.cutSink.pos + maxBytes;
    return this.arena.copyCut(() => this.cutSink.pos < full && performance.now() < end);
  }

  endCut(applied: boolean, budgetMs = Infinity): boolean {
    // Before the first of its blocks may leave: what was read from the engine until now may be older.
    if (applied && !this.ending) this.residents.applied++;
    this.ending = applied;
    const end = performance.now() + budgetMs;
    if (!this.arena.endCut(applied, () => !applied || performance.now() < end)) return false;
    this.ending = false;
    for (const { keyspace } of this.databases) {
      keyspace.nameless?.endCut(applied);
      if (keyspace.nameless?.settled === true) keyspace.nameless = null;
    }
    if (applied) {
      this.appliedCut = this.cutNumber;
      this.settled = this.settled.length === 0 ? this.deleted : this.settled.concat(this.deleted);
      this.purgeList.settle(this.cutNumber);
    }
    this.deleted = [];
    return true;
  }

  /** Writes the row of a block of the cut. */
  private copyOut(ref: number): void {
    const { arena, rows, cutSink } = this;
    const i32 = arena.i32[ref >>> arena.chunkShift];
    const word = (ref & arena.unitMask) << 2;
    const head = i32[word];
    if (head >>> KIND_SHIFT === Kind.Page) {
      const slot = i32[word + 3];
      const record = this.collections.record[slot];
      const droppedAt = record === 0 ? this.droppedAt[slot] : this.keyspaceOf(record).droppedAt;
      if (droppedAt !== 0 && droppedAt <= this.cutNumber) return;
      rows.page(cutSink, ref, this.collections.id[slot], PAGE_BYTES);
      this.cutRows++;
      return;
    }
    const keyspace = this.keyspaceOf(ref);
    if (keyspace.droppedAt !== 0 && keyspace.droppedAt <= this.cutNumber) return;
    this.cutRows++;
    const type = (head >>> TYPE_SHIFT) & TYPE_MASK;
    if (type === 0) {
      this.deleted.push(keyspace.number, rows.delete(cutSink, ref, keyspace.id), ref);
      return;
    }
    i32[word] = head | FLAG_PERSISTED;
    if (type === TYPE_SYSTEM) {
      rows.expiryIndex(cutSink, ref, keyspace.id);
      return;
    }
    const hash = rows.put(cutSink, ref, keyspace.id);
    if ((head & FLAG_PERSISTED) === 0) keyspace.away.written(hash);
  }

  /** Keys whose value is damaged, in all databases. */
  get damagedKeys(): number {
    return this.databases.reduce((sum, { keyspace }) => sum + keyspace.damaged, 0);
  }

  /** The key of a record's row, in hex. */
  nameOfRow(record: number): string {
    const sink = new ByteSink(64);
    this.rows.delete(sink, record, this.keyspaceOf(record).id);
    return sink.written().toString('hex', 8);
  }

  keyspaceOf(record: number): Keyspace {
    const { arena } = this;
    const word = arena.i32[record >>> arena.chunkShift][((record & arena.unitMask) << 2) + 1];
    return this.keyspaces[word >>> 16] as Keyspace;
  }

  allKeyspaces(): Iterable<Keyspace | undefined> {
    return this.keyspaces;
  }

  /** The databases as a dump needs to know them. */
  dumpedDatabases(): DumpedDatabase[] {
    return this.databases.map(({ index, keyspace }) => {
      if (keyspace.named < keyspace.size)
        throw new RowError(`database ${index}: a key whose name is damaged cannot be written`);
      return { index, keyspace: keyspace.number, keys: keyspace.size, expiring: keyspace.expiring };
    });
  }

  purgeRanges(): PurgeRange[] {
    return this.purgeList.ranges();
  }

  purged(range: PurgeRange): void {
    this.purgeList.remove(range);
  }

  /** What the meta row says of the tier. */
  private meta(): Buffer {
    const { hasher, nextDatabaseId, collections } = this;
    const shown = (index: number, { id, size, expiring }: Keyspace): MetaKeyspace => ({
      index,
      id,
      size,
      expiring,
    });
    return writeTierMeta(
      {
        hashKey: [hasher.key0, hasher.key1],
        nextDatabaseId,
        nextCollectionId: collections.nextId,
        databases: this.databases.map(({ index, keyspace }) => shown(index, keyspace)),
        merges: this.databases.flatMap(({ index, keyspace: { merge } }) =>
          merge === null ? [] : { ...shown(index, merge.from), wins: merge.wins, now: merge.now },
        ),
        stagings: [...this.stagings].map(([name, staging]) => ({
          name,
          keyspaces: staging.flatMap((keyspace, index) =>
            keyspace === undefined ? [] : shown(index, keyspace),
          ),
        })),
      },
      this.purgeList,
    );
  }

  restoreMeta(bytes: Uint8Array): void {
    const meta = readTierMeta(bytes);
    for (const { index, size } of [...meta.databases, ...meta.merges])
      if (size > 0 && index >= this.databaseCount)
        throw new RowError(
          `database ${index} has ${size} keys, but only ${this.databaseCount} databases are configured`,
        );
    this.hasher.rekey(...meta.hashKey);
    this.rows = new RowWriter(this.arena, this.hasher);
    this.nextDatabaseId = meta.nextDatabaseId;
    this.collections.nextId = meta.nextCollectionId;
    this.keyspaces.length = 0;
    const expected: ExpectedCounts[] = [];
    const restored = ({ id, size, expiring }: MetaKeyspace, name: string): Keyspace => {
      const keyspace = this.newKeyspace(id, -1);
      keyspace.table.reserve(Math.min(size, Math.floor(this.memory.limit / RESERVED_KEY_BYTES)));
      expected.push({ keyspace, name, size, expiring });
      return keyspace;
    };
    for (const said of meta.databases.slice(0, this.databaseCount))
      this.databases[said.index].keyspace = restored(said, `database ${said.index}`);
    for (let index = meta.databases.length; index < this.databaseCount; index++)
      this.databases[index].keyspace = this.newKeyspace(this.nextDatabaseId++);
    const merges = meta.merges.map(
      (said) =>
        new Merge(
          restored(said, `what is merged into database ${said.index}`),
          this.databases[said.index].keyspace,
          said.wins,
          said.now,
        ),
    );
    for (const { name, keyspaces } of meta.stagings) {
      const staging = this.stage(name);
      for (const said of keyspaces)
        staging[said.index] = restored(said, `what is imported for database ${said.index}`);
    }
    this.purgeList.read(meta.purges);
    this.reader = new RowReader(this, expected, (kind, id) => this.purgeList.orphan(kind, id));
    this.restoredMerges = merges;
  }

  installRow(
    key: Uint8Array,
    keyStart: number,
    keyEnd: number,
    value: Uint8Array,
    valueStart: number,
    valueEnd: number,
  ): void {
    if (this.reader === null) throw new RowError('rows came before the meta row');
    this.reader.install(key, keyStart, keyEnd, value, valueStart, valueEnd);
  }

  damagedRow(key: Uint8Array, keyStart: number, keyEnd: number): boolean {
    if (this.reader === null) throw new RowError('rows came before the meta row');
    return (this.cold ?? this.reader).damaged(key, keyStart, keyEnd);
  }

  /** Everything is in memory. */
  get isWhole(): boolean {
    return !this.residents.missing;
  }

  leaveKeys(): ColdStart {
    this.cold = new ColdStart(this, this.living(), this.reader!);
    return this.cold;
  }

  async beforeReplay(logBytes: number): Promise<void> {
    await this.keeper.beforeReplay(this.living(), logBytes);
  }

  recovered(): void {
    const { reader, cold } = this;
    this.reader = null;
    this.cold = null;
    if (cold === null) reader?.finish();
    else reader?.leaveKeys();
    this.keeper.begin(this.served(), this.living());
    for (const merge of this.restoredMerges.splice(0)) {
      // One that was over but for its last trace.
      if (merge.from.size > 0 && this.residents.link !== null) this.merge(merge);
      else {
        // Without an engine everything is in memory, and nothing is done in the background.
        merge.finish();
        this.discard(merge.from);
      }
    }
    // Keys without a name are found by those look-ups alone that ask for more than the table.
    if (this.served().some(({ nameless }) => nameless !== null)) this.residents.tracking = true;
  }
}
