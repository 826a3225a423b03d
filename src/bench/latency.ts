/**
 * Latencies of one run. While it is under way a latency is one increment in an array; afterwards the
 * array is poured into an HdrHistogram, from which percentiles are taken. Histograms of workers and of
 * runs are merged, percentiles never averaged.
 */
import {
  build,
  decodeFromCompressedBase64,
  encodeIntoCompressedBase64,
  type Histogram,
} from 'hdr-histogram-js';
import type { Latency } from '../results/document.ts';

/** Latencies are counted in ticks of 100 ns. */
const TICKS_PER_MS = 10_000;
const TICKS_PER_US = 10;

/** Buckets of HdrHistogram with 3 significant digits: 2,048 of one tick, then 1,024 for each doubling. */
const LINEAR_BITS = 11;
const HALF = 1 << (LINEAR_BITS - 1);
const BUCKETS = (32 - LINEAR_BITS + 2) * HALF;
/** About 7 minutes; longer latencies are counted as this long. */
const MAX_TICKS = 0xffffffff;

/** Below this many samples beyond it a percentile says nothing. */
const SAMPLES_BEYOND = 10;

/** A run's latency counts as plain numbers: bucket, count, bucket, count… For messages between threads. */
export type SparseCounts = Float64Array;

export class LatencyCounts {
  private readonly counts = new Float64Array(BUCKETS);
  total = 0;
  minTicks = Infinity;
  maxTicks = 0;
  private sumTicks = 0;

  record(milliseconds: number, count: number): void {
    let ticks = milliseconds * TICKS_PER_MS;
    if (ticks > MAX_TICKS) ticks = MAX_TICKS;
    else if (!(ticks > 1)) ticks = 1;
    else ticks = ticks >>> 0;
    const shift = 32 - LINEAR_BITS - Math.clz32(ticks);
    this.counts[shift <= 0 ? ticks : shift * HALF + (ticks >>> shift)] += count;
    this.total += count;
    this.sumTicks += ticks * count;
    if (ticks < this.minTicks) this.minTicks = ticks;
    if (ticks > this.maxTicks) this.maxTicks = ticks;
  }

  reset(): void {
    if (this.total === 0) return;
    this.counts.fill(0);
    this.total = 0;
    this.sumTicks = 0;
    this.minTicks = Infinity;
    this.maxTicks = 0;
  }

  /** The counts, with the extremes and the sum that buckets would blur in front. */
  toSparse(): SparseCounts {
    const entries: number[] = [this.minTicks, this.maxTicks, this.sumTicks];
    for (let i = 0; i < BUCKETS; i++) if (this.counts[i] > 0) entries.push(i, this.counts[i]);
    return Float64Array.from(entries);
  }

  merge(sparse: SparseCounts): void {
    this.minTicks = Math.min(this.minTicks, sparse[0]);
    this.maxTicks = Math.max(this.maxTicks, sparse[1]);
    this.sumTicks += sparse[2];
    for (let i = 3; i < sparse.length; i += 2) {
      this.counts[sparse[i]] += sparse[i + 1];
      this.total += sparse[i + 1];
    }
  }

  /** Adds what `histogram`, as written into a results document, counted. */
  mergeEncoded(histogram: string, minUs: number, maxUs: number, meanUs: number): void {
    const decoded = decodeFromCompressedBase64(histogram, 64, false) as Histogram & {
      countsArrayLength: number;
      getCountAtIndex(index: number): number;
      valueFromIndex(index: number): number;
    };
    let total = 0;
    for (let i = 0; i < decoded.countsArrayLength; i++) {
      const count = decoded.getCountAtIndex(i);
      if (count === 0) continue;
      const ticks = decoded.valueFromIndex(i) >>> 0;
      const shift = 32 - LINEAR_BITS - Math.clz32(ticks);
      this.counts[shift <= 0 ? ticks : shift * HALF + (ticks >>> shift)] += count;
      total += count;
    }
    this.total += total;
    this.sumTicks += meanUs * TICKS_PER_US * total;
    this.minTicks = Math.min(this.minTicks, minUs * TICKS_PER_US);
    this.maxTicks = Math.max(this.maxTicks, maxUs * TICKS_PER_US);
  }

  /** Microseconds below or at which `fraction` of the samples lie; 0 without samples. */
  percentileUs(fraction: number): number {
    let left = Math.max(1, Math.ceil(fraction * this.total));
    if (this.total === 0) return 0;
    for (let i = 0; i < BUCKETS; i++) {
      left -= this.counts[i];
      if (left <= 0) return Math.min(bucketTop(i), this.maxTicks) / TICKS_PER_US;
    }
    return this.maxTicks / TICKS_PER_US;
  }

  toHistogram(): Histogram {
    const histogram = build({
      bitBucketSize: 64,
      autoResize: false,
      lowestDiscernibleValue: 1,
      highestTrackableValue: MAX_TICKS,
      numberOfSignificantValueDigits: 3,
    });
    for (let i = 0; i < BUCKETS; i++) {
      if (this.counts[i] > 0) histogram.recordValueWithCount(bucketTop(i), this.counts[i]);
    }
    return histogram;
  }

  /** Null without samples. */
  summary(): Latency | null {
    if (this.total === 0) return null;
    const supported = (fraction: number): number | null =>
      this.total * (1 - fraction) >= SAMPLES_BEYOND ? this.percentileUs(fraction) : null;
    return {
      count: this.total,
      minUs: this.minTicks / TICKS_PER_US,
      meanUs: round(this.sumTicks / this.total / TICKS_PER_US),
      maxUs: this.maxTicks / TICKS_PER_US,
      p50Us: this.percentileUs(0.5),
      p90Us: this.percentileUs(0.9),
      p95Us: this.percentileUs(0.95),
      p99Us: this.percentileUs(0.99),
      p999Us: supported(0.999),
      p9999Us: supported(0.9999),
      curve: this.curve(),
      histogram: encodeIntoCompressedBase64(this.toHistogram()),
    };
  }

  /** Points of the percentile plot, evenly spread on an axis of "nines", as far as samples support it. */
  private curve(): number[][] {
    const points: number[][] = [[0, this.minTicks / TICKS_PER_US]];
    const nines = Math.log10(this.total / SAMPLES_BEYOND);
    for (let step = 1; step <= nines * 8; step++) {
      const fraction = 1 - 10 ** (-step / 8);
      points.push([Number(fraction.toFixed(7)), this.percentileUs(fraction)]);
    }
    points.push([1, this.maxTicks / TICKS_PER_US]);
    return points;
  }
}

/** Highest value that falls into a bucket. */
function bucketTop(index: number): number {
  if (index < 2 * HALF) return index;
  const shift = Math.floor(index / HALF) - 1;
  return (index - shift * HALF + 1) * 2 ** shift - 1;
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}

/** Merges latencies of several runs; null when none has a histogram. */
export function mergeLatencies(latencies: readonly (Latency | null | undefined)[]): Latency | null {
  const merged = new LatencyCounts();
  for (const latency of latencies) {
    if (latency?.histogram) {
      merged.mergeEncoded(latency.histogram, latency.minUs, latency.maxUs, latency.meanUs);
    }
  }
  return merged.summary();
}
