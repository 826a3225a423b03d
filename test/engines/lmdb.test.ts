import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { openEngine } from '../../src/engines/open.ts';
import { packKeys, packRows, unpackRows } from '../../src/engines/packed.ts';
import { countKeys, numbered, Scratch } from './fixture.ts';

const MB = 1024 ** 2;
const scratch = new Scratch();
afterAll(() => scratch.dispose());

function rowsOf(from: number, count: number, bytes: number): ReturnType<typeof packRows> {
  const rows = [];
  for (let i = from; i < from + count; i++) {
    rows.push({ key: numbered(i), value: Buffer.alloc(bytes, String(i % 10)) });
  }
  return packRows(rows);
}

test('the map grows while another thread reads an old and the newest state', async () => {
  const engine = await openEngine('lmdb', scratch.next());
  await engine.write(rowsOf(0, 1000, 1000));
  const firstMap = (await engine.stats()).details['lmdb.map-size'] as number;
  const old = engine.scan({ start: new Uint8Array(0), chunkBytes: 10_000 })[Symbol.asyncIterator]();
  let seen = (await old.next()).value!.rows;
  for (let batch = 1; batch <= 3; batch++) {
    let written = false;
    const write = engine.write(rowsOf(batch * 1000, 1000, 40_000)).then(() => (written = true));
    while (!written) {
      const [row] = unpackRows(await engine.getMany(packKeys([numbered(batch * 1000 - 1)])));
      expect(Buffer.from(row.value!).toString('latin1', 0, 1)).toBe('9');
    }
    await write;
  }
  for (let step = await old.next(); step.done !== true; step = await old.next()) {
    for (const { value } of unpackRows(step.value)) expect(value).toHaveLength(1000);
    seen += step.value.rows;
  }
  expect(seen).toBe(1000);
  const { details } = await engine.stats();
  expect(details['lmdb.map-size']).toBeGreaterThan(firstMap);
  expect(details['lmdb.file-bytes']).toBeGreaterThan(firstMap);
  expect(await countKeys(engine, { start: new Uint8Array(0) })).toBe(4000);
  await engine.close();
});

test('a full map names lmdb.map-size; deleting and compacting make room', async () => {
  const directory = scratch.next();
  const engine = await openEngine('lmdb', directory, { 'lmdb.map-size': '8mb' });
  let written = 0;
  const failure = await (async () => {
    for (;;) {
      await engine.write(rowsOf(written, 500, 1000));
      written += 500;
    }
  })().catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'ENGINE_FULL' });
  expect(String(failure)).toContain('lmdb.map-size (8mb)');
  expect(String(failure)).toContain(directory);
  expect(written).toBeGreaterThan(3000);
  const file = readdirSync(directory).find((name) => name.endsWith('.mdb'))!;
  expect(statSync(join(directory, file)).size).toBeLessThanOrEqual(8 * MB);
  expect(await countKeys(engine, { start: new Uint8Array(0) })).toBe(written);

  await engine.deleteRange({ start: numbered(500) });
  await engine.compact();
  await engine.write(rowsOf(1000, 500, 1000));
  expect(await countKeys(engine, { start: new Uint8Array(0) })).toBe(1000);
  await engine.close();
  const again = await openEngine('lmdb', directory, { 'lmdb.map-size': '64mb' });
  await again.write(rowsOf(0, written, 1000));
  await again.close();
});

test('compaction leaves one data file, also when it happens under a scan', async () => {
  const directory = scratch.next();
  const engine = await openEngine('lmdb', directory);
  await engine.write(rowsOf(0, 2000, 500));
  const scan = engine.scan({ start: new Uint8Array(0), chunkBytes: 1000 })[Symbol.asyncIterator]();
  await scan.next();
  await engine.compact();
  await engine.compact();
  const dataFiles = (): string[] => readdirSync(directory).filter((name) => name.endsWith('.mdb'));
  expect(dataFiles()).toEqual(['data-000001.mdb', 'data-000003.mdb']);
  await scan.return!(undefined);
  await engine.stats();
  await engine.close();
  expect(dataFiles()).toEqual(['data-000003.mdb']);
  const again = await openEngine('lmdb', directory);
  expect(await countKeys(again, { start: new Uint8Array(0) })).toBe(2000);
  await again.close();
});
