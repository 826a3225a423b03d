import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { NodeDisk, type Disk } from '../../src/store/disk.ts';
import { FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, segmentName } from '../../src/store/log-format.ts';
import { LogReader, type LogFault } from '../../src/store/log-reader.ts';
import { cutLog } from '../../src/store/log-repair.ts';
import { CommandLog, LogLostError, LogWriteError, type LogOptions } from '../../src/store/log.ts';
import { seeds, uniform } from './random.ts';
import { DiskFault, SimulatedDisk } from './simulated-disk.ts';

const DIRECTORY = '/data/log';
const DIRECTORY_ID = '0123456789abcdef0123456789abcdef';
const REPLICATION_ID = 'aa'.repeat(20);

function openLog(disk: Disk, options: Partial<LogOptions> = {}): Promise<CommandLog> {
  return CommandLog.open({
    disk,
    directory: DIRECTORY,
    directoryId: DIRECTORY_ID,
    replicationId: REPLICATION_ID,
    position: 0,
    policy: 'no',
    ...options,
  });
}

interface ReadBack {
  payloads: string[];
  fault: LogFault | null;
  position: number;
  replicationOffset: number;
  reader: LogReader;
}

function readLog(disk: Disk, from = 0, directory = DIRECTORY): ReadBack {
  const reader = new LogReader({ disk, directory, directoryId: DIRECTORY_ID, from });
  const payloads: string[] = [];
  for (let frame = reader.next(); frame !== null; frame = reader.next())
    payloads.push(frame.payload.latin1());
  const { fault, position, replicationOffset } = reader;
  return { payloads, fault, position, replicationOffset, reader };
}

const path = (first: number) => `${DIRECTORY}/${segmentName(first)}`;
const payloads = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `payload-${from + i}`);

async function written(count: number, options: Partial<LogOptions> = {}): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  const log = await openLog(disk, options);
  for (const payload of payloads(count)) log.append(Buffer.from(payload));
  await log.close();
  return disk;
}

/** Flips one bit of a file. */
function flip(disk: SimulatedDisk, file: string, offset: number): void {
  const bytes = Buffer.from(disk.read(file));
  bytes[offset] ^= 0x10;
  disk.put(file, bytes);
}

describe('writing and reading back', () => {
  test('frames come back in order, with positions and replication offsets', async () => {
    const disk = new SimulatedDisk();
    const log = await openLog(disk, { position: 100, replicationOffset: 5000 });
    expect(log.append(Buffer.from('abc'))).toBe(103);
    expect(log.append(Buffer.from(''))).toBe(103);
    expect(log.append(Buffer.from('defgh'))).toBe(108);
    expect(log.replicationOffset).toBe(5008);
    await log.close();
    const back = readLog(disk, 100);
    expect(back.payloads).toEqual(['abc', '', 'defgh']);
    expect(back.fault).toBeNull();
    expect(back.position).toBe(108);
    expect(back.replicationOffset).toBe(5008);
    expect(back.reader.header).toMatchObject({ replicationId: REPLICATION_ID, bootId: 'boot-1' });
  });

  test('a real disk keeps small and large frames across segments', async () => {
    const root = mkdtempSync(`${tmpdir()}/ardent-log-`);
    const disk = new NodeDisk({ ownSyncThread: true });
    try {
      const directory = `${root}/log`;
      const log = await openLog(disk, { directory, segmentBytes: 100_000, policy: 'always' });
      const sizes = [1, 70_000, 65_536, 65_537, 3_000_000, 10];
      for (const [i, size] of sizes.entries()) log.append(Buffer.alloc(size, 65 + i));
      await log.sync();
      expect(log.syncedPosition).toBe(log.position);
      expect(log.segments).toBeGreaterThan(2);
      await log.close();
      const back = readLog(disk, 0, directory);
      expect(back.fault).toBeNull();
      expect(back.payloads.map((p) => p.length)).toEqual(sizes);
      expect(back.payloads.every((p, i) => p === String.fromCharCode(65 + i).repeat(sizes[i]))).toBe(true);
    } finally {
      await disk.close();
      rmSync(root, { recursive: true });
    }
  });

  test('reading from a position skips what stands before it', async () => {
    const disk = await written(10, { segmentBytes: 200 });
    const all = readLog(disk).payloads;
    let position = 0;
    for (let i = 0; i < all.length; i++) {
      expect(readLog(disk, position).payloads).toEqual(all.slice(i));
      position += all[i].length;
    }
    expect(readLog(disk, position)).toMatchObject({ payloads: [], fault: null, position });
  });

  test('segments that a checkpoint covers are deleted, never the one being written', async () => {
    const disk = new SimulatedDisk();
    const log = await openLog(disk, { segmentBytes: 150 });
    for (const payload of payloads(12)) log.append(Buffer.from(payload));
    const kept = log.position;
    log.roll();
    log.append(Buffer.from('after'));
    await log.deleteBefore(kept);
    expect(disk.list(DIRECTORY)).toEqual([segmentName(kept)]);
    await log.deleteBefore(log.position + 1000);
    expect(log.segments).toBe(1);
    await log.close();
    expect(readLog(disk, kept).payloads).toEqual(['after']);
    expect(readLog(disk, kept - 1).fault).toMatchObject({ kind: 'damage' });
  });

  test('a log goes on where another ended, over an empty segment of the same name', async () => {
    const disk = new SimulatedDisk();
    const first = await openLog(disk);
    first.append(Buffer.from('one'));
    await first.close();
    for (let start = 0; start < 3; start++) {
      const again = await openLog(disk, { position: 3, older: [0, 3] });
      expect(again.segments).toBe(2);
      await again.close();
    }
    const last = await openLog(disk, { position: 3, older: [0, 3] });
    last.append(Buffer.from('two'));
    await last.close();
    expect(readLog(disk)).toMatchObject({ payloads: ['one', 'two'], fault: null, position: 6 });
  });
});

