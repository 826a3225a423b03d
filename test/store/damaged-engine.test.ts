/**
 * Damage below the rows, in the engines' own files: what can be read is served, what cannot be is an error for its key
 * alone, nothing is lost without a word, and the repair keeps what can be read. The places come from the seed.
 */
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { viewOf } from '../../src/bytes/slice.ts';
import { DAMAGED_LENGTH, DELETE_LENGTH, type Engine, type EngineName } from '../../src/engines/engine.ts';
import { openEngine } from '../../src/engines/open.ts';
import { packKeys, RowPacker } from '../../src/engines/packed.ts';
import { SEED } from '../seed.ts';
import { uniform } from './random.ts';

const ROWS = 6000;
const ROUNDS = 3;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-damaged-engine-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const keyOf = (i: number): Buffer => Buffer.from(`row ${String(i).padStart(6, '0')}`);
const valueOf = (i: number, round: number): Buffer =>
  Buffer.from(`${round}: value of ${i}`.padEnd(80, `${i % 7}`));

/** Rows that are all in one state of the engine's files: still in its log, or in tables. */
async function fill(name: EngineName, at: string, where: 'log' | 'tables'): Promise<void> {
  const engine = await openEngine(name, at);
  for (let round = 0; round < 2; round++) {
    for (let first = 0; first < ROWS; first += 500) {
      const packer = new RowPacker();
      for (let i = first; i < first + 500; i++) packer.row(keyOf(i), valueOf(i, round));
      await engine.write(packer.take(), { sync: true });
    }
  }
  if (where === 'tables') await engine.compact();
  await engine.close();
}

/** How many rows getMany finds sound, damaged and absent; a wrong value fails. */
async function lookUp(engine: Engine): Promise<{ sound: number; damaged: number; absent: number }> {
  const counts = { sound: 0, damaged: 0, absent: 0 };
  const keys = Array.from({ length: ROWS }, (_, i) => keyOf(i));
  const rows = await engine.getMany(packKeys(keys));
  const view = viewOf(rows.bytes);
  let at = 0;
  for (let i = 0; i < ROWS; i++) {
    const length = view.getUint32(at + 4, true);
    const start = at + 8 + view.getUint32(at, true);
    at = start + (length >= DAMAGED_LENGTH ? 0 : length);
    if (length === DELETE_LENGTH) counts.absent++;
    else if (length === DAMAGED_LENGTH) counts.damaged++;
    else {
      counts.sound++;
      expect(Buffer.from(rows.bytes, start, length).toString()).toBe(valueOf(i, 1).toString());
    }
  }
  return counts;
}

async function scanned(engine: Engine, salvage: boolean): Promise<{ rows: number; gaps: number }> {
  const counts = { rows: 0, gaps: 0 };
  for await (const chunk of engine.scan({ start: Uint8Array.of(0), salvage, chunkBytes: 4096 })) {
    counts.rows += chunk.rows;
    counts.gaps += chunk.gaps?.length ?? 0;
  }
  return counts;
}

for (const name of ['leveldb', 'rocksdb'] as const) {
  test(`${name}: a damaged block costs its rows alone, and a scan does not step over it silently (seed ${SEED})`, async () => {
    const random = uniform(SEED);
    const whole = path.join(directory, 'whole');
    await fill(name, whole, 'tables');
    const tables = readdirSync(whole).filter((file) => /\.(ldb|sst)$/.test(file));
    const largest = tables.sort(
      (a, b) => statSync(path.join(whole, b)).size - statSync(path.join(whole, a)).size,
    )[0];
    for (let round = 0; round < ROUNDS; round++) {
      const at = path.join(directory, `round-${round}`);
      cpSync(whole, at, { recursive: true });
      const file = path.join(at, largest);
      const bytes = readFileSync(file);
      // The data blocks come first; index and properties are at the end.
      const offset = Math.floor(bytes.length * 0.8 * random());
      bytes.fill(0xff, offset, offset + 16);
      writeFileSync(file, bytes);

      const engine = await openEngine(name, at);
      const found = await lookUp(engine);
      const tell = `offset ${offset}: ${JSON.stringify(found)}`;
      expect(found.damaged + found.absent, tell).toBeGreaterThan(0);
      expect(found.sound, tell).toBeGreaterThan(ROWS * 0.8);
      await expect(scanned(engine, false), tell).rejects.toMatchObject({ code: 'ENGINE_DAMAGED' });
      const salvaged = await scanned(engine, true);
      expect(salvaged.gaps, tell).toBeGreaterThan(0);
      expect(salvaged.rows, tell).toBeGreaterThanOrEqual(found.sound - 2);
      await engine.close();
    }
  });

  test(`${name}: an engine whose list of files is damaged does not open, and is made anew by a salvage`, async () => {
    const at = path.join(directory, 'engine');
    await fill(name, at, 'tables');
    writeFileSync(path.join(at, 'CURRENT'), 'MANIFEST-0damage');
    await expect(openEngine(name, at)).rejects.toMatchObject({ code: 'ENGINE_DAMAGED' });
    const engine = await openEngine(name, at, {}, { salvage: true });
    expect(await lookUp(engine)).toEqual({ sound: ROWS, damaged: 0, absent: 0 });
    await engine.close();
  });
}

test(`leveldb: damage within its log stops the opening, a torn end does not (seed ${SEED})`, async () => {
  const random = uniform(SEED);
  const whole = path.join(directory, 'whole');
  await fill('leveldb', whole, 'log');
  const log = readdirSync(whole).find((file) => file.endsWith('.log'))!;
  for (let round = 0; round < ROUNDS; round++) {
    const at = path.join(directory, `round-${round}`);
    cpSync(whole, at, { recursive: true });
    const file = path.join(at, log);
    const bytes = readFileSync(file);
    const offset = Math.floor((bytes.length - 100_000) * random());
    bytes[offset] ^= 0x10;
    writeFileSync(file, bytes);
    await expect(openEngine('leveldb', at)).rejects.toMatchObject({
      code: 'ENGINE_DAMAGED',
      message: expect.stringContaining(log) as string,
    });
    // What is about to be written again may be damaged.
    await (await openEngine('leveldb', at, {}, { redone: true })).close();

    const torn = path.join(directory, `torn-${round}`);
    cpSync(whole, torn, { recursive: true });
    writeFileSync(path.join(torn, log), readFileSync(path.join(whole, log)).subarray(0, offset));
    await (await openEngine('leveldb', torn)).close();
  }
});
