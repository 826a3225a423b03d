import { decodeFromCompressedBase64 } from 'hdr-histogram-js';
import { expect, it } from 'vitest';
import { LatencyCounts, mergeLatencies } from '../../src/bench/latency.ts';
import { Random } from '../../src/workloads/random.ts';
import { SEED } from '../seed.ts';

console.log(`SEED=${SEED}`);

/** Latencies from 1 µs to some seconds, in milliseconds, skewed as real ones are. */
function samples(count: number, random: Random): number[] {
  return Array.from({ length: count }, () => 0.001 * Math.exp(random.fraction() ** 3 * 15));
}

const exact = (sorted: number[], fraction: number): number =>
  sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)] * 1000;

it('percentiles are those of the sorted samples, to 3 digits', () => {
  const all = samples(50_000, new Random(SEED));
  const counts = new LatencyCounts();
  for (const ms of all) counts.record(ms, 1);
  const sorted = [...all].sort((a, b) => a - b);
  for (const fraction of [0.1, 0.5, 0.9, 0.99, 0.999, 1]) {
    const value = exact(sorted, fraction);
    expect(Math.abs(counts.percentileUs(fraction) - value)).toBeLessThanOrEqual(Math.max(0.1, value * 0.001));
  }
});

it('merging counts is as if one had counted all; percentiles are not averaged', () => {
  const random = new Random(SEED);
  const [a, b, whole] = [new LatencyCounts(), new LatencyCounts(), new LatencyCounts()];
  for (const ms of samples(5000, random)) for (const counts of [a, whole]) counts.record(ms, 1);
  for (const ms of samples(200, random)) for (const counts of [b, whole]) counts.record(ms * 50, 2);
  const merged = new LatencyCounts();
  merged.merge(a.toSparse());
  merged.merge(b.toSparse());
  expect(merged.summary()).toEqual(whole.summary());
  expect(mergeLatencies([a.summary(), null, b.summary()])).toMatchObject({
    count: whole.total,
    p50Us: whole.percentileUs(0.5),
    p99Us: whole.percentileUs(0.99),
    maxUs: whole.summary()!.maxUs,
  });
});

it('the histogram is HdrHistogram’s own form', () => {
  const counts = new LatencyCounts();
  for (let us = 1; us <= 1000; us++) counts.record(us / 1000, us);
  const decoded = decodeFromCompressedBase64(counts.summary()!.histogram!, 64, false);
  expect(decoded.totalCount).toBe(500_500);
  expect(decoded.getValueAtPercentile(50) / 10).toBeCloseTo(counts.percentileUs(0.5), 0);
});

it('a percentile without ten samples beyond it is not told', () => {
  const counts = new LatencyCounts();
  counts.record(1, 9_999);
  expect(counts.summary()).toMatchObject({ p999Us: null, p9999Us: null });
  counts.record(1, 1);
  expect(counts.summary()).toMatchObject({ p999Us: 1000, p9999Us: null });
  expect(new LatencyCounts().summary()).toBeNull();
});

it('extreme latencies are kept, not clamped to seconds', () => {
  const counts = new LatencyCounts();
  counts.record(60_000, 1);
  counts.record(0, 1);
  expect(counts.summary()).toMatchObject({ minUs: 0.1, maxUs: 60_000_000 });
});
