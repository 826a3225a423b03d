import { expect, it } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { ArenaSnapshot } from '../../src/store/arena-snapshot.ts';
import { Tier } from '../../src/store/tier.ts';
import { moveChunk } from './life.ts';
import { Random, seeds } from './random.ts';
import { contentOf, randomOperation, run } from './store-operations.ts';

const CHUNK = 1 << 20;

function newTier(): Tier {
  const tier = new Tier({ databases: 2, chunkBytes: CHUNK, hashKey: [1, 2] });
  tier.now = 1;
  return tier;
}

const key = (i: number): Slice => Slice.from(`key:${i}`);

function set(tier: Tier, from: number, to: number, bytes: number): void {
  const value = Slice.from('x'.repeat(bytes));
  for (let i = from; i < to; i++) tier.database(0).setString(key(i), value);
}

/** Until nothing is left to be won. */
function defragment(tier: Tier): void {
  while (tier.backgroundSlice(10));
  while (tier.defragment(10));
  while (tier.arena.spare.release(0));
}

/** What is used of what is held. */
function expectDense({ arena }: Tier): void {
  expect(arena.slabBytes).toBeLessThan(1.1 * arena.blockBytes + 1.5 * CHUNK);
  expect(arena.committedBytes).toBeLessThan(1.1 * arena.slabBytes + 1.5 * CHUNK);
}

it('nine of ten keys deleted at random leave memory that can be used, and goes back to the system', () => {
  const tier = newTier();
  const random = new Random(1);
  set(tier, 0, 50_000, 100);
  const filled = tier.arena.committedBytes;
  const left: number[] = [];
  for (let i = 0; i < 50_000; i++) {
    if (random.below(10) === 0) left.push(i);
    else tier.database(0).remove(key(i));
  }
  expect(tier.arena.slabBytes).toBeGreaterThan(0.9 * filled - CHUNK);
  defragment(tier);
  expectDense(tier);
  expect(tier.arena.committedBytes).toBeLessThan(0.4 * filled);
  expect(tier.defragmenter.moved).toBeGreaterThan(1000);
  expect(tier.memory.defragmenting).toBe(false);
  for (const i of left) if (!tier.database(0).getString(key(i), new Slice())) expect.fail(`key ${i}`);
  expect(tier.database(0).size).toBe(left.length);
});

it('many small collections make room for a few large ones', () => {
  const tier = newTier();
  const db = tier.database(0);
  const field = (i: number): Slice => Slice.from(`field:${i}`);
  for (let i = 0; i < 4000; i++)
    for (let j = 0; j < 10; j++) db.hash(key(i), true).set(field(j), Slice.from(`value of the field ${j}`));
  const filled = tier.arena.committedBytes;
  for (let i = 0; i < 4000; i++) if (i % 100 !== 0) db.remove(key(i));
  for (let i = 0; i < 2; i++)
    for (let j = 0; j < 10_000; j++)
      db.hash(Slice.from(`large:${i}`), true).set(field(j), Slice.from(`value of the field ${j}`));
  defragment(tier);
  expectDense(tier);
  expect(tier.arena.committedBytes).toBeLessThan(1.1 * filled);
  tier.now++;
  expect(db.hash(Slice.from('large:1'))!.size).toBe(10_000);
  expect(db.hash(key(500))!.size).toBe(10);
});

it('after FLUSHALL nothing is held', () => {
  const tier = newTier();
  set(tier, 0, 20_000, 100);
  set(tier, 0, 5000, 3000);
  for (let i = 0; i < 3000; i++) tier.database(1).set(Slice.from('set'), true).add(key(i));
  tier.flush(0);
  tier.flush(1);
  defragment(tier);
  expect(tier.arena.blockBytes).toBe(0);
  expect(tier.arena.committedBytes).toBe(0);
});

it('memory that is full is left as it is', () => {
  const tier = newTier();
  set(tier, 0, 50_000, 100);
  defragment(tier);
  expect(tier.defragmenter.moved).toBe(0);
});

it('nothing is moved under a snapshot', () => {
  const tier = newTier();
  set(tier, 0, 50_000, 100);
  for (let i = 0; i < 50_000; i++) if (i % 10 !== 0) tier.database(0).remove(key(i));
  tier.arena.snapshot = new ArenaSnapshot(tier.arena);
  expect(tier.defragment(10)).toBe(false);
  tier.arena.snapshot = null;
  expect(tier.defragment(10)).toBe(true);
});

it('segments of a key table are moved, empty and chained ones too', () => {
  const tier = newTier();
  const { table } = tier.database(0).keyspace;
  table.reserve(200_000);
  const all = table.segments;
  expect(moveChunk(tier)).toBeGreaterThan(0);
  set(tier, 0, 300, 10);
  for (let i = 0; i < 10; i++) moveChunk(tier);
  expect(table.segments).toBe(all);
  for (let i = 0; i < 300; i++) expect(tier.database(0).getString(key(i), new Slice())).toBe(true);
  let met = 0;
  expect(table.scan(0, 1000, () => met++)).toBe(0);
  expect(met).toBe(300);
});

it.each(seeds(3))('values are the same wherever they lie (SEED=%i)', (seed) => {
  const random = new Random(seed);
  const tier = newTier();
  const still = newTier();
  let moved = 0;
  for (let i = 0; i < 600; i++) {
    const operation = randomOperation(random, 1000 + i, random.pick([3, 10, 120]));
    for (const each of [tier, still]) {
      each.now = 1000 + i;
      run(each, operation);
    }
    if (random.below(10) === 0) moved += moveChunk(tier);
    if (random.below(20) === 0) while (tier.backgroundSlice(1));
  }
  tier.now = still.now = 10_000;
  expect(contentOf(tier)).toBe(contentOf(still));
  expect(moved).toBeGreaterThan(100);
});
