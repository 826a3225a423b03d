/**
 * What the server's commands see of the store: databases of typed values, in memory, never waiting.
 *
 * Conventions
 * - Bytes go in and out as `Slice`s. A slice that a method fills (`into`) shows stored bytes; it is
 *   valid until the next call that changes the store.
 * - A handle (`StringValue`, `List`, …) is borrowed until the command ends; handles are recycled.
 *   After a change through one handle, other handles on the same key are stale: open them again.
 * - Any method may throw. `WrongTypeError` when the key holds another type; `DamagedValueError` when its
 *   value cannot be read from disk, unless the value is removed or replaced as a whole; `OutOfTierError`
 *   when the tier is full; `RowFault` when it needs what is not in memory. So a command has no effect
 *   outside the store and its own staging until it returns.
 * - What must happen as a whole (a command, an EXEC, a step of expiry, a replayed group) is a **unit of
 *   work**: `begin`, the work, then `commit`, all in one turn. After a RowFault or an OutOfTierError
 *   the unit calls `rollback` instead, which undoes all that it has changed; after a RowFault it waits
 *   for `WorkingSet.fetch` and runs again from its beginning:
 *
 *       let set: WorkingSet | null = null;
 *       for (;;) {
 *         store.begin(set);
 *         try { work(); store.commit(); break; }
 *         catch (error) {
 *           store.rollback();
 *           if (!(error instanceof RowFault)) throw error;
 *           set ??= store.workingSet();
 *           await set.fetch();
 *         }
 *       }
 *       set?.release();
 *
 *   Other errors (wrong type, syntax) end in `commit`: what was done before them stays, as in Redis.
 *   Any number of units may be waiting; they run one at a time, and one that waits has changed nothing.
 * - A collection whose last element is removed is deleted with its key by the store itself.
 * - Positions ("rank", "index") are 0-based, never negative; the caller resolves Redis's negative ones.
 * - The store knows no command, writes no log and has no clock: `now` is given to it, and it tells the
 *   server through `onExpired` before it removes an expired key, so that the removal is logged.
 */
import type { Slice } from '../bytes/slice.ts';
import type { ByteSink } from '../bytes/sink.ts';

/** Type numbers as they stand in records and rows. */
export const Type = { None: 0, String: 1, List: 2, Set: 3, Hash: 4, ZSet: 5, Stream: 6 } as const;
export type Type = (typeof Type)[keyof typeof Type];

/** The key holds a value of another type than the one asked for. */
export class WrongTypeError extends Error {
  readonly code = 'WRONGTYPE';
}

/** The memory tier is full and this write would need more. */
export class OutOfTierError extends Error {
  readonly code = 'OOM';
}

/** The rows of this key's value have been damaged on disk. */
export class DamagedValueError extends Error {
  readonly code = 'DAMAGED';
}

/**
 * The unit of work needs rows that are not in memory, or room that is being made: roll it back, call
 * `fetch` of its working set in the same turn, run it again. There is one such object, without a stack.
 */
export class RowFault extends Error {
  override readonly name = 'RowFault';
  readonly code = 'FAULT';
}

export const ROW_FAULT = new RowFault('what a command needs is not in memory');
ROW_FAULT.stack = undefined;

/**
 * What one unit of work has wanted so far. Rows that were fetched for it stay in memory until it is
 * released, so that each run comes further than the one before.
 */
export interface WorkingSet {
  /** Fetches so far. */
  readonly rounds: number;
  /**
   * Adds the row of a key to what the next `fetch` brings; nothing when it is in memory. For all keys
   * that a command or an EXEC names, once its first run has met a fault.
   */
  want(database: Database, key: Slice): void;
  /**
   * Brings what was wanted: by `want`, and by the run that was rolled back in this turn. Rejects with
   * OutOfTierError when the working set is larger than the tier and its overdraft (the message names
   * both), with an EngineError when the engine fails.
   */
  fetch(): Promise<void>;
  /** The unit has ended, or has been given up: its rows may leave. Allowed while a fetch is under way. */
  release(): void;
}

