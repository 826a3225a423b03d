/** Any one row of a checkpoint damaged or missing: its key alone is damaged, or the load says that it cannot know. */
import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { DamagedValueError, Type } from '../../src/store/api.ts';
import { RowKind } from '../../src/store/row-format.ts';
import { RowError } from '../../src/store/row-source.ts';
import { Tier } from '../../src/store/tier.ts';
import { RowTable } from './row-table.ts';

const key = (text: string): Slice => Slice.from(text);
const LONG = ['first', 'second', 'third'].map((name) => name.padEnd(2000, '.'));
const KEYS = [
  ...['list', 'set', 'hash', 'zset', 'long'],
  ...LONG,
  ...Array.from({ length: 400 }, (_, i) => `key ${i}`),
];
/** Keys that have no deadline. */
const LASTING = 5 + LONG.length;
const DEADLINE = 1_000_000;

function filled(): RowTable {
  const tier = new Tier({ databases: 1, hashKey: [1, 2] });
  tier.now = 1000;
  const db = tier.database(0);
  for (let i = 0; i < 400; i++) {
    db.setString(key(`key ${i}`), key(`value ${i}`));
    db.setExpiry(key(`key ${i}`), DEADLINE + i);
  }
  for (const name of LONG) db.setString(key(name), key('value'));
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
function load(rows: RowTable, bad: string, how: 'damaged' | 'missing', damagedKey = bad, told = true): Tier {
  const tier = new Tier({ databases: 1, hashKey: [1, 2] });
  tier.restoreMeta(rows.meta);
  const names = [...rows.rows.keys()].map((hex) => (hex === bad ? damagedKey : hex));
  for (const hex of names.sort()) {
    const row = Buffer.from(hex, 'hex');
    const value = rows.rows.get(hex === damagedKey ? bad : hex) as Buffer;
    if (hex !== damagedKey) tier.installRow(row, 0, row.length, value, 0, value.length);
    else if (how === 'damaged') expect(tier.damagedRow(row, 0, row.length)).toBe(told);
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
      if (tier.database(0).type(key(name)) === Type.None) throw new Error(`${name} is gone`);
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

/** `from` as it is after a checkpoint of the tier, whose rows it had but for one that is now `damagedKey`. */
function after(from: RowTable, tier: Tier, bad: string, damagedKey: string): RowTable {
  const table = new RowTable();
  for (const [hex, value] of from.rows) table.rows.set(hex === bad ? damagedKey : hex, value);
  table.checkpoint(tier);
  return table;
}

test('of a long key: it is found when it is asked for', () => {
  for (const hex of rowsOf(RowKind.LongKey)) {
    const asked = load(rows, hex, 'damaged', hex, false);
    expect(asked.damagedKeys).toBe(1);
    const [name, ...others] = damagedKeys(asked);
    expect(others).toEqual([]);
    expect(LONG).toContain(name);
    expect(() => asked.dumpedDatabases()).not.toThrow();
    expect(asked.database(0).size).toBe(KEYS.length);

    // What is not asked for is still unknown after a checkpoint; what was, is a damaged value.
    const unasked = load(rows, hex, 'damaged', hex, false);
    expect(() => unasked.dumpedDatabases()).toThrow(RowError);
    unasked.database(0).setString(key('key 1'), key('other'));
    const changed = after(rows, unasked, hex, hex);
    const again = load(changed, hex, 'damaged', hex, false);
    expect(damagedKeys(again)).toEqual([name]);
    const table = after(changed, again, hex, hex);
    expect(table.rows.get(hex)).toBeDefined();
    const named = load(table, '', 'damaged');
    expect(damagedKeys(named)).toEqual([name]);
    expect(named.database(0).remove(key(name))).toBe(true);
    expect(named.database(0).size).toBe(KEYS.length - 1);
    const removed = after(table, named, hex, hex);
    expect(removed.rows.has(hex)).toBe(false);
    expect(load(removed, '', 'damaged').damagedKeys).toBe(0);
  }
});

test.each([0, 1, 4, 5, 8, 9, 12])('whose own key is damaged in byte %i', (byte) => {
  for (const hex of rowsOf(RowKind.Key).filter((_, i) => i % 100 === 0)) {
    const row = Buffer.from(hex, 'hex');
    const name = row.latin1Slice(9);
    if (byte >= row.length) continue;
    row[byte] ^= 8;
    const bad = row.toString('hex');
    const tier = load(rows, hex, 'damaged', bad, false);
    expect(tier.database(0).size).toBe(KEYS.length);
    expect(damagedKeys(tier)).toEqual([name]);
    // What a rollback undoes, and a value that replaces it.
    const again = load(rows, hex, 'damaged', bad, false);
    again.faultAtRandom(1, 1e-9);
    again.begin();
    again.database(0).remove(key(name));
    expect(again.database(0).size).toBe(KEYS.length - 1);
    again.rollback();
    expect(again.database(0).size).toBe(KEYS.length);
    again.database(0).setString(key(name), key('anew'));
    expect(damagedKeys(again)).toEqual([]);
    expect(again.damagedKeys).toBe(0);
    const table = after(rows, again, hex, bad);
    expect(table.rows.has(bad)).toBe(false);
    const sound = load(table, '', 'damaged');
    expect(damagedKeys(sound)).toEqual([]);
    expect(sound.database(0).size).toBe(KEYS.length);
  }
});

test('FLUSHDB gives up what has no name', () => {
  const [hex] = rowsOf(RowKind.LongKey);
  const tier = load(rows, hex, 'damaged', hex, false);
  tier.flush(0);
  expect(tier.damagedKeys).toBe(0);
  expect(tier.database(0).size).toBe(0);
  expect(tier.database(0).randomKey(0.5, new Slice())).toBe(false);
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
    expect(tier.database(0).size).toBe(LASTING - damaged.length);
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
