#!/usr/bin/env node
/**
 * Does memory follow when data shrink? A server is filled with small values, which larger ones replace; nine of ten
 * keys are deleted at random; many small collections give way to a few large ones; FLUSHALL. After each step, when
 * nothing moves any more: what is used (INFO memory), what the process holds beyond what it held when it was
 * empty, and how that compares; a Redis beside it. In the end, what is left of what the fill with larger values took
 * (usable memory by INFO memory, anonymous and file pages by the kernel).
 *
 *     npm run drill:shrink -- --engines leveldb,lmdb,rocksdb --keys 400000 --json FILE
 *
 * Exit code 3 when after FLUSHALL chunks are held, or more than a tenth of what the fill took, where that was 1 GB or more.
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { sampleProcess } from '../dist/bench/process-sample.js';
import { DrillServer } from './drill/servers.mjs';
import { readOptions } from './options.mjs';

const MB = 1024 ** 2;
const SMALL = 100;
const LARGE = 3000;
/** Fields of a small collection; the large ones are this many times as large. */
const FIELDS = 5;
const LARGE_SHARE = 2000;
const PIPELINE = 1000;
const SETTLE_MS_MAX = 120_000;
const BROKEN = 3;
/** What may be left of a fill, as a share; beside a smaller fill the process itself weighs too much. */
const LEFT_MAX = 0.1;
const FILL_BYTES_MIN = 1024 * MB;

const options = readOptions(import.meta.url, {
  engines: { type: 'string', default: 'leveldb,lmdb,rocksdb' },
  keys: { type: 'string', default: '400000' },
  redis: { type: 'boolean', default: true },
  json: { type: 'string' },
});
const keys = Number(options.keys);
const collections = Math.round(keys / 4);

/** mulberry32: the same keys go on every server. */
function generator(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Sends `count` commands, some thousand at a time. */
async function each(server, count, command) {
  for (let from = 0; from < count; from += PIPELINE) {
    const lines = [];
    for (let i = from; i < Math.min(count, from + PIPELINE); i++) {
      const line = command(i);
      if (line !== null) lines.push(line);
    }
    await Promise.all(lines.map((line) => server.control.call(line)));
  }
}

const set = (bytes) => (server) => each(server, keys, (i) => `SET key:${i} ${text(i, bytes)}`);
const text = (i, bytes) => `${i}.`.repeat(Math.ceil(bytes / 2)).slice(0, bytes);

const FILL = `replaced by ${LARGE} B`;
const STEPS = [
  ['started', async () => {}],
  [`${keys} values of ${SMALL} B`, set(SMALL)],
  [FILL, set(LARGE)],
  [
    'nine of ten deleted at random',
    async (server) => {
      const random = generator(1);
      await each(server, keys, (i) => (random() < 0.9 ? `DEL key:${i}` : null));
    },
  ],
  [
    `${collections} small hashes`,
    (server) =>
      each(server, collections * FIELDS, (i) => `HSET small:${i % collections} field:${i} ${text(i, SMALL)}`),
  ],
  [
    'replaced by a few large ones',
    async (server) => {
      await each(server, collections, (i) => `DEL small:${i}`);
      const large = Math.ceil(collections / LARGE_SHARE);
      await each(server, collections * FIELDS, (i) => `HSET large:${i % large} field:${i} ${text(i, SMALL)}`);
    },
  ],
  ['FLUSHALL', (server) => server.control.call('FLUSHALL')],
];

/** Waits until the engine has everything, nothing is moved, and the process's memory stays what it is. */
async function settled(server, ardent) {
  const end = Date.now() + SETTLE_MS_MAX;
  if (ardent) await server.control.call('BGREWRITEAOF');
  let before = null;
  while (Date.now() < end) {
    await sleep(1500);
    const info = await server.control.info();
    const kernel = sampleProcess(server.pid);
    const now = {
      used: Number(info.used_memory),
      blocks: Number(info.allocator_allocated),
      slabs: Number(info.allocator_active),
      chunks: Number(info.allocator_resident),
      anonymous: kernel.rssAnonBytes,
      rss: kernel.rssAnonBytes + kernel.rssFileBytes,
      info,
    };
    const still =
      !ardent ||
      (info.checkpoint_state === 'idle' &&
        info.checkpoint_log_bytes === '0' &&
        info.active_defrag_running === '0');
    if (
      still &&
      before !== null &&
      Math.abs(before.anonymous - now.anonymous) < MB &&
      before.chunks === now.chunks
    )
      return now;
    before = now;
  }
  return before;
}

/** What is left in the end as a share of what the fill took, each beyond what there was at the start. */
function tellLeft(name, ardent, steps) {
  const start = steps[0];
  const fill = steps.find(({ step }) => step === FILL);
  const left = steps.at(-1);
  const share = (of) => (left[of] - start[of]) / (fill[of] - start[of]);
  const percent = (of) => `${(100 * share(of)).toFixed(1)}%`;
  const mb = (bytes) => (bytes / MB).toFixed(0);
  console.log(
    `${name.padEnd(8)} left of the fill's ${mb(fill.used - start.used)} MB: ` +
      `used ${percent('used')}, anonymous ${percent('anonymous')} (${mb(left.anonymous - start.anonymous)} MB), with file pages ${percent('rss')}`,
  );
  if (!ardent || fill.used - start.used < FILL_BYTES_MIN) return;
  if (['used', 'anonymous'].some((of) => share(of) > LEFT_MAX)) process.exitCode = BROKEN;
}

async function drill(name, server) {
  const ardent = name !== 'redis';
  const steps = [];
  try {
    await server.start();
    for (const [step, run] of STEPS) {
      await run(server);
      const { info, ...memory } = await settled(server, ardent);
      steps.push({ step, ...memory });
      const grown = memory.anonymous - steps[0].anonymous;
      const grownUsed = memory.used - steps[0].used;
      const mb = (bytes) => (bytes / MB).toFixed(1).padStart(7);
      console.log(
        `${name.padEnd(8)} ${step.padEnd(30)} used ${mb(memory.used)} MB, ` +
          (ardent
            ? `blocks ${mb(memory.blocks)}, slabs ${mb(memory.slabs)}, chunks ${mb(memory.chunks)}, `
            : '') +
          `anonymous ${mb(memory.anonymous)} MB; since the start: used ${mb(grownUsed)}, anonymous ${mb(grown)}` +
          (grownUsed > MB ? ` (${(grown / grownUsed).toFixed(2)})` : ''),
      );
      if (step === 'FLUSHALL' && ardent) {
        for (const kind of ['active-defrag-cycle', 'memory-release', 'background'])
          console.log(
            `         longest slice of ${kind}: ${(Number(info[`longest_slice_cpu_usec_${kind}`] ?? 0) / 1000).toFixed(1)} ms of CPU, ` +
              `${(Number(info[`longest_slice_usec_${kind}`] ?? 0) / 1000).toFixed(1)} ms by the clock; blocks moved: ${info.active_defrag_hits}`,
          );
        if (memory.blocks > 0 || memory.chunks > 0) process.exitCode = BROKEN;
      }
      if (step === 'FLUSHALL') tellLeft(name, ardent, steps);
    }
  } finally {
    await server.remove();
  }
  return { name, steps };
}

const results = [];
for (const engine of options.engines.split(','))
  results.push(
    await drill(engine, DrillServer.ardent(engine, { 'tier-memory': String(64 * MB + 5 * keys * LARGE) })),
  );
if (options.redis) results.push(await drill('redis', DrillServer.redis()));
if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ options, results }, null, 2));
