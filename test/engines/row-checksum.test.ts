import { expect, test } from 'vitest';
import { DAMAGED_LENGTH, EngineError } from '../../src/engines/engine.ts';
import { packRows, unpackRows } from '../../src/engines/packed.ts';
import { openRows, sealRows } from '../../src/engines/row-checksum.ts';

const rows = [
  { key: Buffer.from('a'), value: Buffer.from('first value') },
  { key: Buffer.from('gone'), value: undefined },
  { key: Buffer.from('empty'), value: Buffer.alloc(0) },
  { key: Buffer.from('z'), value: Buffer.alloc(3000, 'z') },
];

test('rows come back as they were, with deletions, through seal and open', () => {
  const sealed = sealRows(packRows(rows));
  expect(sealed.length).toBe(packRows(rows).length + 3 * 4);
  const opened = openRows(sealed);
  expect(unpackRows(opened).map(({ key, value }) => [Buffer.from(key), value && Buffer.from(value)])).toEqual(
    rows.map(({ key, value }) => [key, value]),
  );
});

test('a flipped bit in key, value or checksum is told for its row alone', () => {
  const { length, rows: count } = sealRows(packRows(rows));
  // The first row's key, value and checksum; row headers belong to the packing, not to the disk.
  for (let at = 8; at < 8 + 1 + 11 + 4; at++) {
    const { bytes } = sealRows(packRows(rows));
    Buffer.from(bytes)[at] ^= 0x20;
    const opened = openRows({ bytes, length, rows: count });
    const memory = Buffer.from(opened.bytes, 0, opened.length);
    expect(memory.readUInt32LE(4), `byte ${at}`).toBe(DAMAGED_LENGTH);
    expect(() => unpackRows(opened)).toThrow(EngineError);
    const rest = { bytes: opened.bytes.slice(9), length: opened.length - 9, rows: 3 };
    expect(unpackRows(rest).map(({ key }) => Buffer.from(key).toString())).toEqual(['gone', 'empty', 'z']);
  }
});

test('a value too short to hold a checksum is damaged', () => {
  const opened = openRows(packRows([{ key: Buffer.from('k'), value: Buffer.from('abc') }]));
  expect(() => unpackRows(opened)).toThrow('row 6b is not as it was written');
});
