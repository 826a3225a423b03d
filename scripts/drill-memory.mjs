#!/usr/bin/env node
/**
 * Measuring drill: memory, restart and sustained writes of a server that holds many keys.
 *
 *     npm run drill:memory -- --engines lmdb --keys 5000000 --value-size 100 --json FILE
 *
 * For each engine, in this order, with /proc and INFO sampled every second:
 *
 * 1. load      pipelined SETs of all keys; GETs beside it, told apart by whether a checkpoint runs
 * 2. settled   memory per key, beside a Redis that holds the same
 * 3. ttl       keys with a deadline vanish from DBSIZE and from the engine's rows, unread
 * 4. restart   ended in order, checked offline, started again
 * 5. overwrite as many SETs at random as there are keys, until the engine has them; the engine alone,
 *              doing the same in a process of its own; Redis with its append-only file, too
 * 6. kill      kill -9 while SETs arrive; first answer, first GET, full speed, all in memory. Killed once
 *              more; SETs of new keys from the first answer on
 *
 * `--tier-memory 32mb` gives the server less memory than there are data: keys for four times as much unless
 * --keys tells how many, a million of them with a deadline, and, after step 4:
 *
 *    large     a hash, a set, a sorted set and a list, each alone larger than the tier; compared in samples
 *              now and after the kill
 *    wide      an EXEC of 10,000 GETs, a SUNIONSTORE and an LRANGE of all, cold: fetches are counted and bounded
 *
 * Each sample's anonymous memory is held against the account of INFO memory. Exit code 3 when it is
 * above it, when keys outlive their deadline, when a command takes more fetches than its bound, or when the
 * server loses a key or an element.
 */
import { fork, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freshDirectory, removeDirectory } from '../dist/bench/child.js';
import { LoadPool } from '../dist/bench/load.js';
import { parseSize } from '../dist/bytes/size.js';
import { findExecutable } from '../dist/bench/target.js';
import { Client } from './drill/client.mjs';
import { Large } from './drill/large.mjs';
import { Probe } from './drill/probe.mjs';
import { DrillServer } from './drill/servers.mjs';
import { Watch } from './drill/watch.mjs';
import { wideCommands, wideHolds } from './drill/wide.mjs';
import { readOptions } from './options.mjs';

const MB = 1024 ** 2;
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const IDLE_PROCESS = here('drill/idle-process.mjs');
const ENGINE_OVERWRITES = here('drill/engine-overwrites.mjs');

/** A key's record, its slot, and what a size class leaves empty: generous, so that the tier never fills up. */
const KEY_MEMORY = 100;
/** A key's record and its slot, at least. */
const KEY_MEMORY_MIN = 45;
/** With --tier-memory: data by tiers, keys with a deadline, elements of each large collection in a sample. */
const TIERS = 4;
const TTL_KEYS = 1_000_000;
const SAMPLES = 1000;
/** Full speed is this part of the rate before the kill. */
const FULL_SPEED = 0.9;
const SLICE_MS_MAX = 10;
/** Load that is under way when the server is killed, as a part of the keys. */
const BURST_SHARE = 0.2;
/** Rows of the index of deadlines for a key that has or had one, at most. */
const INDEX_ROWS_PER_KEY = 0.02;
const SETTLE_MS_MAX = 600_000;
const BROKEN = 3;

