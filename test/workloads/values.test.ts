import { deflateRawSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { Random } from '../../src/workloads/random.ts';
import { largest, parseSizes, sizeAt, ValuePool } from '../../src/workloads/values.ts';

it('sizes: fixed, range, weighted', () => {
  const random = new Random(5);
  const draw = (spec: string): number[] =>
    Array.from({ length: 20_000 }, () => sizeAt(parseSizes(spec), random.fraction()));
  expect(new Set(draw('128'))).toEqual(new Set([128]));
  const range = draw('10-19');
  expect([Math.min(...range), Math.max(...range)]).toEqual([10, 19]);
  expect(range.reduce((a, b) => a + b) / range.length).toBeCloseTo(14.5, 0);
  const weighted = draw('64:70,1024:30');
  expect(weighted.filter((size) => size === 64).length / weighted.length).toBeCloseTo(0.7, 1);
  expect(largest(parseSizes('64:70,1024:30'))).toBe(1024);
});

it.each(['', 'x', '10-5', '64:0,3:1', '1-2-3', '-4', '999999999999'])('refuses size %j', (spec) => {
  expect(() => parseSizes(spec)).toThrow(RangeError);
});

it.each([0, 0.25, 0.5, 0.75])('compressibility %d is what a compressor finds', (compressibility) => {
  const pool = new ValuePool(11, compressibility);
  const bytes = pool.bytes.subarray(0, 256 * 1024);
  expect(1 - deflateRawSync(bytes).length / bytes.length).toBeCloseTo(compressibility, 1);
});

it('values differ from key to key and are the same for the same key', () => {
  const sizes = parseSizes('40-60');
  const pool = new ValuePool(3);
  const again = new ValuePool(3);
  const values = Array.from({ length: 1000 }, (_, key) => pool.valueOf(key, sizes).toString('hex'));
  expect(new Set(values).size).toBe(1000);
  expect(again.valueOf(77, sizes).toString('hex')).toBe(values[77]);
});
