#!/usr/bin/env node
/**
 * Crash drill: a server under writers with known content is killed at random moments and started again;
 * nothing acknowledged may be lost, nothing half-done.
 *
 *     npm run drill:crash -- --rounds 100 --engines leveldb,lmdb,rocksdb --appendfsync everysec --damage 5
 *
 * Each writer has a database of its own and runs numbered steps, each one MULTI … EXEC over values of
 * every type, so that all content follows from the number of the last step. After a kill that number
 * must be at least the last one acknowledged, and every value must be what it is after exactly that step.
 * In every `--damage`th round the log's tail is cut or overwritten as well: then the content must be that
 * of the log before the first damaged frame, after `ardent check --repair` where the start refuses.
 *
 * With `--tier-memory 16mb` there are also data that do not fit: for each writer keys of that size, together
 * four times as much, and a hash, a set, a sorted set or a list that is larger alone. Each step changes some of
 * it; what has been changed since the last kill is compared, and samples, and every tenth time all of it.
 */
import { spawn } from 'node:child_process';
import {
  mkdtempSync,
  openSync,
  closeSync,
  readSync,
  writeSync,
  ftruncateSync,
  fstatSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort, guardProcess } from '../dist/bench/child.js';
import { parseSize } from '../dist/bytes/size.js';
import { Client } from './drill/client.mjs';
import { Large } from './drill/large.mjs';
import { readOptions } from './options.mjs';

const MAIN = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const WRITERS = 4;
/** Steps that a writer sends before it waits for the oldest reply. */
const OUTSTANDING = 16;
const SEGMENT_HEADER = 128;
const FRAME_HEADER = 32;
const START_MS_MAX = 30_000;

const options = readOptions(import.meta.url, {
  rounds: { type: 'string', default: '100' },
  engines: { type: 'string', default: 'leveldb,lmdb,rocksdb' },
  appendfsync: { type: 'string', default: 'everysec' },
  damage: { type: 'string', default: '5' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  'life-ms': { type: 'string', default: '800' },
  'tier-memory': { type: 'string' },
  keep: { type: 'boolean', default: false },
});
const tierMemory = options['tier-memory'];

/** The large collection of each writer. Its bytes alone are as many as the tier's, and pages are not full. */
const LARGE_KINDS = ['hash', 'set', 'zset', 'list'];
/** Elements of each kind that are compared beside those that were changed, and how often all are. */
const SAMPLES = 200;
const WHOLE_ROUNDS = 10;

let state = Number(options.seed) >>> 0;
/** mulberry32 */
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);

// ---- Content: what step n does, and what is there after it

const BIG_BYTES = 60_000;

/** The commands of step n; those that forget everything come first. */
function commandsOf(n) {
  const commands = [];
  if (n % 3000 === 0) commands.push(['FLUSHDB']);
  commands.push(
    ['SET', 'seq', n],
    ['INCR', 'count'],
    ['APPEND', 'text', String.fromCharCode(97 + (n % 26))],
    ['RPUSH', 'list', `element ${n}`],
    ['LTRIM', 'list', -300, -1],
    ['SADD', 'set', `m${n % 500}`, `m${(n * 7) % 500}`],
    ['SREM', 'set', `m${(n + 250) % 500}`],
    ['HSET', 'hash', `f${n % 300}`, `value ${n}`],
    ['ZADD', 'zset', (n * 7919) % 1000, `z${n % 400}`],
    ['SETRANGE', 'big', (n * 977) % BIG_BYTES, String(n)],
    ['SADD', 'pop', `a${n}`, `b${n}`],
    ['SPOP', 'pop'],
    ['SET', `key${n % 1000}`, `content of ${n} `.repeat(1 + (n % 7))],
    ['PEXPIRE', `key${n % 1000}`, 3_600_000],
  );
  if (n % 10 === 0) commands.push(['DEL', `key${(n * 31) % 1000}`]);
  if (n % 100 === 0) commands.push(['RENAME', 'hash', 'hash2'], ['COPY', 'set', 'set2', 'REPLACE']);
  return commands;
}

class Content {
  n = 0;

  constructor() {
    this.clear();
  }

  clear() {
    this.count = 0;
    this.text = '';
    this.list = [];
    this.set = new Set();
    this.set2 = new Set();
    this.hash = new Map();
    this.hash2 = new Map();
    this.zset = new Map();
    this.big = Buffer.alloc(0);
    this.pop = 0;
    this.keys = new Map();
  }

