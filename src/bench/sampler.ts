/** Watches a target from outside while it works: one sample of /proc an interval, at little cost. */
import type { Resources, Series } from '../results/document.ts';
import type { LoadPoint } from './load.ts';
import { diskBytes, sampleProcess, type ProcessSample } from './process-sample.ts';

export interface Sample {
  /** ms since the epoch. */
  time: number;
  process: ProcessSample | null;
  diskBytes: number | null;
  /** Of the bench's own process. */
  clientCpuSeconds: number;
}

export interface Watched {
  /** Null when the process is not on this machine. */
  pid: number | null;
  dataDirectory: string | null;
}

/** Walking the data directory costs more than /proc; it is done no more often than this. */
const DISK_INTERVAL_MS = 1000;

export class Sampler {
  readonly samples: Sample[] = [];
  private readonly watched: Watched;
  private timer: NodeJS.Timeout | null = null;
  private lastDisk = { time: 0, bytes: null as number | null };

  constructor(watched: Watched) {
    this.watched = watched;
  }

  start(intervalSeconds: number): void {
    this.take();
    this.timer = setInterval(() => this.take(), intervalSeconds * 1000);
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    this.take();
  }

  take(): Sample {
    const time = performance.timeOrigin + performance.now();
    const { pid, dataDirectory } = this.watched;
    if (dataDirectory !== null && time - this.lastDisk.time >= DISK_INTERVAL_MS) {
      this.lastDisk = { time, bytes: diskBytes(dataDirectory) };
    }
    const { user, system } = process.cpuUsage();
    const sample: Sample = {
      time,
      process: pid === null ? null : sampleProcess(pid),
      diskBytes: this.lastDisk.bytes,
      clientCpuSeconds: (user + system) / 1e6,
    };
    this.samples.push(sample);
    return sample;
  }
}

function difference(first: ProcessSample, last: ProcessSample, of: keyof ProcessSample): number | null {
  const [from, to] = [first[of], last[of]];
  return from === null || to === null ? null : Math.max(0, to - from);
}

/** A counter's value at `time`, on a straight line between the samples around it. */
function counterAt(samples: readonly Sample[], of: keyof ProcessSample, time: number): number | null {
  let before: Sample | null = null;
  for (const sample of samples) {
    const value = sample.process?.[of] ?? null;
    if (value === null) continue;
    if (sample.time >= time) {
      const start = before?.process?.[of] ?? null;
      if (before === null || start === null) return value;
      return start + ((value - start) * (time - before.time)) / (sample.time - before.time);
    }
    before = sample;
  }
  return before?.process?.[of] ?? null;
}

/** What the target used between two moments (ms since the epoch). Null when it could not be seen. */
export function resourcesOf(samples: readonly Sample[], from = 0, to = Infinity): Resources | null {
  const last = samples.findLast((sample) => sample.process !== null)?.process;
  if (!last) return null;
  const used = (of: keyof ProcessSample): number | null => {
    const [start, end] = [counterAt(samples, of, from), counterAt(samples, of, to)];
    return start === null || end === null ? null : end - start;
  };
  return {
    cpuSeconds: used('cpuSeconds'),
    cpuWaitSeconds: used('cpuWaitSeconds'),
    rssAnonBytes: last.rssAnonBytes,
    rssFileBytes: last.rssFileBytes,
    rssPeakBytes: last.rssPeakBytes,
    readBytes: used('readBytes'),
    writeBytes: used('writeBytes'),
    majorFaults: used('majorFaults'),
    diskBytes: samples.at(-1)!.diskBytes,
  };
}

/** Samples and load points on one time axis; each column keeps its last value between its own points. */
export function seriesOf(
  samples: readonly Sample[],
  points: readonly LoadPoint[],
  startedAt: number,
): Series {
  const series: Series = {
    at: [],
    opsPerSecond: [],
    p99Us: [],
    cpuCores: [],
    rssAnonBytes: [],
    rssFileBytes: [],
    readBytesPerSecond: [],
    writeBytesPerSecond: [],
    diskBytes: [],
    clientUtilisation: [],
  };
  for (let i = 1; i < samples.length; i++) {
    const [before, sample] = [samples[i - 1], samples[i]];
    const seconds = (sample.time - before.time) / 1000;
    const at = (sample.time - startedAt) / 1000;
    if (seconds < 0.005 || at <= 0) continue;
    const rate = (of: keyof ProcessSample): number | null => {
      if (sample.process === null || before.process === null) return null;
      const used = difference(before.process, sample.process, of);
      return used === null ? null : used / seconds;
    };
    // The load's intervals and the samples have the same length but not the same phase: the nearest counts.
    const nearest = points.reduce<LoadPoint | null>(
      (best, point) => (best === null || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best),
      null,
    );
    series.at.push(round(at, 3));
    series.opsPerSecond.push(nearest?.opsPerSecond ?? null);
    series.p99Us.push(nearest?.p99Us ?? null);
    series.cpuCores.push(round(rate('cpuSeconds'), 3));
    series.rssAnonBytes.push(sample.process?.rssAnonBytes ?? null);
    series.rssFileBytes.push(sample.process?.rssFileBytes ?? null);
    series.readBytesPerSecond.push(round(rate('readBytes'), 0));
    series.writeBytesPerSecond.push(round(rate('writeBytes'), 0));
    series.diskBytes.push(sample.diskBytes);
    series.clientUtilisation.push(round((sample.clientCpuSeconds - before.clientCpuSeconds) / seconds, 3));
  }
  return series;
}

function round(value: number, digits: number): number;
function round(value: number | null, digits: number): number | null;
function round(value: number | null, digits: number): number | null {
  return value === null ? null : Number(value.toFixed(digits));
}