/** Where the data is: for INFO. Counts since the start unless said otherwise. */
export interface Residency {
  /** All data is in memory, and nothing has to be asked of the engine. */
  readonly complete: boolean;
  /** Keys in memory and keys in all, at the moment. */
  readonly residentKeys: number;
  readonly keys: number;
  /** Runs that met a fault, fetches, rows that they brought, and rows that the engine did not have. */
  readonly faults: number;
  readonly fetchRounds: number;
  readonly fetchedRows: number;
  readonly absentRows: number;
  /** Most fetches that one unit of work has needed. */
  readonly roundsMax: number;
  /** Units of work that wait, at the moment. */
  readonly waiting: number;
  readonly evictedKeys: number;
  readonly evictedPages: number;
  /** Bytes of what may not leave, at the moment: of waiting units, and not in the engine yet. */
  readonly pinnedBytes: number;
  /** The warm-up after a start: whether it is under way, rows that it has read, and milliseconds that it has taken. */
  readonly warming: boolean;
  readonly warmedRows: number;
  readonly warmUpMs: number;
  /** The filter of keys that the engine has: its bytes, 0 while there is none, and look-ups that it spared. */
  readonly filterBytes: number;
  readonly filterHits: number;
}

/** What scans call for each element; `value` is absent for sets and keys, and the score's place is `score`. */
export type Visitor = (element: Slice, value: Slice | null, score: number) => void;

export interface Store {
  /** Unix time in milliseconds, set by the server once a turn; expiry goes by it alone. */
  now: number;
  /**
   * Keys whose deadline has passed are hidden but stay, so that the data do not change while nobody
   * writes (CLIENT PAUSE). What is hidden must not be written to.
   */
  keepsDue: boolean;
  readonly databaseCount: number;
  database(index: number): Database;
  /** SWAPDB. */
  swap(a: number, b: number): void;
  /** FLUSHDB, FLUSHALL: the database is empty at once; its memory and rows are reclaimed in slices. */
  flush(index: number): void;
  /** Called before an expired key is removed. The slice is the key. */
  onExpired: (database: Database, key: Slice) => void;
  /** Starts a unit of work; `set` is what it has wanted in earlier runs. Units do not nest. Takes back all handles. */
  begin(set?: WorkingSet | null): void;
  /** Takes back all handles that are lent: before each further command of a unit. */
  beginCommand(): void;
  /** The unit's changes stay. */
  commit(): void;
  /** Undoes all changes of the store since `begin`. Handles and slices are gone. */
  rollback(): void;
  /** For a unit of work that met a RowFault. */
  workingSet(): WorkingSet;
  residency(): Residency;
  /**
   * For tests: every access to a row meets a fault once, with the given chance in [0, 1], at random by
   * `seed`; what is in memory is then fetched by doing nothing. A chance of 0 ends it.
   */
  faultAtRandom(seed: number, chance: number): void;
  /**
   * Removes keys whose deadline has passed, oldest first, until none is left or `budgetMs` is used.
   * Returns how many. A unit of work; while not everything is in memory it ends after some hundred keys.
   */
  expireDue(budgetMs: number): number;
  /** The memory of the keys that were given to `Database.prefetch` may change. */
  prefetched(): void;
  /** One slice of background work (freeing dropped values, purging); true while there is more. */
  backgroundSlice(budgetMs: number): boolean;
  /** One slice of making memory usable that values have left behind, and of giving it back to the system; true while there is more. */
  defragment(budgetMs: number): boolean;
  readonly memory: StoreMemory;
}

/** Bytes. */
export interface StoreMemory {
  /** What the tier holds now and may hold (`tier-memory`). */
  readonly used: number;
  limit: number;
  /** Of it, what could leave for the engine if room were needed, now or after a checkpoint. */
  readonly evictable: number;
  /** Blocks in use, the slabs that they lie in, and the chunks that are held, in use or not. */
  readonly blocks: number;
  readonly slabs: number;
  readonly chunks: number;
  /** Blocks are being moved together; how many have been since the start. */
  readonly defragmenting: boolean;
  readonly movedBlocks: number;
}

/** Most keys of one prefetch: the records of more would push each other out of the processor's nearest cache. */
export const PREFETCH_KEYS_MAX = 32;

