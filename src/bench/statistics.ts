/**
 * Statistics over runs. The run is the unit: requests within a run are correlated, so no interval is
 * ever computed from their number. Methods and their sources: docs/statistics.md.
 */
import type { Estimate } from '../report/results.ts';
import { Random } from '../workloads/random.ts';

/** With fewer runs on a side no verdict is given: 5 against 5 is the least at which exact p reaches 0.01. */
export const RUNS_FOR_VERDICT = 5;
/** Two-sided. Stricter than the usual 0.05 because a matrix makes dozens of comparisons at once. */
export const SIGNIFICANCE = 0.01;
const RESAMPLES = 4000;
const CONFIDENCE = 0.95;
/** Up to this many arrangements Mann-Whitney's distribution is enumerated when there are ties. */
const MAX_ARRANGEMENTS = 200_000;

export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function resample(values: readonly number[], random: Random): number[] {
  return values.map(() => values[random.below(values.length)]);
}

function interval(statistics: number[]): { low: number; high: number } {
  const sorted = Float64Array.from(statistics).sort();
  const tail = (1 - CONFIDENCE) / 2;
  const at = (fraction: number): number => sorted[Math.round(fraction * (sorted.length - 1))];
  return { low: at(tail), high: at(1 - tail) };
}

/** Percentile bootstrap of the median (B. Efron). Deterministic for a seed. Needs at least one value. */
export function estimate(values: readonly number[], seed = 1): Estimate {
  const random = new Random(seed, 0xb007);
  const middle = median(values);
  const min = Math.min(...values);
  const max = Math.max(...values);
  const medians = Array.from({ length: values.length > 1 ? RESAMPLES : 1 }, () =>
    median(resample(values, random)),
  );
  return {
    n: values.length,
    median: middle,
    ...interval(medians),
    min,
    max,
    spread: middle > 0 ? (max - min) / middle : 0,
  };
}

/** Ratio of medians a / b with its bootstrap interval. */
export function ratio(
  a: readonly number[],
  b: readonly number[],
  seed = 1,
): { ratio: number; low: number; high: number } {
  const random = new Random(seed, 0xb008);
  const ratios = Array.from(
    { length: RESAMPLES },
    () => median(resample(a, random)) / median(resample(b, random)),
  );
  return { ratio: median(a) / median(b), ...interval(ratios) };
}

/** Ranks from 1, ties sharing the middle one. */
function midranks(values: readonly number[]): number[] {
  const order = values.map((_, index) => index).sort((i, j) => values[i] - values[j]);
  const ranks = new Array<number>(values.length);
  for (let i = 0; i < order.length;) {
    let j = i;
    while (j + 1 < order.length && values[order[j + 1]] === values[order[i]]) j++;
    for (let k = i; k <= j; k++) ranks[order[k]] = (i + j) / 2 + 1;
    i = j + 1;
  }
  return ranks;
}

function choose(n: number, k: number): number {
  let result = 1;
  for (let i = 1; i <= k; i++) result = (result * (n - k + i)) / i;
  return Math.round(result);
}

/**
 * How many of the C(n + m, n) arrangements have each U, without ties: the coefficients of the Gaussian
 * binomial (H. B. Mann and D. R. Whitney, 1947).
 */
export function uCounts(n: number, m: number): number[] {
  let counts = [1];
  for (let i = 1; i <= n; i++) {
    // Multiply by (1 - q^(m + i)), then divide by (1 - q^i).
    const top = new Array<number>(counts.length + m + i).fill(0);
    counts.forEach((value, u) => {
      top[u] += value;
      top[u + m + i] -= value;
    });
    for (let u = i; u < top.length; u++) top[u] += top[u - i];
    counts = top.slice(0, i * m + 1);
  }
  return counts;
}

/** Abramowitz and Stegun 7.1.26; error below 1.5e-7. */
function normalTail(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const poly =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return (poly * Math.exp(-x * x)) / 2;
}

export interface MannWhitney {
  /** Pairs (a, b) with a above b; ties count half. */
  u: number;
  /** Two-sided. */
  p: number;
  method: 'exact' | 'normal';
}

/** Do the two samples come from one distribution? Exact where that can be computed, else normal with tie and continuity correction. */
export function mannWhitney(a: readonly number[], b: readonly number[]): MannWhitney {
  const n = a.length;
  const m = b.length;
  const ranks = midranks([...a, ...b]);
  const rankSum = ranks.slice(0, n).reduce((sum, rank) => sum + rank, 0);
  const u = rankSum - (n * (n + 1)) / 2;
  const mean = (n * m) / 2;
  const distance = Math.abs(u - mean);
  const ties = new Set(ranks).size < ranks.length;

  if (!ties && n * m <= 10_000 && n + m <= 50) {
    const counts = uCounts(n, m);
    const total = counts.reduce((sum, value) => sum + value, 0);
    const beyond = counts.reduce(
      (sum, value, i) => (Math.abs(i - mean) >= distance - 1e-9 ? sum + value : sum),
      0,
    );
    return { u, p: Math.min(1, beyond / total), method: 'exact' };
  }
  if (choose(n + m, n) <= MAX_ARRANGEMENTS) {
    let beyond = 0;
    let total = 0;
    const visit = (from: number, left: number, sum: number): void => {
      if (left === 0) {
        total++;
        if (Math.abs(sum - (n * (n + 1)) / 2 - mean) >= distance - 1e-9) beyond++;
        return;
      }
      for (let i = from; i <= ranks.length - left; i++) visit(i + 1, left - 1, sum + ranks[i]);
    };
    visit(0, n, 0);
    return { u, p: beyond / total, method: 'exact' };
  }
  const sizes = new Map<number, number>();
  for (const rank of ranks) sizes.set(rank, (sizes.get(rank) ?? 0) + 1);
  const all = n + m;
  const tieTerm = [...sizes.values()].reduce((sum, t) => sum + t ** 3 - t, 0) / (all * (all - 1));
  const deviation = Math.sqrt(((n * m) / 12) * (all + 1 - tieTerm));
  if (deviation === 0) return { u, p: 1, method: 'normal' };
  return { u, p: Math.min(1, 2 * normalTail(Math.max(0, distance - 0.5) / deviation)), method: 'normal' };
}

export interface Difference {
  ratio: number;
  low: number;
  high: number;
  p: number | null;
  verdict: 'higher' | 'lower' | 'no difference' | 'too few runs';
}

/** Is `a` higher or lower than `b`? Both the test and the interval must say so. */
export function compare(a: readonly number[], b: readonly number[], seed = 1): Difference {
  const between = ratio(a, b, seed);
  const p = a.length >= 2 && b.length >= 2 ? mannWhitney(a, b).p : null;
  if (a.length < RUNS_FOR_VERDICT || b.length < RUNS_FOR_VERDICT)
    return { ...between, p, verdict: 'too few runs' };
  const clear = p !== null && p < SIGNIFICANCE && (between.low > 1 || between.high < 1);
  return { ...between, p, verdict: !clear ? 'no difference' : between.ratio > 1 ? 'higher' : 'lower' };
}
