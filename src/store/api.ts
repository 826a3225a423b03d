/**
 * What the server's commands see of the store: databases of typed values, in memory, never waiting.
 *
 * Conventions
 * - Bytes go in and out as `Slice`s. A slice that a method fills (`into`) shows stored bytes; it is
 *   valid until the next call that changes the store.
 * - A handle (`StringValue`, `List`, …) is borrowed until the command ends; handles are recycled.
 *   After a change through one handle, other handles on the same key are stale: open them again.
 * - Any method may throw. `WrongTypeError` when the key holds another type; `OutOfTierError` when the
 *   tier is full; later, when data may exceed memory, a fault, after which the command is rolled back
 *   and run again. So a command has no effect outside the store and its own staging until it returns.
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

/** What scans call for each element; `value` is absent for sets and keys, and the score's place is `score`. */
export type Visitor = (element: Slice, value: Slice | null, score: number) => void;

export interface Store {
  /** Unix time in milliseconds, set by the server once a turn; expiry goes by it alone. */
  now: number;
  readonly databaseCount: number;
  database(index: number): Database;
  /** SWAPDB. */
  swap(a: number, b: number): void;
  /** FLUSHDB, FLUSHALL: the database is empty at once; its memory and rows are reclaimed in slices. */
  flush(index: number): void;
  /** Called before an expired key is removed. The slice is the key. */
  onExpired: (database: Database, key: Slice) => void;
  /** Removes keys whose deadline has passed, oldest first, until none is left or `budgetMs` is used. Returns how many. */
  expireDue(budgetMs: number): number;
  /** One slice of background work (freeing dropped values, purging); true while there is more. */
  backgroundSlice(budgetMs: number): boolean;
  /** Bytes: what the tier holds now and may hold (`tier-memory`). */
  readonly memory: { readonly used: number; limit: number };
}

/** A logical database, what SELECT reaches. Expired keys are removed before any method sees them. */
export interface Database {
  readonly index: number;
  /** DBSIZE. */
  readonly size: number;
  /** Keys with a deadline. */
  readonly expiring: number;

  type(key: Slice): Type;
  /** Deletes key and value; a large value's memory is freed in slices later. False when there was none. */
  remove(key: Slice): boolean;
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
