/** What a load worker is told, and what it reports. Plain data: it crosses threads. */
import type { SparseCounts } from './latency.ts';
import type { OperationMix } from '../workloads/workload.ts';

export interface Address {
  host: string;
  port: number;
  /** Unix socket; then host and port do not count. */
  path?: string;
  password?: string;
  user?: string;
  database?: number;
  cluster?: boolean;
}

export interface LoadSpec {
  address: Address;
  driver: 'raw' | 'ioredis';
  mix: OperationMix[];
  keyspace: number;
  /** As parseDistribution and parseSizes take them. */
  distribution: string;
  valueSizes: string;
  compressibility: number;
  verify: boolean;
  /** Of this worker. */
  connections: number;
  pipeline: number;
  /** Operations per second of this worker, due at equal distances or at random; null: closed loop. */
  open: { rate: number; arrivals: 'regular' | 'poisson' } | null;
  /** Limits of the measured part; whichever comes first. */
  requests: number | null;
  seconds: number | null;
  warmupSeconds: number;
  warmupRequests: number | null;
  /** Length of one entry of the time series. */
  intervalSeconds: number;
  /** Without any reply for so long the run has failed. */
  timeoutSeconds: number;
  seed: number;
  worker: number;
  workers: number;
  control: SharedArrayBuffer;
}

export interface LoadInterval {
  /** Seconds since measuring began, at the interval's end. */
  at: number;
  seconds: number;
  requests: number;
  counts: SparseCounts;
}

export interface LoadReport {
  /** Measuring began and ended, ms since the epoch. */
  startedAt: number;
  endedAt: number;
  requests: number;
  errors: number;
  firstError: string | null;
  /** Of reads and pops. */
  hits: number;
  misses: number;
  verified: { checked: number; wrong: number; firstWrong: string | null } | null;
  userBytes: number;
  service: SparseCounts;
  intended: SparseCounts | null;
  /** Requests that were due but not sent when the run ended. */
  unsent: number;
  operations: { requests: number; errors: number; misses: number; service: SparseCounts }[] | null;
  intervals: LoadInterval[];
  /** Busy share of the worker's event loop while measuring. */
  utilisation: number;
  /** Processor time of the worker's thread, by the time measured; null where the kernel does not tell. */
  cpuShare: number | null;
  gcPauseMs: number;
  /** Stopped before its limits were reached. */
  interrupted: boolean;
  /** Why the run failed; what was measured until then is in the other fields. */
  failure: string | null;
}
