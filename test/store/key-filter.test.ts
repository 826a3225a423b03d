import { expect, test } from 'vitest';
import { KeyFilter } from '../../src/store/key-filter.ts';
import { Random } from './random.ts';

test.each([0, 20_001 / 4])(
  'has every hash that was added, and few others, at any size (at first for %f)',
  (keys) => {
    const random = new Random(1);
    const filter = KeyFilter.for(keys);
    const added = new Set<number>();
    for (const size of [10, 1000, 30_000, 200_000]) {
      while (added.size < size) {
        const hash = random.word();
        added.add(hash);
        expect(filter.add(hash)).toBe(true);
      }
      for (const hash of added) if (!filter.has(hash)) expect.fail(`${hash}`);
      let wrong = 0;
      for (let i = 0; i < 100_000; i++) {
        const hash = random.word();
        if (!added.has(hash) && filter.has(hash)) wrong++;
      }
      expect(wrong / 100_000).toBeLessThan(0.08);
      expect(filter.bytes).toBeLessThan(Math.max(20_000, 3 * size));
    }
    expect(filter.count).toBeGreaterThan(0.9 * added.size);
  },
);

test('says so when it would become too large', () => {
  const filter = KeyFilter.for(0, 10_000);
  let hash = 1;
  while (hash < 100_000 && filter.add(hash)) hash++;
  expect(hash).toBeLessThan(10_000);
  expect(filter.bytes).toBeLessThanOrEqual(10_000);
});
