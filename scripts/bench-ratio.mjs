#!/usr/bin/env node
/**
 * redis-benchmark's rows on our server with each engine, on Redis without persistence, on Redis with
 * its append-only file synced every second (our own durability), and on a bare Node responder (the
 * floor: what a Node process that only parses requests can reach). All servers stand side by side,
 * all but the one under test are stopped (SIGSTOP); each row goes round the servers several times,
 * and the medians and their ratios are printed. Ours has its log on and checkpoints running.
 *
 * At the end a sustained load: SETs of 5 million keys at random, once per server, until checkpoints
 * and rewrites of the append-only file have long begun. All of it takes about 40 minutes.
 *
 *   npm run bench:ratio -- [--rows SET,GET,SUSTAINED] [--pipelines 1,16] [--repeats 3] [--seconds 3]
 *                          [--engines lmdb,leveldb,rocksdb] [--baseline DIR] [--json FILE]
 *
 * `--baseline DIR`: a built checkout of another version; its server with each engine stands beside
 * ours, named "lmdb before", and a third ratio, ours to it, is printed: what a change costs or gains.
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child, freePort, freshDirectory, removeDirectory } from '../dist/bench/child.js';
import { sampleProcess } from '../dist/bench/process-sample.js';
import { parseBenchmarkCsv } from '../dist/bench/redis-benchmark.js';
import { median } from '../dist/bench/statistics.js';
import { readOptions } from './options.mjs';

const KEYSPACE = 1_000_000;
const VALUE_BYTES = 100;
const CLIENTS = 50;
/** Pops are measured on collections this much longer than what the row takes. */
const SPARE = 1.3;
/** A warm-up is as long as this, at the row's rate so far; before that is known it has these requests. */
const WARM_SECONDS = 0.3;
const WARM_REQUESTS = 20_000;
const WARM_REQUESTS_HEAVY = 2_000;
/** The sustained load. */
const SUSTAINED = 'SUSTAINED';
const SUSTAINED_KEYS = 5_000_000;
const SUSTAINED_REQUESTS = 10_000_000;
const SUSTAINED_PIPELINE = 16;

const options = readOptions(import.meta.url, {
  rows: { type: 'string' },
  pipelines: { type: 'string', default: '1,16' },
  repeats: { type: 'string', default: '3' },
  seconds: { type: 'string', default: '3' },
  engines: { type: 'string', default: 'leveldb,lmdb,rocksdb' },
  baseline: { type: 'string' },
  json: { type: 'string' },
});

const value = 'x'.repeat(VALUE_BYTES);
const digits = (n) => String(n).padStart(12, '0');

/** name -> redis-benchmark arguments; `fill(n)`: what must stand before n requests are made; `uses`: filled once. */
const ROWS = {
  PING: { args: ['-t', 'ping_mbulk'] },
  SET: { args: ['-t', 'set'] },
  GET: { args: ['-t', 'get'], uses: 'keys' },
  INCR: { args: ['-t', 'incr'] },
  LPUSH: { args: ['-t', 'lpush'], before: ['DEL', 'mylist'] },
  RPUSH: { args: ['-t', 'rpush'], before: ['DEL', 'mylist'] },
  LPOP: { args: ['-t', 'lpop'], fill: 'mylist' },
  RPOP: { args: ['-t', 'rpop'], fill: 'mylist' },
  SADD: { args: ['-t', 'sadd'], before: ['DEL', 'myset'] },
  HSET: { args: ['-t', 'hset'], before: ['DEL', 'myhash'] },
  SPOP: { args: ['-t', 'spop'], fill: 'myset' },
  ZADD: { args: ['-t', 'zadd'], before: ['DEL', 'myzset'] },
  ZPOPMIN: { args: ['-t', 'zpopmin'], fill: 'myzset' },
  LRANGE_100: { args: ['LRANGE', 'ranged', '0', '99'], uses: 'ranged', heavy: true },
  LRANGE_300: { args: ['LRANGE', 'ranged', '0', '299'], uses: 'ranged', heavy: true },
  LRANGE_500: { args: ['LRANGE', 'ranged', '0', '499'], uses: 'ranged', heavy: true },
  LRANGE_600: { args: ['LRANGE', 'ranged', '0', '599'], uses: 'ranged', heavy: true },
  MSET: { args: ['-t', 'mset'], heavy: true },
};