  step(n) {
    if (n % 3000 === 0) this.clear();
    this.n = n;
    this.count++;
    this.text += String.fromCharCode(97 + (n % 26));
    this.list.push(`element ${n}`);
    if (this.list.length > 300) this.list.shift();
    this.set.add(`m${n % 500}`).add(`m${(n * 7) % 500}`);
    this.set.delete(`m${(n + 250) % 500}`);
    this.hash.set(`f${n % 300}`, `value ${n}`);
    this.zset.set(`z${n % 400}`, (n * 7919) % 1000);
    const offset = (n * 977) % BIG_BYTES;
    const bytes = String(n);
    if (this.big.length < offset + bytes.length) {
      this.big = Buffer.concat([this.big, Buffer.alloc(offset + bytes.length - this.big.length)]);
    }
    this.big.write(bytes, offset, 'latin1');
    this.pop++;
    this.keys.set(`key${n % 1000}`, `content of ${n} `.repeat(1 + (n % 7)));
    if (n % 10 === 0) this.keys.delete(`key${(n * 31) % 1000}`);
    if (n % 100 === 0) {
      this.hash2 = this.hash;
      this.hash = new Map();
      this.set2 = new Set(this.set);
    }
  }

  /** What the reads of `Content.reads` must reply. */
  expected() {
    const entries = (map) => [...map].map(([k, v]) => `${k}=${v}`).sort();
    const keys = [...this.keys].sort();
    return {
      count: this.count === 0 ? null : String(this.count),
      text: this.text,
      list: this.list,
      set: [...this.set].sort(),
      set2: [...this.set2].sort(),
      hash: entries(this.hash),
      hash2: entries(this.hash2),
      zset: [...this.zset].map(([member, score]) => `${member}=${score}`).sort(),
      big: this.big.toString('latin1'),
      pop: this.pop,
      keys: keys.map(([key, value]) => `${key}=${value}`),
    };
  }

  static async read(client, database) {
    await client.call('SELECT', database);
    const pairs = (flat) => flat.flatMap((item, i) => (i % 2 === 0 ? [`${item}=${flat[i + 1]}`] : [])).sort();
    const n = Number((await client.call('GET', 'seq')) ?? 0);
    const names = Array.from({ length: 1000 }, (_, i) => `key${i}`).sort();
    const values = await client.call('MGET', ...names);
    const content = {
      count: await client.call('GET', 'count'),
      text: (await client.call('GET', 'text')) ?? '',
      list: await client.call('LRANGE', 'list', 0, -1),
      set: (await client.call('SMEMBERS', 'set')).sort(),
      set2: (await client.call('SMEMBERS', 'set2')).sort(),
      hash: pairs(await client.call('HGETALL', 'hash')),
      hash2: pairs(await client.call('HGETALL', 'hash2')),
      zset: pairs(await client.call('ZRANGE', 'zset', 0, -1, 'WITHSCORES')),
      big: (await client.call('GET', 'big')) ?? '',
      pop: await client.call('SCARD', 'pop'),
      keys: names.flatMap((name, i) => (values[i] === null ? [] : [`${name}=${values[i]}`])),
    };
    return { n, content };
  }
}

// ---- The server's process

class Process {
  output = '';

  constructor(args) {
    this.child = spawn(process.execPath, [MAIN, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    guardProcess(this.child);
    this.exited = new Promise((resolve) => this.child.once('exit', (code) => resolve(code)));
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream.setEncoding('utf8').on('data', (text) => (this.output += text));
    }
  }

  /** Resolves when it serves, to null, or when it has ended, to its exit code. */
  async ready(port) {
    const until = Date.now() + START_MS_MAX;
    let code;
    void this.exited.then((exit) => (code = exit));
    while (Date.now() < until) {
      if (code !== undefined) return code;
      const client = await Client.connect(port).catch(() => null);
      if (client !== null) {
        const answer = await client.call('PING').catch((error) => error.message);
        client.close();
        if (answer === 'PONG') return null;
      }
      await sleep(20);
    }
    throw new Error(`the server did not become ready:\n${this.output}`);
  }
}

async function check(directory, ...flags) {
  const process = new Process(['check', directory, ...flags]);
  return { code: await process.exited, output: process.output };
}

// ---- Writers

/** Runs steps until the connection ends. `sent` and `acked` are numbers of steps. */
class Writer {
  constructor(database) {
    this.database = database;
    this.sent = this.acked = 0;
    this.content = new Content();
    const tier = parseSize(tierMemory ?? '0');
    this.large = tierMemory === undefined ? null : new Large({ keys: tier, [LARGE_KINDS[database]]: tier });
  }

