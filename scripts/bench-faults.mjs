#!/usr/bin/env node
/**
 * What it costs that not all data are in memory: a mix of GET and SET over keys of a zipfian distribution
 * (exponent 0.99), with data 1, 2, 4 and 10 times as large as `tier-memory`. Beside each run the same load on
 * a server whose tier holds everything; the two run in turn, so that both have the same machine.
 *
 *     npm run bench:faults -- --engines lmdb,leveldb,rocksdb --tier-memory 64 --factors 1,2,4,10 --json FILE
 *
 * Then, for each engine, with the largest data: the first minute after a start, and the latency of a GET
 * whose key is in memory, alone and while other connections read keys that are not.
 */
import { writeFileSync } from 'node:fs';
import { removeDirectory } from '../dist/bench/child.js';
import { LoadPool } from '../dist/bench/load.js';
import { median } from '../dist/bench/statistics.js';
import { DrillServer } from './drill/servers.mjs';
import { readOptions } from './options.mjs';

const MB = 1024 ** 2;
/** A key's record and its slot, and what a size class leaves empty. */
const KEY_BYTES = 60;
const SET_SHARE = 10;
/** Keys that stay in memory because nothing else is read as often. */
const HOT_KEYS = 100;

const options = readOptions(import.meta.url, {
  engines: { type: 'string', default: 'lmdb,leveldb,rocksdb' },
  'tier-memory': { type: 'string', default: '64' },
  factors: { type: 'string', default: '1,2,4,10' },
  'value-size': { type: 'string', default: '1000' },
  connections: { type: 'string', default: '16' },
  seconds: { type: 'string', default: '3' },
  'start-seconds': { type: 'string', default: '60' },
  repeats: { type: 'string', default: '3' },
  json: { type: 'string' },
});
const tierBytes = Number(options['tier-memory']) * MB;
const valueSize = Number(options['value-size']);
const seconds = Number(options.seconds);
const repeats = Number(options.repeats);
const factors = options.factors.split(',').map(Number);

const pool = new LoadPool(1);
const other = new LoadPool(1);

function load(pool, server, mix, keyspace, limits, distribution = 'uniform', shape = {}) {
  return pool
    .run({
      address: server.address,
      driver: 'raw',
      mix: mix.map(([line, weight]) => ({
        line,
        weight,
        access: line.startsWith('GET') ? 'read' : 'write',
        name: line,
      })),
      keyspace,
      distribution,
      valueSizes: String(valueSize),
      compressibility: 0,
      verify: false,
      connections: Number(options.connections),
      pipeline: 1,
      open: null,
      requests: null,
      seconds: null,
      warmupSeconds: 0,
      warmupRequests: null,
      intervalSeconds: 1,
      timeoutSeconds: 120,
      seed: 1,
      workers: 1,
      ...limits,
      ...shape,
    })
    .then((outcome) => {
      if (outcome.errors > 0) throw new Error(`${outcome.errors} errors; the first: ${outcome.firstError}`);
      return outcome;
    });
}

const FILL = [['SET {key sequential} {value}', 1]];
const MIX = [
  ['GET {key}', 100 - SET_SHARE],
  ['SET {key} {value}', SET_SHARE],
];
const READ = [['GET {key}', 1]];
const ZIPFIAN = 'zipfian:0.99';

const rate = (outcome) => Math.round(outcome.opsPerSecond);
const p99 = (outcome) => outcome.service.p99Us / 1000;
const ms = (value) => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
const ratio = (value) => value.toFixed(2);
const medianOf = (outcomes, of) => median(outcomes.map(of));

function serverOf(engine, tierMemory) {
  return DrillServer.ardent(engine, { 'tier-memory': String(Math.ceil(tierMemory)) });
}

/** Both servers in turn; medians. */
async function compare(small, whole, keys) {
  const runs = { small: [], whole: [] };
  await load(pool, small, MIX, keys, { seconds }, ZIPFIAN);
  await load(pool, whole, MIX, keys, { seconds: 1 }, ZIPFIAN);
  for (let i = 0; i < repeats; i++) {
    runs.small.push(await load(pool, small, MIX, keys, { seconds }, ZIPFIAN));
    runs.whole.push(await load(pool, whole, MIX, keys, { seconds }, ZIPFIAN));
  }
  return Object.fromEntries(
    Object.entries(runs).map(([name, made]) => [
      name,
      { opsPerSecond: medianOf(made, rate), p99Ms: medianOf(made, p99) },
    ]),
  );
}

async function afterStart(server, keys) {
  await server.end();
  const { served } = await server.start();
  const outcome = await load(pool, server, MIX, keys, { seconds: Number(options['start-seconds']) }, ZIPFIAN);
  return { servedMs: served, series: outcome.series };
}

/** GETs of keys that are in memory, without and with others that fault. */
async function undisturbed(server, keys) {
  const probe = { connections: 1 };
  const alone = [];
  const beside = [];
  for (let i = 0; i < repeats; i++) {
    await load(pool, server, READ, HOT_KEYS, { seconds: 1 });
    alone.push(await load(pool, server, READ, HOT_KEYS, { seconds }, 'uniform', probe));
    const disturbing = load(other, server, READ, keys, { seconds: seconds + 1 }, 'uniform', {
      connections: 4,
    });
    beside.push(await load(pool, server, READ, HOT_KEYS, { seconds }, 'uniform', probe));
    await disturbing;
  }
  return { aloneMs: medianOf(alone, p99), besideMs: medianOf(beside, p99) };
}

const results = [];
for (const engine of options.engines.split(',')) {
  for (const factor of factors) {
    const keys = Math.round((factor * tierBytes) / (valueSize + KEY_BYTES));
    const small = serverOf(engine, tierBytes);
    const whole = serverOf(engine, 2 * factor * tierBytes + 256 * MB);
    const last = factor === factors.at(-1);
    const result = { engine, factor, keys };
    results.push(result);
    try {
      for (const server of [small, whole]) {
        await server.start();
        await load(pool, server, FILL, keys, { requests: keys }, 'uniform', { pipeline: 16 });
      }
      Object.assign(result, await compare(small, whole, keys));
      console.log(
        `${engine}, data ${factor} x tier: ${result.small.opsPerSecond}/s (${ratio(result.small.opsPerSecond / result.whole.opsPerSecond)} of resident), ` +
          `p99 ${ms(result.small.p99Ms)} (resident ${ms(result.whole.p99Ms)})`,
      );
      await whole.kill();
      if (!last) continue;
      result.afterStart = await afterStart(small, keys);
      const rates = result.afterStart.series.map((point) => Math.round(point.opsPerSecond));
      console.log(`  started in ${ms(result.afterStart.servedMs)}; each second then: ${rates.join(' ')}`);
      result.resident = await undisturbed(small, keys);
      const { aloneMs, besideMs } = result.resident;
      console.log(
        `  GET in memory, p99: ${ms(aloneMs)} alone, ${ms(besideMs)} while others fault (${ratio(besideMs / aloneMs)})`,
      );
    } finally {
      for (const server of [small, whole]) {
        await server.kill().catch(() => {});
        removeDirectory(server.directory);
      }
    }
  }
}
await pool.close();
await other.close();
if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ options, results }, null, 2));