const options = readOptions(import.meta.url, {
  engines: { type: 'string', default: 'leveldb,lmdb,rocksdb' },
  keys: { type: 'string' },
  'value-size': { type: 'string', default: '100' },
  'ttl-keys': { type: 'string' },
  'ttl-seconds': { type: 'string' },
  'read-seconds': { type: 'string', default: '20' },
  'new-keys-seconds': { type: 'string', default: '60' },
  'tier-memory': { type: 'string' },
  appendfsync: { type: 'string', default: 'everysec' },
  redis: { type: 'boolean', default: true },
  /** Options for the server's node, e.g. --cpu-prof. */
  node: { type: 'string', default: '' },
  json: { type: 'string' },
});
const valueSize = Number(options['value-size']);
/** Bytes of a tier that is too small on purpose; null: everything fits. */
const smallTier = options['tier-memory'] === undefined ? null : parseSize(options['tier-memory']);
const keys = Number(
  options.keys ??
    (smallTier === null ? 5_000_000 : Math.ceil((TIERS * smallTier) / (valueSize + KEY_MEMORY_MIN))),
);
const ttlKeys = Number(options['ttl-keys'] ?? (smallTier === null ? Math.round(keys / 5) : TTL_KEYS));
/** Time enough to load the keys, and to bring them to the disk, before they are due. */
const ttlSeconds = Number(
  options['ttl-seconds'] ??
    (smallTier === null ? Math.ceil(15 + ttlKeys / 20_000) : Math.ceil(30 + ttlKeys / 8000)),
);
const readSeconds = Number(options['read-seconds']);
const newKeysSeconds = Number(options['new-keys-seconds']);
const tierMemory = smallTier ?? Math.ceil((3 * keys + ttlKeys) * (valueSize + KEY_MEMORY) + 256 * MB);

/**
 * The ceilings of 5 M keys in proportion, so that fewer keys pass them as often: below them writes and
 * write-back would take turns, and sustained writes would not be measured at all.
 */
const share = Math.min(1, keys / 5_000_000);
const ceilings = Object.fromEntries(
  Object.entries({
    'checkpoint-dirty': 512,
    'checkpoint-dirty-max': 1024,
    'checkpoint-log': 1024,
    'checkpoint-log-max': 2048,
  }).map(([name, megabytes]) => [name, String(Math.ceil(megabytes * share * MB))]),
);

