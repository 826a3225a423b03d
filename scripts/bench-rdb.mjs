#!/usr/bin/env node
/**
 * How fast data leave and come back: RDB files and images against Redis's RDB files, and against a plain
 * write and a plain read of the same bytes. Every engine takes turns with Redis on the same file, compression
 * and checksum on, each save synced to the disk; medians of all rounds are printed, with the ratio to Redis.
 *
 *   npm run bench:rdb -- [--sets incompressible,compressible,hashes] [--keys 5000000] [--hash-keys 1000000]
 *                        [--engines lmdb,leveldb,rocksdb] [--rounds 3] [--redis redis-server] [--json FILE]
 *
 * Sets: strings of 128 bytes that do not compress, or do; hashes of 10 fields. Files that are loaded have just been
 * read, so all loads find them in the page cache; they lie in the server's directory, where they need not be
 * copied. A plain read goes into memory of which no page was used before.
 */
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freshDirectory, removeDirectory } from '../dist/bench/child.js';
import { ControlConnection } from '../dist/bench/control-connection.js';
import { median } from '../dist/bench/statistics.js';
import { allocatePadded, Slice, viewOf } from '../dist/bytes/slice.js';
import { RdbKey, RdbValue } from '../dist/rdb/visitor.js';
import { RdbWriter } from '../dist/rdb/writer.js';
import { DrillServer } from './drill/servers.mjs';
import { readOptions } from './options.mjs';

const MB = 1024 ** 2;
const PIECE_BYTES = MB;
const VALUE_BYTES = 128;
const FIELDS = 10;
const FIELD_VALUE_BYTES = 16;
const COMMAND_MS_MAX = 3_600_000;
const SETTLED_LOOK_MS = 50;

/** What the project wants of each ratio. */
const GOALS = { rdbSave: 0.5, rdbSize: 1.05, rdbLoad: 1, imageSave: 1.25, imageLoad: 1.5 };

const options = readOptions(import.meta.url, {
  sets: { type: 'string', default: 'incompressible,compressible,hashes' },
  keys: { type: 'string', default: '5000000' },
  'hash-keys': { type: 'string', default: '1000000' },
  engines: { type: 'string', default: 'lmdb,leveldb,rocksdb' },
  rounds: { type: 'string', default: '3' },
  redis: { type: 'string', default: 'redis-server' },
  json: { type: 'string' },
});
const rounds = Number(options.rounds);

/** Bytes of which each stretch is another; of `distinct` values, so that few of them compress well. */
function bytesOf(distinct) {
  const bytes = allocatePadded(MB);
  let state = 1;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    bytes[i] = distinct === 256 ? state >>> 24 : 97 + ((state >>> 24) % distinct) * ((i & 31) < 8);
  }
  return bytes;
}

/** Writes an RDB file of a set. */
function makeFile(file, set, keys) {
  const fd = openSync(file, 'w');
  const writer = new RdbWriter({
    write: (bytes) => writeSync(fd, bytes),
    patch: (offset, bytes) => writeSync(fd, bytes, 0, bytes.length, offset),
    compression: true,
    checksum: true,
  });
  const memory = bytesOf(set === 'compressible' ? 3 : 256);
  const view = viewOf(memory.buffer);
  const value = new Slice();
  const at = (i, length) => value.set(memory, view, (i * 8) % (MB - 1024), ((i * 8) % (MB - 1024)) + length);
  const fields = Array.from({ length: FIELDS }, (_, i) => Slice.from(`field:${i}`));
  const key = new RdbKey();
  writer.begin();
  writer.resize(0, keys, 0);
  for (let i = 0; i < keys; i++) {
    // Not in an order that is anybody's.
    const number = (i * 7919) % keys;
    key.key.setSlice(Slice.from(`key:${String(number).padStart(12, '0')}`));
    key.type = set === 'hashes' ? RdbValue.Hash : RdbValue.String;
    key.count = set === 'hashes' ? FIELDS : VALUE_BYTES;
    writer.beginKey(key);
    if (set === 'hashes') {
      for (let field = 0; field < FIELDS; field++) {
        at(i * FIELDS + field, FIELD_VALUE_BYTES);
        writer.field(fields[field], value, -1);
      }
    } else {
      at(i, VALUE_BYTES);
      writer.stringPart(value);
    }
    writer.endKey();
  }
  writer.end();
  fsyncSync(fd);
  closeSync(fd);
}

