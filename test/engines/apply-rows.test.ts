import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { applyRowFile } from '../../src/engines/apply-rows.ts';
import { RowCursor, RowPacker } from '../../src/engines/packed.ts';
import { openRows } from '../../src/engines/row-checksum.ts';
import { SEED } from '../seed.ts';

const OFFSET = 11;

test(`rows larger than the window many times over are written by key, later ones of a key later, the last one last (SEED=${SEED})`, async () => {
  let state = SEED;
  const random = (n: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const directory = mkdtempSync(join(tmpdir(), 'ardent-apply-'));
  try {
    const packer = new RowPacker();
    const expected = new Map<string, string | undefined>();
    const rows = 30_000;
    for (let i = 0; i < rows; i++) {
      const last = i === rows - 1;
      const key = last ? Buffer.from('m') : Buffer.from(`k${String(random(20_000)).padStart(random(2) * 8)}`);
      const value = random(4) === 0 && !last ? undefined : Buffer.from(`${i}`.repeat(1 + random(30)));
      packer.row(key, value);
      expected.set(key.toString('latin1'), value?.toString('latin1'));
    }
    const { bytes, length } = packer.take();
    const path = join(directory, 'rows');
    writeFileSync(
      path,
      Buffer.concat([Buffer.alloc(OFFSET), Buffer.from(bytes, 0, length), Buffer.from('end')]),
    );

    const file = await open(path, 'r');
    const got = new Map<string, string | undefined>();
    let batches = 0;
    let lastKey = '';
    let descents = 0;
    const written = await applyRowFile(
      { file, path, offset: OFFSET, length },
      { windowBytes: 32 * 1024, batchBytes: 8 * 1024 },
      (batch) => {
        batches++;
        const cursor = new RowCursor(openRows(batch));
        while (cursor.advance()) {
          const key = cursor.key.toString('latin1');
          if (key.slice(0, 12) < lastKey.slice(0, 12)) descents++;
          lastKey = key;
          got.set(key, cursor.value?.toString('latin1'));
        }
        return Promise.resolve();
      },
    );
    await file.close();

    expect(written).toBe(rows);
    expect(lastKey).toBe('m');
    expect(got).toEqual(expected);
    // In random order every other row would come before the last one.
    expect(descents).toBeLessThan(batches);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
