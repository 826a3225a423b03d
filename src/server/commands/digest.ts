/**
 * Digests of data, equal to those of DEBUG DIGEST in Redis, so that two servers can be compared. What
 * has no order is combined by exclusive or, what has one by hashing on:
 *
 *   add(d, x)  d ^= SHA-1(x)
 *   mix(d, x)  d = SHA-1(d ^ SHA-1(x))
 *
 * Everything is the exclusive or of its keys' digests; each begins with zeros and mixes in the key, the
 * type's number and the value, and a key with a deadline adds a fixed word.
 */
import { hash } from 'node:crypto';
import { formatDouble } from '../../bytes/number.ts';
import { Slice } from '../../bytes/slice.ts';
import { Type, type Database } from '../../store/api.ts';
import { idHalf } from '../../store/stream-id.ts';

const SHA1_BYTES = 20;
const EXPIRES = Buffer.from('!!expire!!');
/** Redis's type numbers, by ours. */
const REDIS_TYPES: Record<number, number> = {
  [Type.String]: 0,
  [Type.List]: 1,
  [Type.Set]: 2,
  [Type.ZSet]: 3,
  [Type.Hash]: 4,
  [Type.Stream]: 6,
};

/** Keys that are looked for together. */
const KEYS_A_SCAN = 1000;
/** Bytes after which what is done need not be done again, and how many a key or an element counts for beside its own. */
const PART_BYTES = 128 * 1024;
const ELEMENT_BYTES = 128;

type Digest = Buffer;

const zeros = (): Digest => Buffer.alloc(SHA1_BYTES);
const bytesOf = ({ u8, start, end }: Slice): Buffer => u8.subarray(start, end);

function add(digest: Digest, bytes: Uint8Array): void {
  const hashed = hash('sha1', bytes, 'buffer');
  for (let i = 0; i < SHA1_BYTES; i++) digest[i] ^= hashed[i];
}

function mix(digest: Digest, bytes: Uint8Array): void {
  add(digest, bytes);
  hash('sha1', digest, 'buffer').copy(digest);
}

/** Four bytes, most significant first. */
function mixNumber(digest: Digest, number: number): void {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
  mix(digest, bytes);
}

/** What belongs together in an element without an order: a member and its score, a field and its value. */
function addPair(digest: Digest, first: Uint8Array, second: Uint8Array): void {
  const pair = zeros();
  mix(pair, first);
  mix(pair, second);
  add(digest, pair);
}

/**
 * Takes elements of a value from number `from` on into a digest, until they have `most` bytes or more; returns how many
 * there are up to there, -1 when that is all of them, and bytes.
 */
function mixElements(digest: Digest, db: Database, key: Slice, from: number, most: number): [number, number] {
  let next = from;
  let taken = 0;
  const more = (bytes: number): boolean => {
    next++;
    taken += bytes + ELEMENT_BYTES;
    return taken < most;
  };
  let size = 1;
  switch (db.type(key)) {
    case Type.String: {
      const value = new Slice();
      db.getString(key, value);
      mix(digest, bytesOf(value));
      more(value.length);
      break;
    }
    case Type.List: {
      const list = db.list(key)!;
      size = list.length;
      list.forEachFrom(from, 1, (element) => {
        mix(digest, bytesOf(element));
        return more(element.length);
      });
      break;
    }
    case Type.Set: {
      const set = db.set(key)!;
      size = set.size;
      set.forEachFrom(from, (member) => {
        add(digest, bytesOf(member));
        return more(member.length);
      });
      break;
    }
    case Type.ZSet: {
      const zset = db.zset(key)!;
      size = zset.size;
      zset.forEachFrom(from, 1, (member, score) => {
        addPair(digest, bytesOf(member), Buffer.from(formatDouble(score)));
        return more(member.length);
      });
      break;
    }
    case Type.Hash: {
      const fields = db.hash(key)!;
      size = fields.size;
      fields.forEachFrom(from, (field, value) => {
        addPair(digest, bytesOf(field), bytesOf(value));
        return more(field.length + value.length);
      });
      break;
    }
    case Type.Stream: {
      const stream = db.stream(key)!;
      size = stream.length;
      stream.forEachFrom(from, 1, (id, fields, count) => {
        mix(digest, Buffer.from(`${idHalf(id, 0)}.${idHalf(id, 8)}`));
        let bytes = 0;
        for (let i = 0; i < count; i++) {
          mix(digest, bytesOf(fields[i]));
          bytes += fields[i].length;
        }
        return more(bytes);
      });
      break;
    }
  }
  return [next < size ? next : -1, taken];
}