const began = Date.now();
const say = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(0).padStart(5)} s  ${text}`);
const mb = (bytes) => `${(bytes / MB).toFixed(0)} MB`;
const ms = (value) =>
  value === null || value === undefined ? '-' : `${value.toFixed(value < 10 ? 2 : 0)} ms`;
const rate = (value) => (value === null ? '-' : `${(value / 1000).toFixed(1)} k/s`);
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1] ?? null;

const pool = new LoadPool(1);

/** Sends load; throws when a reply is an error or the connection is lost. */
async function send(
  address,
  line,
  { requests = null, seconds = null, pipeline = 64, connections = 8, keyspace = keys, intervalSeconds = 1 },
) {
  const outcome = await pool.run({
    address,
    driver: 'raw',
    mix: [{ line, weight: 1, access: line.startsWith('GET') ? 'read' : 'write', name: 'load' }],
    keyspace,
    distribution: 'uniform',
    valueSizes: String(valueSize),
    compressibility: 0,
    verify: false,
    connections,
    pipeline,
    open: null,
    requests,
    seconds,
    warmupSeconds: 0,
    warmupRequests: null,
    intervalSeconds,
    timeoutSeconds: 120,
    seed: 1,
    workers: 1,
  });
  if (outcome.errors > 0)
    throw new Error(`${outcome.errors} error replies; the first: ${outcome.firstError}`);
  return outcome;
}

const LOAD = 'SET {key sequential} {value}';
const OVERWRITE = 'SET {key} {value}';
const READ = 'GET {key}';

class IdleProcess {
  constructor() {
    this.child = fork(IDLE_PROCESS, { execArgv: [] });
  }
  reset() {
    this.child.send('reset');
  }
  report() {
    return new Promise((resolve) => {
      this.child.once('message', resolve);
      this.child.send('report');
    });
  }
  end() {
    this.child.disconnect();
  }
}

/** Event loop delay of the server and of the idle process since `reset`, in ms. */
async function loopDelay(server, idle) {
  const info = await server.control.info();
  const read = (name) => Number(info[`event_loop_delay_usec_${name}`] ?? NaN) / 1000;
  return {
    server: { p50: read('p50'), p99: read('p99'), p999: read('p99.9'), max: read('max') },
    idle: await idle.report(),
  };
}

async function resetDelay(server, idle) {
  await server.control.call('CONFIG RESETSTAT');
  idle.reset();
}

const dbsize = async (server) => Number(await server.control.call('DBSIZE'));

async function drill(engine) {
  const idle = new IdleProcess();
  const nodeOptions = options.node.split(' ').filter(Boolean);
  const server = DrillServer.ardent(
    engine,
    { 'tier-memory': String(tierMemory), appendfsync: options.appendfsync, loglevel: 'notice', ...ceilings },
    nodeOptions,
  );
  let told = 0;
  const watch = new Watch((sample) => {
    if (sample.at - told < 5000) return;
    told = sample.at;
    say(
      `${engine} ${sample.phase.padEnd(9)} anonymous ${mb(sample.anonymous)} (tier ${mb(sample.tierUsed)}, account ` +
        `${sample.account === null ? '-' : mb(sample.account)}), file-backed ${mb(sample.fileBacked)}, ` +
        `${sample.checkpoint}, dirty ${mb(sample.dirty)}, pressure ${sample.pressure.toFixed(2)}`,
    );
  });
  const result = { engine, keys, valueSize };
  try {
    await server.start();
    watch.follow(server);

    watch.phase = 'load';
    await resetDelay(server, idle);
    watch.probe = new Probe(server.port, keys);
    const load = await send(server.address, LOAD, { requests: keys });
    result.load = { opsPerSecond: load.opsPerSecond, seconds: load.seconds };
    say(`${engine} load: ${keys} keys at ${rate(load.opsPerSecond)}`);
    result.load.drainMs = await server.checkpointed(SETTLE_MS_MAX);
    await watch.take();
    watch.probe.stop();
    result.load.gets = watch.probe.summary();
    watch.probe = null;
    result.load.checkpoints = Number(watch.info.checkpoint_checkpoints);
    result.load.delay = await loopDelay(server, idle);
    if ((await dbsize(server)) !== keys)
      throw new Error(`${keys} keys were set, DBSIZE is ${await dbsize(server)}`);

    watch.phase = 'settled';
    await sleep(3000);
    await watch.take();
    const settled = watch.samples.at(-1);
    result.memory = {
      usedPerKey: settled.tierUsed / keys,
      anonymousPerKey: settled.anonymous / keys,
      anonymous: settled.anonymous,
      fileBacked: settled.fileBacked,
    };

    watch.phase = 'ttl';
    result.ttl = await ttlDrill(server);
    say(
      `${engine} ttl: gone from DBSIZE ${ms(result.ttl.goneMs)} after the deadline, checkpoint after ${ms(result.ttl.checkpointMs)}`,
    );

    watch.phase = 'restart';
    result.restart = await restartDrill(server, watch);
    say(
      `${engine} restart: ended in ${ms(result.restart.endMs)}, served after ${ms(result.restart.servedMs)}; rows ${result.restart.rows}`,
    );

    if (smallTier !== null) {
      watch.phase = 'large';
      result.large = await loadLarge(server);
      say(`${engine} large: ${describeLarge(result.large)}`);
      watch.phase = 'wide';
      const client = await Client.connect(server.port);
      result.wide = await wideCommands(server, client, large, keys, keyOf);
      client.close();
      for (const command of result.wide) say(`${engine} wide: ${describeWide(command)}`);
    }

    watch.phase = 'overwrite';
    await resetDelay(server, idle);
    watch.probe = new Probe(server.port, keys);
    const start = performance.now();
    const overwrites = await send(server.address, OVERWRITE, { requests: keys });
    const drainMs = await server.checkpointed(SETTLE_MS_MAX);
    const seconds = (performance.now() - start) / 1000;
    watch.probe.stop();
    result.overwrite = {
      sendPerSecond: overwrites.opsPerSecond,
      drainMs,
      opsPerSecond: keys / seconds,
      gets: watch.probe.summary(),
      delay: await loopDelay(server, idle),
      perSecond: overwrites.series.map((point) => point.opsPerSecond),
    };
    watch.probe = null;
    say(
      `${engine} overwrite: ${rate(result.overwrite.opsPerSecond)} until drained (${ms(drainMs)} of draining)`,
    );

    watch.phase = 'kill';
    result.kill = await killDrill(server, watch);
    say(
      `${engine} kill -9: first GET ${ms(result.kill.firstGetMs)}, full speed ${ms(result.kill.fullSpeedMs)}`,
    );

    result.account = watch.account;
    result.verdicts = watch.verdicts();
    result.slices = watch.slices;
    result.sliceCpu = watch.sliceCpu;
    result.samples = watch.samples;
  } finally {
    watch.unfollow();
    idle.end();
    await server.remove();
  }

  const directory = freshDirectory(`${engine}-alone`);
  const alone = spawnSync(
    process.execPath,
    [ENGINE_OVERWRITES, engine, `${directory}/engine`, String(keys), String(valueSize), String(64 * MB)],
    { encoding: 'utf8' },
  );
  removeDirectory(directory);
  if (alone.status !== 0) throw new Error(`the engine alone failed: ${alone.stderr}`);
  result.engineAlone = JSON.parse(alone.stdout);
  say(
    `${engine} alone: load ${rate(result.engineAlone.load)}, overwrites ${rate(result.engineAlone.overwrite)}`,
  );
  return result;
}

/** What must be larger than the tier: its bytes alone are as many. */
const large =
  smallTier === null
    ? null
    : new Large({ hash: smallTier, set: smallTier, zset: smallTier, list: smallTier });
const keyOf = (i) => `key:${String(i).padStart(12, '0')}`;

async function loadLarge(server) {
  const began = performance.now();
  await Promise.all(
    large.each().map(async (one) => {
      const client = await Client.connect(server.port);
      await one.load(client);
      client.close();
    }),
  );
  const loadMs = performance.now() - began;
  await server.checkpointed(SETTLE_MS_MAX);
  await compareLarge(server);
  return { ...large.sizes, loadMs };
}

async function compareLarge(server) {
  if (large === null) return;
  const client = await Client.connect(server.port);
  const different = await large.sample(client, 0, 0, SAMPLES, (n) => Math.floor(Math.random() * n));
  client.close();
  if (different !== null) throw new Error(`large content: ${different}`);
}

/** Reads other keys, two tiers full, so that those with a deadline have left memory; resolves to how many rows had been fetched. */
async function evictOthers(server) {
  if (smallTier === null) return 0;
  const requests = Math.min(keys, Math.ceil((2 * smallTier) / (valueSize + KEY_MEMORY_MIN)));
  await send(server.address, 'GET {key sequential}', { requests });
  return Number((await server.control.info()).tier_fetched_rows);
}

async function ttlDrill(server) {
  const before = await dbsize(server);
  const deadline = Date.now() + ttlSeconds * 1000;
  await send(server.address, `SET ttl:{index sequential} {value} PXAT ${deadline}`, {
    requests: ttlKeys,
    keyspace: ttlKeys,
  });
  await server.checkpointed(SETTLE_MS_MAX);
  const fetched = await evictOthers(server);
  const loadedMs = deadline - Date.now();
  const loaded = (await dbsize(server)) - before;
  while (Date.now() < deadline) await sleep(deadline - Date.now());
  let left = loaded;
  while (left > 0 && Date.now() - deadline < SETTLE_MS_MAX) {
    await sleep(50);
    left = (await dbsize(server)) - before;
  }
  return {
    keys: ttlKeys,
    loaded,
    /** Less than 0: keys were due before all were on disk. */
    loadedBeforeDeadlineMs: loadedMs,
    left,
    /** Rows that were brought in to remove them. */
    fetched: Number((await server.control.info()).tier_fetched_rows) - fetched,
    goneMs: Date.now() - deadline,
    checkpointMs: await server.checkpointed(SETTLE_MS_MAX),
    purgeMs: await purged(server),
  };
}

/** Waits until the engine has deleted what dropped collections have left. */
async function purged(server) {
  const start = performance.now();
  while ((await server.control.info()).checkpoint_purging !== '0') await sleep(20);
  return performance.now() - start;
}

async function restartDrill(server, watch) {
  const expected = await dbsize(server);
  watch.unfollow();
  const endMs = await server.end();
  server.control = undefined;
  const began = performance.now();
  const rows = server.engineRows();
  const checkMs = performance.now() - began;
  await server.spawn();
  watch.follow(server);
  const { answered, served } = await server.serving(['GET', 'key:000000000000']);
  const info = await server.control.info();
  if ((await dbsize(server)) !== expected)
    throw new Error(`${expected} keys before the restart, not after it`);
  return {
    endMs,
    checkMs,
    rows,
    keys: expected,
    answeredMs: answered,
    servedMs: served,
    loadMs: Number(info.recovered_load_ms),
  };
}

/** Kills the server while SETs arrive and starts it again; resolves when it serves. */
async function killUnderLoad(server, watch, expected) {
  const burst = send(server.address, OVERWRITE, { requests: keys * 2 }).catch((error) => error);
  const target = Number((await server.control.info()).total_commands_processed) + keys * BURST_SHARE;
  while (Number((await server.control.info()).total_commands_processed) < target) await sleep(20);
  const { checkpoint_log_bytes: logBytes, checkpoint_state: state } = await server.control.info();
  watch.unfollow();
  await server.kill();
  server.control = undefined;
  await burst;
  await server.spawn();
  watch.follow(server);
  const { answered, served, reply } = await server.serving(['GET', 'key:000000000001']);
  if (reply !== `$${valueSize}`) throw new Error(`GET after the restart replied ${reply}`);
  const info = await server.control.info();
  const found = await dbsize(server);
  if (found !== expected) throw new Error(`${expected} keys before the kill, ${found} after it`);
  return {
    logBytes: Number(logBytes),
    state,
    answeredMs: answered,
    firstGetMs: served,
    loadMs: Number(info.recovered_load_ms),
    replayMs: Number(info.recovered_replay_ms),
    replayedBytes: Number(info.recovered_log_bytes),
  };
}

/** Milliseconds from the start of the process until all data were in memory, or with --tier-memory as much as there is room for. */
async function warmedMs(server) {
  for (;;) {
    const { tier_complete: complete, tier_warming: warming } = await server.control.info();
    if (complete === '1' || (smallTier !== null && warming === '0'))
      return performance.now() - server.spawnedAt;
    if (performance.now() - server.spawnedAt > SETTLE_MS_MAX) return null;
    await sleep(100);
  }
}

async function killDrill(server, watch) {
  await watch.take();
  const read = (seconds) =>
    send(server.address, READ, { seconds, pipeline: 1, connections: 50, intervalSeconds: 0.25 });
  const expected = await dbsize(server);
  const before = await read(5);
  const full = median(before.series.slice(2).map((point) => point.opsPerSecond));
  const result = { rateBefore: full, ...(await killUnderLoad(server, watch, expected)) };
  const warmed = warmedMs(server);
  const readsBegan = performance.now() - server.spawnedAt;
  const reads = await read(readSeconds);
  const fullAt = reads.series.find((point) => point.opsPerSecond >= full * FULL_SPEED)?.at;
  result.fullSpeedMs = fullAt === undefined ? null : readsBegan + fullAt * 1000;
  result.firstSecond = median(reads.series.slice(0, 4).map((point) => point.opsPerSecond));
  result.warmedMs = await warmed;
  result.misses = reads.misses;
  await compareLarge(server);
  if (newKeysSeconds > 0) {
    await killUnderLoad(server, watch, expected);
    const allWarm = warmedMs(server);
    const fresh = await send(server.address, 'SET new:{index sequential} {value}', {
      seconds: newKeysSeconds,
      pipeline: 1,
      connections: 50,
      keyspace: 999_999_999,
    });
    const perSecond = fresh.series.slice(0, newKeysSeconds).map((point) => point.opsPerSecond);
    result.newKeys = {
      perSecond,
      first: perSecond[0],
      min: Math.min(...perSecond),
      median: median(perSecond),
      warmedMs: await allWarm,
    };
  }
  return result;
}

async function redisBeside() {
  const server = DrillServer.redis();
  try {
    await server.start();
    const load = await send(server.address, LOAD, { requests: keys });
    const watch = new Watch();
    watch.follow(server);
    await sleep(1000);
    await watch.take();
    watch.unfollow();
    const info = await server.control.info();
    const overwrites = await send(server.address, OVERWRITE, { requests: keys });
    return {
      version: info.redis_version,
      loadPerSecond: load.opsPerSecond,
      usedPerKey: Number(info.used_memory) / keys,
      anonymousPerKey: watch.samples.at(-1).anonymous / keys,
      overwritePerSecond: overwrites.opsPerSecond,
    };
  } finally {
    await server.remove();
  }
}

const describeLarge = ({ loadMs, ...sizes }) =>
  `${Object.entries(sizes)
    .map(([name, size]) => `${name} of ${size}`)
    .join(', ')} elements, each larger than the tier, in ${ms(loadMs)}`;
const describeWide = ({ name, rounds, roundsMax, rows, ms: took, right }) =>
  `${name}: ${rounds} fetches (at most ${roundsMax}) of ${rows} rows, ${ms(took)}${right ? '' : ' WRONG REPLY'}`;

/** Label and text of each line of the table. */
function lines(result, redis) {
  const { load, memory, ttl, restart, overwrite, kill, engineAlone, account, verdicts, slices, sliceCpu } =
    result;
  const ratio = (a, b) => (a === null || b === null || b === undefined ? '-' : (a / b).toFixed(2));
  const gets = (all) =>
    ['checkpoint', 'idle']
      .filter((label) => all[label] !== undefined)
      .map(
        (label) =>
          `${label === 'idle' ? 'outside' : 'during'} p50 ${ms(all[label].p50)}, p99 ${ms(all[label].p99)}, ` +
          `p99.9 ${ms(all[label].p999)}, max ${ms(all[label].max)} (${all[label].count})`,
      );
  const delays = ({ server, idle }) =>
    `p50 ${ms(server.p50)}, p99 ${ms(server.p99)}, p99.9 ${ms(server.p999)}, max ${ms(server.max)}; idle process ` +
    `p50 ${ms(idle.p50)}, p99 ${ms(idle.p99)}, p99.9 ${ms(idle.p999)}, max ${ms(idle.max)}`;
  const table = [];
  const row = (label, ...texts) => texts.forEach((text, i) => table.push([i === 0 ? label : '', text]));
  row('load', `${keys} keys at ${rate(load.opsPerSecond)}, ${load.checkpoints} checkpoints`);
  row('GETs in load, by checkpoint', ...gets(load.gets));
  row('GETs in overwrites', ...gets(overwrite.gets));
  const { total, ...parts } = account;
  row(
    'account',
    `${Object.entries(parts)
      .map(([name, bytes]) => `${name} ${mb(bytes)}`)
      .join(' + ')} = ${mb(total)}`,
  );
  for (const [phase, seen] of Object.entries(verdicts)) {
    row(
      `  ${phase}`,
      `${seen.broken === 0 ? 'kept' : `BROKEN in ${seen.broken}`} of ${seen.samples} samples: anonymous at most ` +
        `${mb(seen.anonymous)}, ${mb(seen.beyond)} beside the tier's data (of ${mb(seen.allowedBeyond)}); ` +
        `file-backed ${mb(seen.fileBacked)}`,
    );
  }
  row(
    'memory per key',
    `used ${memory.usedPerKey.toFixed(1)} B, anonymous ${memory.anonymousPerKey.toFixed(1)} B` +
      (redis === null
        ? ''
        : `; Redis ${redis.version}: used ${redis.usedPerKey.toFixed(1)} B, anonymous ${redis.anonymousPerKey.toFixed(1)} B; ` +
          `ratios ${ratio(memory.usedPerKey, redis.usedPerKey)}, ${ratio(memory.anonymousPerKey, redis.anonymousPerKey)}`),
  );
  row(
    'keys with a deadline',
    `${ttl.loaded} loaded and on disk ${ms(ttl.loadedBeforeDeadlineMs)} before it; ${ttl.left === 0 ? 'all gone' : `${ttl.left} LEFT`} ` +
      `from DBSIZE ${ms(ttl.goneMs)} after it, next checkpoint ${ms(ttl.checkpointMs)}`,
    `engine then: ${restart.rows} rows for ${restart.keys} keys${large === null ? '' : `; ${ttl.fetched} rows fetched to remove them`}`,
  );
  if (large !== null) {
    row('large collections', describeLarge(result.large));
    row('wide commands', ...result.wide.map(describeWide));
  }
  row(
    'restart',
    `ended in ${ms(restart.endMs)}; first answer ${ms(restart.answeredMs)}, first GET ${ms(restart.servedMs)} ` +
      `(rows loaded in ${ms(restart.loadMs)}); ardent check ${ms(restart.checkMs)}`,
  );
  const sliceTexts = Object.entries(slices).map(([kind, longest]) => {
    const cpu = sliceCpu[kind];
    const over = (cpu ?? longest) > SLICE_MS_MAX ? ' ABOVE 10 ms' : '';
    return `${kind} ${ms(longest)}${cpu === undefined ? '' : ` (CPU ${ms(cpu)})`}${over}`;
  });
  row('longest slices', sliceTexts.join(', '));
  row('event loop delay, load', delays(load.delay));
  row('event loop delay, overwrites', delays(overwrite.delay));
  row(
    'overwrites until drained',
    `${rate(overwrite.opsPerSecond)} (sent at ${rate(overwrite.sendPerSecond)}, then ${ms(overwrite.drainMs)})`,
    `engine alone ${rate(engineAlone.overwrite)}: ratio ${ratio(overwrite.opsPerSecond, engineAlone.overwrite)}` +
      (redis === null
        ? ''
        : `; Redis AOF everysec ${rate(redis.overwritePerSecond)}: ratio ${ratio(overwrite.opsPerSecond, redis.overwritePerSecond)}`),
  );
  row(
    'kill -9',
    `with ${mb(kill.logBytes)} of log to replay, checkpoint ${kill.state}: first answer ${ms(kill.answeredMs)}, first GET ` +
      `${ms(kill.firstGetMs)} (load ${ms(kill.loadMs)}, replay of ${mb(kill.replayedBytes)} ${ms(kill.replayMs)}), ` +
      `full speed ${ms(kill.fullSpeedMs)} (${rate(kill.rateBefore)} before; ${rate(kill.firstSecond)} in the first second), ` +
      `all in memory ${ms(kill.warmedMs)}`,
    ...(kill.newKeys === undefined
      ? []
      : [
          `SETs of new keys in the first ${kill.newKeys.perSecond.length} s after a kill: median ${rate(kill.newKeys.median)}, ` +
            `first second ${rate(kill.newKeys.first)}, min ${rate(kill.newKeys.min)}; all in memory ${ms(kill.newKeys.warmedMs)}`,
        ]),
  );
  return table;
}

