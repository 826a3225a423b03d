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

function mixValue(digest: Digest, db: Database, key: Slice): void {
  const type = db.type(key);
  mixNumber(digest, REDIS_TYPES[type]);
  switch (type) {
    case Type.String: {
      const value = new Slice();
      db.getString(key, value);
      mix(digest, bytesOf(value));
      break;
    }
    case Type.List:
      db.list(key)!.forEachFrom(0, 1, (element) => {
        mix(digest, bytesOf(element));
        return true;
      });
      break;
    case Type.Set:
      db.set(key)!.forEachFrom(0, (member) => {
        add(digest, bytesOf(member));
        return true;
      });
      break;
    case Type.ZSet:
      db.zset(key)!.forEachFrom(0, 1, (member, score) => {
        addPair(digest, bytesOf(member), Buffer.from(formatDouble(score)));
        return true;
      });
      break;
    case Type.Hash:
      db.hash(key)!.forEachFrom(0, (field, value) => {
        addPair(digest, bytesOf(field), bytesOf(value));
        return true;
      });
      break;
    case Type.Stream:
      db.stream(key)!.forEachFrom(0, 1, (id, fields, count) => {
        mix(digest, Buffer.from(`${idHalf(id, 0)}.${idHalf(id, 8)}`));
        for (let i = 0; i < count; i++) mix(digest, bytesOf(fields[i]));
        return true;
      });
      break;
  }
  if (db.expiry(key) !== 0) add(digest, EXPIRES);
}

/** Of the value at a key and whether it has a deadline; zeros when there is none. Hexadecimal. */
export function digestOfValue(db: Database, key: Slice): string {
  const digest = zeros();
  if (db.type(key) !== Type.None) mixValue(digest, db, key);
  return digest.toString('hex');
}

/** Of all keys of all databases. Hexadecimal; zeros when there are none. */
export function digestOfAll(databases: Iterable<Database>): string {
  const digest = zeros();
  for (const db of databases) {
    if (db.size === 0) continue;
    mixNumber(digest, db.index);
    let cursor = 0;
    do {
      // Not looked at before the scan's step has ended: its slice is the database's own.
      const keys: Slice[] = [];
      cursor = db.scan(cursor, 1000, (key) => {
        keys.push(key.clone());
      });
      for (const key of keys) {
        const one = zeros();
        mix(one, bytesOf(key));
        mixValue(one, db, key);
        add(digest, one);
      }
    } while (cursor !== 0);
  }
  return digest.toString('hex');
}
