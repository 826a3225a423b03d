import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { EngineError } from '../../src/engines/engine.ts';
import { Type, type Store } from '../../src/store/api.ts';
import { Hasher } from '../../src/store/hash.ts';
import { ModelStore } from '../model/store.ts';
import { DATABASES, Life } from './life.ts';
import { Random, seeds } from './random.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { ownerless, SimulatedEngine } from './simulated-engine.ts';
import { contentOf, randomOperation, run, type Operation } from './store-operations.ts';
import { unitOfWork as unit } from '../../src/store/unit-of-work.ts';

function contentOfModel(model: Store, now: number): string {
  model.now = now;
  return contentOf(model);
}

test.each(seeds(3))(
  'equal to the model whatever is evicted, fetched and lost in a crash (seed %i)',
  async (seed) => {
    const random = new Random(seed);
    const disk = new SimulatedDisk();
    const model = new ModelStore(DATABASES);
    const limit = random.pick([0, 4, 16]) * 1024 * 1024;
    let now = 1_700_000_000_000;
    let life = await Life.begin(disk, new SimulatedEngine(disk), limit);
    let fetches = 0;
    let moved = 0;
    for (let number = 0; number < 3; number++) {
      const turns = 30 + random.below(60);
      const size = random.pick([3, 10, 120]);
      for (let i = 0; i < turns; i++) {
        now += random.below(20) === 0 ? random.below(4000) - 1000 : random.below(10);
        const operations = Array.from({ length: 1 + random.below(4) }, () =>
          randomOperation(random, now, size),
        );
        if (random.below(50) === 0) operations.push(['touch']);
        fetches += await life.run(now, operations);
        for (const operation of operations) {
          model.now = now;
          run(model, operation);
        }
        if (random.below(10) === 0) life.flush();
        if (random.below(12) === 0) void life.opened.checkpointer.checkpoint().catch(() => undefined);
        if (random.below(30) === 0) await life.opened.checkpointer.checkpoint();
        if (random.below(4) === 0) life.opened.store.evictor.sweep(random.below(2), 0);
        if (random.below(20) === 0) life.evictAll();
        if (random.below(8) === 0) moved += life.moveChunk();
        if (random.below(20) === 0) {
          await life.expire(now);
          contentOfModel(model, now);
        }
        if (random.below(20) === 0) life.opened.store.backgroundSlice(1);
        if (random.below(3) === 0) await new Promise(setImmediate);
      }
      life.flush();
      expect(await life.content(now)).toBe(contentOfModel(model, now));
      life.flush();
      life = await life.afterKill(limit);
      expect(await life.content(now)).toBe(contentOfModel(model, now));
      await life.settle();
      expect(ownerless(life.engine)).toEqual([]);
      life.evictAll();
      model.now = now;
      for (const db of [0, 1]) {
        for (const name of ['s', 'l', 'u', 'h', 'z', 'x'].flatMap((kind) =>
          [...Array(13).keys()].map((i) => kind + i),
        )) {
          const type = await life.type(db, name, now);
          expect(type).toBe(model.database(db).type(Slice.from(name)));
        }
      }
    }
    expect(fetches).toBeGreaterThan(10);
    expect(moved).toBeGreaterThan(100);
  },
  180_000,
);

async function newLife(limit: number): Promise<Life> {
  const disk = new SimulatedDisk();
  return Life.begin(disk, new SimulatedEngine(disk), limit);
}

const key = (i: number): Slice => Slice.from(`key:${i}`);

test('a key that has left memory is read, overwritten, counted and deleted', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const db = tier.database(0);
  for (let i = 0; i < 1000; i++) await unit(tier, () => db.setString(key(i), Slice.from(`value ${i}`)));
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  expect(tier.residency().residentKeys).toBe(0);
  expect(db.size).toBe(1000);
  const value = new Slice();
  await unit(tier, () => void db.getString(key(7), value));
  expect(value.latin1()).toBe('value 7');
  await unit(tier, () => void db.remove(key(8)));
  await unit(tier, () => db.setString(key(9), Slice.from('new')));
  await unit(tier, () => db.setString(key(1000), Slice.from('new')));
  expect(db.size).toBe(1000);
  let found = true;
  await unit(tier, () => (found = db.getString(key(8), value)));
  expect(found).toBe(false);
  expect(tier.residency().fetchedRows).toBe(3);
});

test('a value larger than a tier of nothing is walked in a bounded number of fetches', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const db = tier.database(0);
  const list = Slice.from('list');
  for (let i = 0; i < 200; i++) {
    await unit(tier, () => {
      for (let j = 0; j < 100; j++)
        db.list(list, true).pushRight(Slice.from(`${i * 100 + j}`.padStart(200, '.')));
    });
  }
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  const pages = tier.residency().evictedPages;
  expect(pages).toBeGreaterThan(2000);
  let sum = 0;
  const rounds = await unit(tier, () => {
    sum = 0;
    db.list(list)!.forEachFrom(0, 1, (element) => {
      sum += Number(element.latin1().replaceAll('.', ''));
      return true;
    });
  });
  expect(sum).toBe((20_000 * 19_999) / 2);
  expect(rounds).toBeLessThan(20);
});