describe('sync policy', () => {
  test('always: one sync covers all that was appended while the one before ran', async () => {
    const disk = new SimulatedDisk();
    const seen: number[] = [];
    const log = await openLog(disk, { policy: 'always' });
    log.onSynced = () => seen.push(log.syncedPosition);
    let syncs = 0;
    disk.fault = (operation) => {
      if (operation === 'sync') syncs++;
      return null;
    };
    log.append(Buffer.alloc(10));
    for (let i = 0; i < 50; i++) log.append(Buffer.alloc(10));
    expect(log.syncedPosition).toBe(0);
    await log.sync();
    expect(seen).toEqual([10, 510]);
    expect(syncs).toBe(2);
    await log.close();
  });

  test('no: nothing is synced until it is asked for', async () => {
    const log = await openLog(new SimulatedDisk());
    log.append(Buffer.alloc(10));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(log.syncedPosition).toBe(0);
    await log.sync();
    expect(log.syncedPosition).toBe(10);
    await log.close();
  });

  test('everysec: synced within the second after', async () => {
    const log = await openLog(new SimulatedDisk(), { policy: 'everysec' });
    log.append(Buffer.alloc(10));
    await expect.poll(() => log.syncedPosition, { timeout: 5000 }).toBe(10);
    await log.close();
  });
});

