/** Filter files: what was written is known again, and nothing is trusted that is not of the checkpoint. */
import { expect, test } from 'vitest';
import { Arena } from '../../src/store/arena.ts';
import { AwayKeys } from '../../src/store/away-keys.ts';
import type { Disk } from '../../src/store/disk.ts';
import type { CheckpointMark } from '../../src/store/filter-format.ts';
import { FilterFiles } from '../../src/store/filter-files.ts';
import { KeyFilter } from '../../src/store/key-filter.ts';
import { Residents } from '../../src/store/residents.ts';
import { SimulatedDisk } from './simulated-disk.ts';

const ID = 'ab'.repeat(16);
const KEYS = 10_000;
const hashOf = (i: number): number => Math.imul(i + 1, 0x9e3779b1);

class Files {
  readonly disk: SimulatedDisk;
  readonly away = new AwayKeys(new Residents(new Arena()));
  readonly warnings: string[] = [];
  readonly files: FilterFiles;

  constructor(disk: SimulatedDisk, id = 7) {
    this.disk = disk;
    this.files = new FilterFiles({
      disk,
      directory: '/filters',
      directoryId: ID,
      keyspaces: () => [{ id, size: KEYS, away: this.away }],
      keysMin: 1,
      onWarning: (message) => this.warnings.push(message),
    });
  }

  load(mark: CheckpointMark): boolean {
    this.away.notLoaded(KEYS);
    const steps = this.files.load(mark);
    while (steps.next().done !== true);
    return this.away.filterBytes > 0;
  }

  knows(from: number, to: number): boolean {
    for (let i = from; i < to; i++) if (!this.away.mayHave(hashOf(i))) return false;
    return true;
  }
}

const mark = (checkpoints: number): CheckpointMark => ({ position: 1000 * checkpoints, checkpoints });

/** A filter of the first 8,000 hashes, and two checkpoints of 1,000 more each. */
async function written(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk();
  const { away, files } = new Files(disk);
  files.tend(mark(1));
  expect(away.wantsFilter(KEYS)).toBe(true);
  away.build(2000);
  for (let i = 0; i < 8000; i++) away.found(hashOf(i));
  away.built();
  files.tend(mark(1));
  expect(away.whole).toBeNull();
  for (let i = 8000; i < 9000; i++) away.written(hashOf(i));
  files.mark(mark(2));
  for (let i = 9000; i < 10_000; i++) away.written(hashOf(i));
  files.mark(mark(3));
  await files.close();
  return disk;
}

test('what was written is known for each checkpoint of which there is a mark', async () => {
  const disk = await written();
  for (const [checkpoints, known] of [
    [3, 10_000],
    [2, 9000],
    [1, 8000],
  ]) {
    const loaded = new Files(disk);
    expect(loaded.load(mark(checkpoints))).toBe(true);
    expect(loaded.knows(0, known)).toBe(true);
    await loaded.files.close();
    // What followed has been cut off: it is another history's.
    const again = new Files(disk);
    expect(again.load(mark(checkpoints))).toBe(true);
    expect(again.knows(known, 10_000)).toBe(known === 10_000);
    await again.files.close();
  }
  expect(new Files(disk).load(mark(3))).toBe(false);
  expect(disk.list('/filters')).toEqual([]);
});

test('neither another checkpoint, nor another database or directory', async () => {
  const disk = await written();
  const bytes = disk.read('/filters/7.filter');
  for (const wrong of [mark(4), { position: 3000, checkpoints: 2 }, { position: 2000, checkpoints: 3 }]) {
    const copy = new SimulatedDisk();
    put(copy, '/filters/7.filter', bytes);
    expect(new Files(copy).load(wrong)).toBe(false);
    expect(copy.list('/filters')).toEqual([]);
  }
  const copy = new SimulatedDisk();
  put(copy, '/filters/8.filter', bytes);
  expect(new Files(copy, 8).load(mark(3))).toBe(false);
});

test('a file that is cut off or changed anywhere is not used', async () => {
  const bytes = Buffer.from((await written()).read('/filters/7.filter'));
  const places = Array.from({ length: bytes.length }, (_, at) => at).filter(
    (at) => (at < 64 && at % 3 === 0) || at > bytes.length - 30 || at % 4999 === 0,
  );
  for (const at of places) {
    for (const how of ['cut', 'changed']) {
      const broken = Buffer.from(how === 'cut' ? bytes.subarray(0, at) : bytes);
      if (how === 'changed') broken[at] ^= 1 << (at & 7);
      const disk = new SimulatedDisk();
      put(disk, '/filters/7.filter', broken);
      const loaded = new Files(disk);
      expect(loaded.load(mark(3)), `${how} at ${at}`).toBe(false);
    }
  }
});

test('a disk that fails costs the file, not more', async () => {
  const disk = await written();
  const loaded = new Files(disk);
  expect(loaded.load(mark(3))).toBe(true);
  disk.fault = () => new Error('EIO');
  loaded.away.written(1);
  loaded.files.mark(mark(4));
  await loaded.files.close();
  expect(loaded.warnings.length).toBeGreaterThan(0);
  expect(loaded.away.newKeys).toBeNull();
  loaded.away.written(2);
  expect(loaded.knows(0, 10_000)).toBe(true);
});

function put(disk: Disk, path: string, bytes: Uint8Array): void {
  disk.makeDirectory('/filters');
  const file = disk.open(path, 'create');
  file.write(bytes, 0);
  file.close();
}

test('a filter of many parts is written and read as it was', async () => {
  const filter = KeyFilter.for(1);
  for (let i = 0; i < 50_000; i++) filter.add(hashOf(i));
  expect(filter.parts.length).toBeGreaterThan(2);
  const disk = new SimulatedDisk();
  const { away, files } = new Files(disk);
  away.filesWant = true;
  away.whole = filter;
  files.tend(mark(1));
  await files.close();
  const loaded = new Files(disk);
  expect(loaded.load(mark(1))).toBe(true);
  expect(loaded.knows(0, 50_000)).toBe(true);
  let wrong = 0;
  for (let i = 50_000; i < 60_000; i++) if (loaded.away.mayHave(hashOf(i))) wrong++;
  expect(wrong).toBeLessThan(1500);
});
