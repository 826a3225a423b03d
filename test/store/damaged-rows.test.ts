/** Any one row of a checkpoint damaged or missing: its key alone is damaged, or the load says that it cannot know. */
import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { DamagedValueError } from '../../src/store/api.ts';
import { RowKind } from '../../src/store/row-format.ts';
import { RowError } from '../../src/store/row-source.ts';
import { Tier } from '../../src/store/tier.ts';
import { RowTable } from './row-table.ts';

const key = (text: string): Slice => Slice.from(text);
const KEYS = ['list', 'set', 'hash', 'zset', 'long', ...Array.from({ length: 400 }, (_, i) => `key ${i}`)];
const DEADLINE = 1_000_000;

function filled(): RowTable {
  const tier = new Tier({ databases: 1, hashKey: [1, 2] });
  tier.now = 1000;
  const db = tier.database(0);
  for (let i = 0; i < 400; i++) {
    db.setString(key(`key ${i}`), key(`value ${i}`));
    db.setExpiry(key(`key ${i}`), DEADLINE + i);
  }
  const list = db.list(key('list'), true);
  const set = db.set(key('set'), true);
  const hash = db.hash(key('hash'), true);
  const zset = db.zset(key('zset'), true);
  for (let i = 0; i < 500; i++) {
    list.pushRight(key(`element ${i}`));
    set.add(key(`member ${i}`));
    hash.set(key(`field ${i}`), key(`value ${i}`));
    zset.set(key(`member ${i}`), i);
  }
  db.string(key('long'), true).write(0, Slice.from(Buffer.alloc(40_000, 'x')));
  const rows = new RowTable();
  rows.checkpoint(tier);
  return rows;
}

/** Loads the rows, of which one is damaged or missing. */
function load(rows: RowTable, bad: string, how: 'damaged' | 'missing'): Tier {
  const tier = new Tier({ databases: 1, hashKey: [1, 2] });
  tier.restoreMeta(rows.meta);
  for (const hex of [...rows.rows.keys()].sort()) {
    const row = Buffer.from(hex, 'hex');
    const value = rows.rows.get(hex) as Buffer;
    if (hex !== bad) tier.installRow(row, 0, row.length, value, 0, value.length);
    else if (how === 'damaged') expect(tier.damagedRow(row, 0, row.length)).toBe(true);
  }
  tier.recovered();
  tier.now = 1000;
  return tier;
}

/** Which keys cannot be read. */
function damagedKeys(tier: Tier): string[] {
  return KEYS.filter((name) => {
    try {
      tier.beginCommand();
      expect(tier.database(0).type(key(name)), name).not.toBe(0);
      return false;
    } catch (error) {
      if (error instanceof DamagedValueError) return true;
      throw error;
    }
  });
}

const rows = filled();
const rowsOf = (kind: number): string[] =>
  [...rows.rows.keys()].filter((hex) => parseInt(hex.slice(0, 2), 16) === kind);

test('of a key', () => {
  for (const hex of rowsOf(RowKind.Key).filter((_, i) => i % 7 === 0)) {
    const name = Buffer.from(hex, 'hex').latin1Slice(9);
    const tier = load(rows, hex, 'damaged');
    expect(damagedKeys(tier)).toEqual([name]);
    expect(tier.damagedKeys).toBe(1);
    expect(tier.database(0).remove(key(name))).toBe(true);
    expect(tier.database(0).size).toBe(KEYS.length - 1);
    expect(() => load(rows, hex, 'missing')).toThrow(RowError);
  }
});

test.each(['damaged', 'missing'] as const)('of a page: %s', (how) => {
  const seen = new Set<string>();
  for (const hex of rowsOf(RowKind.Page)) {
    const tier = load(rows, hex, how);
    const damaged = damagedKeys(tier);
    expect(damaged.length).toBeLessThanOrEqual(1);
    seen.add(damaged[0] ?? 'expiry index');
    for (const name of damaged) tier.database(0).remove(key(name));
    expect(tier.damagedKeys).toBe(0);
    tier.now = DEADLINE + 400;
    tier.expireDue(1000);
    expect(tier.database(0).size).toBe(5 - damaged.length);
    expect(tier.database(0).keyspace.expiry.check()).toBeNull();
  }
  expect([...seen].sort()).toEqual(['expiry index', 'hash', 'list', 'long', 'set', 'zset']);
});

test('of the expiry index', () => {
  const [hex] = rowsOf(RowKind.ExpiryIndex);
  const tier = load(rows, hex, 'damaged');
  expect(damagedKeys(tier)).toEqual([]);
  tier.now = DEADLINE + 199;
  expect(tier.expireDue(1000)).toBe(200);
});

test('a damaged value is still damaged after a checkpoint and a load', () => {
  const hex = rowsOf(RowKind.Page).find(
    (name) => damagedKeys(load(rows, name, 'damaged'))[0] === 'set',
  ) as string;
  const tier = load(rows, hex, 'damaged');
  const db = tier.database(0);
  db.damage(key('key 1'));
  db.damage(key('absent'));
  expect(tier.damagedKeys).toBe(3);
  const table = new RowTable();
  for (const [row, value] of rows.rows) if (row !== hex) table.rows.set(row, value);
  table.checkpoint(tier);
  const again = new Tier({ databases: 1, hashKey: [1, 2] });
  table.restore(again);
  again.now = 1000;
  expect(damagedKeys(again)).toEqual(['set', 'key 1']);
  expect(() => again.database(0).type(key('absent'))).toThrow(DamagedValueError);
  expect(again.database(0).size).toBe(KEYS.length + 1);
});