function mixValue(digest: Digest, db: Database, key: Slice): void {
  mixNumber(digest, REDIS_TYPES[db.type(key)]);
  mixElements(digest, db, key, 0, Infinity);
  if (db.expiry(key) !== 0) add(digest, EXPIRES);
}

/** Of the value at a key and whether it has a deadline; zeros when there is none. Hexadecimal. */
export function digestOfValue(db: Database, key: Slice): string {
  const digest = zeros();
  if (db.type(key) !== Type.None) mixValue(digest, db, key);
  return digest.toString('hex');
}

/** How far a digest of all data has come. It does not change: a part that is rolled back begins anew with it. */
export interface DigestProgress {
  readonly all: Digest;
  /** The database, and the cursor of its scan; -1 before that. */
  readonly index: number;
  readonly cursor: number;
  /** What the scan has found, of which those before `next` are in the digest. */
  readonly keys: readonly Slice[];
  readonly next: number;
  /** Of that key, of which so many elements are in it; null before the first. */
  readonly one: Digest | null;
  readonly elements: number;
}

const BEGIN: DigestProgress = {
  all: zeros(),
  index: 0,
  cursor: -1,
  keys: [],
  next: 0,
  one: null,
  elements: 0,
};

/**
 * Of all keys of all databases. Hexadecimal; zeros when there are none. In parts, which `advance` is told of: one that needs what
 * is not in memory can be done again without those before it, which may be more than the memory holds.
 */
export function digestOfAll(
  databases: readonly Database[],
  progress: DigestProgress | null,
  advance: (progress: DigestProgress) => void,
): string {
  let at = progress ?? BEGIN;
  let work = 0;
  const goOn = (next: DigestProgress, done: number): void => {
    at = next;
    work += done;
    if (work < PART_BYTES) return;
    work = 0;
    advance(at);
  };
  while (at.index < databases.length) {
    const db = databases[at.index];
    if (at.next < at.keys.length) goOn(...withKey(db, at));
    else if (at.cursor === 0 || (at.cursor < 0 && db.size === 0))
      goOn({ ...BEGIN, all: at.all, index: at.index + 1 }, 0);
    else goOn(withScan(db, at), 0);
  }
  return at.all.toString('hex');
}

/** Looks for more keys. */
function withScan(db: Database, at: DigestProgress): DigestProgress {
  const all = Buffer.from(at.all);
  if (at.cursor < 0) mixNumber(all, db.index);
  // Not looked at before the scan's step has ended: its slice is the database's own.
  const keys: Slice[] = [];
  const cursor = db.scan(Math.max(0, at.cursor), KEYS_A_SCAN, (key) => {
    keys.push(key.clone());
  });
  return { ...BEGIN, all, index: at.index, cursor, keys };
}

/** Takes the next key in, or a part of it; also how many bytes that were, about. */
function withKey(db: Database, at: DigestProgress): [DigestProgress, number] {
  const key = at.keys[at.next];
  const one = at.one === null ? zeros() : Buffer.from(at.one);
  if (at.one === null) {
    mix(one, bytesOf(key));
    mixNumber(one, REDIS_TYPES[db.type(key)]);
  }
  const [elements, bytes] = mixElements(one, db, key, at.elements, PART_BYTES);
  if (elements >= 0) return [{ ...at, one, elements }, bytes];
  if (db.expiry(key) !== 0) add(one, EXPIRES);
  const all = Buffer.from(at.all);
  add(all, one);
  return [{ ...at, all, next: at.next + 1, one: null, elements: 0 }, bytes];
}
