#!/usr/bin/env node
/**
 * Is the bench's own driver fast enough? The raw driver and redis-benchmark send the same rows to the
 * same Redis, taking turns (A B, B A, …), and the ratios of the medians are printed. Below 1 the bench
 * would hide what a fast server can do.
 *
 *   node scripts/check-driver.mjs [--tests classic] [--pipelines 1,16] [--repeats 5] [--seconds 1]
 *                                 [--clients 50] [--data-size 3] [--workers 1]
 *
 * Exit code 1 when a row's ratio is below 0.85.
 */
import { parseArgs } from 'node:util';
import { LoadPool } from '../dist/bench/load.js';
import { rowsOf } from '../dist/bench/plan.js';
import { runRedisBenchmark } from '../dist/bench/redis-benchmark.js';
import { median } from '../dist/bench/statistics.js';
import { findExecutable, redisTarget } from '../dist/bench/target.js';
import { builtinWorkloads } from '../dist/workloads/builtin.js';
import { showUsage } from './usage.mjs';

const LIMIT = 0.85;

const { values: options } = parseArgs({
  options: {
    tests: { type: 'string', default: 'classic' },
    pipelines: { type: 'string', default: '1,16' },
    repeats: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '1' },
    clients: { type: 'string', default: '50' },
    'data-size': { type: 'string', default: '3' },
    workers: { type: 'string', default: '1' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
if (options.help) showUsage(import.meta.url);

const redis = redisTarget({
  executable: findExecutable('redis-server'),
  durability: 'none',
  reference: false,
});
const target = await redis.start();
const settings = {
  driver: 'raw',
  connections: Number(options.clients),
  workers: Number(options.workers),
  keyspace: 100_000,
  distribution: 'uniform',
  valueSizes: options['data-size'],
  compressibility: 0,
  requests: null,
  seconds: null,
  warmupSeconds: 0,
  intervalSeconds: 1,
  timeoutSeconds: 10,
  verify: false,
  preload: false,
  seed: 1,
};
const pool = new LoadPool(settings.workers);
const rows = rowsOf(
  builtinWorkloads(options.tests.split(',')),
  options.pipelines.split(',').map(Number),
  settings,
);

const raw = (row, requests) =>
  pool.run({
    ...settings,
    address: target.address,
    mix: row.workload.operations,
    pipeline: row.pipeline,
    open: null,
    requests,
    warmupRequests: null,
  });

/** LRANGE needs its list, and pops something to pop; both drivers get the same. */
async function prepare(row, requests) {
  await target.control.call('FLUSHALL');
  const { preload } = row.workload;
  for (const { line, count } of preload) {
    const wanted = count === 'requests' ? requests : count === 'keyspace' ? settings.keyspace : count;
    await pool.run({
      ...settings,
      address: target.address,
      mix: [{ line, weight: 1, access: 'write', name: 'load' }],
      pipeline: 64,
      open: null,
      requests: wanted,
      warmupRequests: null,
    });
  }
}

console.log('row'.padEnd(26), 'raw ops/s'.padStart(12), 'redis-benchmark'.padStart(16), 'ratio'.padStart(7));
let slow = 0;
try {
  for (const row of rows) {
    await prepare(row, 50_000);
    const probe = await raw(row, 20_000);
    const requests = Math.max(10_000, Math.round(probe.opsPerSecond * Number(options.seconds)));
    const rates = { raw: [], benchmark: [] };
    for (let repeat = 0; repeat < Number(options.repeats); repeat++) {
      for (const driver of repeat % 2 === 0 ? ['raw', 'benchmark'] : ['benchmark', 'raw']) {
        await prepare(row, requests);
        const outcome =
          driver === 'raw'
            ? await raw(row, requests)
            : await runRedisBenchmark(row, { ...settings, requests }, target.address);
        rates[driver].push(outcome.opsPerSecond);
      }
    }
    const [a, b] = [median(rates.raw), median(rates.benchmark)];
    const ratio = a / b;
    if (ratio < LIMIT) slow++;
    console.log(
      row.info.label.padEnd(26),
      Math.round(a).toLocaleString('en').padStart(12),
      Math.round(b).toLocaleString('en').padStart(16),
      ratio.toFixed(2).padStart(7),
      ratio < LIMIT ? '  too slow' : '',
    );
  }
} finally {
  await pool.close();
  await target.stop();
}
process.exitCode = slow > 0 ? 1 : 0;
