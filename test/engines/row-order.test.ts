import { expect, test } from 'vitest';
import { RowPacker } from '../../src/engines/packed.ts';
import { openRows, sealRows, sealRowsAt } from '../../src/engines/row-checksum.ts';
import { rowOrder } from '../../src/engines/row-order.ts';
import { SEED } from '../seed.ts';

/** Rows of a batch as [key, value] in hex; null is a deletion. */
function rowsOf(bytes: ArrayBuffer, length: number): [string, string | null][] {
  const memory = Buffer.from(bytes, 0, length);
  const rows: [string, string | null][] = [];
  for (let at = 0; at < length;) {
    const keyEnd = at + 8 + memory.readUInt32LE(at);
    const valueLength = memory.readUInt32LE(at + 4);
    const deleted = valueLength === 0xffffffff;
    const end = keyEnd + (deleted ? 0 : valueLength);
    rows.push([memory.toString('hex', at + 8, keyEnd), deleted ? null : memory.toString('hex', keyEnd, end)]);
    at = end;
  }
  return rows;
}

test(`rows come in the order of the first 12 bytes of their keys, equal ones as they were (SEED=${SEED})`, async () => {
  let state = SEED;
  const random = (n: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const packer = new RowPacker();
  const expected: { key: Buffer; value: Buffer | undefined; sort: string }[] = [];
  for (let i = 0; i < 5_000; i++) {
    const key = Buffer.from(Array.from({ length: 1 + random(16) }, () => random(4) * 85));
    const value = random(5) === 0 ? undefined : Buffer.from(String(i));
    packer.row(key, value);
    expected.push({ key, value, sort: key.subarray(0, 12).toString('hex').padEnd(24, '0') });
  }
  expected.sort((a, b) => (a.sort < b.sort ? -1 : a.sort > b.sort ? 1 : 0));
  const batch = packer.take();

  const order = await rowOrder(batch.bytes, batch.length, batch.rows);
  const got: [string, string | null][] = [];
  for (let done = 0; done < order.length;) {
    const sealed = sealRowsAt(batch.bytes, order, done, 1000);
    const opened = openRows(sealed);
    expect(sealed.rows).toBeGreaterThan(0);
    got.push(...rowsOf(opened.bytes, opened.length));
    done += sealed.rows;
  }
  expect(got).toEqual(
    expected.map(({ key, value }) => [key.toString('hex'), value?.toString('hex') ?? null]),
  );
});

test('a row larger than a batch is a batch of its own', async () => {
  const packer = new RowPacker();
  packer.row(Buffer.from('b'), Buffer.alloc(5000, 1));
  packer.row(Buffer.from('a'), Buffer.alloc(95, 2));
  const batch = packer.take();
  const order = await rowOrder(batch.bytes, batch.length, batch.rows);
  const first = sealRowsAt(batch.bytes, order, 0, 100);
  const second = sealRowsAt(batch.bytes, order, 1, 100);
  expect([first.rows, second.rows]).toEqual([1, 1]);
  const opened = openRows(second);
  expect(rowsOf(opened.bytes, opened.length)[0][0]).toBe(Buffer.from('b').toString('hex'));
});

test('sealing a whole batch and opening it gives it back', () => {
  const packer = new RowPacker();
  packer.row(Buffer.from('one'), Buffer.from('1'));
  packer.row(Buffer.from('gone'), undefined);
  packer.row(Buffer.from('empty'), Buffer.alloc(0));
  const batch = packer.take();
  const before = rowsOf(batch.bytes, batch.length);
  const opened = openRows(sealRows(batch));
  expect(rowsOf(opened.bytes, opened.length)).toEqual(before);
});