/** A logical database, what SELECT reaches. Expired keys are removed before any method sees them. */
export interface Database {
  readonly index: number;
  /** DBSIZE; too many while keys are merged into the database, some of which are in both. */
  readonly size: number;
  /** Keys with a deadline. */
  readonly expiring: number;
  /** Keys whose value is damaged. */
  readonly damaged: number;

  /**
   * Keys that are about to be asked for, in this order: their records are read ahead of that into the
   * processor's caches, all at once, where one after the other would be waited for. They are at most
   * PREFETCH_KEYS_MAX and lie in one memory, which stays as it is until `Store.prefetched`.
   */
  prefetch(keys: readonly Slice[], count: number): void;
  /** The same for members of a hash or set. */
  prefetchMembers(key: Slice, members: readonly Slice[], count: number): void;

  /**
   * Keys that the unit of work is about to look up, null for none: those that are not in memory are asked
   * for together, where one after the other would be. `keyAt` is not called when all keys are in memory.
   */
  need(count: number, keyAt: (index: number) => Slice | null): void;
  /**
   * Reads that the unit of work is about to do: what all of them lack is asked for together. `read` is not
   * called when nothing can be lacking.
   */
  needReads(count: number, read: (index: number) => void): void;

  /** Before the keys of the database are looked at as a whole: a fault while keys are merged into it. */
  settle(): void;

  type(key: Slice): Type;
  /** Deletes key and value; a large value's memory is freed in slices later. False when there was none. */
  remove(key: Slice): boolean;
  /** Marks the key's value, or what it would be if it were there, as damaged: for what would have followed from a damaged value. */
  damage(key: Slice): void;
  /** Deadline in Unix ms; 0 when the key has none (or does not exist). */
  expiry(key: Slice): number;
  /** Sets or, with 0, clears the deadline of an existing key. */
  setExpiry(key: Slice, deadlineMs: number): void;
  /** Moves the value with its deadline, replacing what `to` holds in `target`. O(1) for large values. */
  rename(key: Slice, target: Database, to: Slice): void;
  /** Copies the value with its deadline, replacing what `to` holds in `target`. */
  copy(key: Slice, target: Database, to: Slice): void;
  /**
   * A small number per value that the server keeps with it and the store does not interpret: the
   * encoding that Redis would report. 0 for a new value.
   */
  encoding(key: Slice): number;
  setEncoding(key: Slice, encoding: number): void;
  /** Seconds since the value was last opened by a command, coarse. */
  idleSeconds(key: Slice): number;
  /** Makes it so many, 194 days at most. Memory of the key alone: no checkpoint knows of it. */
  setIdle(key: Slice, seconds: number): void;
  /** Bytes of memory the key and its value take (MEMORY USAGE). */
  memoryUsage(key: Slice): number;

  /** Points `into` at the string's bytes (a copy when it is stored in pieces). False when the key is absent. */
  getString(key: Slice, into: Slice): boolean;
  /** Creates or replaces the key, of whatever type, with a string that has no deadline. */
  setString(key: Slice, value: Slice): void;
  /** Replaces the value of an existing string and keeps its deadline; creates it when absent. */
  replaceString(key: Slice, value: Slice): void;

  /** Null when the key is absent; with `create` an empty value is made (and vanishes if nothing is added). */
  string(key: Slice): StringValue | null;
  string(key: Slice, create: true): StringValue;
  list(key: Slice): List | null;
  list(key: Slice, create: true): List;
  set(key: Slice): SetValue | null;
  set(key: Slice, create: true): SetValue;
  hash(key: Slice): Hash | null;
  hash(key: Slice, create: true): Hash;
  zset(key: Slice): ZSet | null;
  zset(key: Slice, create: true): ZSet;
  /** A stream stays when it is empty; one that was created here only once something is written to it. */
  stream(key: Slice): Stream | null;
  stream(key: Slice, create: true): Stream;

  /**
   * Visits at least `count` keys (fewer at the end) from `cursor` on, 0 to begin; returns the next
   * cursor, 0 at the end. Stateless; a key present during the whole iteration is visited.
   */
  scan(cursor: number, count: number, visit: (key: Slice, type: Type) => void): number;
  /** A random key, every key with nearly the same chance; `random` in [0, 1). False when empty. */
  randomKey(random: number, into: Slice): boolean;
}

