import { describe, expect, it } from 'vitest';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { OutOfTierError, Type } from '../../src/store/api.ts';
import { INLINE_STRING_MAX } from '../../src/store/string-value.ts';
import { Tier } from '../../src/store/tier.ts';
import { Random, seeds } from './random.ts';
import { RowTable, snapshot } from './row-table.ts';

const CHUNK = 1 << 20;

function newTier(limit?: number): Tier {
  const tier = new Tier({ chunkBytes: CHUNK, limit, databases: 4 });
  tier.now = 1_700_000_000_000;
  return tier;
}

/** A random change of a collection; its size swings between nothing and some hundred elements. */
function changeCollection(tier: Tier, random: Random, keys: number): void {
  const db = tier.database(random.below(2));
  const kind = random.below(4);
  const key = Slice.from(['l', 's', 'h', 'z'][kind] + random.below(Math.ceil(keys / 30)));
  const element = Slice.from(
    random.below(400) + 'x'.repeat(random.below(random.below(30) === 0 ? 3000 : 40)),
  );
  const grow = (random.below(2) + (tier.now >>> 12)) % 3 !== 0;
  const times = 1 + random.below(20);
  for (let i = 0; i < times; i++) {
    const member = Slice.from(random.below(800) + ':');
    if (grow) {
      if (kind === 0) db.list(key, true).insert(random.below(db.list(key, true).length + 1), element);
      else if (kind === 1) db.set(key, true).add(member);
      else if (kind === 2) db.hash(key, true).set(member, element);
      else db.zset(key, true).set(member, random.below(100));
    } else if (kind === 0) {
      const list = db.list(key);
      if (list !== null) list.remove(random.below(list.length), 1);
    } else if (kind === 1) {
      const set = db.set(key);
      if (set !== null) set.removeAt(random.below(set.size));
    } else if (kind === 2) {
      const hash = db.hash(key);
      const field = new Slice();
      if (hash?.at(random.below(hash.size), field, new Slice()) === true) hash.remove(field.clone());
    } else {
      const zset = db.zset(key);
      if (zset !== null) zset.removeRange(random.below(zset.size), 1 + random.below(3));
    }
  }
  tier.beginCommand();
  if (random.below(20) === 0)
    db.rename(key, tier.database(random.below(2)), Slice.from(key.latin1()[0] + 'moved'));
  if (random.below(20) === 0)
    db.copy(key, tier.database(random.below(2)), Slice.from(key.latin1()[0] + 'copied'));
  if (random.below(20) === 0) db.setExpiry(key, tier.now + random.below(100_000));
  if (random.below(60) === 0) db.remove(key);
  if (random.below(200) === 0) db.setString(key, element);
  if (random.below(200) === 0) db.remove(key);
  else if (db.type(key) === Type.String) db.remove(key);
}

/** Random changes of strings and keys over several databases, as a plain function of the generator. */
function change(tier: Tier, random: Random, keys: number): void {
  if (random.below(4) === 0) {
    changeCollection(tier, random, keys);
    return;
  }
  const db = tier.database(random.below(2));
  const key = Slice.from(
    'key:' + random.below(keys).toString(36) + (random.below(40) === 0 ? 'x'.repeat(1500) : ''),
  );
  switch (random.below(12)) {
    case 0:
    case 1:
    case 2:
      db.setString(key, Slice.from(random.bytes(random.below(200))));
      break;
    case 3:
      if (random.below(8) === 0) db.setString(key, Slice.from(random.bytes(random.below(60_000))));
      else db.setString(key, Slice.from(random.bytes(random.below(3000))));
      break;
    case 4:
    case 5:
      db.remove(key);
      break;
    case 6:
      db.setExpiry(key, random.below(3) === 0 ? 0 : tier.now + 1 + random.below(100_000));
      break;
    case 7:
      db.rename(key, tier.database(random.below(2)), Slice.from('key:' + random.below(keys).toString(36)));
      break;
    case 8:
      db.copy(key, tier.database(random.below(2)), Slice.from('key:' + random.below(keys).toString(36)));
      break;
    case 9:
      db.setEncoding(key, random.below(20));
      break;
    case 10:
      tier.now += random.below(300);
      if (random.below(4) === 0) tier.expireDue(5);
      break;
    default: {
      if (db.type(key) === Type.String || db.type(key) === Type.None) {
        const value = db.string(key, true);
        value.write(
          random.below(random.below(10) === 0 ? 40_000 : 400),
          Slice.from(random.bytes(1 + random.below(50))),
        );
      }
      if (random.below(300) === 0) tier.flush(random.below(2));
      if (random.below(300) === 0) tier.swap(0, 1);
      if (random.below(50) === 0) tier.backgroundSlice(0);
    }
  }
}

