import { expect, test } from 'vitest';
import { addExtended, formatExtended, parseExtended } from '../../src/bytes/extended.ts';
import { Slice } from '../../src/bytes/slice.ts';

const parse = (text: string) => parseExtended(Slice.from(text));
const sum = (a: string, b: string): string | undefined => {
  const value = addExtended(parse(a)!, parse(b)!);
  return value && formatExtended(value);
};

// What Redis 7.0 on x86-64 gives for INCRBYFLOAT.
test.each([
  ['0', '0.1', '0.1'],
  ['3', '1.1', '4.1'],
  ['3.0e3', '200', '3200'],
  ['10.50', '0.1', '10.6'],
  ['1', '-1', '0'],
  ['-1.5', '0.5', '-1'],
  ['0', '-0.000000000000000001', '0'],
  ['17179869184', '0.5', '17179869184.5'],
  ['1e30', '1', '1000000000000000000024696061952'],
  ['0.1', '0.2', '0.3'],
  ['9223372036854775807', '1', '9223372036854775808'],
  ['123456789.123456789', '1e-17', '123456789.12345678899873747'],
  ['0x10', '.5', '16.5'],
])('%s + %s is %s', (a, b, result) => {
  expect(sum(a, b)).toBe(result);
});

test.each(['', '-', '.', '1e', 'abc', ' 1', '1 ', 'nan', '0x', '1e99999', '1e-99999', '1\0'])(
  '%j is no number',
  (text) => {
    expect(parse(text)).toBeUndefined();
  },
);

test('sums that are not finite', () => {
  expect(sum('inf', '1')).toBeUndefined();
  expect(sum('1', '-Infinity')).toBeUndefined();
  expect(sum('1e4932', '1e4932')).toBeUndefined();
});

test('the range of the format', () => {
  expect(parse('1.18973149535723176502e4932')).toBeDefined();
  expect(parse('1.19e4932')).toBeUndefined();
  expect(parse('3.7e-4951')).toBeDefined();
  expect(parse('1e-4951')).toBeUndefined();
});
