// How LMDB's file grows while a scan holds a snapshot and rows are overwritten:
// node bench-micro/engines-lmdb-growth.mjs [seconds] [rows] [valueBytes] [MB overwritten a second].
// Build first. A long run needs disk: some 7 bytes for each byte overwritten.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEngine } from '../dist/engines/open.js';
import { RowPacker } from '../dist/engines/packed.js';

const [seconds = 5, rows = 50_000, valueBytes = 500, rate = Infinity] = process.argv.slice(2).map(Number);
const PER_BATCH = 5000;
const MB = 1024 ** 2;
const directory = mkdtempSync(join(tmpdir(), 'ardent-growth-'));
const engine = await openEngine('lmdb', join(directory, 'engine'), { 'lmdb.map-size': '1tb' });
const value = Buffer.alloc(valueBytes, 'v');
let overwritten = 0;

async function overwrite() {
  const packer = new RowPacker(PER_BATCH * (valueBytes + 24));
  for (let i = 0; i < PER_BATCH; i++) {
    packer.row(Buffer.from(`row:${String((overwritten * 7919) % rows).padStart(9, '0')}`), value);
    overwritten++;
  }
  await engine.write(packer.take());
}

async function phase(label) {
  const start = performance.now();
  const before = await engine.stats();
  const rowsBefore = overwritten;
  for (let second = 1; second <= seconds; second++) {
    while (performance.now() - start < second * 1000) {
      const written = ((overwritten - rowsBefore) * valueBytes) / MB;
      if (written < second * rate) await overwrite();
      else await sleep(50);
    }
    const { details } = await engine.stats();
    if (second % Math.ceil(seconds / 5) === 0) {
      const written = ((overwritten - rowsBefore) * valueBytes) / MB;
      console.log(
        `${label.padEnd(22)} ${String(second).padStart(4)} s  ${written.toFixed(0).padStart(6)} MB overwritten` +
          `  file ${(details['lmdb.file-bytes'] / MB).toFixed(0).padStart(6)} MB` +
          `  used ${(details['lmdb.used-bytes'] / MB).toFixed(0)} MB`,
      );
    }
  }
  const after = await engine.stats();
  const grown = after.details['lmdb.file-bytes'] - before.details['lmdb.file-bytes'];
  const written = (overwritten - rowsBefore) * valueBytes;
  console.log(`${label}: ${(grown / written).toFixed(2)} bytes of file per byte overwritten`);
}

while (overwritten < rows * 2) await overwrite();
await phase('no snapshot');
const scan = engine.scan({ start: new Uint8Array(0), chunkBytes: 1000 })[Symbol.asyncIterator]();
await scan.next();
await phase('snapshot held');
await scan.return();
await phase('snapshot released');
await engine.compact();
const { details } = await engine.stats();
console.log(`compacted: file ${(details['lmdb.file-bytes'] / MB).toFixed(0)} MB`);
await engine.close();
rmSync(directory, { recursive: true });