  /** Large content has a database of its own, which is never flushed. */
  get largeDatabase() {
    return WRITERS + this.database;
  }

  commandsOf(n) {
    if (this.large === null) return commandsOf(n);
    return [
      ...commandsOf(n),
      ['SELECT', this.largeDatabase],
      ...this.large.commandsOf(n),
      ['SELECT', this.database],
    ];
  }

  async load(client) {
    await client.call('SELECT', this.largeDatabase);
    await this.large.load(client);
  }

  async run(port) {
    const client = await Client.connect(port);
    const outstanding = [];
    try {
      await client.call('SELECT', this.database);
      for (let n = this.acked + 1; ; n++) {
        if (outstanding.length >= 1 + below(OUTSTANDING)) await outstanding.shift();
        this.sent = n;
        const calls = [client.call('MULTI'), ...this.commandsOf(n).map((command) => client.call(...command))];
        for (const call of calls) call.catch(() => undefined);
        const exec = client.call('EXEC').then((replies) => {
          const error = replies.find((reply) => reply instanceof Error);
          if (error !== undefined) throw new Error(`step ${n}: ${error.message}`);
          this.acked = n;
        });
        exec.catch(() => undefined);
        outstanding.push(exec);
      }
    } catch (error) {
      if (error.message !== 'connection closed') throw error;
    }
  }

  /** Compares; all of the large content if `whole`. */
  async verify(client, damaged, whole) {
    const { n, content } = await Content.read(client, this.database);
    if (!damaged && n < this.acked)
      throw new Error(
        `database ${this.database}: step ${this.acked} was acknowledged, ${n} is the last one there`,
      );
    if (n > this.sent)
      throw new Error(`database ${this.database}: step ${n} is there, ${this.sent} is the last one sent`);
    await this.verifyLarge(client, n, whole);
    if (n < this.content.n) this.content = new Content();
    while (this.content.n < n) this.content.step(this.content.n + 1);
    const expected = this.content.expected();
    for (const [name, value] of Object.entries(expected)) {
      const want = JSON.stringify(value);
      const got = JSON.stringify(content[name]);
      if (want === got) continue;
      let i = 0;
      while (want[i] === got[i]) i++;
      throw new Error(
        `database ${this.database} after step ${n} (acknowledged ${this.acked}, sent ${this.sent}): ${name} differs at ${i}: ` +
          `expected …${want.slice(Math.max(0, i - 40), i + 80)}…, found …${got.slice(Math.max(0, i - 40), i + 80)}…`,
      );
    }
    this.sent = this.acked = n;
  }

