import { describe, expect, test } from 'vitest';
import { DELETE_LENGTH } from '../../src/engines/engine.ts';
import type { ByteSink } from '../../src/bytes/sink.ts';
import { REDO_HEADER_BYTES, redoName } from '../../src/store/redo-format.ts';
import { RedoDamagedError, RedoWriter, verifyRedo, type RedoFile } from '../../src/store/redo.ts';
import { seeds, uniform } from './random.ts';
import { DiskFault, SimulatedDisk } from './simulated-disk.ts';

const DIRECTORY = '/data/redo';
const DIRECTORY_ID = '0123456789abcdef0123456789abcdef';
const PATH = `${DIRECTORY}/${redoName(77)}`;

function row(sink: ByteSink, key: string, value: string | null): void {
  sink.u32(key.length);
  sink.u32(value === null ? DELETE_LENGTH : value.length);
  sink.ascii(key);
  if (value !== null) sink.ascii(value);
}

function begin(disk: SimulatedDisk): RedoWriter {
  return new RedoWriter(disk, DIRECTORY, { position: 77, directoryId: DIRECTORY_ID });
}

async function fill(writer: RedoWriter, rows: number, random: () => number): Promise<void> {
  for (let i = 0; i < rows; i++) {
    row(writer.sink, `key-${i}`, random() < 0.1 ? null : 'v'.repeat(Math.floor(random() * 2000)));
    if (i % 50 === 0) {
      writer.drain();
      if (writer.full) await writer.room();
    }
  }
}

function verify(disk: SimulatedDisk): RedoFile {
  const steps = verifyRedo(disk, PATH, DIRECTORY_ID);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

describe('redo file', () => {
  test('rows come back as one packed region, whatever the number of chunks', async () => {
    for (const rows of [0, 1, 2000]) {
      const disk = new SimulatedDisk();
      const writer = begin(disk);
      await fill(writer, rows, uniform(7));
      const written = await writer.commit();
      expect(verify(disk)).toEqual(written);
      expect(written).toMatchObject({ path: PATH, position: 77, rows, rowsOffset: REDO_HEADER_BYTES });
      const bytes = disk.read(PATH).subarray(written.rowsOffset, written.rowsOffset + written.rowBytes);
      let at = 0;
      for (let i = 0; i < rows; i++) {
        const keyLength = bytes.readUInt32LE(at);
        const valueLength = bytes.readUInt32LE(at + 4);
        expect(bytes.toString('latin1', at + 8, at + 8 + keyLength)).toBe(`key-${i}`);
        at += 8 + keyLength + (valueLength === DELETE_LENGTH ? 0 : valueLength);
      }
      expect(at).toBe(bytes.length);
      expect(disk.list(DIRECTORY)).toEqual([redoName(77)]);
    }
  });

  test('memory stays bounded while the disk is slower than the rows', async () => {
    const disk = new SimulatedDisk();
    const writer = begin(disk);
    let most = 0;
    for (let i = 0; i < 40_000; i++) {
      row(writer.sink, `key-${i}`, 'v'.repeat(1900));
      if (i % 20 === 0) writer.drain();
      most = Math.max(most, writer.bufferBytes);
      if (writer.full) await writer.room();
    }
    await writer.commit();
    expect(writer.bytes).toBeGreaterThan(64 * 1024 * 1024);
    expect(most).toBeLessThan(16 * 1024 * 1024);
  });

  test('a flipped bit anywhere is found, with its place', async () => {
    const disk = new SimulatedDisk();
    const writer = begin(disk);
    await fill(writer, 1200, uniform(3));
    await writer.commit();
    const whole = Buffer.from(disk.read(PATH));
    const seed = seeds(1)[0];
    const random = uniform(seed);
    const places = [0, 5, 9, 17, 25, whole.length - 1, whole.length - 9, whole.length - 41];
    for (let i = 0; i < 60; i++) places.push(Math.floor(random() * whole.length));
    for (const place of places) {
      const bytes = Buffer.from(whole);
      bytes[place] ^= 1;
      disk.put(PATH, bytes);
      expect(() => verify(disk), `seed ${seed} place ${place}`).toThrow(RedoDamagedError);
    }
    for (const end of [0, 10, REDO_HEADER_BYTES, whole.length - 1]) {
      disk.put(PATH, whole.subarray(0, end));
      expect(() => verify(disk), `cut at ${end}`).toThrow(/damaged at offset \d+/);
    }
    disk.put(PATH, whole);
    expect(() => [...verifyRedo(disk, PATH, 'ff'.repeat(16))]).toThrow(/another|belongs/);
    expect(verify(disk).rows).toBe(1200);
  });

  test('a commit that fails leaves nothing behind', async () => {
    for (const operation of ['write', 'sync', 'rename', 'sync-directory'] as const) {
      const disk = new SimulatedDisk();
      const writer = begin(disk);
      await fill(writer, 300, uniform(1));
      disk.fault = (seen) => (seen === operation ? new DiskFault('ENOSPC') : null);
      await expect(writer.commit(), operation).rejects.toThrow('ENOSPC');
      disk.fault = () => null;
      await writer.abandon();
      expect(disk.list(DIRECTORY), operation).toEqual([]);
    }
  });

  test('a power loss before the commit leaves no redo file, after it a whole one', async () => {
    const seed = seeds(1)[0];
    const random = uniform(seed);
    for (let round = 0; round < 60; round++) {
      const disk = new SimulatedDisk();
      const writer = begin(disk);
      await fill(writer, 400, random);
      let committed = false;
      const commit = writer.commit().then(() => (committed = true));
      const turns = Math.floor(random() * 12);
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
      const after = disk.afterPowerLoss(random);
      const there = after.list(DIRECTORY).includes(redoName(77));
      if (committed) expect(there, `seed ${seed} round ${round}`).toBe(true);
      if (there) expect(verify(after).rows, `seed ${seed} round ${round}`).toBe(400);
      await commit;
    }
  });
});
