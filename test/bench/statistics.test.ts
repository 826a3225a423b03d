import { describe, expect, it } from 'vitest';
import {
  compare,
  estimate,
  mannWhitney,
  median,
  medianDistribution,
  uCounts,
} from '../../src/bench/statistics.ts';
import { Random } from '../../src/workloads/random.ts';

/** P(U <= u) as printed by H. B. Mann and D. R. Whitney, Ann. Math. Statist. 18 (1947), table I. */
const PUBLISHED: [n: number, m: number, probabilities: number[]][] = [
  [3, 3, [0.05, 0.1, 0.2, 0.35, 0.5]],
  [4, 4, [0.014, 0.029, 0.057, 0.1, 0.171, 0.243, 0.343, 0.443]],
  [5, 5, [0.004, 0.008, 0.016, 0.028, 0.048, 0.075, 0.111, 0.155, 0.21, 0.274, 0.345, 0.421, 0.5]],
  [3, 8, [0.006, 0.012, 0.024, 0.042]],
];

describe('Mann-Whitney', () => {
  it.each(PUBLISHED)('distribution for %d against %d as published', (n, m, probabilities) => {
    const counts = uCounts(n, m);
    const total = counts.reduce((sum, count) => sum + count, 0);
    let cumulated = 0;
    probabilities.forEach((probability, u) => {
      cumulated += counts[u];
      expect(cumulated / total).toBeCloseTo(probability, 2.9);
    });
  });

  it('critical values of the two-sided test at 5%: 8 against 8, U = 13; 10 against 10, U = 23', () => {
    for (const [n, critical] of [
      [8, 13],
      [10, 23],
    ]) {
      const counts = uCounts(n, n);
      const total = counts.reduce((sum, count) => sum + count, 0);
      const below = (u: number): number =>
        (2 * counts.slice(0, u + 1).reduce((sum, count) => sum + count, 0)) / total;
      expect(below(critical)).toBeLessThanOrEqual(0.05);
      expect(below(critical + 1)).toBeGreaterThan(0.05);
    }
  });

  it('complete separation of 5 and 5 is 2 in 252', () => {
    const { u, p, method } = mannWhitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]);
    expect([u, method]).toEqual([0, 'exact']);
    expect(p).toBeCloseTo(2 / 252, 12);
  });

  it('with ties the arrangements are counted', () => {
    const { p, method } = mannWhitney([1, 1, 2], [2, 3, 3]);
    // Midranks 1.5 1.5 3.5 | 3.5 5.5 5.5: of 20 arrangements 4 lie as far out (2 on each side).
    expect(method).toBe('exact');
    expect(p).toBeCloseTo(4 / 20, 12);
    expect(mannWhitney([5, 5, 5], [5, 5, 5]).p).toBe(1);
  });

  it('the normal approximation of large samples agrees with the exact one', () => {
    const random = new Random(3);
    const a = Array.from({ length: 25 }, () => random.fraction());
    const b = Array.from({ length: 25 }, () => random.fraction() + 0.2);
    const exact = mannWhitney(a, b);
    const repeated = mannWhitney([...a, ...a, ...a], [...b, ...b, ...b]);
    expect(exact.method).toBe('exact');
    expect(repeated.method).toBe('normal');
    expect(repeated.p).toBeLessThan(exact.p);
    const approximate = mannWhitney([...a, 10], [...b, 11]);
    expect(approximate.method).toBe('normal');
    expect(Math.abs(approximate.p - exact.p)).toBeLessThan(0.02);
  });

  it('finds differences in equal samples as rarely as it promises', () => {
    const random = new Random(9);
    let found = 0;
    for (let trial = 0; trial < 1000; trial++) {
      const draw = (): number[] => Array.from({ length: 6 }, () => random.fraction());
      if (mannWhitney(draw(), draw()).p < 0.05) found++;
    }
    expect(found).toBeLessThan(75);
    expect(found).toBeGreaterThan(15);
  });
});

describe('bootstrap', () => {
  it.each([1, 2, 3, 4, 5, 8])('the distribution of the median of %d values is that of all resamples', (n) => {
    const values = Array.from({ length: n }, (_, i) => (i + 1) ** 2);
    const counts = new Map<number, number>();
    const rounds = n <= 5 ? n ** n : 40_000;
    const random = new Random(17);
    for (let round = 0; round < rounds; round++) {
      const drawn = values.map((_, i) => values[n <= 5 ? Math.floor(round / n ** i) % n : random.below(n)]);
      counts.set(median(drawn), (counts.get(median(drawn)) ?? 0) + 1);
    }
    const digits = n <= 5 ? 9 : 1.9;
    const masses = new Map<number, number>();
    for (const { value, probability } of medianDistribution(values)) {
      masses.set(value, (masses.get(value) ?? 0) + probability);
    }
    for (const [value, count] of counts) expect(masses.get(value)).toBeCloseTo(count / rounds, digits);
    expect([...masses.values()].reduce((sum, mass) => sum + mass, 0)).toBeCloseTo(1, 9);
  });
});

describe('estimates', () => {
  it('median', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it('the interval covers the true median about as often as it says', () => {
    const random = new Random(21);
    let covered = 0;
    for (let trial = 0; trial < 200; trial++) {
      const { low, high } = estimate(Array.from({ length: 15 }, () => random.fraction()));
      if (low <= 0.5 && high >= 0.5) covered++;
    }
    expect(covered).toBeGreaterThan(176);
  });

  it('does not depend on the order; one run has no width', () => {
    expect(estimate([1, 5, 9, 2, 7])).toEqual(estimate([9, 2, 7, 5, 1]));
    expect(estimate([5])).toMatchObject({ n: 1, median: 5, low: 5, high: 5, spread: 0 });
  });
});

describe('verdicts', () => {
  it('higher, lower, no difference, too few runs', () => {
    const base = [100, 101, 99, 100.5, 99.5];
    expect(compare([130, 131, 129, 130.5, 128], base)).toMatchObject({ verdict: 'higher' });
    expect(compare([70, 71, 69, 70.5, 68], base)).toMatchObject({ verdict: 'lower' });
    expect(compare([100.2, 99.9, 101.2, 98, 100.1], base)).toMatchObject({ verdict: 'no difference' });
    expect(compare([130, 131, 129], base)).toMatchObject({ verdict: 'too few runs' });
  });
});