async function timed(work) {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}

/** Seconds to read a file into memory; `fresh`: memory that was not used before, as a load needs it. */
function plainRead(file, fresh) {
  const { size } = statSync(file);
  const fd = openSync(file, 'r');
  const memory = Buffer.allocUnsafeSlow(fresh ? size : PIECE_BYTES);
  const began = performance.now();
  for (let done = 0; done < size;)
    done += readSync(fd, memory, fresh ? done : 0, Math.min(PIECE_BYTES, size - done), done);
  const seconds = (performance.now() - began) / 1000;
  closeSync(fd);
  return seconds;
}

/** Seconds to write as many bytes as a file has to another, and sync it. */
function plainWrite(file, size) {
  const piece = bytesOf(256);
  const began = performance.now();
  const fd = openSync(file, 'w');
  for (let done = 0; done < size;) done += writeSync(fd, piece, 0, Math.min(piece.length, size - done));
  fsyncSync(fd);
  closeSync(fd);
  const seconds = (performance.now() - began) / 1000;
  rmSync(file);
  return seconds;
}

function redisServer() {
  return new DrillServer('redis', options.redis, (port, directory) => [
    ...['--port', String(port), '--dir', directory, '--save', '', '--appendonly', 'no'],
    ...['--rdbcompression', 'yes', '--rdbchecksum', 'yes'],
  ]);
}

const open = (server) => ControlConnection.open(server.address, COMMAND_MS_MAX);

/** Redis's turn: starts with the file, by its own word in so many seconds, and saves. */
async function runRedis(source) {
  const server = redisServer();
  try {
    linkSync(source, path.join(server.directory, 'dump.rdb'));
    plainRead(source, false);
    await server.start();
    const [, load] = /DB loaded from disk: ([\d.]+) seconds/.exec(
      readFileSync(`${server.directory}/output.log`, 'utf8'),
    );
    const connection = await open(server);
    const save = await timed(() => connection.call('SAVE'));
    const { size } = statSync(path.join(server.directory, 'dump.rdb'));
    connection.close();
    return { load: Number(load), save, size };
  } finally {
    await server.remove();
  }
}

/** Milliseconds from the reply until the engine had it. */
async function settledAfter(connection) {
  for (;;) {
    const info = await connection.info();
    if (info.import_unsettled_bytes === '0') return Number(info.import_last_settled_ms) / 1000;
    await sleep(SETTLED_LOOK_MS);
  }
}

const ardentServer = (engine) => DrillServer.ardent(engine, { 'tier-memory': String(os.totalmem()) });

/** Our turn: imports the file, saves both kinds, and imports the image into another server. */
async function runArdent(engine, source, keys, work) {
  const server = ardentServer(engine);
  const other = ardentServer(engine);
  try {
    plainRead(source, false);
    await server.start();
    const connection = await open(server);
    const result = { engine };
    const own = path.join(server.dataDirectory, 'source.rdb');
    linkSync(source, own);
    result.rdbLoad = await timed(() => connection.call('IMPORT', own));
    result.rdbSettled = await settledAfter(connection);
    if (Number(await connection.call('DBSIZE')) !== keys) throw new Error('keys are missing');
    result.rdbSave = await timed(() => connection.call('SAVE'));
    result.rdbSize = statSync(path.join(server.dataDirectory, 'dump.rdb')).size;
    const saved = path.join(server.dataDirectory, 'dump.image');
    // The size is known when there is an image: the first makes it known, and the disk's state.
    await connection.call('SAVE image');
    result.imageSize = statSync(saved).size;
    result.plainWrite = plainWrite(path.join(work, 'plain'), result.imageSize);
    result.imageSave = await timed(() => connection.call('SAVE image'));
    connection.close();
    await server.kill();
    await other.start();
    const image = path.join(other.dataDirectory, 'source.image');
    linkSync(saved, image);
    const second = await open(other);
    plainRead(image, false);
    result.plainRead = plainRead(image, true);
    result.imageLoad = await timed(() => second.call('IMPORT', image));
    result.imageSettled = await settledAfter(second);
    if (Number(await second.call('DBSIZE')) !== keys) throw new Error('keys are missing');
    second.close();
    return result;
  } finally {
    await server.remove();
    await other.remove();
  }
}

