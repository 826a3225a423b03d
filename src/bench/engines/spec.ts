/** Messages between the bench, the process that holds an engine, and the threads that ask it. */
import type { MessagePort } from 'node:worker_threads';
import type { EngineName } from '../../engines/engine.ts';
import type { SparseCounts } from '../latency.ts';
import type { EngineWorkload } from './workloads.ts';

export interface EngineSettings {
  keys: number;
  valueSizes: string;
  compressibility: number;
  /** Rows in one call. */
  batch: number;
  /** Calls that a requester keeps under way. */
  depth: number;
  requesters: number;
  sync: boolean;
  /** Limits of a run; whichever comes first. */
  rows: number | null;
  seconds: number | null;
  seed: number;
}

/** To the process that holds the engine. */
export interface HostStart {
  engine: EngineName;
  directory: string;
  options: Record<string, string>;
  settings: EngineSettings;
}
export type HostRequest = { run: EngineWorkload } | { stop: true };

/** How far a workload is. */
export interface EngineProgress {
  requests: number;
  p99Us: number;
}

/** From it. */
export type HostReply =
  | { ready: { version: string } }
  | { began: true }
  | { progress: EngineProgress }
  | { done: EngineRunReport }
  | { failed: string };

export interface EngineRunReport {
  startedAt: number;
  endedAt: number;
  rows: number;
  /** Rows found and not found, of reads. */
  hits: number;
  misses: number;
  userBytes: number;
  latency: SparseCounts;
  series: { at: number; seconds: number; rows: number; counts: SparseCounts }[];
  /** Of the busiest requester's event loop. */
  utilisation: number;
  /** The engine's own figures afterwards. */
  details: Record<string, string | number>;
}

/** To a requester thread. */
export interface RequesterTask {
  engine: EngineName;
  port: MessagePort;
  workload: EngineWorkload;
  settings: EngineSettings;
  /** Number of this requester. */
  index: number;
  of: number;
  /** Overwrites until told to stop; not counted. */
  background: boolean;
  /** Of a LoadControl: progress, and when to stop. */
  control: SharedArrayBuffer;
}

export type RequesterReport = Omit<EngineRunReport, 'details'>;