describe('cuts', () => {
  it.each(seeds(1))(
    'are the state at the cut, whatever changes while they are copied out (seed %i)',
    (seed) => {
      const random = new Random(seed);
      const tier = newTier();
      const engine = new RowTable();
      let trees = 0;
      for (let round = 0; round < 25; round++) {
        for (let i = 0; i < 600; i++) change(tier, random, 300);
        const at = snapshot(tier);
        const now = tier.now;
        const sink = new ByteSink();
        const meta = tier.beginCut(sink);
        while (!tier.copyCut(0, 4096)) {
          for (let i = random.below(40); i > 0; i--) change(tier, random, 300);
        }
        for (let i = 0; i < 100; i++) change(tier, random, 300);
        const giveUp = random.below(4) === 0;
        if (giveUp) {
          tier.endCut(false);
          continue;
        }
        engine.apply(sink, meta);
        // A chunk at a time, with changes meanwhile.
        while (!tier.endCut(true, 0)) change(tier, random, 300);
        for (const range of tier.purgeRanges()) {
          engine.deleteRange(range);
          tier.purged(range);
        }
        if (random.below(2) === 0) while (tier.backgroundSlice(1)) continue;

        const restored = newTier();
        restored.now = now;
        engine.restore(restored);
        expect(snapshot(restored)).toBe(at);
        trees = Math.max(trees, restored.collections.size);
      }
      expect(trees).toBeGreaterThan(2);

      for (let index = 0; index < tier.databaseCount; index++) tier.flush(index);
      for (let i = 0; i < 2; i++) {
        while (tier.backgroundSlice(10)) continue;
        engine.checkpoint(tier);
      }
      expect(engine.rows.size).toBe(0);
      expect(tier.arena.blockBytes).toBe(0);
      expect(tier.arena.dirtyBytes).toBe(0);
    },
    120_000,
  );

  it('hold a row only for what has changed', () => {
    const tier = newTier();
    const db = tier.database(0);
    for (let i = 0; i < 1000; i++) db.setString(Slice.from('k' + i), Slice.from('v' + i));
    const engine = new RowTable();
    expect(engine.checkpoint(tier)).toBe(1000);
    expect(engine.checkpoint(tier)).toBe(0);
    db.setString(Slice.from('k7'), Slice.from('other'));
    db.remove(Slice.from('k8'));
    db.setString(Slice.from('passing'), Slice.from('by'));
    db.remove(Slice.from('passing'));
    expect(engine.checkpoint(tier)).toBe(2);
    expect(engine.rows.size).toBe(999);
  });

  it('leave nothing of removed keys, in memory or in rows', () => {
    const tier = newTier();
    const db = tier.database(0);
    const used = tier.arena.blockBytes;
    const engine = new RowTable();
    for (let i = 0; i < 3000; i++) {
      db.setString(Slice.from('k' + i), Slice.from('v'.repeat(i % 500)));
      if (i % 100 === 0) db.setString(Slice.from('long' + i), Slice.from('v'.repeat(INLINE_STRING_MAX + i)));
    }
    engine.checkpoint(tier);
    for (let i = 0; i < 3000; i++) {
      db.remove(Slice.from('k' + i));
      db.remove(Slice.from('long' + i));
    }
    expect(db.size).toBe(0);
    engine.checkpoint(tier);
    engine.checkpoint(tier);
    while (tier.backgroundSlice(10)) continue;
    expect(engine.rows.size).toBe(0);
    expect(tier.arena.blockBytes).toBe(used);
  });

  it('forget flushed databases at once and free them in slices', () => {
    const tier = newTier();
    const engine = new RowTable();
    const used = tier.arena.blockBytes;
    for (let i = 0; i < 5000; i++) {
      tier.database(1).setString(Slice.from('k' + i), Slice.from('value'));
      tier.database(1).setExpiry(Slice.from('k' + i), tier.now + 1000 + i);
    }
    engine.checkpoint(tier);
    tier.flush(1);
    expect(tier.database(1).size).toBe(0);
    expect(tier.database(1).expiring).toBe(0);
    tier.database(1).setString(Slice.from('k1'), Slice.from('new'));
    while (tier.backgroundSlice(10)) continue;
    engine.checkpoint(tier);
    expect(engine.rows.size).toBe(1);
    tier.database(1).remove(Slice.from('k1'));
    engine.checkpoint(tier);
    while (tier.backgroundSlice(10)) continue;
    expect(tier.arena.blockBytes).toBe(used);
  });
});

