/** What is staged and published, as an import does it, against the model: whatever leaves memory, and across crashes. */
import { expect, test } from 'vitest';
import { ByteSink } from '../../src/bytes/sink.ts';
import { Slice } from '../../src/bytes/slice.ts';
import { DamagedValueError, Type, type Database, type Store } from '../../src/store/api.ts';
import { TierDatabase } from '../../src/store/database.ts';
import type { ImportMode } from '../../src/store/merge.ts';
import { isMetaKey } from '../../src/store/row-format.ts';
import { Tier } from '../../src/store/tier.ts';
import { unitOfWork } from '../../src/store/unit-of-work.ts';
import { ModelStore } from '../model/store.ts';
import { DATABASES, Life } from './life.ts';
import { Random, seeds } from './random.ts';
import { SimulatedDisk } from './simulated-disk.ts';
import { ownerless, SimulatedEngine } from './simulated-engine.ts';
import { contentOf, randomOperation, run, type Operation } from './store-operations.ts';

const START = 1_700_000_000_000;

/** The staged keyspaces as databases that operations can be run on. */
function stagedStore(tier: Tier, name: string): Store {
  const staging = tier.stage(name);
  const databases = Array.from(
    { length: DATABASES },
    (_, index) => new TierDatabase(tier, index, tier.staged(staging, index)),
  );
  return { database: (index: number) => databases[index], databaseCount: DATABASES } as unknown as Store;
}

function contentOfModel(model: Store, now: number): string {
  model.now = now;
  return contentOf(model);
}

function keysOf(store: Store, index: number): Slice[] {
  const keys: Slice[] = [];
  store.database(index).scan(0, 1_000_000, (key) => void keys.push(key.clone()));
  return keys;
}

/** What publishing is to bring about. */
function publishModel(model: ModelStore, staged: ModelStore, mode: ImportMode, now: number): number {
  let both = 0;
  model.now = now;
  for (let index = 0; index < DATABASES; index++) {
    for (const key of keysOf(staged, index)) {
      const there = model.database(index).type(key) !== Type.None;
      if (there) both++;
      if (mode === 'skip' && there) continue;
      staged.database(index).rename(key, model.database(index), key);
    }
  }
  return both;
}

test('who reads all rows without serving them, as a check does, finds the keys merged', async () => {
  const disk = new SimulatedDisk();
  const life = await Life.begin(disk, new SimulatedEngine(disk), 0);
  const tier = life.opened.store;
  const fill = (db: Database, from: number, to: number): Promise<number> =>
    unitOfWork(tier, () => {
      for (let i = from; i < to; i++) db.setString(Slice.from(`key ${i}`), Slice.from(`value of ${from}`));
    });
  await fill(tier.database(0), 0, 10);
  await fill(stagedStore(tier, 'import').database(0), 5, 25);
  await life.opened.checkpointer.checkpoint();
  // Before anything has moved, which begins in a later turn.
  life.publish('import', 'replace', START);
  const read = new Tier({ databases: DATABASES });
  const meta = tier.beginCut(new ByteSink(1024));
  read.restoreMeta(meta);
  const nameless = [...life.engine.rows.keys()].find((row) => row.endsWith('key 3'));
  for (const [row, value] of life.engine.rows) {
    const key = Buffer.from(row, 'latin1');
    if (isMetaKey(key, 0, key.length)) continue;
    // One of the smaller keyspace, whose hash is damaged.
    if (row === nameless) key[5] ^= 1;
    if (row === nameless) expect(read.damagedRow(key, 0, key.length)).toBe(false);
    else read.installRow(key, 0, key.length, value, 0, value.length);
  }
  read.recovered();
  const found: string[] = [];
  const db = read.database(0);
  db.scan(0, 1000, (key) => void found.push(key.latin1()));
  const expected = Array.from({ length: 25 }, (_, i) => `key ${i}`).filter((name) => name !== 'key 3');
  expect(found.sort()).toEqual(expected.sort());
  expect(db.size).toBe(25);
  expect(db.damaged).toBe(1);
  expect(() => db.type(Slice.from('key 3'))).toThrow(DamagedValueError);
  await life.opened.checkpointer.close(0);
});

const isPlain = ([name]: Operation): boolean => !['flush', 'swap', 'touch'].includes(name);

test.each(seeds(3))(
  'merged by one step for all who look (seed %i)',
  async (seed) => {
    const random = new Random(seed);
    const disk = new SimulatedDisk();
    const model = new ModelStore(DATABASES);
    const limit = random.pick([0, 0, 16]) * 1024 * 1024;
    let now = START;
    let life = await Life.begin(disk, new SimulatedEngine(disk), limit);
    const size = random.pick([10, 60]);
    const change = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        now += random.below(10);
        const operation = randomOperation(random, now, size);
        if (operation[0] === 'touch') continue;
        await life.run(now, [operation]);
        model.now = now;
        run(model, operation);
        if (random.below(6) === 0) void life.opened.checkpointer.checkpoint().catch(() => undefined);
        if (random.below(4) === 0) life.opened.store.evictor.sweep(random.below(2), 0);
        if (random.below(3) === 0) await new Promise(setImmediate);
      }
    };
    for (let round = 0; round < 3; round++) {
      await change(random.below(100));
      const tier = life.opened.store;
      const staged = new ModelStore(DATABASES);
      staged.now = 0;
      const name = `import ${round}`;
      const store = stagedStore(tier, name);
      for (let i = random.below(120); i > 0; i--) {
        const operation = randomOperation(random, now + 10_000, size);
        if (!isPlain(operation)) continue;
        await unitOfWork(tier, () => {
          tier.now = 0;
          run(store, operation);
        });
        run(staged, operation);
        if (random.below(20) === 0) await life.opened.checkpointer.checkpoint();
        if (random.below(10) === 0) life.evictAll();
        if (random.below(20) === 0) await change(1);
      }
      await life.opened.checkpointer.checkpoint();
      if (random.below(5) === 0) {
        // Killed before it is published: nothing is left of it.
        life.flush();
        life = await life.afterKill(limit);
        expect(await life.content(now)).toBe(contentOfModel(model, now));
        await life.settle();
        expect(ownerless(life.engine)).toEqual([]);
        continue;
      }
      const mode = random.pick(['replace', 'skip'] as const);
      const merges = life.publish(name, mode, now);
      const both = publishModel(model, staged, mode, now);
      if (random.below(2) === 0) await change(random.below(20));
      const fate = random.below(4);
      if (fate < 2) {
        life.flush();
        if (random.below(2) === 0) await life.opened.checkpointer.checkpoint();
        life = await life.afterKill(limit);
      } else if (fate === 2) {
        for (const merge of merges) await merge.moved;
        // Those that operations have met, or that a flush has dropped, are counted by nobody else.
        expect(merges.reduce((sum, merge) => sum + merge.both, 0)).toBeLessThanOrEqual(both);
      }
      for (let i = 0; i < 20; i++) {
        const db = random.below(DATABASES);
        const key = random.pick(['s', 'l', 'u', 'h', 'z', 'x']) + random.below(12);
        model.now = now;
        expect(await life.type(db, key, now)).toBe(model.database(db).type(Slice.from(key)));
      }
      await change(random.below(10));
      expect(await life.content(now)).toBe(contentOfModel(model, now));
      await life.opened.store.merger.idle();
      await life.settle();
      expect(ownerless(life.engine)).toEqual([]);
    }
  },
  120_000,
);
