/** Doubles as Redis reads and prints them, by way of scores. */
import { afterAll, beforeAll, test } from 'vitest';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { pick, seeded } from './random-commands.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair();
});
afterAll(() => pair.stop());

/** Sets and reads back a score. */
const through = (text: string): CommandLine[] => [
  ['ZADD', 'z', text, 'm'],
  ['ZSCORE', 'z', 'm'],
];

test('spellings', async () => {
  const spellings = [
    '0',
    '-0',
    '+0',
    '1',
    '+1',
    '-1',
    '007',
    '1.',
    '.5',
    '-.5e1',
    '1e3',
    '1E+3',
    '1e-3',
    '1e+',
    '1e',
    'e1',
    '.',
    '+',
    '-',
    '',
    ' 1',
    '1 ',
    '\t1',
    '1\n',
    '1\0',
    '1,5',
    '1_0',
    '0x10',
    '0X1F',
    '-0x1p-3',
    '0x.8',
    '0x1.8p1',
    '0x',
    '0x.',
    '0xg',
    '0x1p',
    '0x1p+',
    '0b1',
    '0o7',
    'inf',
    '-inf',
    '+inf',
    'INF',
    'infinity',
    '-Infinity',
    'infinit',
    'nan',
    '-nan',
    'NaN(1)',
    '1e308',
    '1.8e308',
    '-1e309',
    '1e-307',
    '2.3e-308',
    '5e-324',
    '2e-324',
    '1e-400',
    '0e999',
    '0x1p1023',
    '0x1p1024',
    '0x1p-1074',
    '9007199254740993',
    '123456789012345678901234567890',
    '0.1',
    '0.30000000000000004',
    '\u00a01',
    '1\u00a0',
  ];
  for (const text of spellings) await pair.compare([['DEL', 'z'], ...through(text)]);
});

test('random numbers', async () => {
  const random = seeded('doubles');
  const bits = new DataView(new ArrayBuffer(8));
  for (let i = 0; i < 1500; i++) {
    bits.setUint32(0, Math.floor(random() * 2 ** 32));
    bits.setUint32(4, Math.floor(random() * 2 ** 32));
    const any = bits.getFloat64(0);
    const value = pick(random, [
      Number.isFinite(any) ? any : 0,
      Math.floor(random() * 1e6) / 100,
      (random() - 0.5) * 10 ** Math.floor(random() * 30 - 10),
      // Halves of the 17th digit, where C rounds to even.
      (2 ** 50 + Math.floor(random() * 1e6)) / pick(random, [1, 2, 4, 8]),
      Math.floor(random() * 2 ** 53) * 2 ** Math.floor(random() * 20),
    ]);
    await pair.compare(through(String(value)));
  }
});