describe('a disk that does not take it', () => {
  test.each(['ENOSPC', 'EIO'])('%s: append throws, changes nothing, and works again later', async (code) => {
    const disk = new SimulatedDisk();
    const log = await openLog(disk);
    log.append(Buffer.from('before'));
    disk.fault = (operation) => (operation === 'write' ? new DiskFault(code) : null);
    expect(() => log.append(Buffer.from('kept by the caller'))).toThrow(LogWriteError);
    expect(log.failure).toContain(code);
    expect(log.position).toBe(6);
    expect(() => log.append(Buffer.from('kept by the caller'))).toThrow(LogWriteError);
    disk.fault = () => null;
    expect(await log.retry()).toBe(true);
    log.append(Buffer.from('kept by the caller'));
    expect(log.failure).toBeNull();
    await log.close();
    expect(readLog(disk)).toMatchObject({ payloads: ['before', 'kept by the caller'], fault: null });
  });

  test('a frame cut short is removed before the next one, however long that is', async () => {
    for (let taken = 0; taken < FRAME_HEADER_BYTES + 20; taken++) {
      const disk = new SimulatedDisk();
      const log = await openLog(disk);
      log.append(Buffer.from('before'));
      let writes = 0;
      disk.fault = (operation) => {
        if (operation === 'truncate') return new DiskFault('EIO');
        if (operation !== 'write') return null;
        return writes++ === 0 ? taken : new DiskFault('ENOSPC');
      };
      expect(() => log.append(Buffer.from('a payload of 20 chrs'))).toThrow(LogWriteError);
      expect(await log.retry()).toBe(false);
      // What stands on disk at this moment is a torn tail.
      expect(readLog(disk)).toMatchObject({ payloads: ['before'], position: 6 });
      disk.fault = () => null;
      expect(await log.retry()).toBe(true);
      log.append(Buffer.from('x'));
      await log.close();
      expect(readLog(disk)).toMatchObject({ payloads: ['before', 'x'], fault: null });
    }
  });

  test('a short write that then goes on is a whole frame', async () => {
    for (const taken of [0, 5, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + 5]) {
      const disk = new SimulatedDisk();
      const log = await openLog(disk);
      let writes = 0;
      disk.fault = (operation, _path, length) => (operation === 'write' && writes++ === 0 ? taken : length);
      log.append(Buffer.alloc(200_000, 'z'));
      log.append(Buffer.from('next'));
      await log.close();
      expect(readLog(disk).payloads).toEqual(['z'.repeat(200_000), 'next']);
    }
  });

  test('a segment that cannot be made leaves the old one in use', async () => {
    const disk = new SimulatedDisk();
    const log = await openLog(disk, { segmentBytes: 150 });
    log.append(Buffer.alloc(50, 'a'));
    disk.fault = (operation) => (operation === 'rename' ? new DiskFault('ENOSPC') : null);
    expect(() => log.append(Buffer.from('b'))).toThrow(LogWriteError);
    disk.fault = () => null;
    log.append(Buffer.from('b'));
    await log.close();
    expect(disk.list(DIRECTORY)).toEqual([segmentName(0), segmentName(50)]);
    expect(readLog(disk)).toMatchObject({ payloads: ['a'.repeat(50), 'b'], fault: null });
  });

  test('a failed sync stops appends until the frames are written again and synced', async () => {
    const disk = new SimulatedDisk();
    const failures: LogWriteError[] = [];
    const log = await openLog(disk, { segmentBytes: 200, onSyncFailed: (error) => failures.push(error) });
    for (const payload of payloads(10)) log.append(Buffer.from(payload));
    const synced = log.syncedPosition;
    disk.fault = (operation) => (operation === 'sync' ? new DiskFault('EIO') : null);
    await expect(log.sync()).rejects.toThrow(LogWriteError);
    expect(failures).toHaveLength(1);
    expect(log.syncedPosition).toBe(synced);
    expect(() => log.append(Buffer.from('later'))).toThrow(LogWriteError);
    expect(await log.retry()).toBe(false);
    const rewritten: string[] = [];
    disk.fault = (operation, file) => {
      if (operation === 'write') rewritten.push(file);
      return null;
    };
    expect(await log.retry()).toBe(true);
    expect(rewritten.length).toBeGreaterThan(1);
    expect(log.syncedPosition).toBe(log.position);
    log.append(Buffer.from('later'));
    await log.close();
    expect(readLog(disk).payloads).toEqual([...payloads(10), 'later']);
  });

  test('frames that a failed sync lost from memory too are never said to be there', async () => {
    const disk = new SimulatedDisk();
    const log = await openLog(disk);
    log.append(Buffer.from('lost'));
    disk.fault = (operation) => (operation === 'sync' ? new DiskFault('EIO') : null);
    await expect(log.sync()).rejects.toThrow(LogWriteError);
    disk.fault = () => null;
    disk.read(path(0)).fill(0, SEGMENT_HEADER_BYTES);
    await expect(log.retry()).rejects.toThrow(LogLostError);
  });
});

