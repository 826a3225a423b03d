import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { formatDouble, isInt64, parseDouble, parseInt64, sliceInteger } from '../../src/bytes/number.ts';

const of = (text: string): Slice => Slice.from(Buffer.from(text, 'latin1'));

describe('integers', () => {
  test.each([
    ['0', 0],
    ['7', 7],
    ['-1', -1],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['-9007199254740991', Number.MIN_SAFE_INTEGER],
  ])('%s is safe', (text, value) => {
    expect(sliceInteger(of(text))).toBe(value);
    expect(parseInt64(of(text))).toBe(BigInt(value));
    expect(isInt64(of(text))).toBe(true);
  });

  test.each(['', '-', '+1', '-0', '00', '01', ' 1', '1 ', '1.0', '1e3', '0x1', 'a', '1a', '--1'])(
    '%j is none',
    (text) => {
      expect(sliceInteger(of(text))).toBeNaN();
      expect(parseInt64(of(text))).toBeUndefined();
    },
  );

  test.each(['9007199254740992', '9223372036854775807', '-9223372036854775808'])('%s is a bigint', (text) => {
    expect(sliceInteger(of(text))).toBeNaN();
    expect(parseInt64(of(text))).toBe(BigInt(text));
    expect(isInt64(of(text))).toBe(true);
  });

  test.each(['9223372036854775808', '-9223372036854775809', '18446744073709551616', '9'.repeat(30)])(
    '%s is out of range',
    (text) => {
      expect(isInt64(of(text))).toBe(false);
    },
  );

  test('the bytes around a slice do not count', () => {
    const slice = of('-12345');
    slice.start = 2;
    slice.end = 4;
    expect(sliceInteger(slice)).toBe(23);
    slice.end = 2;
    expect(sliceInteger(slice)).toBeNaN();
  });
});

describe('doubles', () => {
  test.each([
    ['3.1', 3.1],
    ['+5', 5],
    ['5.', 5],
    ['.5', 0.5],
    ['-1e3', -1000],
    ['1E-2', 0.01],
    ['007', 7],
    ['0e5', 0],
    ['-0', -0],
    ['0.0e-999', 0],
    ['5e-324', 5e-324],
    ['0x10', 16],
    ['-0x1.8P1', -3],
    ['0xap-1', 5],
    ['inf', Infinity],
    ['-INF', -Infinity],
    ['+Infinity', Infinity],
  ])('%s', (text, value) => {
    expect(parseDouble(of(text))).toBe(value);
  });

  test.each([
    '',
    '+',
    '-',
    '.',
    'e5',
    '1e',
    '1e+',
    ' 1',
    '1 ',
    '1\0',
    '1\u00a0',
    '0b1',
    '0o7',
    '0x',
    '0x.',
    '0x1p',
    '1_0',
    '--1',
    '1e400',
    '-1e400',
    '1e-400',
    '0x1p5000',
    'nan',
    'infinit',
    'infinityy',
  ])('%j is none', (text) => {
    expect(parseDouble(of(text))).toBeNaN();
  });

  // What C's printf("%.17g") gives.
  test.each([
    [3, '3'],
    [-0, '-0'],
    [3.1, '3.1000000000000001'],
    [-0.1, '-0.10000000000000001'],
    [1e15, '1000000000000000'],
    [1e16, '10000000000000000'],
    [1e17, '1e+17'],
    [123456789012345680, '1.2345678901234568e+17'],
    [0.0001, '0.0001'],
    [0.00001, '1.0000000000000001e-05'],
    [1.5e-7, '1.4999999999999999e-07'],
    [1e300, '1.0000000000000001e+300'],
    [5e-324, '4.9406564584124654e-324'],
    [1125899906842624.25, '1125899906842624.2'],
    [1125899906842624.75, '1125899906842624.8'],
    [Infinity, 'inf'],
    [-Infinity, '-inf'],
  ])('%d is printed as %s', (value, text) => {
    expect(formatDouble(value)).toBe(text);
  });
});
