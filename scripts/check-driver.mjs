#!/usr/bin/env node
/**
 * Is the bench's own driver fast enough? The raw driver and redis-benchmark send the same rows to the
 * same Redis, taking turns (A B, B A, …). Two figures tell:
 *
 *   rate  operations per second, raw over redis-benchmark: the median of the pairs' ratios. Below 1 the
 *         bench would hide what a fast server can do.
 *   CPU   processor time of the client for an operation, redis-benchmark's over raw's: above 1 raw is the
 *         cheaper one. It holds on a machine that does other things as well, where rates jump.
 *
 *   node scripts/check-driver.mjs [--tests classic] [--pipelines 1,16] [--repeats 5] [--seconds 1]
 *                                 [--clients 50] [--data-size 3] [--workers 1]
 *
 * Exit code 1 when a row's rate is below 0.85.
 */
import { readFileSync } from 'node:fs';
import { LoadPool } from '../dist/bench/load.js';
import { rowsOf } from '../dist/bench/plan.js';
import { runRedisBenchmark } from '../dist/bench/redis-benchmark.js';
import { median } from '../dist/bench/statistics.js';
import { findExecutable, redisTarget } from '../dist/bench/target.js';
import { builtinWorkloads } from '../dist/workloads/builtin.js';
import { readOptions } from './options.mjs';

const LIMIT = 0.85;

const options = readOptions(import.meta.url, {
  tests: { type: 'string', default: 'classic' },
  pipelines: { type: 'string', default: '1,16' },
  repeats: { type: 'string', default: '5' },
  seconds: { type: 'string', default: '1' },
  clients: { type: 'string', default: '50' },
  'data-size': { type: 'string', default: '3' },
  workers: { type: 'string', default: '1' },
});

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

/** Seconds of processor time of this process: of the raw driver, while it runs. */
function ownCpu() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Of the child processes that have ended (cutime and cstime of proc(5), in ticks of 10 ms). */
function childrenCpu() {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[13]) + Number(fields[14])) / 100;
}

const drivers = {
  raw: { run: raw, cpu: ownCpu },
  benchmark: {
    run: (row, requests) => runRedisBenchmark(row, { ...settings, requests }, target.address),
    cpu: childrenCpu,
  },
};

async function measure(name, row, requests) {
  await prepare(row, requests);
  const { run, cpu } = drivers[name];
  const before = cpu();
  const { opsPerSecond } = await run(row, requests);
  return { rate: opsPerSecond, cpuUs: ((cpu() - before) * 1e6) / requests };
}

const count = (value) => Math.round(value).toLocaleString('en');
const line = (cells) => cells.map((cell, at) => (at === 0 ? cell.padEnd(26) : cell.padStart(12))).join('');
console.log(line(['', 'ops/s', '', '', 'CPU µs/op', '', '']));
console.log(line(['row', 'raw', 'redis-b.', 'rate', 'raw', 'redis-b.', 'CPU']));
let slow = 0;
try {
  for (const row of rows) {
    await prepare(row, 50_000);
    // Also warms the driver's code, which redis-benchmark does not need.
    const probe = await raw(row, 50_000);
    const requests = Math.max(10_000, Math.round(probe.opsPerSecond * Number(options.seconds)));
    const made = { raw: [], benchmark: [] };
    for (let repeat = 0; repeat < Number(options.repeats); repeat++) {
      for (const name of repeat % 2 === 0 ? ['raw', 'benchmark'] : ['benchmark', 'raw'])
        made[name].push(await measure(name, row, requests));
    }
    const of = (name, figure) => median(made[name].map((one) => one[figure]));
    const rate = median(made.raw.map((one, pair) => one.rate / made.benchmark[pair].rate));
    if (rate < LIMIT) slow++;
    console.log(
      line([
        row.info.label,
        count(of('raw', 'rate')),
        count(of('benchmark', 'rate')),
        rate.toFixed(2),
        of('raw', 'cpuUs').toFixed(2),
        of('benchmark', 'cpuUs').toFixed(2),
        (of('benchmark', 'cpuUs') / of('raw', 'cpuUs')).toFixed(2),
      ]),
      rate < LIMIT ? '  too slow' : '',
    );
  }
} finally {
  await pool.close();
  await target.stop();
}
process.exitCode = slow > 0 ? 1 : 0;