describe('a torn tail is cut off, damage is not', () => {
  const length = (count: number) => payloads(count).join('').length;
  const offsetOf = (index: number) => SEGMENT_HEADER_BYTES + FRAME_HEADER_BYTES * index + length(index);

  test('every cut through the last frame is a torn tail; cutting it off leaves a clean log', async () => {
    const whole = await written(5);
    const size = whole.read(path(0)).length;
    for (let end = offsetOf(4) + 1; end < size; end++) {
      const disk = whole.afterKill();
      disk.put(path(0), whole.read(path(0)).subarray(0, end));
      const { fault, payloads: read } = readLog(disk);
      expect(read).toEqual(payloads(4));
      expect(fault).toMatchObject({ kind: 'torn', offset: offsetOf(4), position: length(4), framesAfter: 0 });
      await cutLog(disk, DIRECTORY, fault!);
      expect(readLog(disk)).toMatchObject({ payloads: payloads(4), fault: null });
    }
  });

  test('a flipped bit anywhere before the last frame is damage, named by file, offset and position', async () => {
    const whole = await written(6);
    for (let offset = 0; offset < offsetOf(5); offset++) {
      const disk = whole.afterKill();
      flip(disk, path(0), offset);
      const { fault, payloads: read } = readLog(disk);
      expect(fault, `offset ${offset}`).toMatchObject({ kind: 'damage', path: path(0) });
      const frame = [...payloads(6).keys()].findLastIndex((i) => offsetOf(i) <= offset);
      expect(read).toEqual(payloads(Math.max(0, frame)));
      expect(fault!.position).toBe(length(Math.max(0, frame)));
      expect(fault!.framesAfter).toBe(frame < 0 ? 6 : 5 - frame);
      await cutLog(disk, DIRECTORY, fault!, '/data/aside');
      expect(disk.list('/data/aside')).toHaveLength(1);
      expect(readLog(disk)).toMatchObject({ payloads: payloads(Math.max(0, frame)), fault: null });
    }
  });

  test('a whole last frame with a flipped payload bit is damage while the machine runs on', async () => {
    const disk = await written(5);
    flip(disk, path(0), disk.read(path(0)).length - 1);
    expect(readLog(disk).fault).toMatchObject({ kind: 'damage', offset: offsetOf(4) });
  });

  test('an incomplete frame in a segment that another follows is damage', async () => {
    const disk = await written(10, { segmentBytes: 200 });
    const first = disk.read(path(0));
    disk.put(path(0), first.subarray(0, first.length - 1));
    expect(readLog(disk).fault).toMatchObject({ kind: 'damage', path: path(0) });
  });

  test('missing segments and segments of other directories are damage', async () => {
    const disk = await written(20, { segmentBytes: 200 });
    const names = disk.list(DIRECTORY);
    expect(names.length).toBeGreaterThan(3);
    disk.remove(`${DIRECTORY}/${names[1]}`);
    expect(readLog(disk).fault).toMatchObject({ kind: 'damage', reason: expect.stringContaining('missing') });
    disk.remove(`${DIRECTORY}/${names[0]}`);
    expect(readLog(disk).fault).toMatchObject({ kind: 'damage', reason: expect.stringContaining('missing') });
    for (const name of disk.list(DIRECTORY)) disk.remove(`${DIRECTORY}/${name}`);
    expect(readLog(disk, 50).fault).toMatchObject({ kind: 'damage', position: 50 });
    expect(readLog(disk, 0).fault).toBeNull();

    const other = await written(3);
    const reader = new LogReader({
      disk: other,
      directory: DIRECTORY,
      directoryId: 'ff'.repeat(16),
      from: 0,
    });
    expect(reader.next()).toBeNull();
    expect(reader.fault).toMatchObject({ kind: 'damage', reason: expect.stringContaining(DIRECTORY_ID) });
  });

  test('after a power loss an unsynced hole is a torn tail, a synced one is damage', async () => {
    const disk = new SimulatedDisk();
    const log = await openLog(disk);
    log.append(Buffer.alloc(5000, 'a'));
    log.append(Buffer.alloc(5000, 'b'));
    log.append(Buffer.alloc(5000, 'c'));
    await log.close();
    const holed = (bootId: string, from: SimulatedDisk) => {
      const next = new SimulatedDisk(bootId);
      const bytes = Buffer.from(from.read(path(0)));
      bytes.fill(0, 8192, 12288); // within b and c
      next.put(path(0), bytes);
      return readLog(next).fault;
    };
    expect(holed('boot-1', disk)).toMatchObject({ kind: 'damage', position: 5000 });
    expect(holed('boot-2', disk)).toMatchObject({ kind: 'torn', position: 5000 });

    const synced = new SimulatedDisk();
    const careful = await openLog(synced);
    for (const letter of 'abcd') {
      careful.append(Buffer.alloc(5000, letter));
      await careful.sync();
    }
    await careful.close();
    expect(holed('boot-2', synced)).toMatchObject({ kind: 'damage', position: 5000, framesAfter: 1 });
  });
});

test('a power loss at any moment leaves a prefix that ends no earlier than what was synced', async () => {
  const seed = seeds(1)[0];
  const random = uniform(seed);
  for (let round = 0; round < 300; round++) {
    const disk = new SimulatedDisk();
    let position = 0;
    let older: number[] = [];
    let history: string[] = [];
    let current = disk;
    for (let life = 0; life < 3; life++) {
      const log = await openLog(current, { position, older, segmentBytes: 9000 });
      const steps = 1 + Math.floor(random() * 25);
      for (let step = 0; step < steps; step++) {
        const dice = random();
        if (dice < 0.75) {
          const text = `${history.length}:`.padEnd(Math.floor(random() ** 3 * 9000), 'x');
          log.append(Buffer.from(text));
          history.push(text);
        } else if (dice < 0.85) {
          await log.sync();
        } else if (dice < 0.9) {
          log.roll();
        } else if (dice < 0.95) {
          const syncing = log.sync();
          log.append(Buffer.from('meanwhile'));
          history.push('meanwhile');
          await syncing;
        }
      }
      const synced = log.syncedPosition;
      current = random() < 0.2 ? current.afterKill() : current.afterPowerLoss(random);
      const context = `seed ${seed} round ${round} life ${life}`;
      const back = readLog(current);
      expect(back.fault?.kind ?? 'torn', `${context}: ${back.fault?.reason}`).toBe('torn');
      expect(back.payloads, context).toEqual(history.slice(0, back.payloads.length));
      expect(back.position, context).toBeGreaterThanOrEqual(synced);
      if (back.fault !== null) await cutLog(current, DIRECTORY, back.fault);
      history = back.payloads;
      position = back.position;
      const clean = readLog(current);
      expect(clean, context).toMatchObject({ fault: null, position });
      older = [...clean.reader.segments];
    }
  }
});
