/** What a run of the bench will do: rows, columns, repeats and limits. */
import type { WorkloadInfo } from '../results/document.ts';
import { parseDistribution } from '../workloads/distribution.ts';
import { parseSizes } from '../workloads/values.ts';
import { accessOf, type Workload } from '../workloads/workload.ts';
import type { LoadSpec } from './load-spec.ts';
import type { Target } from './target.ts';

/** What is the same for all rows. */
export interface LoadSettings {
  driver: 'raw' | 'ioredis' | 'redis-benchmark';
  connections: number;
  workers: number;
  keyspace: number;
  distribution: string;
  valueSizes: string;
  compressibility: number;
  requests: number | null;
  seconds: number | null;
  warmupSeconds: number;
  intervalSeconds: number;
  timeoutSeconds: number;
  verify: boolean;
  preload: boolean;
  seed: number;
}

export interface Row {
  info: WorkloadInfo;
  workload: Workload;
  pipeline: number;
  open: LoadSpec['open'];
  /** Sent before measuring when the workload uses its data up; they need data too. */
  warmupRequests: number | null;
}

export interface Plan {
  targets: Target[];
  rows: Row[];
  /** Target id that others are compared with; empty: none. */
  baseline: string;
  repeats: number;
  /** Of columns that are for reference, and of engine-bound ones; `repeats` when absent. */
  asideRepeats?: number;
  settings: LoadSettings;
  /** How long a target may take to write back after the load. */
  drainSeconds: number;
}

/** How many sessions a target gets. */
export function repeatsOf({ repeats, asideRepeats }: Plan, { info }: Target): number {
  return info.reference || info.mode === 'engine-bound' ? (asideRepeats ?? repeats) : repeats;
}

/** Rows for workloads at each pipeline depth. */
export function rowsOf(
  workloads: readonly Workload[],
  pipelines: readonly number[],
  settings: LoadSettings,
  open: LoadSpec['open'] = null,
  /** The rate is part of the row's name: there are several. */
  named = false,
): Row[] {
  // Checked here, so that a wrong option is told before anything is started.
  parseDistribution(settings.distribution);
  parseSizes(settings.valueSizes);
  return pipelines.flatMap((pipeline) =>
    workloads.map((workload) => ({
      workload,
      pipeline,
      open,
      warmupRequests: workload.consumes ? Math.ceil((settings.requests ?? 0) / 4) : null,
      info: {
        id: `${workload.id}${pipelines.length > 1 ? `-P${pipeline}` : ''}${named ? `@${open?.rate}` : ''}`,
        label: `${workload.label}${pipeline > 1 ? ` -P ${pipeline}` : ''}${named ? ` @ ${open?.rate}/s` : ''}`,
        family: workload.family,
        access: accessOf(workload),
        commands: workload.operations.map(({ line }) => line),
        description: workload.description,
        connections: settings.connections,
        pipeline,
        driver: settings.driver,
        loop: open === null ? 'closed' : 'open',
        rate: open?.rate ?? null,
        keyspace: settings.keyspace,
        distribution: settings.distribution,
        valueBytes: settings.valueSizes,
        requests: settings.requests,
        seconds: settings.seconds,
        warmupSeconds: settings.warmupSeconds,
      },
    })),
  );
}
