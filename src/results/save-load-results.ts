/**
 * The document of `ardent rdb-save-load` and `ardent rdb-perf`: how long servers take to load and to save
 * data sets, and what those take of disk and memory. A data set is a file that exists or one that was generated.
 */
import type { Environment } from './document.ts';

export const SAVE_LOAD_SCHEMA = 'ardent-save-load/1';

export type SaveLoadTool = 'rdb-save-load' | 'rdb-perf';

/** A server that took part. */
export interface SaveLoadTarget {
  id: string;
  label: string;
  kind: 'ardent' | 'redis' | 'command' | 'foreign';
  version: string;
  /** As it was started, or its address. */
  commandLine: string;
  /** What is saved and loaded: Redis's format, or the image of our own server's memory. */
  format: 'rdb' | 'image';
  /** How its load was timed, for the reader. */
  loadedBy: string;
}

/** What was loaded and saved. */
export interface DataSet {
  id: string;
  label: string;
  /** Of generated data: string, hash, list, set, zset, stream; null for files, whose types may be mixed. */
  type: string | null;
  /** Bytes of memory that the servers were given; null: their own default. */
  tierBytes: number | null;
  /** Bytes of a value; of a file their mean, null when it cannot be told. */
  valueLength: number | null;
  keys: number;
  /** Of the file that was given; null for generated data. */
  fileBytes: number | null;
  path: string | null;
}

/** One life of a data set on a server. Times in seconds, sizes in MB (2^20 bytes). */
export interface SaveLoadRecord {
  /** Label of the server. */
  db: string;
  target: string;
  dataSet: string;
  repeat: number;
  /** Keys that the data set has and the server should hold. */
  keys: number;
  valueLength: number | null;
  /** From the command to its reply; the file is on disk by then. */
  saveTimeSec: number | null;
  /** Until the server serves all of it. */
  loadTimeSec: number | null;
  /** The same, and until the engine has it: our server alone knows the difference. */
  settledTimeSec: number | null;
  /** Start without data, which is not part of the load. */
  startTimeSec: number | null;
  /** Time to generate the data over the wire; null for files. */
  fillTimeSec: number | null;
  /** The file that it saved. */
  rdbSizeMB: number | null;
  /** After the load: what the server says (INFO used_memory), and what the system says of it. */
  usedMemoryMB: number | null;
  rssMB: number | null;
  /** Keys after the load. */
  dbSize: number | null;
  saveStatus: 'ok' | 'failed' | 'not run';
  loadStatus: 'ok' | 'failed' | 'not run';
  /** Why something failed or was not run. */
  error?: string;
}

export interface ServerLog {
  target: string;
  dataSet: string;
  /** File beside the document. */
  file: string;
  /** Its end. */
  tail: string;
}

export interface SaveLoadResults {
  schema: typeof SAVE_LOAD_SCHEMA;
  tool: SaveLoadTool;
  title: string;
  startedAt: string;
  finishedAt: string;
  state: 'complete' | 'partial';
  partialReason?: string;
  /** The command line again. */
  rerun: string;
  environment: Environment;
  options: Record<string, string | number | boolean>;
  /** Target that ratios are taken against; empty: none. */
  baseline: string;
  targets: SaveLoadTarget[];
  dataSets: DataSet[];
  results: SaveLoadRecord[];
  logs: ServerLog[];
  notes: string[];
}

export const SAVE_LOAD_METRICS = [
  'loadTimeSec',
  'settledTimeSec',
  'saveTimeSec',
  'rdbSizeMB',
  'usedMemoryMB',
  'rssMB',
  'fillTimeSec',
] as const;
export type SaveLoadMetric = (typeof SAVE_LOAD_METRICS)[number];

/** Of each metric the median over the repeats and its ratio to the baseline; null where nothing was measured. */
export interface SaveLoadCell {
  dataSet: string;
  target: string;
  state: 'ok' | 'failed' | 'not run';
  error?: string;
  keys: number | null;
  dbSize: number | null;
  metrics: Partial<Record<SaveLoadMetric, { median: number; n: number; ratio: number | null }>>;
}
