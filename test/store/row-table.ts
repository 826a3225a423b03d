import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { DELETE_LENGTH } from '../../src/engines/engine.ts';
import { Type } from '../../src/store/api.ts';
import type { PurgeRange } from '../../src/store/row-source.ts';
import type { Tier } from '../../src/store/tier.ts';

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

/** All that a tier holds of strings and keys, as text to compare; counts included. */
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
      const value = new Slice();
      if (db.type(slice) === Type.String) db.getString(slice, value);
      lines.push(
        `${index} ${name} ${db.expiry(slice)} ${db.encoding(slice)} ${value.toBuffer().toString('base64')}`,
      );
    }
    tier.now = time;
    lines.push(`database ${index}: ${db.size} keys, ${db.expiring} with a deadline`);
  }
  tier.onExpired = onExpired;
  return lines.join('\n');
}