/** Commands that bring `name` to `n` elements; a generator of argument arrays. */
const FILLS = {
  *keys() {
    for (let i = 0; i < KEYSPACE; i += 50) {
      const command = ['MSET'];
      for (let k = i; k < i + 50; k++) command.push(`key:${digits(k)}`, value);
      yield command;
    }
  },
  *ranged() {
    for (let i = 0; i < 1000; i += 100) yield ['RPUSH', 'ranged', ...Array(100).fill(value)];
  },
  *mylist(n) {
    yield ['DEL', 'mylist'];
    for (let i = 0; i < n; i += 100) yield ['RPUSH', 'mylist', ...Array(100).fill(value)];
  },
  *myset(n) {
    yield ['DEL', 'myset'];
    for (let i = 0; i < n; i += 100) {
      yield ['SADD', 'myset', ...Array.from({ length: 100 }, (_, k) => `element:${digits(i + k)}`)];
    }
  },
  *myzset(n) {
    yield ['DEL', 'myzset'];
    for (let i = 0; i < n; i += 50) {
      const command = ['ZADD', 'myzset'];
      for (let k = i; k < i + 50; k++) command.push(String((k * 7919) % n), `element:${digits(k)}`);
      yield command;
    }
  },
};

/** Sends the commands pipelined, a window at a time; rejects on the first error reply. */
async function send(port, commands) {
  const socket = net.connect(port, '127.0.0.1');
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  let pending = 0;
  let wake;
  let failure;
  socket.on('data', (bytes) => {
    if (bytes[0] === 45) failure = new Error(bytes.toString('latin1', 0, 200).trim());
    for (let i = bytes.indexOf(10); i >= 0; i = bytes.indexOf(10, i + 1)) pending--;
    wake?.();
  });
  socket.on('close', () => ((failure ??= new Error('connection closed')), wake?.()));
  for (const command of commands) {
    socket.write(`*${command.length}\r\n${command.map((a) => `$${a.length}\r\n${a}\r\n`).join('')}`);
    pending++;
    while (pending >= 64 && !failure) await new Promise((resolve) => (wake = resolve));
    if (failure) throw failure;
  }
  while (pending > 0 && !failure) await new Promise((resolve) => (wake = resolve));
  if (failure && pending > 0) throw failure;
  socket.removeAllListeners('close');
  socket.destroy();
}

const servers = [];

async function start(name, command, args) {
  const port = await freePort();
  const directory = freshDirectory(name);
  const child = await Child.start(
    command,
    args(port, directory),
    directory,
    path.join(directory, 'output.log'),
  );
  const server = { name, port, directory, child, filled: new Set(), rates: new Map() };
  servers.push(server);
  for (let i = 0; i < 300 && child.running; i++) {
    const up = await send(port, [['PING']]).then(
      () => true,
      () => false,
    );
    if (up) return server;
    await sleep(100);
  }
  throw new Error(`${name} did not start: ${child.obituary()}`);
}

/** CPU seconds of a process so far; NaN when it has ended. */
const cpuSeconds = (pid) => sampleProcess(pid)?.cpuSeconds ?? NaN;

/** Of them, those of its first thread: the event loop. */
const loopSeconds = (pid) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ')[0]) / 1e9;

