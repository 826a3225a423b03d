/**
 * What one append to the command log costs the server's thread, beside a bare write of the same bytes
 * and the checksum alone: node bench-micro/log.mjs
 */
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { crc32 } from 'node:zlib';
import { NodeDisk } from '../dist/store/disk.js';
import { CommandLog } from '../dist/store/log.js';

const root = mkdtempSync(`${tmpdir()}/ardent-log-micro-`);
const disk = new NodeDisk({ ownSyncThread: true });
const log = await CommandLog.open({
  disk,
  directory: `${root}/log`,
  directoryId: '00'.repeat(16),
  replicationId: '00'.repeat(20),
  position: 0,
  policy: 'everysec',
});
const fd = openSync(`${root}/bare`, 'w');
let offset = 0;

/** Microseconds a call, median of rounds. */
function measure(call, count) {
  const times = [];
  for (let round = 0; round < 11; round++) {
    const started = performance.now();
    for (let i = 0; i < count; i++) call();
    times.push(((performance.now() - started) / count) * 1000);
  }
  return times.sort((a, b) => a - b)[5];
}

for (const [bytes, count] of [
  [150, 5000],
  [5000, 2000],
  [100_000, 200],
]) {
  const payload = Buffer.alloc(bytes, 'x');
  const bare = measure(() => (offset += writeSync(fd, payload, 0, bytes, offset)), count);
  const append = measure(() => log.append(payload), count);
  const checksum = measure(() => crc32(payload), count);
  console.log(
    `${bytes} B: append ${append.toFixed(1)} us, bare write ${bare.toFixed(1)} us, checksum ${checksum.toFixed(1)} us`,
  );
}
closeSync(fd);
await log.close();
await disk.close();
rmSync(root, { recursive: true });
