/**
 * Statistics over runs. The run is the unit: requests within a run are correlated, so no interval is
 * ever computed from their number. Methods and their sources: docs/statistics.md.
 */
import type { Estimate } from '../results/document.ts';

/** With fewer runs on a side no verdict is given: 5 against 5 is the least at which exact p reaches 0.01. */
export const RUNS_FOR_VERDICT = 5;
/** Two-sided. Stricter than the usual 0.05 because a matrix makes dozens of comparisons at once. */
const SIGNIFICANCE = 0.01;
const CONFIDENCE = 0.95;
/** Up to this many arrangements Mann-Whitney's distribution is enumerated when there are ties. */
const MAX_ARRANGEMENTS = 200_000;

export function median(values: readonly number[]): number {
  if (values.length === 0) return NaN;
  const sorted = Float64Array.from(values).sort();
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** One value of a discrete distribution. */
interface Mass {
  value: number;
  probability: number;
}

/**
 * The bootstrap distribution of the median (B. Efron, "Bootstrap methods", 1979), not by resampling but
 * exactly: how often the median of n draws with replacement is which of the n values.
 */
export function medianDistribution(values: readonly number[]): Mass[] {
  const sorted = Float64Array.from(values).sort();
  const n = sorted.length;
  const half = Math.floor(n / 2);
  const lower = n % 2 === 1 ? half + 1 : half;
  // below(i, j): the draws of rank `lower` and `half + 1` are among the i and the j smallest values.
  const below = (i: number, j: number): number => {
    let sum = 0;
    for (let a = lower; a <= n; a++) {
      for (let b = Math.max(a, half + 1); b <= n; b++) {
        sum +=
          choose(n, b) *
          choose(b, a) *
          power(i / n, a) *
          power((j - i) / n, b - a) *
          power((n - j) / n, n - b);
      }
    }
    return sum;
  };
  const table = Array.from({ length: n + 1 }, (_, i) =>
    Array.from({ length: n + 1 }, (__, j) => (j < i ? 0 : below(i, j))),
  );
  const masses: Mass[] = [];
  for (let i = 1; i <= n; i++) {
    for (let j = i; j <= n; j++) {
      // Where j is i, both ranks fall on one value: the corner (i, j - 1) does not exist.
      const probability =
        j === i
          ? table[i][i] - table[i - 1][i]
          : table[i][j] - table[i - 1][j] - table[i][j - 1] + table[i - 1][j - 1];
      if (probability > 1e-15) masses.push({ value: (sorted[i - 1] + sorted[j - 1]) / 2, probability });
    }
  }
  return masses.sort((x, y) => x.value - y.value);
}

/** With 0^0 = 1. */
function power(base: number, exponent: number): number {
  return exponent === 0 ? 1 : base ** exponent;
}

function interval(masses: readonly Mass[]): { low: number; high: number } {
  const tail = (1 - CONFIDENCE) / 2;
  const at = (share: number): number => {
    let sum = 0;
    for (const { value, probability } of masses) if ((sum += probability) >= share - 1e-12) return value;
    return masses[masses.length - 1].value;
  };
  return { low: at(tail), high: at(1 - tail) };
}

/** The median with its percentile bootstrap interval. Needs at least one value. */
export function estimate(values: readonly number[]): Estimate {
  const middle = median(values);
  const min = Math.min(...values);
  const max = Math.max(...values);
  return {
    n: values.length,
    median: middle,
    ...interval(medianDistribution(values)),
    min,
    max,
    spread: middle > 0 ? (max - min) / middle : 0,
  };
}

/** Ratio of medians a / b with its bootstrap interval. */
export function ratio(
  a: readonly number[],
  b: readonly number[],
): { ratio: number; low: number; high: number } {
  const over = medianDistribution(b);
  const masses = medianDistribution(a)
    .flatMap((top) =>
      over.map((bottom) => ({
        value: top.value / bottom.value,
        probability: top.probability * bottom.probability,
      })),
    )
    .sort((x, y) => x.value - y.value);
  return { ratio: median(a) / median(b), ...interval(masses) };
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
export function compare(a: readonly number[], b: readonly number[]): Difference {
  const between = ratio(a, b);
  const p = a.length >= 2 && b.length >= 2 ? mannWhitney(a, b).p : null;
  if (a.length < RUNS_FOR_VERDICT || b.length < RUNS_FOR_VERDICT)
    return { ...between, p, verdict: 'too few runs' };
  const clear = p !== null && p < SIGNIFICANCE && (between.low > 1 || between.high < 1);
  return { ...between, p, verdict: !clear ? 'no difference' : between.ratio > 1 ? 'higher' : 'lower' };
}
