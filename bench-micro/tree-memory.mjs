/**
 * Bytes an element takes in collections, in the arena's blocks and in a Redis beside it (used_memory).
 * `npm run build && node bench-micro/tree-memory.mjs [elements] [redis-server]`
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Slice } from '../dist/bytes/slice.js';
import { Tier } from '../dist/store/tier.js';

const N = Number(process.argv[2] ?? 300_000);
const binary = process.argv[3] ?? 'redis-server';

/** Random text of a length, by number; the same for both. */
function text(number, length) {
  let x = Math.imul(number + 1, 0x9e3779b1);
  let out = number.toString(36);
  while (out.length < length) out += ((x = Math.imul(x, 0x2545f491) + 1) >>> 1).toString(36);
  return length === 0 ? out : out.slice(0, Math.max(length, number.toString(36).length));
}

const cases = {
  'set, 16 B': (add) => each(N, (i) => add('SADD', 'key', text(i, 16))),
  'zset, 16 B': (add) => each(N, (i) => add('ZADD', 'key', Math.imul(i, 7919) >>> 8, text(i, 16))),
  'hash, 16 B: 16 B': (add) => each(N, (i) => add('HSET', 'key', text(i, 16), text(i + N, 16))),
  'list, 3 B': (add) => each(N, () => add('RPUSH', 'key', 'abc')),
  'list, 16 B': (add) => each(N, (i) => add('RPUSH', 'key', text(i, 16))),
  'list, 100 B': (add) => each(N, (i) => add('RPUSH', 'key', text(i, 100))),
  'zset, 5 x 100 B a key': (add) => each(N, (i) => add('ZADD', `key:${(i / 5) | 0}`, i, text(i, 100))),
  'hash, 5 x 100 B a key': (add) =>
    each(N, (i) => add('HSET', `key:${(i / 5) | 0}`, `f${i % 5}`, text(i, 100))),
  'set, 20 x 10 B a key': (add) => each(N, (i) => add('SADD', `key:${(i / 20) | 0}`, text(i, 10))),
};

function each(n, visit) {
  for (let i = 0; i < n; i++) visit(i);
}

function ours(fill) {
  const tier = new Tier({ hashKey: [1, 2] });
  const db = tier.database(0);
  const before = tier.arena.blockBytes;
  fill((command, key, ...args) => {
    const [first, second] = args.map((arg) => Slice.from(String(arg)));
    const name = Slice.from(key);
    if (command === 'SADD') db.set(name, true).add(first);
    else if (command === 'ZADD') db.zset(name, true).set(second, args[0]);
    else if (command === 'HSET') db.hash(name, true).set(first, second);
    else db.list(name, true).pushRight(first);
    tier.beginCommand();
  });
  return (tier.arena.blockBytes - before) / N;
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function theirs(fill) {
  const directory = mkdtempSync(join(tmpdir(), 'tree-memory-'));
  const port = await freePort();
  const redis = spawn(binary, ['--port', port, '--save', '', '--dir', directory], { stdio: 'ignore' });
  try {
    let socket;
    for (let tries = 0; socket === undefined && tries < 100; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const attempt = connect(port, '127.0.0.1');
      await new Promise((resolve) =>
        attempt.once('connect', () => resolve((socket = attempt))).once('error', resolve),
      );
    }
    let tail = '';
    socket.on('data', (data) => (tail = (tail + data.toString('latin1')).slice(-20_000)));
    const used = async () => {
      socket.write('INFO memory\r\n');
      tail = '';
      while (!/used_memory_scripts_eval/.test(tail)) await new Promise((resolve) => setTimeout(resolve, 20));
      return Number(/used_memory:(\d+)/.exec(tail)[1]);
    };
    const before = await used();
    let batch = '';
    fill((...args) => {
      batch += `*${args.length}\r\n${args.map((a) => `$${String(a).length}\r\n${a}\r\n`).join('')}`;
      if (batch.length > 1 << 20) {
        socket.write(batch);
        batch = '';
      }
    });
    socket.write(batch);
    return ((await used()) - before) / N;
  } finally {
    redis.kill();
    await new Promise((resolve) => redis.once('exit', resolve));
    rmSync(directory, { recursive: true, force: true });
  }
}

for (const [name, fill] of Object.entries(cases)) {
  const [a, b] = [ours(fill), await theirs(fill)];
  console.log(
    `${name.padEnd(24)} ${a.toFixed(1).padStart(7)} B  Redis ${b.toFixed(1).padStart(7)} B  ratio ${(a / b).toFixed(2)}`,
  );
}
process.exit(0);