test('keys that are not in memory expire without having been read', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const db = tier.database(0);
  for (let i = 0; i < 2000; i++) {
    await unit(tier, () => {
      db.setString(key(i), Slice.from('v'));
      if (i % 2 === 0) db.setExpiry(key(i), 1000 + (i % 10));
    });
  }
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  while (db.expiring > 0) await life.expire(5000);
  expect(db.size).toBe(1000);
});

test('scans meet every key once, and random keys are of all', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const db = tier.database(0);
  for (let i = 0; i < 2000; i++) await unit(tier, () => db.setString(key(i), Slice.from('v')));
  await life.opened.checkpointer.checkpoint();
  const keys: string[] = [];
  let cursor = 0;
  do {
    life.evictAll();
    const part: string[] = [];
    let next = 0;
    await unit(tier, () => {
      part.length = 0;
      next = db.scan(cursor, 10, (name) => part.push(name.latin1()));
    });
    keys.push(...part);
    cursor = next;
  } while (cursor !== 0);
  expect(new Set(keys).size).toBe(2000);
  expect(keys.length).toBe(2000);
  const random = new Random(1);
  const picked = new Set<string>();
  for (let i = 0; i < 200; i++) {
    const number = random.real();
    const into = new Slice();
    await unit(tier, () => expect(db.randomKey(number, into)).toBe(true));
    picked.add(into.latin1());
  }
  expect(picked.size).toBeGreaterThan(150);
});

test('a set is copied member by member from a tier that holds nothing', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const db = tier.database(0);
  const from = Slice.from('from');
  for (let i = 0; i < 200; i++) {
    await unit(tier, () => {
      for (let j = 0; j < 100; j++) db.set(from, true).add(Slice.from(`member ${i * 100 + j}`));
    });
  }
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  const rounds = await unit(tier, () => {
    const target = db.set(Slice.from('to'), true);
    db.set(from)!.forEachFrom(0, (member) => target.add(member) || true);
    db.rename(Slice.from('to'), db, Slice.from('renamed'));
    db.remove(Slice.from('to'));
  });
  expect(rounds).toBeLessThan(30);
  expect(db.size).toBe(2);
});

/** Lists of 200 elements, too long for their records. */
async function fillLists(life: Life, db: number, count: number): Promise<void> {
  const tier = life.opened.store;
  for (let i = 0; i < count; i++) {
    await unit(tier, () => {
      const list = tier.database(db).list(Slice.from(`list ${i}`), true);
      for (let j = 0; j < 200; j++) list.pushRight(Slice.from(`element ${j}`));
    });
  }
}

const pageRows = (life: Life): number => [...life.engine.rows.keys()].filter((key) => key[0] === 'p').length;

test('a flushed database whose collections are not in memory leaves nothing in the engine', async () => {
  const life = await newLife(0);
  await fillLists(life, 0, 30);
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  expect(life.opened.store.residency().residentKeys).toBe(0);
  expect(pageRows(life)).toBeGreaterThan(30);
  await unit(life.opened.store, () => life.opened.store.flush(0));
  await life.settle();
  // The meta row and its copy.
  expect([...life.engine.rows.keys()].sort()).toEqual(['M', 'm']);
});

test.each([0, 1, 2, 3])(
  'nor when the process is killed after %i of its ranges are deleted',
  async (deleted) => {
    let life = await newLife(0);
    await fillLists(life, 0, 10);
    await fillLists(life, 1, 2);
    await unit(life.opened.store, () => life.opened.store.database(1).remove(Slice.from('list 1')));
    await life.opened.checkpointer.checkpoint();
    life.evictAll();
    const { engine } = life;
    const deleteRange = engine.deleteRange.bind(engine);
    let left = deleted;
    engine.deleteRange = (range) =>
      left-- > 0 ? deleteRange(range) : Promise.reject(new EngineError('ENGINE_IO', 'killed'));
    await life.run(0, [['flush', 0]]);
    await life.opened.checkpointer.checkpoint().catch(() => undefined);
    while (life.opened.checkpointer.info().purging) await new Promise(setImmediate);
    life = await life.afterKill(0);
    await life.settle();
    expect(ownerless(life.engine)).toEqual([]);
    expect(life.opened.store.database(0).size).toBe(0);
    expect(await life.type(1, 'list 0')).toBe(Type.List);
  },
);

test('a collection that was moved to another database outlives the flush of its first', async () => {
  let life = await newLife(0);
  await fillLists(life, 0, 3);
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  const tier = life.opened.store;
  await life.run(0, [
    ['rename', 0, 'list 1', 1, 'moved'],
    ['flush', 0],
  ]);
  await life.settle();
  life.evictAll();
  const content = await life.content(0);
  expect(content).toContain('element 199');
  expect(tier.database(1).size).toBe(1);
  expect(ownerless(life.engine)).toEqual([]);
  life = await life.afterKill(0);
  expect(await life.content(0)).toBe(content);
});

