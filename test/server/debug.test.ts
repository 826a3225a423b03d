/** DEBUG, beside a real Redis. */
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { Config } from '../../src/server/config.ts';
import { startPair, type Pair } from './harness.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ config: new Config({ 'enable-debug-command': 'yes' }) });
});
beforeEach(() => pair.flush());
afterAll(() => pair.stop());

const big = Array.from({ length: 700 }, (_, i) => `member:${i}`);

/** Values of every type, compact and large, in order-dependent and order-free forms. */
const values = [
  ['SET', 'string', 'Bj\u00f6rn\r\n\u0000'],
  ['SET', 'int', '1234567'],
  ['APPEND', 'empty', ''],
  ['RPUSH', 'list', 'a', 'b', '', '12', 'a'],
  ['RPUSH', 'long list', ...big],
  ['SADD', 'intset', '3', '1', '2'],
  ['SADD', 'set', ...big],
  ['HSET', 'hash', 'f', 'v', 'g', '1', 'h', ''],
  ['HSET', 'big hash', ...big],
  [
    'ZADD',
    'zset',
    '1',
    'a',
    '1.1',
    'b',
    '-inf',
    'c',
    '3e300',
    'd',
    '-0',
    'e',
    '1e-7',
    'f',
    '17179869184',
    '7',
  ],
  ['ZADD', 'big zset', ...big.flatMap((member, i) => [String(i / 3), member])],
];

test('digests of all data and of single values', async () => {
  await pair.compare(['DEBUG DIGEST', 'DEBUG DIGEST-VALUE none']);
  for (const command of values)
    await pair.compare([command, ['DEBUG', 'DIGEST-VALUE', command[1]], ['DEBUG', 'DIGEST']]);
  await pair.compare([
    'EXPIRE set 1000',
    'DEBUG DIGEST-VALUE set list none zset',
    'DEBUG DIGEST',
    'SELECT 5',
    'SET string other',
    'DEBUG DIGEST',
    'SELECT 0',
    'FLUSHDB',
    'DEBUG DIGEST',
  ]);
});