/** A string of any length, read and changed in place; only the touched parts of a long one are rewritten. */
export interface StringValue {
  readonly length: number;
  /** Appends bytes [start, end) to `out`. */
  read(start: number, end: number, out: ByteSink): void;
  /** Overwrites from `offset` on, growing the string and filling a gap with zero bytes. */
  write(offset: number, bytes: Slice): void;
  byteAt(offset: number): number;
  /** Calls `visit` with each contiguous run of [start, end), in order. */
  forEachRun(start: number, end: number, visit: (run: Slice) => void): void;
}

export interface List {
  readonly length: number;
  pushLeft(element: Slice): void;
  pushRight(element: Slice): void;
  /** False when the index is not below `length`. */
  at(index: number, into: Slice): boolean;
  set(index: number, element: Slice): void;
  /** Inserts before `index`; at `length` it appends. */
  insert(index: number, element: Slice): void;
  /** Removes `count` elements from `index` on. */
  remove(index: number, count: number): void;
  /** Visits elements from `index` on, upwards or downwards, until `visit` returns false. The list must not be changed meanwhile. */
  forEachFrom(index: number, step: 1 | -1, visit: (element: Slice, index: number) => boolean): void;
  /**
   * Appends `count` elements from `index` on to `out`, each as `$<length>\r\n<bytes>\r\n`, the
   * framing that lists are stored in: a memory copy.
   */
  copyFramed(index: number, count: number, out: ByteSink): void;
}

/** Elements in a fixed order of the store's own, reachable by rank; common to sets, hashes and sorted sets. */
export interface SetValue {
  readonly size: number;
  /** True when the member is new. */
  add(member: Slice): boolean;
  has(member: Slice): boolean;
  remove(member: Slice): boolean;
  at(rank: number, into: Slice): boolean;
  removeAt(rank: number): void;
  /** Visits members from `rank` on until `visit` returns false. The set must not be changed meanwhile. */
  forEachFrom(rank: number, visit: (member: Slice) => boolean): void;
  /** As Database.scan. */
  scan(cursor: number, count: number, visit: Visitor): number;
}

export interface Hash {
  readonly size: number;
  get(field: Slice, into: Slice): boolean;
  /** True when the field is new. */
  set(field: Slice, value: Slice): boolean;
  remove(field: Slice): boolean;
  at(rank: number, field: Slice, value: Slice): boolean;
  forEachFrom(rank: number, visit: (field: Slice, value: Slice) => boolean): void;
  scan(cursor: number, count: number, visit: Visitor): number;
}

/** Members ordered by (score, bytes). Scores are doubles, never NaN; -0 is stored as 0. */
export interface ZSet {
  readonly size: number;
  /** The member's score; undefined when absent. */
  score(member: Slice): number | undefined;
  /** Adds the member or changes its score. True when the member is new. */
  set(member: Slice, score: number): boolean;
  /** Whether the last `set` through this handle changed anything: false when the member had that score. */
  readonly changed: boolean;
  remove(member: Slice): boolean;
  /** -1 when absent. */
  rank(member: Slice): number;
  /** Points `into` at the member of that rank and returns its score; NaN when there is none. */
  at(rank: number, into: Slice): number;
  /** How many members have a score below `score` (or, with `inclusive`, up to it): the rank where such a range begins. */
  countBelow(score: number, inclusive: boolean): number;
  /** The same by bytes, for sets whose scores are all equal (lexicographic ranges). */
  countBelowLex(member: Slice, inclusive: boolean): number;
  /** Removes `count` members from `rank` on. */
  removeRange(rank: number, count: number): void;
  /** Visits from `rank` on, upwards or downwards, until `visit` returns false. The set must not be changed meanwhile. */
  forEachFrom(rank: number, step: 1 | -1, visit: (member: Slice, score: number) => boolean): void;
  scan(cursor: number, count: number, visit: Visitor): number;
}

/** Sees an entry of a stream: its id, and names and values by turns, the first `count` of `fields`. False ends the visit. */
export type EntryVisitor = (id: Slice, fields: readonly Slice[], count: number) => boolean;

