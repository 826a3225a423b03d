// What each engine costs behind its thread: node bench-micro/engines.mjs [engine ...] [--mb 64] [--value 1000]
// Build first. Each engine runs in a process of its own; directories are made under the system's
// temporary directory.
import { spawnSync } from 'node:child_process';
import { closeSync, fdatasync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openEngine } from '../dist/engines/open.js';
import { packKeys, RowPacker } from '../dist/engines/packed.js';

const MB = 1024 ** 2;
const sync = promisify(fdatasync);

function option(name, fallback) {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
}

const names = ['leveldb', 'lmdb', 'rocksdb'].filter((name) => process.argv.includes(name));
if (names.length !== 1) {
  for (const name of names.length > 0 ? names : ['leveldb', 'lmdb', 'rocksdb']) {
    const rest = process.argv.slice(2).filter((one) => !names.includes(one));
    spawnSync(process.execPath, [process.argv[1], name, ...rest], { stdio: 'inherit' });
  }
  process.exit();
}

const [name] = names;
const mb = option('mb', 64);
const valueBytes = option('value', 1000);
const count = Math.floor((mb * MB) / (valueBytes + 24));
const directory = mkdtempSync(join(tmpdir(), 'ardent-bench-'));
const engine = await openEngine(name, join(directory, 'engine'));

const keyOf = (i) => Buffer.from(`row:${String(i).padStart(12, '0')}`);
/** Bytes that do not compress. */
const noise = Buffer.alloc(valueBytes + 4096);
for (let i = 0; i < noise.length; i++) noise[i] = (Math.imul(i, 2654435761) ^ (i * i)) >>> 11;

function pack(from, to) {
  const packer = new RowPacker((to - from) * (valueBytes + 24));
  for (let i = from; i < to; i++) {
    const at = i % 4096;
    packer.row(keyOf((i * 7919) % count), noise.subarray(at, at + valueBytes));
  }
  return packer.take();
}

function line(label, text) {
  console.log(`${name.padEnd(8)} ${label.padEnd(44)} ${text}`);
}

async function timed(label, rows, work) {
  const start = performance.now();
  const result = await work();
  const ms = performance.now() - start;
  line(label, `${ms.toFixed(0).padStart(6)} ms  ${((ms * 1000) / rows).toFixed(2)} us a row`);
  return result;
}

function percentiles(times) {
  const sorted = times.sort((a, b) => a - b);
  const at = (p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))].toFixed(2);
  return `p50 ${at(0.5)}  p99 ${at(0.99)}  max ${at(1)} ms of ${sorted.length}`;
}

/** Latency of single gets, and of syncing a small append from this thread, while `work` runs. */
async function beside(label, work) {
  let running = true;
  const done = work().finally(() => (running = false));
  const gets = [];
  const syncs = [];
  const log = openSync(join(directory, 'log'), 'a');
  const getting = (async () => {
    for (let i = 0; running || i < 100; i++) {
      const start = performance.now();
      await engine.getMany(packKeys([keyOf((i * 104729) % count)]));
      gets.push(performance.now() - start);
    }
  })();
  const syncing = (async () => {
    while (running || syncs.length < 20) {
      writeSync(log, 'x'.repeat(4096));
      const start = performance.now();
      await sync(log);
      syncs.push(performance.now() - start);
    }
  })();
  await Promise.all([done, getting, syncing]);
  closeSync(log);
  line(`${label}: get`, percentiles(gets));
  line(`${label}: fdatasync of a log`, percentiles(syncs));
}

const perBatch = Math.floor((4 * MB) / (valueBytes + 24));
await timed(`write ${mb} MB, batches of 4 MB`, count, async () => {
  for (let at = 0; at < count; at += perBatch) await engine.write(pack(at, Math.min(count, at + perBatch)));
});
const whole = pack(0, count);
const file = join(directory, 'rows');
writeFileSync(file, Buffer.from(whole.bytes, 0, whole.length));
await timed(`applyRows ${mb} MB, synced`, count, () =>
  engine.applyRows(file, 0, whole.length, { batchBytes: 64 * MB, sync: true }),
);
await timed('getMany, 100 keys at a time', 20_000, async () => {
  for (let i = 0; i < 200; i++) {
    await engine.getMany(
      packKeys(Array.from({ length: 100 }, (_, j) => keyOf(((i * 100 + j) * 104729) % count))),
    );
  }
});
await timed('scan', count, async () => {
  let rows = 0;
  for await (const chunk of engine.scan({ start: new Uint8Array(0) })) rows += chunk.rows;
  if (rows !== count) throw new Error(`${rows} rows of ${count}`);
});
await beside('idle', () => new Promise((resolve) => setTimeout(resolve, 500)));
await beside(`atomic write of ${mb} MB`, () => engine.write(pack(0, count), { sync: true }));
await beside(`applyRows of ${mb} MB`, () =>
  engine.applyRows(file, 0, whole.length, { batchBytes: 64 * MB, sync: true }),
);
await beside('compact', () => engine.compact());
await beside('backup', () => engine.backup(join(directory, 'backup')));
await timed('deleteRange of half', count / 2, () =>
  engine.deleteRange({ start: keyOf(0), end: keyOf(count / 2) }),
);
const stats = await engine.stats();
line('disk', `${(stats.diskBytes / MB).toFixed(0)} MB`);
line('memory, whole process', `${(process.memoryUsage().rss / MB).toFixed(0)} MB`);
await engine.close();
rmSync(directory, { recursive: true });
