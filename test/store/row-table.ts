import { createHash } from 'node:crypto';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { DELETE_LENGTH } from '../../src/engines/engine.ts';
import { Type } from '../../src/store/api.ts';
import type { TierDatabase } from '../../src/store/database.ts';
import type { HashHandle } from '../../src/store/hash-value.ts';
import type { ListHandle } from '../../src/store/list.ts';
import type { PurgeRange } from '../../src/store/row-source.ts';
import type { SetHandle } from '../../src/store/set.ts';
import type { Tier } from '../../src/store/tier.ts';
import type { ZSetHandle } from '../../src/store/zset.ts';

/** An engine's rows in plain JavaScript: keys in hexadecimal. */
export class RowTable {
  readonly rows = new Map<string, Buffer>();
  meta: Buffer = Buffer.alloc(0);

  /** Applies the packed rows of a cut; throws when a key occurs twice. */
  apply(sink: ByteSink, meta: Buffer): void {
    const seen = new Set<string>();
    for (let pos = 0; pos < sink.pos;) {
      const keyLength = sink.view.getUint32(pos, true);
      const valueLength = sink.view.getUint32(pos + 4, true);
      const key = sink.u8.toString('hex', pos + 8, pos + 8 + keyLength);
      pos += 8 + keyLength;
      if (seen.has(key)) throw new Error(`row ${key} occurs twice in a cut`);
      seen.add(key);
      if (valueLength === DELETE_LENGTH) {
        this.rows.delete(key);
      } else {
        this.rows.set(key, Buffer.from(sink.u8.subarray(pos, pos + valueLength)));
        pos += valueLength;
      }
    }
    this.meta = meta;
  }

  deleteRange(range: PurgeRange): void {
    const start = Buffer.from(range.start).toString('hex');
    const end = Buffer.from(range.end).toString('hex');
    for (const key of this.rows.keys()) if (key >= start && key < end) this.rows.delete(key);
  }

  /** A whole checkpoint with its purges; returns how many rows it wrote. */
  checkpoint(tier: Tier): number {
    const sink = new ByteSink();
    const meta = tier.beginCut(sink);
    while (!tier.copyCut(100, 1 << 20)) continue;
    this.apply(sink, meta);
    tier.endCut(true);
    for (const range of tier.purgeRanges()) {
      this.deleteRange(range);
      tier.purged(range);
    }
    return tier.cutRows;
  }

  /** Loads all rows into a new tier. */
  restore(tier: Tier): void {
    tier.restoreMeta(this.meta);
    for (const hex of [...this.rows.keys()].sort()) {
      const key = Buffer.from(hex, 'hex');
      const value = this.rows.get(hex) as Buffer;
      tier.installRow(key, 0, key.length, value, 0, value.length);
    }
    tier.recovered();
  }
}

/** A value's content as text. */
function content(db: TierDatabase, key: Slice): string {
  const parts: string[] = [];
  const hash = createHash('sha1');
  const add = (slice: Slice, more: string | number = ''): void => {
    hash.update(`${slice.length} ${more} `).update(slice.u8.subarray(slice.start, slice.end));
  };
  switch (db.type(key)) {
    case Type.String: {
      const value = new Slice();
      db.getString(key, value);
      add(value);
      break;
    }
    case Type.List:
      db.list(key)?.forEachFrom(0, 1, (element) => (add(element), true));
      break;
    case Type.Set:
      db.set(key)?.forEachFrom(0, (member) => (add(member), true));
      parts.push(String(db.set(key)?.size));
      break;
    case Type.Hash:
      db.hash(key)?.forEachFrom(0, (field, value) => (add(field), add(value), true));
      break;
    case Type.ZSet:
      db.zset(key)?.forEachFrom(0, 1, (member, score) => (add(member, score), true));
      break;
  }
  const unsound = check(db, key);
  if (unsound !== null) throw new Error(`${key.latin1()}: ${unsound}`);
  return `${parts.join(' ')} ${hash.digest('hex')}`;
}

function check(db: TierDatabase, key: Slice): string | null {
  switch (db.type(key)) {
    case Type.List:
      return (db.list(key) as ListHandle).check();
    case Type.Set:
      return (db.set(key) as SetHandle).check();
    case Type.Hash:
      return (db.hash(key) as HashHandle).check();
    case Type.ZSet:
      return (db.zset(key) as ZSetHandle).check();
    default:
      return null;
  }
}

/** All that a tier holds, as text to compare; counts included. Collections are checked on the way. */
export function snapshot(tier: Tier): string {
  const lines: string[] = [];
  const { onExpired } = tier;
  for (let index = 0; index < tier.databaseCount; index++) {
    const db = tier.database(index);
    const keys: string[] = [];
    // Straight from the table: looking through the database would remove what has expired.
    const { keyspace } = db;
    const key = new Slice();
    let cursor = 0;
    do {
      cursor = keyspace.table.scan(cursor, 1000, (ref) => {
        if (keyspace.type(ref) === Type.None) return;
        keyspace.key(ref, key);
        keys.push(key.latin1());
      });
    } while (cursor !== 0);
    keys.sort();
    const time = tier.now;
    tier.now = 0;
    for (const name of keys) {
      const slice = Slice.from(Buffer.from(name, 'latin1'));
      const about = `${db.type(slice)} ${db.expiry(slice)} ${db.encoding(slice)}`;
      lines.push(`${index} ${name} ${about} ${content(db, slice)}`);
      tier.beginCommand();
    }
    tier.now = time;
    lines.push(`database ${index}: ${db.size} keys, ${db.expiring} with a deadline`);
  }
  tier.onExpired = onExpired;
  return lines.join('\n');
}