/**
 * Entries in the order of their ids (16 bytes, see stream-id.ts), with the state that makes new ids
 * larger than all before, and consumer groups.
 */
export interface Stream {
  readonly length: number;
  /** The largest id ever given; lent. */
  lastId: Slice;
  /** The largest id that `remove` has removed, 0-0 when there is none; lent. */
  maxDeletedId: Slice;
  /** Entries ever added. */
  entriesAdded: number;
  readonly groups: Groups;
  /** Makes it exist, though nothing may be added. */
  create(): void;
  /** Adds an entry of `fields[from, to)`, whose id must be larger than `lastId` and becomes it. */
  append(id: Slice, fields: readonly Slice[], from: number, to: number): void;
  has(id: Slice): boolean;
  /** How many entries have a smaller id (or, with `inclusive`, up to it): the rank where such a range begins. */
  countBelow(id: Slice, inclusive: boolean): number;
  /** Copies the id of the entry of that rank. False when there is none. */
  idAt(rank: number, into: Slice): boolean;
  /** Visits entries from `rank` on, upwards or downwards. The stream must not be changed meanwhile. */
  forEachFrom(rank: number, step: 1 | -1, visit: EntryVisitor): void;
  /** False when there is no such entry. */
  remove(id: Slice): boolean;
  /** Removes `count` entries from `rank` on, as trimming does: `maxDeletedId` stays. */
  removeRange(rank: number, count: number): void;
}

/** A copy of a group's state; changes take effect by `Groups.update`. */
export interface StreamGroup {
  readonly number: number;
  /** Entries that the group has read; -1: not known. */
  entriesRead: number;
  lastId: Slice;
}

export interface StreamConsumer {
  readonly name: Slice;
  readonly number: number;
  /** Unix ms. */
  seenAt: number;
}

/** Delivered and not acknowledged. */
export interface PendingEntry {
  /** The number of the consumer that owns it. */
  consumer: number;
  /** Unix ms. */
  deliveredAt: number;
  deliveries: number;
}

/** The consumer groups of a stream. */
export interface Groups {
  readonly count: number;
  /** In the order of bytes, as consumers are. */
  names(): Slice[];
  get(name: Slice): StreamGroup | null;
  /** Null when there is one of that name. */
  create(name: Slice, lastId: Slice, entriesRead: number): StreamGroup | null;
  update(name: Slice, group: StreamGroup): void;
  destroy(name: Slice): boolean;
  consumerCount(group: StreamGroup): number;
  consumers(group: StreamGroup): StreamConsumer[];
  consumer(group: StreamGroup, name: Slice): StreamConsumer | null;
  /** There must be none of that name. */
  createConsumer(group: StreamGroup, name: Slice, seenAt: number): StreamConsumer;
  setSeen(group: StreamGroup, consumer: StreamConsumer, seenAt: number): void;
  /** Removes the consumer with its pending entries; returns how many these were. */
  removeConsumer(group: StreamGroup, consumer: StreamConsumer): number;
  /** Lent. */
  consumerName(group: StreamGroup, number: number): Slice;
  pendingCount(group: StreamGroup): number;
  /** Pending entries of one consumer. */
  ownedCount(group: StreamGroup, consumer: StreamConsumer): number;
  pending(group: StreamGroup, id: Slice): PendingEntry | null;
  /** Adds a pending entry or replaces it, whoever owned it. */
  setPending(group: StreamGroup, id: Slice, entry: PendingEntry): void;
  removePending(group: StreamGroup, id: Slice): boolean;
  /** Copies the id of the last pending entry; there must be one. */
  lastPending(group: StreamGroup, into: Slice): void;
  /** Visits pending entries from an id on, until `visit` returns false; the stream must not be changed meanwhile. */
  forEachPending(group: StreamGroup, from: Slice, visit: (id: Slice, entry: PendingEntry) => boolean): void;
  /** The same for those of one consumer. */
  forEachOwned(
    group: StreamGroup,
    consumer: StreamConsumer,
    from: Slice,
    visit: (id: Slice, entry: PendingEntry) => boolean,
  ): void;
}
