/**
 * The encodings that OBJECT ENCODING reports, by Redis 7.0's names and limits. The store keeps values
 * in forms of its own; what Redis would have chosen follows from the value, its history and the
 * configured limits, and is kept with the value as one of the numbers below. As in Redis a value is
 * converted one way only: it never goes back to the compact form by shrinking.
 *
 * Commands that add to a set, hash or sorted set tell it here, element by element, after the change.
 */
import type { Slice } from '../bytes/slice.ts';
import { isInt64 } from '../bytes/number.ts';
import { Type, type Database } from '../store/api.ts';
import type { Config } from './config.ts';
import type { Context } from './context.ts';

/** What `Database.encoding` holds. */
export const Encoding = {
  /** The compact form: intset, listpack; for strings what the bytes suggest: int, embstr or raw. */
  Compact: 0,
  /** Converted: hashtable, skiplist; for strings raw. */
  Converted: 1,
  /** A string that is not kept as an integer even if it looks like one: embstr or raw. */
  Text: 2,
} as const;

/** Limits up to which a collection keeps its compact form, by the names of their parameters in camel case. */
export interface EncodingLimits {
  hashMaxListpackEntries: number;
  /** Bytes. */
  hashMaxListpackValue: number;
  setMaxIntsetEntries: number;
  zsetMaxListpackEntries: number;
  /** Bytes. */
  zsetMaxListpackValue: number;
}

/** The limits that are configured, now and after every change. */
export function followEncodingLimits(config: Config): Readonly<EncodingLimits> {
  const limits: EncodingLimits = {
    hashMaxListpackEntries: 0,
    hashMaxListpackValue: 0,
    setMaxIntsetEntries: 0,
    zsetMaxListpackEntries: 0,
    zsetMaxListpackValue: 0,
  };
  const follow = (limit: keyof EncodingLimits, name: string): void =>
    config.onChange(name, () => (limits[limit] = config.number(name)));
  follow('hashMaxListpackEntries', 'hash-max-listpack-entries');
  follow('hashMaxListpackValue', 'hash-max-listpack-value');
  follow('setMaxIntsetEntries', 'set-max-intset-entries');
  follow('zsetMaxListpackEntries', 'zset-max-listpack-entries');
  follow('zsetMaxListpackValue', 'zset-max-listpack-value');
  return limits;
}

/** Longest string that Redis allocates in one piece with its header. */
const EMBSTR_MAX = 44;

function convert(db: Database, key: Slice): void {
  if (db.encoding(key) !== Encoding.Converted) db.setEncoding(key, Encoding.Converted);
}

/** A string was changed in place: Redis keeps it as raw from then on, whatever its bytes. */
export function stringChangedInPlace(db: Database, key: Slice): void {
  convert(db, key);
}

/** A new member was added to a set, which has `size` members now. */
export function setMemberAdded(context: Context, key: Slice, size: number, member: Slice): void {
  const max = context.encodingLimits.setMaxIntsetEntries;
  if (size > max + 1) return; // converted when it passed the limit
  if (size > max || !isInt64(member)) convert(context.db, key);
}

/** A field of a hash was set, new or not; the hash has `size` fields now. */
export function hashFieldSet(context: Context, key: Slice, size: number, field: Slice, value: Slice): void {
  const { hashMaxListpackEntries, hashMaxListpackValue } = context.encodingLimits;
  if (size > hashMaxListpackEntries + 1) return;
  if (
    size > hashMaxListpackEntries ||
    value.end - value.start > hashMaxListpackValue ||
    field.end - field.start > hashMaxListpackValue
  ) {
    convert(context.db, key);
  }
}

/** A new member was added to a sorted set, which has `size` members now. */
export function zsetMemberAdded(context: Context, key: Slice, size: number, member: Slice): void {
  const { zsetMaxListpackEntries, zsetMaxListpackValue } = context.encodingLimits;
  if (size > zsetMaxListpackEntries + 1) return;
  if (size > zsetMaxListpackEntries || member.end - member.start > zsetMaxListpackValue) {
    convert(context.db, key);
  }
}

/** The encoding's name; undefined when the key does not exist. */
export function encodingName(db: Database, key: Slice): string | undefined {
  const type = db.type(key);
  const converted = db.encoding(key) === Encoding.Converted;
  switch (type) {
    case Type.None:
      return undefined;
    case Type.String:
      return stringEncoding(db, key);
    case Type.List:
      return 'quicklist';
    case Type.Set:
      return converted ? 'hashtable' : 'intset';
    case Type.Hash:
      return converted ? 'hashtable' : 'listpack';
    case Type.ZSet:
      return converted ? 'skiplist' : 'listpack';
    case Type.Stream:
      return 'stream';
  }
}

function stringEncoding(db: Database, key: Slice): string {
  const encoding = db.encoding(key);
  if (encoding === Encoding.Converted) return 'raw';
  const value = db.string(key)!;
  if (value.length > EMBSTR_MAX) return 'raw';
  let isInteger = false;
  if (encoding !== Encoding.Text) value.forEachRun(0, value.length, (run) => (isInteger = isInt64(run)));
  return isInteger ? 'int' : 'embstr';
}
