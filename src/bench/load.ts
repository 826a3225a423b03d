/** Load as the runner sees it: one call, any number of workers, one merged outcome. */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { Piscina } from 'piscina';
import type { Latency } from '../results/document.ts';
import { LoadControl } from './control.ts';
import { LatencyCounts, type SparseCounts } from './latency.ts';
import type { LoadReport, LoadSpec } from './load-spec.ts';

/** What to send, for all workers together; the pool divides it. */
export type LoadOptions = Omit<LoadSpec, 'worker' | 'workers' | 'control'> & { workers: number };

export interface LoadPoint {
  /** Seconds since measuring began. */
  at: number;
  opsPerSecond: number;
  p99Us: number;
}

export interface LoadOutcome {
  /** Measuring began and ended, ms since the epoch. */
  startedAt: number;
  endedAt: number;
  seconds: number;
  requests: number;
  opsPerSecond: number;
  errors: number;
  firstError: string | null;
  hits: number;
  misses: number;
  verified: LoadReport['verified'];
  userBytes: number;
  service: Latency | null;
  intended: Latency | null;
  unsent: number;
  operations: { requests: number; errors: number; misses: number; latency: Latency | null }[] | null;
  series: LoadPoint[];
  /** Of the busiest worker. */
  utilisation: number;
  cpuShare: number | null;
  gcPauseMs: number;
  interrupted: boolean;
  failure: string | null;
}

/** More workers than this take processor time from the server on the same machine. */
export function defaultWorkers(): number {
  return Math.max(1, Math.min(4, Math.floor(availableParallelism() / 2)));
}

export class LoadPool {
  private readonly pool: Piscina;
  private readonly running = new Set<LoadControl>();

  constructor(workers: number) {
    this.pool = new Piscina({
      filename: new URL('./load-worker.js', import.meta.url).href,
      minThreads: workers,
      maxThreads: workers,
      // A worker waits for the others to be ready: all must run at the same time.
      concurrentTasksPerWorker: 1,
      idleTimeout: Infinity,
    });
  }

  /** Sends the load. `onStart` gets the control when all connections stand: live progress, early stop. */
  async run(options: LoadOptions, onStart: (control: LoadControl) => void = () => {}): Promise<LoadOutcome> {
    const workers = Math.min(options.workers, options.connections, this.pool.options.maxThreads);
    const control = new LoadControl(null, workers);
    this.running.add(control);
    const share = (total: number, worker: number): number =>
      Math.floor(total / workers) + (worker < total % workers ? 1 : 0);
    try {
      const tasks = Array.from({ length: workers }, (_, worker) => {
        const spec: LoadSpec = {
          ...options,
          connections: share(options.connections, worker),
          open: options.open === null ? null : { ...options.open, rate: options.open.rate / workers },
          requests: options.requests === null ? null : share(options.requests, worker),
          warmupRequests: options.warmupRequests === null ? null : share(options.warmupRequests, worker),
          worker,
          workers,
          control: control.memory,
        };
        return this.pool.run(spec) as Promise<LoadReport>;
      });
      const all = Promise.all(tasks);
      let settled = false;
      const reports = all.finally(() => (settled = true));
      // Rejections are awaited below.
      reports.catch(() => {});
      while (control.readyCount < workers && !settled) await sleep(1);
      onStart(control);
      control.go();
      return mergeReports(await reports, options.intervalSeconds);
    } finally {
      this.running.delete(control);
    }
  }

  /** Ends what runs early; it is reported as interrupted. */
  stop(): void {
    for (const control of this.running) control.stop();
  }

  async close(): Promise<void> {
    await this.pool.destroy();
  }
}

function merged(all: readonly (SparseCounts | null)[]): LatencyCounts {
  const counts = new LatencyCounts();
  for (const sparse of all) if (sparse !== null) counts.merge(sparse);
  return counts;
}

/** Exported for tests. */
function mergeReports(reports: LoadReport[], intervalSeconds: number): LoadOutcome {
  const sum = (of: (report: LoadReport) => number): number =>
    reports.reduce((total, report) => total + of(report), 0);
  const startedAt = Math.min(...reports.map((report) => report.startedAt));
  const endedAt = Math.max(...reports.map((report) => report.endedAt));
  const seconds = Math.max(0, (endedAt - startedAt) / 1000);
  const requests = sum((report) => report.requests);
  const verified = reports.flatMap((report) => (report.verified === null ? [] : [report.verified]));
  const firstOperations = reports[0].operations;
  return {
    startedAt,
    endedAt,
    seconds,
    requests,
    opsPerSecond: seconds > 0 ? requests / seconds : 0,
    errors: sum((report) => report.errors),
    firstError: reports.find((report) => report.firstError !== null)?.firstError ?? null,
    hits: sum((report) => report.hits),
    misses: sum((report) => report.misses),
    verified:
      verified.length === 0
        ? null
        : {
            checked: verified.reduce((total, part) => total + part.checked, 0),
            wrong: verified.reduce((total, part) => total + part.wrong, 0),
            firstWrong: verified.find((part) => part.firstWrong !== null)?.firstWrong ?? null,
          },
    userBytes: sum((report) => report.userBytes),
    service: merged(reports.map((report) => report.service)).summary(),
    intended:
      reports[0].intended === null ? null : merged(reports.map((report) => report.intended)).summary(),
    unsent: sum((report) => report.unsent),
    operations:
      firstOperations?.map((_, index) => ({
        requests: sum((report) => report.operations![index].requests),
        errors: sum((report) => report.operations![index].errors),
        misses: sum((report) => report.operations![index].misses),
        latency: merged(reports.map((report) => report.operations![index].service)).summary(),
      })) ?? null,
    series: mergeSeries(reports, startedAt, intervalSeconds),
    utilisation: Math.max(...reports.map((report) => report.utilisation)),
    cpuShare: reports.some(({ cpuShare }) => cpuShare === null)
      ? null
      : Math.max(...reports.map(({ cpuShare }) => cpuShare!)),
    gcPauseMs: Math.max(...reports.map((report) => report.gcPauseMs)),
    interrupted: reports.some((report) => report.interrupted),
    failure: reports.find((report) => report.failure !== null)?.failure ?? null,
  };
}

/** Intervals of several workers, put together by the time at which they ended. */
function mergeSeries(reports: LoadReport[], startedAt: number, intervalSeconds: number): LoadPoint[] {
  const slots = new Map<number, { counts: LatencyCounts; requests: number; seconds: number; at: number }>();
  for (const report of reports) {
    for (const interval of report.intervals) {
      const at = interval.at + (report.startedAt - startedAt) / 1000;
      const index = Math.max(0, Math.round(at / intervalSeconds) - 1);
      let slot = slots.get(index);
      if (slot === undefined)
        slots.set(index, (slot = { counts: new LatencyCounts(), requests: 0, seconds: 0, at: 0 }));
      slot.counts.merge(interval.counts);
      slot.requests += interval.requests;
      slot.seconds = Math.max(slot.seconds, interval.seconds);
      slot.at = Math.max(slot.at, at);
    }
  }
  return [...slots.entries()]
    .sort(([a], [b]) => a - b)
    .map(([, slot]) => ({
      at: Math.round(slot.at * 1000) / 1000,
      opsPerSecond: Math.round(slot.requests / Math.max(slot.seconds, 1e-6)),
      p99Us: slot.counts.percentileUs(0.99),
    }));
}
