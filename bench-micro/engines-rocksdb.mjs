// Compares the two RocksDB bindings: node bench-micro/engines-rocksdb.mjs <package> [rows] [valueBytes]
// Two RocksDB libraries in one process crash it: one package a run. Install the other one with
// `npm install --no-save rocksdb@5.2.1`.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [name = 'rocksdb-native', rowsText = '300000', valueText = '1000'] = process.argv.slice(2);
const rows = Number(rowsText);
const valueBytes = Number(valueText);
const BATCH = 4096;
const MB = 1024 ** 2;
const require = createRequire(import.meta.url);
const directory = mkdtempSync(join(tmpdir(), 'rocksdb-'));

const keyOf = (i) => Buffer.from(`key:${String(i).padStart(12, '0')}`);
/** Bytes that do not compress; a row's value is a piece of them. */
const noise = randomBytes(4 * MB);
const valueOf = (i) => noise.subarray((i * 4099) % (3 * MB)).subarray(0, valueBytes);
const shuffled = (i) => Number((BigInt(i) * 2654435761n) % BigInt(rows));

function level() {
  const RocksDB = require('rocksdb');
  const db = new RocksDB(directory);
  const call = (method, ...args) =>
    new Promise((resolve, reject) =>
      db[method](...args, (error, result) => (error ? reject(error) : resolve(result))),
    );
  return {
    open: () => call('open', { cacheSize: 32 * MB, writeBufferSize: 32 * MB }),
    write: (from, to) => {
      const batch = db.batch();
      for (let i = from; i < to; i++) batch.put(keyOf(shuffled(i)), valueOf(i));
      const packed = performance.now();
      return new Promise((resolve, reject) =>
        batch.write((error) => (error ? reject(error) : resolve(packed))),
      );
    },
    getMany: (keys) => call('getMany', keys, { asBuffer: true }),
    scan: () =>
      new Promise((resolve, reject) => {
        const iterator = db.iterator({ keyAsBuffer: true, valueAsBuffer: true });
        let count = 0;
        const next = () =>
          iterator.next((error, key) => {
            if (error) reject(error);
            else if (key === undefined) iterator.end(() => resolve(count));
            else {
              count++;
              next();
            }
          });
        next();
      }),
    deleteRange: (start, end) => call('clear', { gte: start, lt: end }),
    close: () => call('close'),
  };
}

function native() {
  const RocksDB = require('rocksdb-native');
  const db = new RocksDB(directory, { writeBufferSize: 32 * MB, maxBackgroundJobs: 2 });
  return {
    open: () => db.ready(),
    write: async (from, to) => {
      const batch = db.write({ capacity: to - from });
      for (let i = from; i < to; i++) batch.tryPut(keyOf(shuffled(i)), valueOf(i));
      const done = batch.flush();
      await Promise.resolve();
      const packed = performance.now();
      await done;
      batch.destroy();
      return packed;
    },
    getMany: async (keys) => {
      const batch = db.read({ capacity: keys.length });
      const values = keys.map((key) => batch.get(key));
      await batch.flush();
      batch.destroy();
      return Promise.all(values);
    },
    scan: async () => {
      let count = 0;
      for await (const row of db.iterator({}, { capacity: 1000 })) if (row.key) count++;
      return count;
    },
    deleteRange: (start, end) => db.deleteRange(start, end),
    close: () => db.close(),
  };
}

async function timed(label, unit, count, work) {
  const start = performance.now();
  const result = await work();
  const ms = performance.now() - start;
  const rate = count > 0 ? `${((ms * 1000) / count).toFixed(2)} us/${unit}` : '';
  console.log(`${label.padEnd(28)} ${ms.toFixed(0).padStart(7)} ms  ${rate}`);
  return result;
}

const engine = name === 'rocksdb' ? level() : native();
console.log(`${name}, ${rows} rows of ${valueBytes} B, node ${process.version}`);
await timed('open (new)', '', 0, () => engine.open());
let longest = 0;
await timed(`write, batches of ${BATCH}`, 'row', rows, async () => {
  for (let at = 0; at < rows; at += BATCH) {
    const start = performance.now();
    const packed = await engine.write(at, Math.min(rows, at + BATCH));
    longest = Math.max(longest, packed - start);
  }
});
console.log(`longest synchronous part of a batch ${longest.toFixed(1)} ms`);
const single = 20_000;
await timed('get one at a time', 'get', single, async () => {
  for (let i = 0; i < single; i++) await engine.getMany([keyOf((i * 7919) % rows)]);
});
await timed('getMany of 100', 'get', 100_000, async () => {
  for (let i = 0; i < 1000; i++) {
    await engine.getMany(Array.from({ length: 100 }, (_, j) => keyOf(((i * 100 + j) * 7919) % rows)));
  }
});
const counted = await timed('scan', 'row', rows, () => engine.scan());
console.log(`rows found ${counted}, RSS ${(process.memoryUsage().rss / MB).toFixed(0)} MB`);
await timed('delete a range of half', 'row', rows / 2, () => engine.deleteRange(keyOf(0), keyOf(rows / 2)));
await timed('scan after it', 'row', rows / 2, () => engine.scan());
await timed('close', '', 0, () => engine.close());
const bytes = readdirSync(directory).reduce((sum, f) => sum + statSync(join(directory, f)).size, 0);
console.log(`disk ${(bytes / MB).toFixed(0)} MB`);
rmSync(directory, { recursive: true });
