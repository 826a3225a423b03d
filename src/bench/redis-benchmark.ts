/** redis-benchmark as a driver: the field's own tool, its figures taken from its CSV. */
import { spawn } from 'node:child_process';
import type { LoadOutcome } from './load.ts';
import type { Address } from './load-spec.ts';
import type { LoadSettings, Row } from './plan.ts';
import { findExecutable } from './target.ts';

/** One row of `redis-benchmark --csv`. */
export interface BenchmarkRow {
  test: string;
  opsPerSecond: number;
  averageMs: number;
  minMs: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
  maxMs: number;
}

export function parseBenchmarkCsv(csv: string): BenchmarkRow[] {
  const lines = csv.split(/\r?\n/).filter((line) => line.startsWith('"'));
  return lines.slice(1).map((line) => {
    const cells = line.slice(1, -1).split('","');
    const [rps, average, min, p50, p95, p99, max] = cells.slice(-7).map(Number);
    return {
      test: cells.slice(0, -7).join('","'),
      opsPerSecond: rps,
      averageMs: average,
      minMs: min,
      p50Ms: p50,
      p95Ms: p95,
      p99Ms: p99,
      maxMs: max,
    };
  });
}

/** Runs one row's test. redis-benchmark knows counts only, no warm-up, and one value for all requests. */
export async function runRedisBenchmark(
  row: Row,
  settings: LoadSettings,
  address: Address,
): Promise<LoadOutcome> {
  const executable = findExecutable('redis-benchmark');
  if (executable === null) throw new Error('redis-benchmark is not on the PATH');
  const requests = settings.requests;
  if (requests === null) throw new Error('the redis-benchmark driver needs a number of requests (-n)');
  const where =
    address.path === undefined ? ['-h', address.host, '-p', String(address.port)] : ['-s', address.path];
  const login = [
    ...(address.user === undefined ? [] : ['--user', address.user]),
    ...(address.password === undefined ? [] : ['-a', address.password]),
    ...(address.database ? ['--dbnum', String(address.database)] : []),
  ];
  const size = Number(settings.valueSizes);
  if (!Number.isSafeInteger(size)) throw new Error('the redis-benchmark driver knows one value size only');
  // Its own name for these pushes always brings the ranges with it.
  const test = row.workload.id === 'lpush_for_lrange' ? 'lpush' : row.workload.id;
  const what = test.startsWith('lrange_')
    ? ['LRANGE', 'mylist', '0', String(Number(test.slice(7)) - 1)]
    : ['-t', test];
  const args = [
    ...where,
    ...login,
    ...['-c', String(settings.connections), '-n', String(requests), '-d', String(size)],
    ...['-r', String(settings.keyspace), '-P', String(row.pipeline), '--csv', ...what],
  ];
  const startedAt = Date.now();
  const child = spawn(executable, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let complaints = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (complaints += chunk.toString()));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  const [result] = parseBenchmarkCsv(output);
  if (code !== 0 || result === undefined) {
    throw new Error(`redis-benchmark: ${complaints.trim().split('\n').at(-1) || `exit code ${code}`}`);
  }
  const us = (ms: number): number => Math.round(ms * 1000);
  const seconds = requests / result.opsPerSecond;
  return {
    startedAt,
    endedAt: startedAt + seconds * 1000,
    seconds,
    requests,
    opsPerSecond: result.opsPerSecond,
    errors: 0,
    firstError: null,
    hits: 0,
    misses: 0,
    verified: null,
    userBytes: 0,
    service: {
      count: requests,
      minUs: us(result.minMs),
      meanUs: us(result.averageMs),
      maxUs: us(result.maxMs),
      p50Us: us(result.p50Ms),
      p90Us: us(result.p95Ms),
      p95Us: us(result.p95Ms),
      p99Us: us(result.p99Ms),
      p999Us: null,
      p9999Us: null,
      curve: [
        [0, us(result.minMs)],
        [0.5, us(result.p50Ms)],
        [0.95, us(result.p95Ms)],
        [0.99, us(result.p99Ms)],
        [1, us(result.maxMs)],
      ],
      histogram: null,
    },
    intended: null,
    unsent: 0,
    operations: null,
    series: [],
    utilisation: 0,
    cpuShare: null,
    gcPauseMs: 0,
    interrupted: false,
    failure: null,
  };
}
