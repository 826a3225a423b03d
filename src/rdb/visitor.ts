/**
 * What an RDB file says, as a sequence of calls: the reader makes them, the writer takes them, and what
 * stands between a file and a store is one of each.
 *
 * In order: `begin`, any number of `aux`, `library`, `moduleAux`, `resize` and keys, `end`. A key is
 * `beginKey`, the calls of its type, `endKey`:
 *
 * - string: `stringPart` once or more, the parts in order (one empty part for an empty string);
 * - list, set: `element` each; hash: `field` each; sorted set: `member` each, in no particular order;
 * - stream: `streamEntry` in the order of ids, `streamEnd`, then for each group `streamGroup`, its
 *   `streamPending`, `streamConsumers`, and for each consumer `streamConsumer` with its `streamOwned`;
 * - module: nothing; the value is not understood, only its name is known (`RdbKey.moduleName`).
 *
 * Slices and the RdbKey are lent: they hold until the call returns, those of the RdbKey until `endKey`
 * returns. A stream id is 16 bytes, milliseconds then sequence number, 64-bit big endian each, so that
 * the order of bytes is the order of ids.
 */
import { Slice } from '../bytes/slice.ts';

/** Types of values. All but Module are numbered as the store numbers them. */
export const RdbValue = { String: 1, List: 2, Set: 3, Hash: 4, ZSet: 5, Stream: 6, Module: 7 } as const;
export type RdbValue = (typeof RdbValue)[keyof typeof RdbValue];

/** By RdbValue, as TYPE names them. */
export const RDB_VALUE_NAMES = ['', 'string', 'list', 'set', 'hash', 'zset', 'stream', 'module'] as const;

/** What is known of a key before its value comes. One object, filled anew for each key. */
export class RdbKey {
  db = 0;
  readonly key = new Slice();
  type: RdbValue = RdbValue.String;
  /** How the value is encoded in the file that was read: an `RdbType`. The writer chooses by itself. */
  encoding = 0;
  /** Unix time in ms; -1: the key does not expire. Never 0 (a time before 1970 is read as 1). */
  expiresAt = -1;
  /** Seconds since the last access; -1: not told. */
  idleSeconds = -1;
  /** The logarithmic access counter of Redis's LFU policies, 0 to 255; -1: not told. */
  frequency = -1;
  /**
   * How many elements, fields or members there are, or bytes of a string; -1: not known yet (lists and
   * streams that were read; a writer then goes back to fill it in).
   */
  count = -1;
  /** Name of a module type, nine characters. */
  moduleName = '';
}

/** Does nothing with anything: override what is of interest. */
export class RdbVisitor {
  /** The file's version. */
  begin(_version: number): void {}
  /** A field about the file, such as `redis-ver`. */
  aux(_name: Slice, _value: Slice): void {}
  /** The source code of a function library. */
  library(_code: Slice): void {}
  /** Data that a module keeps beside its keys; skipped. */
  moduleAux(_moduleName: string): void {}
  /** How many keys, and keys that expire, a database has: a hint, given before its keys or not at all. */
  resize(_db: number, _keys: number, _expiring: number): void {}

  beginKey(_key: RdbKey): void {}
  stringPart(_bytes: Slice): void {}
  element(_bytes: Slice): void {}
  /** `expiresAt`: Unix time in ms at which the field expires; -1: it does not. */
  field(_field: Slice, _value: Slice, _expiresAt: number): void {}
  /** `score` is never NaN. */
  member(_member: Slice, _score: number): void {}
  /** `fields` holds names and values by turns, the first `count` of them (an even number). */
  streamEntry(_id: Slice, _fields: readonly Slice[], _count: number): void {}
  streamEnd(_state: StreamState): void {}
  streamGroup(_group: StreamGroup): void {}
  /** An entry delivered to a consumer of the group and not acknowledged. `deliveredAt`: Unix time in ms. */
  streamPending(_id: Slice, _deliveredAt: number, _deliveries: number): void {}
  /** How many `streamConsumer` follow. */
  streamConsumers(_count: number): void {}
  streamConsumer(_consumer: StreamConsumer): void {}
  /** One of the group's pending entries is this consumer's. */
  streamOwned(_id: Slice): void {}
  endKey(): void {}

  end(): void {}
}

/** A stream beside its entries. Lent as slices are. */
export class StreamState {
  /** Entries that the stream has. */
  length = 0;
  readonly lastId = new Slice();
  /** Id of the first entry; zeros when there is none. Files before version 10 do not tell: then it was found. */
  readonly firstId = new Slice();
  /** Files before version 10 do not tell: zeros. */
  readonly maxDeletedId = new Slice();
  /** Entries ever added. Files before version 10 do not tell: then `length`. */
  entriesAdded = 0;
  /** How many `streamGroup` follow. */
  groups = 0;
}

export class StreamGroup {
  readonly name = new Slice();
  readonly lastId = new Slice();
  /** Entries that the group has read; -1: not known. */
  entriesRead = -1;
  /** How many `streamPending` follow. */
  pending = 0;
}

export class StreamConsumer {
  readonly name = new Slice();
  /** When it last tried to read, Unix time in ms. */
  seenAt = 0;
  /** When it last read something, Unix time in ms; -1: never. Files before version 11 do not tell: then `seenAt`. */
  activeAt = 0;
  /** How many `streamOwned` follow. */
  pending = 0;
}
