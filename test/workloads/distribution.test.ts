import { describe, expect, it } from 'vitest';
import {
  createChooser,
  KeyPopulation,
  parseDistribution,
  ZipfianRanks,
} from '../../src/workloads/distribution.ts';
import { Random } from '../../src/workloads/random.ts';
import { SEED } from '../seed.ts';

console.log(`SEED=${SEED}`);
const DRAWS = 200_000;

/**
 * Pearson's chi-square as a standard normal (Wilson and Hilferty, 1931). With 6 as the limit a right
 * generator fails about once in a thousand million runs.
 */
function chiSquareZ(observed: readonly number[], expected: readonly number[]): number {
  const statistic = observed.reduce((sum, count, i) => sum + (count - expected[i]) ** 2 / expected[i], 0);
  const freedom = observed.length - 1;
  return ((statistic / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / Math.sqrt(2 / (9 * freedom));
}
const LIMIT_Z = 6;

function draw(spec: string, size: number, seed = SEED): Float64Array {
  const chooser = createChooser(parseDistribution(spec), new KeyPopulation(size), new Random(seed));
  return Float64Array.from({ length: DRAWS }, () => chooser.next());
}

function histogram(keys: Float64Array, size: number): number[] {
  const counts = new Array<number>(size).fill(0);
  for (const key of keys) counts[key]++;
  return counts;
}

const zipf = (size: number, exponent: number): number[] => {
  const weights = Array.from({ length: size }, (_, rank) => (rank + 1) ** -exponent);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
};

describe('key distributions fit what they promise', () => {
  it('uniform', () => {
    const size = 1000;
    expect(
      chiSquareZ(histogram(draw('uniform', size), size), new Array(size).fill(DRAWS / size)),
    ).toBeLessThan(LIMIT_Z);
  });

  it.each([0.5, 0.99, 1, 1.5])('zipfian ranks with exponent %d', (exponent) => {
    const size = 200;
    const ranks = new ZipfianRanks(new Random(SEED), size, exponent);
    const counts = new Array<number>(size).fill(0);
    for (let i = 0; i < DRAWS; i++) counts[ranks.next()]++;
    expect(
      chiSquareZ(
        counts,
        zipf(size, exponent).map((share) => share * DRAWS),
      ),
    ).toBeLessThan(LIMIT_Z);
  });

  it('zipfian keys are the ranks, each on a key of its own', () => {
    const size = 500;
    const counts = histogram(draw('zipfian:0.99', size), size).sort((a, b) => b - a);
    const expected = zipf(size, 0.99).map((share) => share * DRAWS);
    // Sorting favours chance highs within one rank's neighbours; a factor of two leaves room for it.
    expect(Math.abs(counts[0] - expected[0])).toBeLessThan(6 * Math.sqrt(expected[0]));
    expect(Math.abs(counts[9] - expected[9])).toBeLessThan(8 * Math.sqrt(expected[9]));
    expect(counts.filter((count) => count > 0).length).toBeGreaterThan(size * 0.95);
  });

  it('a wrong exponent would be noticed', () => {
    const size = 200;
    const ranks = new ZipfianRanks(new Random(SEED), size, 0.9);
    const counts = new Array<number>(size).fill(0);
    for (let i = 0; i < DRAWS; i++) counts[ranks.next()]++;
    expect(
      chiSquareZ(
        counts,
        zipf(size, 0.99).map((share) => share * DRAWS),
      ),
    ).toBeGreaterThan(LIMIT_Z);
  });

  it('hotspot', () => {
    const size = 1000;
    const counts = histogram(draw('hotspot:0.1:0.7', size), size);
    const expected = counts.map((_, key) => (key < 100 ? (DRAWS * 0.7) / 100 : (DRAWS * 0.3) / 900));
    expect(chiSquareZ(counts, expected)).toBeLessThan(LIMIT_Z);
  });

  it('latest follows the inserts', () => {
    const size = 100;
    const population = new KeyPopulation(size);
    const random = new Random(SEED);
    const latest = createChooser(parseDistribution('latest'), population, random);
    const insert = createChooser(parseDistribution('insert'), population, random);
    for (let i = 0; i < 100; i++) expect(insert.next()).toBe(size + i);
    const counts = new Array<number>(200).fill(0);
    for (let i = 0; i < DRAWS; i++) counts[199 - latest.next()]++;
    expect(
      chiSquareZ(
        counts,
        zipf(200, 0.99).map((share) => share * DRAWS),
      ),
    ).toBeLessThan(LIMIT_Z);
  });

  it('sequential visits every key once a round, shares together leave none out', () => {
    const size = 97;
    const seen = new Set<number>();
    for (let index = 0; index < 3; index++) {
      const population = new KeyPopulation(size, { index, of: 3 });
      const chooser = createChooser(parseDistribution('sequential'), population, new Random(1));
      const own = Math.floor(size / 3) + (index < size % 3 ? 1 : 0);
      for (let i = 0; i < own; i++) {
        const key = chooser.next();
        expect(seen.has(key)).toBe(false);
        seen.add(key);
      }
      expect(chooser.next()).toBe(index);
    }
    expect(seen.size).toBe(size);
  });

  it('the same seed gives the same keys', () => {
    expect(draw('zipfian', 1000, 7)).toEqual(draw('zipfian', 1000, 7));
    expect(draw('zipfian', 1000, 7)).not.toEqual(draw('zipfian', 1000, 8));
  });
});

it.each(['zipf', 'zipfian:0', 'zipfian:x', 'hotspot:2', ''])('refuses %j', (spec) => {
  expect(() => parseDistribution(spec)).toThrow(RangeError);
});