const seconds = (value) => `${value.toFixed(2)} s`;
const ratio = (value, goal) =>
  `${value.toFixed(2)}${goal === undefined ? '' : value <= goal ? ` (<= ${goal})` : ` (missed: <= ${goal})`}`;

function print(set, engine, runs, redis) {
  const of = (name) => median(runs.map((run) => run[name]));
  const ofRedis = (name) => median(redis.map((run) => run[name]));
  const rows = [
    ['RDB save', seconds(of('rdbSave')), ratio(of('rdbSave') / ofRedis('save'), GOALS.rdbSave), ''],
    [
      'RDB size',
      `${(of('rdbSize') / MB).toFixed(0)} MB`,
      ratio(of('rdbSize') / ofRedis('size'), GOALS.rdbSize),
      '',
    ],
    ['RDB load, served', seconds(of('rdbLoad')), ratio(of('rdbLoad') / ofRedis('load'), GOALS.rdbLoad), ''],
    [
      'RDB load, settled',
      seconds(of('rdbLoad') + of('rdbSettled')),
      ratio((of('rdbLoad') + of('rdbSettled')) / ofRedis('load')),
      '',
    ],
    [
      'image save',
      seconds(of('imageSave')),
      ratio(of('imageSave') / ofRedis('save')),
      ratio(of('imageSave') / of('plainWrite'), GOALS.imageSave),
    ],
    ['image size', `${(of('imageSize') / MB).toFixed(0)} MB`, ratio(of('imageSize') / ofRedis('size')), ''],
    [
      'image load, served',
      seconds(of('imageLoad')),
      ratio(of('imageLoad') / ofRedis('load')),
      ratio(of('imageLoad') / of('plainRead'), GOALS.imageLoad),
    ],
    [
      'image load, settled',
      seconds(of('imageLoad') + of('imageSettled')),
      ratio((of('imageLoad') + of('imageSettled')) / ofRedis('load')),
      '',
    ],
  ];
  console.log(
    `\n${set}, ${engine}, medians of ${runs.length}. Redis: SAVE ${seconds(ofRedis('save'))}, load ${seconds(ofRedis('load'))}, ` +
      `${(ofRedis('size') / MB).toFixed(0)} MB. Plain write + fsync ${seconds(of('plainWrite'))}, plain read ${seconds(of('plainRead'))}. ` +
      `Load of the machine ${os.loadavg()[0].toFixed(1)}`,
  );
  const header = ['', 'time or size', 'to Redis', 'to a plain write or read'];
  const widths = header.map((word, i) => Math.max(word.length, ...rows.map((row) => row[i].length)));
  for (const row of [header, ...rows])
    console.log(
      `  ${row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd()}`,
    );
}

const work = freshDirectory('rdb');
const results = [];
try {
  for (const set of options.sets.split(',')) {
    const keys = Number(options[set === 'hashes' ? 'hash-keys' : 'keys']);
    const source = path.join(work, `${set}.rdb`);
    makeFile(source, set, keys);
    for (const engine of options.engines.split(',')) {
      const redis = [];
      const runs = [];
      for (let round = 0; round < rounds; round++) {
        redis.push(await runRedis(source));
        runs.push(await runArdent(engine, source, keys, work));
      }
      results.push({ set, engine, keys, redis, runs, load: os.loadavg()[0] });
      print(set, engine, runs, redis);
    }
    rmSync(source);
  }
} finally {
  removeDirectory(work);
}
if (options.json !== undefined) writeFileSync(options.json, JSON.stringify({ options, results }, null, 2));
