#!/usr/bin/env node
/**
 * Do keys with a deadline vanish that are not in memory and that nobody reads? A server with little memory gets
 * strings, and hashes of many pages, that are all due within a second; other data push them out of memory. After the deadline only
 * DBSIZE and INFO are asked for, until the database and the engine have none of them any more.
 *
 *     npm run drill:expiry -- --engines leveldb,lmdb,rocksdb --keys 1000000 --tier-memory 16mb --json FILE
 *
 * The key row of what expires is read once, by the expiry itself: log, replicas and keyspace events name the key, of which
 * the index by deadline has only the hash. Pages of values are not read at all.
 *
 * Exit code 3 when before the deadline more than a tenth of the keys were in memory, when keys are left, when a tenth more
 * rows were read than there were keys, or when the engine has rows of them afterwards.
 */
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseSize } from '../dist/bytes/size.js';
import { DrillServer } from './drill/servers.mjs';
import { readOptions } from './options.mjs';

const PIPELINE = 1000;
/** Each of this many pages at least. */
const PAGES = 10;
const HASHES = 100;
const FIELDS = 200;
/** What pushes the others out: values of this size, twice as many as fit. */
const OTHER_BYTES = 1000;
/** Deadlines differ, as they do when they are set one after the other. */
const SPREAD_MS = 1000;
const RESIDENT_MAX = 0.1;
/** Rows read for a key, at most: its own, and pages of the index. */
const FETCHED_PER_KEY = 1.1;
/** Rows of the index of deadlines for a key, at most: a freed page stays as a row of a header. */
const INDEX_ROWS_PER_KEY = 0.02;
const WAIT_MS_MAX = 1_800_000;
const BROKEN = 3;

const options = readOptions(import.meta.url, {
  engines: { type: 'string', default: 'leveldb,lmdb,rocksdb' },
  keys: { type: 'string', default: '1000000' },
  'value-size': { type: 'string', default: '100' },
  'tier-memory': { type: 'string', default: '16mb' },
  'ttl-seconds': { type: 'string' },
  json: { type: 'string' },
});
const keys = Number(options.keys);
/** Time enough to load all of it, and to push it out of memory. */
const ttlSeconds = Number(options['ttl-seconds'] ?? Math.ceil(30 + keys / 10_000));
const others = Math.ceil((2 * parseSize(options['tier-memory'])) / OTHER_BYTES);
const value = 'v'.repeat(Number(options['value-size']));
const pairs = Array.from({ length: FIELDS }, (_, i) => `field:${i} ${value}`).join(' ');

const started = Date.now();
const say = (line) => console.log(`${((Date.now() - started) / 1000).toFixed(0).padStart(5)} s  ${line}`);

async function each(server, count, command) {
  for (let from = 0; from < count; from += PIPELINE) {
    const length = Math.min(PIPELINE, count - from);
    await Promise.all(Array.from({ length }, (_, i) => server.control.call(command(from + i))));
  }
}

async function counters(server) {
  const info = await server.control.info();
  return [
    Number(await server.control.call('DBSIZE')),
    ...[
      'tier_resident_keys',
      'tier_fetched_rows',
      'tier_fetch_rounds',
      'expired_keys',
      'longest_slice_cpu_usec_expire-cycle',
    ].map((field) => Number(info[field] ?? 0)),
  ];
}

const indexRows = () => Math.ceil(keys * INDEX_ROWS_PER_KEY) + HASHES;

async function drill(engine) {
  const server = DrillServer.ardent(engine, { 'tier-memory': options['tier-memory'], loglevel: 'notice' });
  try {
    await server.start();
    const deadline = Date.now() + ttlSeconds * 1000;
    await each(
      server,
      keys,
      (i) => `SET ttl:${i} ${value} PXAT ${deadline + Math.floor((i * SPREAD_MS) / keys)}`,
    );
    await each(server, HASHES, (i) => `HSET hash:${i} ${pairs}`);
    await each(server, HASHES, (i) => `PEXPIREAT hash:${i} ${deadline}`);
    await server.checkpointed(WAIT_MS_MAX, true);
    await each(server, others, (i) => `SET other:${i} ${'o'.repeat(OTHER_BYTES)}`);
    await server.checkpointed(WAIT_MS_MAX, true);
    const expiring = keys + HASHES;
    const all = expiring + others;
    const [loaded, resident, rowsBefore, roundsBefore] = await counters(server);
    if (loaded !== all || Date.now() > deadline)
      throw new Error(`${loaded} of ${all} keys when all were on disk: say a larger --ttl-seconds`);
    say(
      `${engine}: ${all} keys, ${resident} of them in memory, ${((deadline - Date.now()) / 1000).toFixed(0)} s before the deadline`,
    );
    await sleep(deadline - Date.now());
    let told = Date.now();
    let left = expiring;
    while (left > 0 && Date.now() - deadline < WAIT_MS_MAX) {
      await sleep(100);
      left = Number(await server.control.call('DBSIZE')) - others;
      if (Date.now() - told > 10_000) {
        told = Date.now();
        say(`${engine}: ${left} left`);
      }
    }
    const goneMs = Date.now() - deadline;
    const [, , rowsAfter, roundsAfter, expired, longest] = await counters(server);
    const diskMs = await server.checkpointed(WAIT_MS_MAX, true);
    await server.end();
    const result = {
      engine,
      expiring,
      resident,
      left,
      expired,
      goneMs,
      diskMs,
      fetched: rowsAfter - rowsBefore,
      rounds: roundsAfter - roundsBefore,
      longestSliceMs: longest / 1000,
      rowsLeft: server.engineRows() - others,
    };
    const holds =
      resident <= all * RESIDENT_MAX &&
      left === 0 &&
      result.fetched <= expiring * FETCHED_PER_KEY &&
      result.rowsLeft <= indexRows();
    say(
      `${engine}: ${expired} keys gone from DBSIZE ${(goneMs / 1000).toFixed(1)} s after the deadline, from the engine ` +
        `${(diskMs / 1000).toFixed(1)} s later; ${result.fetched} rows read in ${result.rounds} rounds (keys have ${expiring}, pages at least ` +
        `${HASHES * PAGES}); ${result.rowsLeft} rows left; longest slice ${result.longestSliceMs.toFixed(1)} ms of CPU: ` +
        (holds ? 'holds' : 'DOES NOT HOLD'),
    );
    return { ...result, holds };
  } finally {
    await server.remove();
  }
}

say(
  `load average ${os
    .loadavg()
    .map((load) => load.toFixed(1))
    .join(', ')}`,
);
const results = [];
for (const engine of options.engines.split(',')) results.push(await drill(engine));
if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ options, results }, null, 2));
process.exit(results.every(({ holds }) => holds) ? 0 : BROKEN);
