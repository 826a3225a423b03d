import { expect, it } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { OutOfTierError, Type } from '../../src/store/api.ts';
import { Tier } from '../../src/store/tier.ts';
import { ModelStore } from '../model/store.ts';
import { moveChunk } from './life.ts';
import { Random, seeds } from './random.ts';
import { contentOf, randomOperation, run, type Operation } from './store-operations.ts';
import { unitOfWork as unit } from '../../src/store/unit-of-work.ts';

const DATABASES = 2;

function newTier(limit?: number): Tier {
  const tier = new Tier({ databases: DATABASES, chunkBytes: 1 << 20, limit });
  tier.now = 1;
  return tier;
}

it.each(seeds(4))(
  'units that fault at random leave the same as a store that never does (seed %i)',
  async (seed) => {
    const random = new Random(seed);
    const tier = newTier();
    const model = new ModelStore(DATABASES);
    tier.faultAtRandom(seed, 0.3);
    let now = 1_700_000_000_000;
    let rollbacks = 0;
    for (let round = 0; round < 150; round++) {
      now += random.below(100);
      const size = random.pick([3, 10, 120]);
      const operations: Operation[] = Array.from({ length: 1 + random.below(6) }, () =>
        randomOperation(random, now, size),
      );
      const work = (): void => {
        for (const operation of operations) {
          tier.beginCommand();
          run(tier, operation);
        }
      };
      tier.now = model.now = now;
      rollbacks += await unit(tier, work);
      for (const operation of operations) run(model, operation);
      if (random.below(3) === 0) tier.backgroundSlice(0);
      if (random.below(5) === 0) moveChunk(tier);
    }
    expect(rollbacks).toBeGreaterThan(20);
    tier.faultAtRandom(0, 0);
    tier.now = model.now = now;
    expect(contentOf(tier)).toBe(contentOf(model));
  },
);

it.each(seeds(4))('a unit that is rolled back has changed nothing (seed %i)', (seed) => {
  const random = new Random(seed);
  const tier = newTier();
  const now = 1_700_000_000_000;
  tier.now = now;
  // Every unit keeps a journal, and no row ever faults.
  tier.faultAtRandom(seed, 1e-12);
  for (let round = 0; round < 120; round++) {
    const size = random.pick([3, 10, 120]);
    for (const undone of [true, false]) {
      const before = undone ? contentOf(tier) : '';
      while (tier.backgroundSlice(1));
      const { blockBytes, dirtyBytes } = tier.arena;
      tier.begin();
      for (let i = random.below(8); i >= 0; i--) {
        tier.beginCommand();
        run(tier, randomOperation(random, now, size));
      }
      if (!undone) {
        tier.commit();
        continue;
      }
      tier.rollback();
      expect(tier.arena.blockBytes).toBe(blockBytes);
      expect(tier.arena.dirtyBytes).toBeGreaterThanOrEqual(dirtyBytes);
      tier.beginCommand();
      expect(contentOf(tier)).toBe(before);
    }
  }
});

it('keys that come and go in a unit that is rolled back leave the key table as it was', () => {
  const tier = newTier();
  tier.faultAtRandom(1, 1e-12);
  const db = tier.database(0);
  const set = (from: number, to: number): void => {
    for (let i = from; i < to; i++) db.setString(Slice.from(`key:${i}`), Slice.from('v'));
  };
  const remove = (from: number, to: number): void => {
    for (let i = from; i < to; i++) db.remove(Slice.from(`key:${i}`));
  };
  set(0, 2000);
  const { segments } = db.keyspace.table;
  for (const work of [() => set(2000, 9000), () => remove(0, 2000), () => remove(100, 1990)]) {
    const { blockBytes } = tier.arena;
    tier.begin();
    work();
    tier.rollback();
    expect(db.size).toBe(2000);
    expect(db.keyspace.table.segments).toBe(segments);
    expect(tier.arena.blockBytes).toBe(blockBytes);
    for (let i = 0; i < 9000; i++) {
      const expected = i < 2000 ? Type.String : Type.None;
      if (db.type(Slice.from(`key:${i}`)) !== expected) expect.fail(`key:${i}`);
    }
  }
});

it('a unit that runs out of room half-way leaves nothing', () => {
  const tier = newTier(4 * 1024 * 1024);
  const db = tier.database(0);
  db.setString(Slice.from('a'), Slice.from('old'));
  const before = contentOf(tier);
  tier.begin();
  expect(() => {
    for (let i = 0; i < 10_000; i++)
      db.list(Slice.from('a list'), true).pushRight(Slice.from('x'.repeat(1000)));
  }).toThrow(OutOfTierError);
  tier.rollback();
  expect(contentOf(tier)).toBe(before);
});