function holds(result) {
  const broken = Object.values(result.verdicts).some((phase) => phase.broken > 0);
  const { ttl, restart, kill } = result;
  // Beside keys there are the meta row and the index of deadlines: a freed page of it stays as a row of a header.
  const others = restart.rows - restart.keys;
  return (
    !broken &&
    ttl.left === 0 &&
    others <= ttl.keys * INDEX_ROWS_PER_KEY + 64 &&
    kill.misses === 0 &&
    (large === null || wideHolds(result.wide))
  );
}

const machine = `${os.cpus().length} x ${os.cpus()[0].model}, ${mb(os.totalmem())}, node ${process.version}`;
say(`${machine}; load average ${os.loadavg().map((load) => load.toFixed(1))}`);
const redis = options.redis && findExecutable('redis-server') !== null ? await redisBeside() : null;
if (redis !== null)
  say(
    `Redis ${redis.version}: load ${rate(redis.loadPerSecond)}, overwrites ${rate(redis.overwritePerSecond)}, used ${redis.usedPerKey.toFixed(1)} B a key`,
  );
const results = [];
for (const engine of options.engines.split(',')) {
  const result = await drill(engine);
  result.loadAverage = os.loadavg();
  results.push(result);
  console.log(
    `\n${engine}, ${keys} keys of ${valueSize} B; load average ${os.loadavg().map((load) => load.toFixed(1))}`,
  );
  for (const [label, text] of lines(result, redis)) console.log(`  ${label.padEnd(30)}${text}`);
  console.log(`  ${'verdict'.padEnd(30)}${holds(result) ? 'holds' : 'DOES NOT HOLD'}\n`);
  if (options.json !== undefined)
    writeFileSync(
      options.json,
      JSON.stringify({ when: new Date().toISOString(), machine, options, redis, results }, null, 2),
    );
}
await pool.close();
process.exit(results.every(holds) ? 0 : BROKEN);