test('of two keys with one hash and one deadline the second expires though the first is gone and it is not in memory', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const db = tier.database(0);
  const [first, second] = keysOfOneHash(tier.hasher);
  for (const name of [first, second]) {
    await life.run(0, [
      ['set', 0, name, 'v'],
      ['expire', 0, name, 1000],
    ]);
  }
  await life.opened.checkpointer.checkpoint();
  life.evictAll();
  await life.run(0, [['remove', 0, first]]);
  expect(db.expiring).toBe(1);
  await life.expire(2000);
  expect(db.size).toBe(0);
  expect(db.expiring).toBe(0);
  expect(db.keyspace.expiry.first()).toBe(Infinity);
});

function keysOfOneHash(hasher: Hasher): [string, string] {
  const byHash = new Map<number, string>();
  for (let i = 0; ; i++) {
    const name = `key:${i}`;
    const hash = hasher.hash32(Slice.from(name));
    const other = byHash.get(hash);
    if (other !== undefined) return [other, name];
    byHash.set(hash, name);
  }
}

test('the hand tells that nothing can leave, however little it gets done in a slice', async () => {
  const life = await newLife(0);
  const tier = life.opened.store;
  const values = Array.from({ length: 1000 }, (_, i): Operation => ['set', 0, `key:${i}`, 'v'.repeat(2000)]);
  await life.run(0, values);
  const sweepAll = (): string[] => {
    const outcomes: string[] = [];
    while (outcomes.length < tier.arena.slabsInUse && outcomes.at(-1) !== 'nothing')
      outcomes.push(tier.evictor.sweep(0, 0));
    return outcomes;
  };
  // All is dirty. A slice of no time passes four slabs, and two rounds are gone.
  expect(sweepAll()).toContain('nothing');
  for (let i = 0; i < 5; i++) expect(tier.evictor.sweep(0, 0)).toBe('more');
  await life.opened.checkpointer.checkpoint();
  // What was passed before is clean now.
  expect(sweepAll()[0]).toBe('more');
  expect(tier.evictor.evictedKeys).toBeGreaterThan(0);
});

test('when all is in memory again nothing is tracked any more', async () => {
  let life = await newLife(0);
  const tier = life.opened.store;
  await fillLists(life, 0, 5);
  await life.run(0, [['set', 0, 'a', 'b']]);
  await life.opened.checkpointer.checkpoint();
  tier.memory.limit = 256 * 1024 * 1024;
  life.evictAll();
  expect(tier.residency()).toMatchObject({ complete: false, residentKeys: 0, keys: 6 });
  tier.backgroundSlice(10);
  expect(tier.residents.tracking).toBe(true);
  const content = await life.content(0);
  // All keys are there, and not all pages.
  life.opened.store.evictor.sweep(0, 0);
  await life.content(0);
  tier.backgroundSlice(10);
  expect(tier.residency()).toMatchObject({ complete: true, residentKeys: 6, keys: 6 });
  expect(tier.residents.tracking).toBe(false);
  tier.now = 0;
  expect(contentOf(tier)).toBe(content);

  life = await life.afterKill(256 * 1024 * 1024);
  const again = life.opened.store;
  expect(again.residency()).toMatchObject({ complete: false, residentKeys: 0, keys: 6, warming: true });
  await again.warmer.finish();
  again.backgroundSlice(10);
  expect(again.residency()).toMatchObject({ complete: true, residentKeys: 6, warming: false });
  expect(again.residents.tracking).toBe(false);
  expect(again.residency().fetchRounds).toBe(0);
  again.now = 0;
  expect(contentOf(again)).toBe(content);
});

test('new keys beside many that are not in memory cost no look-up in the engine', async () => {
  let life = await newLife(0);
  const fill = async (from: number, to: number): Promise<void> => {
    const tier = life.opened.store;
    for (let i = from; i < to; i++) await life.run(0, [['set', 0, `key:${i}`, 'v']]);
    await life.opened.checkpointer.checkpoint();
    while (tier.backgroundSlice(10));
    life.evictAll();
  };
  await fill(0, 3000);
  await fill(3000, 6000);
  expect(life.opened.store.residency()).toMatchObject({ residentKeys: 0, keys: 6000 });
  const { absentRows, filterHits, filterBytes } = life.opened.store.residency();
  expect(absentRows).toBeLessThan(0.03 * 3000);
  expect(filterHits).toBeGreaterThan(0.97 * 3000);
  expect(filterBytes).toBeGreaterThan(0);

  // After a start the filter is made from the engine's rows.
  life = await life.afterKill(0);
  const tier = life.opened.store;
  life.evictAll();
  tier.backgroundSlice(1);
  while (tier.residents.filterRows < 6000) await new Promise(setImmediate);
  await new Promise(setImmediate);
  const before = tier.residency().absentRows;
  await fill(6000, 8000);
  expect(tier.residency().absentRows - before).toBeLessThan(0.03 * 2000);
  for (let i = 0; i < 8000; i += 97) expect(await life.type(0, `key:${i}`)).toBe(Type.String);
});