describe('expiry', () => {
  it('removes due keys without their being read, oldest first, telling each', () => {
    const tier = newTier();
    const told: string[] = [];
    tier.onExpired = (db, key) => told.push(`${db.index} ${key.latin1()}`);
    for (let i = 0; i < 2000; i++) {
      const key = Slice.from('k' + i);
      tier.database(i % 2).setString(key, Slice.from('v'));
      if (i % 4 < 2) tier.database(i % 2).setExpiry(key, tier.now + 2000 - i);
    }
    expect(tier.database(0).expiring).toBe(500);
    tier.now += 500;
    tier.expireDue(1000);
    expect(told.length).toBe(250);
    tier.now += 5000;
    tier.expireDue(1000);
    expect(told.length).toBe(1000);
    expect(new Set(told).size).toBe(1000);
    expect(tier.database(0).size + tier.database(1).size).toBe(1000);
    expect(tier.database(0).expiring + tier.database(1).expiring).toBe(0);
  });

  it('keeps keys of one hash and one deadline apart', () => {
    const tier = newTier();
    tier.hasher.hash32 = () => 42;
    tier.hasher.hashRange = () => 42;
    const db = tier.database(0);
    for (let i = 0; i < 10; i++) {
      db.setString(Slice.from('k' + i), Slice.from('v'));
      db.setExpiry(Slice.from('k' + i), tier.now + 100);
    }
    db.remove(Slice.from('k3'));
    db.setExpiry(Slice.from('k4'), 0);
    tier.now += 100;
    expect(tier.expireDue(100)).toBe(8);
    expect(db.size).toBe(1);
    expect(db.expiring).toBe(0);
  });
});

describe('a full tier', () => {
  it('refuses writes, serves reads and removals, and goes on when there is room again', () => {
    const tier = newTier(6 * CHUNK);
    const db = tier.database(0);
    const value = Slice.from('v'.repeat(1000));
    let stored = 0;
    expect(() => {
      for (; stored < 100_000; stored++) db.setString(Slice.from('k' + stored), value);
    }).toThrow(OutOfTierError);
    expect(tier.memory.used).toBeLessThanOrEqual(6 * CHUNK);
    expect(db.size).toBe(stored);
    const into = new Slice();
    for (let i = 0; i < stored; i++) {
      expect(db.getString(Slice.from('k' + i), into)).toBe(true);
      expect(into.length).toBe(1000);
    }
    for (let i = 0; i < stored; i += 1) db.remove(Slice.from('k' + i));
    db.setString(Slice.from('again'), value);
    expect(db.size).toBe(1);
  });
});
