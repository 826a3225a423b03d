/** A result set made up for tests: three targets, two rows, every state and badge. */
import { cellsOf } from '../../src/bench/cells.ts';
import { LatencyCounts } from '../../src/bench/latency.ts';
import type { Latency, Results, Run, TargetInfo, WorkloadInfo } from '../../src/results/document.ts';

function latency(us: number): Latency {
  const counts = new LatencyCounts();
  for (let i = 1; i <= 2000; i++) counts.record((us * (1 + (i / 2000) ** 8)) / 1000, 10);
  return counts.summary()!;
}

const target = (id: string, label: string, more: Partial<TargetInfo> = {}): TargetInfo => ({
  id,
  label,
  kind: 'ardent',
  reference: false,
  version: '1.0',
  durability: { class: 'everysec', loses: 'up to about a second of writes' },
  address: '',
  commandLine: `serve ${id}`,
  settings: {},
  ...more,
});

const workload = (id: string, more: Partial<WorkloadInfo> = {}): WorkloadInfo => ({
  id,
  label: id.toUpperCase(),
  family: 'string',
  access: 'read',
  commands: [`${id} {key} & <b>`],
  description: `row ${id}`,
  connections: 50,
  pipeline: 1,
  driver: 'raw',
  loop: 'closed',
  rate: null,
  keyspace: 1000,
  distribution: 'uniform',
  valueBytes: '100',
  requests: 20_000,
  seconds: 1,
  warmupSeconds: 0,
  ...more,
});

export function run(
  workloadId: string,
  targetId: string,
  repeat: number,
  rate: number,
  more: Partial<Run> = {},
): Run {
  return {
    workload: workloadId,
    target: targetId,
    repeat,
    session: 0,
    order: 0,
    startedAt: '2026-01-01T00:00:00.000Z',
    state: 'ok',
    seconds: 1,
    requests: Math.round(rate),
    opsPerSecond: rate,
    errors: 0,
    hits: Math.round(rate),
    misses: 0,
    userBytesWritten: null,
    latency: latency(50_000_000 / rate),
    resources: {
      cpuSeconds: 0.9,
      rssAnonBytes: 50e6,
      rssFileBytes: 10e6,
      rssPeakBytes: 60e6,
      readBytes: 0,
      writeBytes: 1e6,
      majorFaults: 0,
      diskBytes: 2e6,
    },
    client: { workers: 1, cpuSeconds: 0.7, utilisation: 0.7, gcPauseMs: 1 },
    series: {
      at: [0.25, 0.5, 0.75, 1],
      opsPerSecond: [rate, rate * 1.1, rate, rate * 0.9],
      p99Us: [900, 950, 900, 920],
      cpuCores: [0.9, 0.9, 0.9, 0.9],
      rssAnonBytes: [50e6, 50e6, 51e6, 51e6],
      rssFileBytes: [1e6, 1e6, 1e6, 1e6],
      readBytesPerSecond: [0, 0, 0, 0],
      writeBytesPerSecond: [1e6, 0, 2e6, 1e6],
      diskBytes: [2e6, 2e6, 2e6, 2e6],
      clientUtilisation: [0.7, 0.7, 0.7, 0.7],
    },
    ...more,
  };
}

export function sampleResults(more: Run[] = []): Results {
  const targets = [
    target('lmdb', 'LMDB', { engine: 'lmdb', mode: 'served' }),
    target('redis', 'Redis (AOF everysec)', { kind: 'redis' }),
    target('redis-none', 'Redis (no persistence)', {
      kind: 'redis',
      reference: true,
      durability: { class: 'none', loses: 'everything' },
    }),
  ];
  const workloads = [
    workload('get'),
    workload('set', { access: 'write' }),
    workload('spop', { family: 'set' }),
  ];
  const rates: Record<string, number[]> = {
    'get lmdb': [150_000, 151_000, 149_000, 150_500, 149_500],
    'get redis': [100_000, 101_000, 99_000, 100_500, 99_500],
    'get redis-none': [110_000, 111_000, 109_000, 110_500, 109_500],
    'set lmdb': [80_000, 121_000, 90_000, 99_000, 101_000],
    'set redis': [100_000, 101_000, 99_000, 100_500, 99_500],
    'set redis-none': [120_000, 121_000, 119_000, 120_500, 119_500],
    'spop redis': [90_000, 91_000, 89_000, 90_500, 89_500],
  };
  const runs = [
    ...Object.entries(rates).flatMap(([key, values]) => {
      const [workloadId, targetId] = key.split(' ');
      return values.map((rate, index) => run(workloadId, targetId, index + 1, rate));
    }),
    run('spop', 'lmdb', 1, 0, {
      state: 'failed',
      error: 'the target died: SIGSEGV',
      requests: 0,
      latency: null,
      resources: null,
    }),
    ...more,
  ].map((made, order) => ({ ...made, order }));
  const sessions = targets.map(({ id }) => ({
    target: id,
    repeat: 1,
    startedAt: '2026-01-01T00:00:00.000Z',
    startSeconds: 0.2,
    state: 'ok' as const,
    load: { keys: 1000, userBytes: 116_000, seconds: 0.1, foundKeys: 1000 },
    drain: { seconds: 0.3, writeBytes: 200_000, diskBytes: 150_000, settled: true },
    end: null,
  }));
  return {
    format: 'ardent-results',
    version: 1,
    tool: 'matrix',
    title: 'Engines <against> Redis',
    state: 'complete',
    startedAt: '2026-01-01T00:00:00.000Z',
    finishedAt: '2026-01-01T00:03:00.000Z',
    argv: ['matrix'],
    rerun: "ardent matrix --op '95 GET {key}'",
    seed: 1,
    options: { clients: 50, quick: true },
    environment: {
      hostname: 'h',
      kernel: 'Linux 6',
      cpuModel: 'A processor',
      cpuCount: 2,
      memoryBytes: 8e9,
      nodeVersion: 'v20',
      ardentVersion: '0.1.0',
      commit: '',
      filesystem: 'ext4',
      diskFreeBytes: 1e9,
      loadAverage: [0.1, 0.1, 0.1],
      cpuGovernor: 'performance',
      clientSharesMachine: true,
      transport: 'TCP over loopback',
      warnings: ['client and servers share 2 processors'],
    },
    targets,
    workloads,
    baseline: 'redis',
    sessions,
    runs,
    cells: cellsOf({
      targets,
      workloads,
      runs,
      sessions,
      baseline: 'redis',
      clientCeiling: [],
      mergeLatencies: true,
    }),
    notes: ['A note </script> with markup'],
  };
}