/** One redis-benchmark run: rate, and CPU of both sides. */
async function run(server, args, { pipeline, requests, keyspace = KEYSPACE }) {
  const { pid } = server.child;
  const before = cpuSeconds(pid);
  const loopBefore = loopSeconds(pid);
  const began = performance.now();
  const child = spawn(
    'redis-benchmark',
    [
      ...['-h', '127.0.0.1', '-p', String(server.port), '-c', String(CLIENTS), '-n', String(requests)],
      ...['-r', String(keyspace), '-d', String(VALUE_BYTES), '-P', String(pipeline), '--csv'],
      ...args,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let output = '';
  let errors = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (errors += chunk));
  let clientCpu = 0;
  const sampler = setInterval(() => (clientCpu = cpuSeconds(child.pid) || clientCpu), 50);
  await new Promise((resolve) => child.on('close', resolve));
  clearInterval(sampler);
  const seconds = (performance.now() - began) / 1000;
  const rate = parseBenchmarkCsv(output).at(-1)?.opsPerSecond;
  if (!(rate > 0)) throw new Error(`${server.name} ${args.join(' ')}: ${errors || output || 'no result'}`);
  const serverCpu = cpuSeconds(pid) - before;
  const loopCpu = loopSeconds(pid) - loopBefore;
  return {
    rate,
    loopMicros: (loopCpu / requests) * 1e6,
    otherMicros: (Math.max(0, serverCpu - loopCpu) / requests) * 1e6,
    clientBusy: clientCpu / seconds,
    serverBusy: serverCpu / seconds,
  };
}

/** A row on one server: fill, warm up (discarded), measure for about `seconds`. */
async function measure(server, row, pipeline, seconds) {
  const { args, before, fill, uses, heavy } = ROWS[row];
  process.kill(server.child.pid, 'SIGCONT');
  try {
    const prepare = async (requests) => {
      if (server.bare) return;
      if (before) await send(server.port, [before]);
      if (fill) await send(server.port, FILLS[fill](requests * SPARE));
    };
    if (uses && !server.bare && !server.filled.has(uses)) {
      await send(server.port, FILLS[uses]());
      server.filled.add(uses);
    }
    const known = server.rates.get(`${row} ${pipeline}`);
    const warmRequests = known
      ? Math.ceil(known * WARM_SECONDS)
      : heavy
        ? WARM_REQUESTS_HEAVY
        : WARM_REQUESTS;
    await prepare(warmRequests);
    const warm = await run(server, args, { pipeline, requests: warmRequests });
    const requests = Math.ceil((Math.max(warm.rate, known ?? 0) * seconds) / 1000) * 1000;
    await prepare(requests);
    const measured = await run(server, args, { pipeline, requests });
    server.rates.set(`${row} ${pipeline}`, measured.rate);
    return measured;
  } finally {
    process.kill(server.child.pid, 'SIGSTOP');
  }
}

/** The sustained load on one server, which is empty before and after. */
async function sustain(server) {
  process.kill(server.child.pid, 'SIGCONT');
  try {
    await send(server.port, [['FLUSHALL']]);
    return await run(server, ['-t', 'set'], {
      pipeline: SUSTAINED_PIPELINE,
      requests: SUSTAINED_REQUESTS,
      keyspace: SUSTAINED_KEYS,
    });
  } finally {
    await send(server.port, [['FLUSHALL']]);
    server.filled.clear();
    process.kill(server.child.pid, 'SIGSTOP');
  }
}

const names = [...Object.keys(ROWS), SUSTAINED];
const wanted = options.rows ? options.rows.split(',').map((row) => row.toUpperCase()) : names;
for (const row of wanted)
  if (!names.includes(row)) throw new Error(`unknown row ${row}; rows: ${names.join(' ')}`);
const rows = wanted.filter((row) => row !== SUSTAINED);
const engines = options.engines.split(',').filter(Boolean);
const repeats = Number(options.repeats);
const seconds = Number(options.seconds);
const main = 'dist/cli/main.js';
const checkouts = [['', new URL('..', import.meta.url).pathname]];
if (options.baseline) checkouts.push([' before', options.baseline]);
const bare = new URL('../dist/bench/bare-responder.js', import.meta.url).pathname;

for (const [engine, [suffix, checkout]] of engines.flatMap((e) => checkouts.map((c) => [e, c]))) {
  await start(engine + suffix, process.execPath, (port, dir) => [
    path.join(checkout, main), 'server', '--engine', engine, '--port', String(port), '--dir', path.join(dir, 'data'),
    '--appendfsync', 'everysec', '--tier-memory', '4gb',
    // By the bytes that change, not by the time in which the server stands still while others are measured.
    '--checkpoint-age', '3600',
  ]); // prettier-ignore
}
const redis =
  (...persistence) =>
  (port, dir) => ['--port', String(port), '--dir', dir, '--save', '', ...persistence];
await start('redis', 'redis-server', redis('--appendonly', 'no'));
await start('redis aof', 'redis-server', redis('--appendonly', 'yes', '--appendfsync', 'everysec'));
(await start('bare node', process.execPath, (port) => [bare, String(port)])).bare = true;
for (const { child } of servers) process.kill(child.pid, 'SIGSTOP');

const results = [];
const began = performance.now();
const width = 12;
const cellWidth = 24;
const ratioTo = (entry, name, base) => (entry.servers[name].rate / entry.servers[base].rate).toFixed(2);

/** Two lines: thousand requests a second with the CPU of each, and the ratios. */
function print(entry) {
  const measured = servers.filter(({ name }) => name in entry.servers);
  const cells = measured.map(({ name }) => {
    const { rate, loopMicros, otherMicros, clientBusy } = entry.servers[name];
    const cpu = `${loopMicros.toFixed(2)}+${otherMicros.toFixed(2)}`;
    return `${(rate / 1000).toFixed(1)} (${cpu})${clientBusy > 0.9 ? '*' : ' '}`.padStart(cellWidth);
  });
  console.log([entry.row.padEnd(width), ...cells].join(''));
  const ratios = measured.map(({ name }) => {
    const bases = ['redis', 'redis aof', `${name} before`].filter((base) => base in entry.servers);
    return `${bases.map((base) => ratioTo(entry, name, base)).join(' / ')} `.padStart(cellWidth);
  });
  console.log([''.padEnd(width), ...ratios].join(''));
}

const heading = (text, measured) =>
  console.log(
    `\n${text}: thousand requests/s (CPU us/request: event loop + other threads); ratios to redis / redis aof${options.baseline ? ' / before' : ''}\n` +
      ['row'.padEnd(width), ...measured.map(({ name }) => name.padStart(cellWidth))].join(''),
  );

for (const pipeline of rows.length === 0 ? [] : options.pipelines.split(',').map(Number)) {
  heading(
    `-c ${CLIENTS} -r ${KEYSPACE} -d ${VALUE_BYTES} -P ${pipeline}, ${seconds} s a row, median of ${repeats}`,
    servers,
  );
  for (const row of rows) {
    const runs = new Map(servers.map((server) => [server, []]));
    for (let i = 0; i < repeats; i++) {
      for (const server of i % 2 ? [...servers].reverse() : servers) {
        // The floor needs no precision.
        if (server.bare && i > 0) continue;
        runs.get(server).push(await measure(server, row, pipeline, server.bare ? 1 : seconds));
      }
    }
    const entry = { row, pipeline, servers: {} };
    for (const [server, list] of runs) {
      const middle = (field) => median(list.map((run) => run[field]));
      entry.servers[server.name] = {
        rate: middle('rate'),
        loopMicros: middle('loopMicros'),
        otherMicros: middle('otherMicros'),
        clientBusy: middle('clientBusy'),
        serverBusy: middle('serverBusy'),
        rates: list.map((run) => run.rate),
      };
    }
    results.push(entry);
    print(entry);
  }
}
if (wanted.includes(SUSTAINED)) {
  const measured = servers.filter(({ bare }) => !bare);
  heading(
    `${SUSTAINED_REQUESTS} SETs of ${SUSTAINED_KEYS} keys at random, ${VALUE_BYTES} B, -P ${SUSTAINED_PIPELINE}, once`,
    measured,
  );
  const entry = { row: SUSTAINED, pipeline: SUSTAINED_PIPELINE, servers: {} };
  for (const server of measured) entry.servers[server.name] = await sustain(server);
  results.push(entry);
  print(entry);
}
console.log(
  `* redis-benchmark itself used more than 90% of a core: the load generator may be the limit\n` +
    `${((performance.now() - began) / 60_000).toFixed(1)} minutes; load average ${os.loadavg()[0].toFixed(1)}`,
);
if (options.json)
  writeFileSync(options.json, JSON.stringify({ when: new Date().toISOString(), options, results }, null, 2));
for (const { child, directory } of servers) {
  await child.stop('SIGKILL');
  removeDirectory(directory);
}
