import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { EngineError } from '../../src/engines/engine.ts';
import type { Store } from '../../src/store/api.ts';
import { DataDirectory } from '../../src/store/data-directory.ts';
import { PersistentStore } from '../../src/store/persistent-store.ts';
import { Tier } from '../../src/store/tier.ts';
import { ModelStore } from '../model/store.ts';
import { Random, seeds } from './random.ts';
import { DiskFault, SimulatedDisk } from './simulated-disk.ts';
import { SimulatedEngine } from './simulated-engine.ts';
import { contentOf, randomOperation, run, type Operation } from './store-operations.ts';
import { unit } from './unit-of-work.ts';

const PATH = '/simulated/data';
const DATABASES = 2;

/** A store whose rows come and go, and that logs the effects of each unit. */
class Life {
  readonly opened: PersistentStore<Tier>;
  private effects: Operation[] = [];

  constructor(opened: PersistentStore<Tier>) {
    this.opened = opened;
    opened.flush = () => {
      this.flush();
      return true;
    };
  }

  static async begin(disk: SimulatedDisk, engine: SimulatedEngine, limit: number): Promise<Life> {
    const tier = new Tier({ databases: DATABASES, chunkBytes: 1 << 20, limit });
    tier.now = 0;
    const directory = await DataDirectory.open(PATH, disk, 'leveldb', 'none');
    const opened = await PersistentStore.open(
      { directory, disk, logDisk: disk, engine, store: tier },
      {
        appendfsync: 'no',
        segmentBytes: 50_000,
        evicts: true,
        checkpoint: { batchBytes: 20_000 },
        replay: async (payload) => {
          for (const operation of JSON.parse(payload.utf8()) as Operation[]) {
            tier.now = 0; // takes handles back, and nothing expires by the clock
            await unit(tier, () => run(tier, operation));
          }
        },
      },
    );
    return new Life(opened);
  }

  /** Several operations as one unit. */
  async run(now: number, operations: readonly Operation[]): Promise<number> {
    const tier = this.opened.store;
    let expired: Operation[] = [];
    const rounds = await unit(tier, () => {
      expired = [];
      tier.onExpired = (db, key) => expired.push(['remove', db.index, key.latin1()]);
      for (const operation of operations) {
        tier.now = now;
        run(tier, operation);
        expired.push(operation);
      }
    });
    this.effects.push(...expired);
    return rounds;
  }

  async expire(now: number): Promise<void> {
    const tier = this.opened.store;
    let expired: Operation[] = [];
    await unit(tier, () => {
      expired = [];
      tier.onExpired = (db, key) => expired.push(['remove', db.index, key.latin1()]);
      tier.now = now;
      tier.expireDue(1000);
    });
    this.effects.push(...expired);
  }

  flush(): void {
    if (this.effects.length > 0) this.opened.log.append(Buffer.from(JSON.stringify(this.effects)));
    this.effects = [];
  }

  async content(now: number): Promise<string> {
    let content = '';
    const tier = this.opened.store;
    let expired: Operation[] = [];
    await unit(tier, () => {
      expired = [];
      tier.onExpired = (db, key) => expired.push(['remove', db.index, key.latin1()]);
      tier.now = now;
      content = contentOf(tier);
    });
    this.effects.push(...expired);
    return content;
  }

  /** Everything clean leaves, whether there is room or not. */
  evictAll(): void {
    this.opened.store.evictor.sweep(1000, 0);
    this.opened.store.evictor.sweep(1000, 0);
  }
}

function contentOfModel(model: Store, now: number): string {
  model.now = now;
  return contentOf(model);
}

test.each(seeds(3))(
  'equal to the model whatever is evicted, fetched and lost in a crash (seed %i)',
  async (seed) => {
    const random = new Random(seed);
    let disk = new SimulatedDisk();
    let engine = new SimulatedEngine(disk);
    const model = new ModelStore(DATABASES);
    const limit = random.pick([0, 4, 16]) * 1024 * 1024;
    let now = 1_700_000_000_000;
    let life = await Life.begin(disk, engine, limit);
    let fetches = 0;
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
      const nextDisk = disk.afterKill();
      const nextEngine = engine.afterKill(nextDisk);
      disk.fault = () => new DiskFault('EIO');
      engine.fault = () => new EngineError('ENGINE_DEAD', 'gone');
      await life.opened.checkpointer.close(0);
      disk = nextDisk;
      engine = nextEngine;
      life = await Life.begin(disk, engine, limit);
      expect(await life.content(now)).toBe(contentOfModel(model, now));
    }
    expect(fetches).toBeGreaterThan(10);
  },
  60_000,
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