  async verifyLarge(client, n, whole) {
    if (this.large === null) return;
    await client.call('SELECT', this.largeDatabase);
    const since = Math.min(n, this.content.n);
    const different = whole
      ? await this.large.whole(client, n)
      : await this.large.sample(client, n, since, SAMPLES, below);
    if (different !== null)
      throw new Error(
        `database ${this.largeDatabase} after step ${n} (acknowledged ${this.acked}, sent ${this.sent}): ${different}`,
      );
  }
}

// ---- Damage

/** Cuts or overwrites the tail of the last segment; returns what was done and where the log then ends. */
function damageTail(directory) {
  const names = readdirSync(`${directory}/log`)
    .filter((name) => name.endsWith('.log'))
    .sort();
  const name = names.at(-1);
  const fd = openSync(`${directory}/log/${name}`, 'r+');
  try {
    const size = fstatSync(fd).size;
    if (size <= SEGMENT_HEADER) return null;
    const bytes = Buffer.alloc(size);
    readSync(fd, bytes, 0, size, 0);
    const at = SEGMENT_HEADER + below(size - SEGMENT_HEADER);
    let frame = SEGMENT_HEADER;
    let position = Number(name.slice(0, 16));
    for (;;) {
      const length = bytes.readUInt32LE(frame + 4);
      if (at < frame + FRAME_HEADER + length) break;
      frame += FRAME_HEADER + length;
      position += length;
    }
    if (below(2) === 0) {
      ftruncateSync(fd, at);
      return { kind: 'cut', name, at, position };
    }
    const garbage = Buffer.from(
      Array.from({ length: 1 + below(Math.min(64, size - at)) }, (_, i) => bytes[at + i] ^ (1 + below(255))),
    );
    writeSync(fd, garbage, 0, garbage.length, at);
    return { kind: 'overwritten', name, at, position };
  } finally {
    closeSync(fd);
  }
}

// ---- The drill

/** Loads what steps change, with memory for all of it; the engine has it before anything is killed or damaged. */
async function load(args, port, writers) {
  const process = new Process(args.map(String));
  if ((await process.ready(port)) !== null) throw new Error(`the server ended:\n${process.output}`);
  const client = await Client.connect(port);
  for (const writer of writers) await writer.load(client);
  client.close();
  process.child.kill('SIGTERM');
  const code = await process.exited;
  if (code !== 0) throw new Error(`SIGTERM ended with ${code}:\n${process.output}`);
}

async function drill(engine, policy, rounds) {
  const directory = mkdtempSync(`${tmpdir()}/ardent-drill-`);
  const writers = Array.from({ length: WRITERS }, (_, database) => new Writer(database));
  const port = await freePort();
  const args = [
    'server',
    '--port',
    port,
    '--dir',
    directory,
    '--engine',
    engine,
    '--appendfsync',
    policy,
    '--save',
    '',
  ].concat(['--checkpoint-dirty', '1mb', '--checkpoint-log', '1mb', '--loglevel', 'notice']);
  if (tierMemory !== undefined) {
    await load(args.concat('--shutdown-timeout', 600), port, writers);
    args.push('--tier-memory', tierMemory);
  }
  const counts = { kills: 0, steps: 0, torn: 0, refused: 0, checkpoints: 0 };
  let damage = null;
  let process = null;
  try {
    for (let round = 1; round <= rounds + 1; round++) {
      process = new Process(args.map(String));
      let code = await process.ready(port);
      if (code !== null) {
        if (damage?.kind !== 'overwritten')
          throw new Error(`the server ended with ${code}:\n${process.output}`);
        if (code !== 3 || !process.output.includes('--repair') || !process.output.includes(damage.name)) {
          throw new Error(`a damaged log was refused with ${code}:\n${process.output}`);
        }
        counts.refused++;
        const repair = await check(directory, '--repair');
        if (repair.code !== 0) throw new Error(`check --repair ended with ${repair.code}:\n${repair.output}`);
        process = new Process(args.map(String));
        code = await process.ready(port);
        if (code !== null)
          throw new Error(`the server ended with ${code} after the repair:\n${process.output}`);
      } else if (process.output.includes('torn tail')) {
        counts.torn++;
      }
      const client = await Client.connect(port);
      if (damage !== null) {
        const info = await client.call('INFO', 'log');
        const position = Number(/log_position:(\d+)/.exec(info)[1]);
        if (position !== damage.position) {
          throw new Error(
            `the log, ${damage.kind} at ${damage.at} of ${damage.name}, ends at position ${position}, not ${damage.position}`,
          );
        }
      }
      const whole = round % WHOLE_ROUNDS === 0 || round > rounds;
      for (const writer of writers) await writer.verify(client, damage !== null, whole);
      counts.checkpoints +=
        Number(/checkpoint_checkpoints:(\d+)/.exec(await client.call('INFO', 'checkpoint'))?.[1] ?? 0) > 0
          ? 1
          : 0;
      client.close();
      if (round > rounds) break;
      const running = Promise.all(writers.map((writer) => writer.run(port)));
      running.catch(() => undefined); // awaited below
      await sleep(20 + below(Number(options['life-ms'])));
      process.child.kill('SIGKILL');
      await process.exited;
      counts.kills++;
      await running;
      counts.steps += writers.reduce((sum, writer) => sum + writer.acked - writer.content.n, 0);
      damage =
        Number(options.damage) > 0 && round % Number(options.damage) === 0 ? damageTail(directory) : null;
    }
    process.child.kill('SIGTERM');
    const code = await process.exited;
    if (code !== 0) throw new Error(`SIGTERM ended with ${code}:\n${process.output}`);
    const sound = await check(directory);
    if (sound.code !== 0 || !sound.output.includes('sound')) throw new Error(`check found:\n${sound.output}`);
    console.log(
      `${engine.padEnd(8)} ${policy.padEnd(9)} ${counts.kills} kills, ${counts.steps} steps acknowledged and found, ` +
        `${counts.torn} torn tails cut off, ${counts.refused} damaged logs refused and repaired: nothing lost`,
    );
    if (!options.keep) rmSync(directory, { recursive: true });
  } catch (error) {
    process?.child.kill('SIGKILL');
    console.error(`${engine} ${policy}, seed ${options.seed}, directory ${directory} is kept`);
    throw error;
  }
}

console.log(`crash drill: ${options.rounds} rounds, seed ${options.seed}`);
for (const engine of options.engines.split(',')) {
  for (const policy of options.appendfsync.split(',')) await drill(engine, policy, Number(options.rounds));
}
