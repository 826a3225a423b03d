import { afterAll, beforeAll, beforeEach, describe, test } from 'vitest';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { Tier } from '../../src/store/tier.ts';
import { bytesOf, compareRandomly, pick, seeded } from './random-commands.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
afterAll(() => pair.stop());
beforeEach(() => pair.flush());

const MAX = '9223372036854775807';
const MIN = '-9223372036854775808';

describe('SET', () => {
  test('conditions, GET and deadlines', () =>
    pair.compare([
      'SET k v',
      'GET k',
      'SET k w NX',
      'SET n w NX',
      'SET absent w XX',
      'SET k w XX',
      'SET k x GET',
      'SET absent x GET',
      'SET k y NX GET',
      'SET fresh y NX GET',
      'SET fresh2 y XX GET',
      'SET k z GET GET',
      'GET k',
      'SET k v NX XX',
      'SET k v EX 100',
      'TTL k',
      'SET k v KEEPTTL',
      'TTL k',
      'SET k v',
      'TTL k',
      'SET k v EX 100 EX 200',
      'TTL k',
      'SET k v PX 100000 EX 1',
      'SET k v KEEPTTL EX 1',
      'SET k v EX 1 KEEPTTL',
      'SET k v KEEPTTL KEEPTTL',
      'SET k v PERSIST',
      'SET k v EXAT 99999999999',
      'EXPIRETIME k',
      'SET k v PXAT 99999999999999',
      'PEXPIRETIME k',
      'SET k v EXAT 1',
      'GET k',
      'SET k v EX',
      'SET k v EX 0',
      'SET k v EX -1',
      'SET k v EX a',
      'SET k v PX 0',
      'SET k v EXAT 0',
      'SET k v PXAT -1',
      'SET k v bad',
      `SET k v EX ${MAX}`,
      'SET k v EX 9223372036854775',
      `SET k v PX ${MAX}`,
      `SET k v PXAT ${MAX}0`,
      'SET k',
      'SET',
      'sEt k v ex 50 nx',
      'TTL k',
    ]));

  test('other types are replaced, but not with GET', () =>
    pair.compare([
      'RPUSH l a',
      'SET l v GET',
      'SET l v XX',
      'GET l',
      'RPUSH l2 a',
      'GET l2',
      'GETSET l2 v',
      'SETNX l2 v',
      'TYPE l2',
    ]));

  test('SETNX, SETEX, PSETEX, GETSET', () =>
    pair.compare([
      'SETNX k v',
      'SETNX k w',
      'GET k',
      'SETEX k 100 v',
      'TTL k',
      'SETEX k 0 v',
      'SETEX k -5 v',
      'SETEX k a v',
      'SETEX k 9223372036854776 v',
      'PSETEX k 100000 v',
      'TTL k',
      'PSETEX k 0 v',
      'PSETEX k 1.5 v',
      'GETSET k w',
      'TTL k',
      'GETSET absent w',
      'GET absent',
    ]));
});

test('GETDEL and GETEX', () =>
  pair.compare([
    'GETDEL k',
    'SET k v',
    'GETDEL k',
    'EXISTS k',
    'RPUSH l a',
    'GETDEL l',
    'GETEX l',
    'GETEX l EX 0',
    'GETEX absent EX 0',
    'GETEX absent bad',
    'SET k v EX 100',
    'GETEX k',
    'TTL k',
    'GETEX k PERSIST',
    'TTL k',
    'GETEX k PERSIST',
    'GETEX k EX 50',
    'TTL k',
    'GETEX k PX 70000',
    'TTL k',
    'GETEX k EXAT 99999999999',
    'EXPIRETIME k',
    'GETEX k PXAT 99999999999999',
    'PEXPIRETIME k',
    'GETEX k EX 1 PERSIST',
    'GETEX k PERSIST EX 1',
    'GETEX k KEEPTTL',
    'GETEX k NX',
    'GETEX k EX',
    'GETEX k EX 0',
    'GETEX k EX a',
    'GETEX k EXAT 1',
    'EXISTS k',
  ]));

test('MGET, MSET, MSETNX', () =>
  pair.compare([
    'MSET a 1 b 2',
    'RPUSH l x',
    'MGET a b c l a',
    'MSET a',
    'MSET a 1 b',
    'MSET a 3 a 4 l 5',
    'MGET a l',
    'MSETNX c 1 a 2',
    'MSETNX c 1 d 2 c 3',
    'MSETNX c',
    'MSETNX c 1 d',
    'MGET c d',
  ]));

test('APPEND, STRLEN, SETRANGE, GETRANGE', () =>
  pair.compare([
    'APPEND k abc',
    'APPEND k def',
    ['APPEND', 'k', ''],
    ['APPEND', 'e', ''],
    'EXISTS e',
    'GET k',
    'STRLEN k',
    'STRLEN absent',
    'RPUSH l x',
    'APPEND l a',
    'STRLEN l',
    'SETRANGE l 0 a',
    ['SETRANGE', 'l', '0', ''],
    'GETRANGE l 0 1',
    'SETRANGE k 3 XYZW',
    'GET k',
    'SETRANGE k 10 pad',
    'GET k',
    ['SETRANGE', 'k', '99', ''],
    ['SETRANGE', 'absent', '99', ''],
    'EXISTS absent',
    'SETRANGE absent 3 x',
    'GET absent',
    'SETRANGE k -1 x',
    'SETRANGE k a x',
    `SETRANGE k ${MAX} x`,
    'SETRANGE k 536870912 x',
    'SETRANGE nokey 536870911 xx',
    `SETRANGE k ${MIN} x`,
    'SET r 0123456789',
    ...[
      [0, 3],
      [-3, -1],
      [0, -1],
      [5, 3],
      [-1, -3],
      [100, 200],
      [-200, 2],
      [3, 3],
      [9, 10],
      [10, 10],
      [MIN, MAX],
      [MAX, MAX],
      [0, MIN],
    ].map(([start, end]) => `GETRANGE r ${start} ${end}`),
    'SUBSTR r 1 2',
    'GETRANGE absent 0 -1',
    'GETRANGE r a 1',
    'GETRANGE r 0 1.5',
    'GETRANGE r 0',
  ]));

describe('integers', () => {
  test('are counted in 64 bits', () =>
    pair.compare([
      'INCR n',
      'INCR n',
      'DECR n',
      'INCRBY n 10',
      'DECRBY n 20',
      'DECR m',
      'GET m',
      `SET n ${MAX}`,
      'INCR n',
      'INCRBY n -1',
      'INCR n',
      'GET n',
      `SET n ${MIN}`,
      'DECR n',
      'DECRBY n -1',
      'GET n',
      `DECRBY n ${MIN}`,
      `INCRBY zero ${MIN}`,
      `INCRBY zero ${MAX}`,
      `INCRBY zero ${MAX}`,
      'SET n 9007199254740991',
      'INCR n',
      'INCR n',
      'INCR n',
      'DECR n',
      'INCRBY n 9007199254740993',
      'SET n 4294967295',
      'INCR n',
      'SET n -1',
      'INCR n',
      'GET n',
      'INCRBY n 9223372036854775808',
      'INCRBY n 1.5',
      'INCRBY n a',
      'INCRBY n +1',
      'INCRBY n 01',
      'EXPIRE n 100',
      'INCR n',
      'TTL n',
    ]));

  test('have one spelling', async () => {
    const values = [
      ' 1',
      '1 ',
      '+1',
      '01',
      '-0',
      '',
      '-',
      '1.0',
      '1e2',
      'abc',
      '9223372036854775808',
      '-01',
      '0x10',
    ];
    for (const value of values) {
      await pair.compare([
        ['SET', 'n', value],
        ['INCR', 'n'],
        ['INCRBY', 'zero', value],
        ['GET', 'n'],
      ]);
    }
    await pair.compare(['RPUSH l a', 'INCR l', 'INCRBY l 1', 'DECRBY l 1', 'INCRBY l x', 'DECR']);
  });
});

test('INCRBYFLOAT counts in long doubles', async () => {
  await pair.compare([
    'INCRBYFLOAT f 1.5',
    'INCRBYFLOAT f 1e3',
    'INCRBYFLOAT f -1001.5',
    'SET f 0x10',
    'INCRBYFLOAT f 0.1',
    'SET f abc',
    'INCRBYFLOAT f 1',
    'INCRBYFLOAT n inf',
    'INCRBYFLOAT n -inf',
    'INCRBYFLOAT n nan',
    'INCRBYFLOAT n a',
    ['INCRBYFLOAT', 'n', ' 1'],
    ['INCRBYFLOAT', 'n', ''],
    ['SET', 'f', ' 1'],
    'INCRBYFLOAT f 1',
    'RPUSH l a',
    'INCRBYFLOAT l 1',
    'INCRBYFLOAT l a',
    'SET t 5 EX 100',
    'INCRBYFLOAT t 0.5',
    'TTL t',
    'SET big 1e4932',
    'INCRBYFLOAT big 1e4932',
    'INCRBYFLOAT big 1',
    'SET small 3.7e-4951',
    'INCRBYFLOAT small 1e-17',
  ]);
  const random = seeded('INCRBYFLOAT');
  const commands: CommandLine[] = [];
  for (let i = 0; i < 400; i++) {
    const value = (random() - 0.5) * 10 ** Math.floor(random() * 40 - 20);
    const text = pick(random, [String(value), value.toFixed(5), value.toExponential(3)]);
    commands.push(random() < 0.2 ? ['SET', 'x', text] : ['INCRBYFLOAT', 'x', text]);
  }
  await pair.compare(commands);
});

describe('LCS', () => {
  test('strings, lengths, indexes', () =>
    pair.compare([
      'MSET a ohmytext b mynewtext',
      'LCS a b',
      'LCS a b LEN',
      'LCS a b IDX',
      'LCS a b IDX MINMATCHLEN 4',
      'LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN',
      'LCS a b IDX WITHMATCHLEN MINMATCHLEN -5',
      'LCS a b WITHMATCHLEN',
      'LCS a b LEN IDX',
      'LCS a b bad',
      'LCS a b MINMATCHLEN',
      'LCS a b MINMATCHLEN x',
      'LCS a absent',
      'LCS a absent LEN',
      'LCS absent absent IDX',
      'RPUSH l x',
      'LCS a l',
      'LCS l a bad',
      'LCS a',
    ]));

  test('random strings', async () => {
    const random = seeded('LCS');
    for (let i = 0; i < 60; i++) {
      const text = (): string =>
        Array.from({ length: Math.floor(random() * 60) }, () => pick(random, ['a', 'b', 'c'])).join('');
      await pair.compare([
        ['MSET', 'a', text(), 'b', text()],
        'LCS a b',
        'LCS a b LEN',
        'LCS a b IDX WITHMATCHLEN',
        'LCS a b IDX MINMATCHLEN 3',
      ]);
    }
  });

  test('the table may not exceed the longest string', async () => {
    const long = 'x'.repeat(20_000);
    await pair.compare([['MSET', 'a', long, 'b', long], 'LCS a b LEN']);
  });
});

test('RESP3', async () => {
  await pair.ours.send('HELLO', 3);
  await pair.theirs.send('HELLO', 3);
  await pair.compare([
    'GET absent',
    'SET absent v XX',
    'MGET a b',
    'SET a ohmytext',
    'SET b mynewtext',
    'LCS a b IDX',
    'GETEX absent',
    'GETDEL absent',
    'INCRBYFLOAT f 1.5',
  ]);
  await pair.ours.send('HELLO', 2);
  await pair.theirs.send('HELLO', 2);
});

test('random commands', async () => {
  const values = ['', '0', '5', '-1', MAX, MIN, '1.5', 'abc', bytesOf(0, 255, 13, 10), 'x'.repeat(100)];
  const offsets = ['0', '1', '-1', '3', '7', '-4', '100', MAX, MIN, 'a'];
  await compareRandomly(pair, 'strings', 2500, (random) => {
    const key = (): string => pick(random, ['a', 'b', 'c', 'list']);
    const value = (): string | Buffer => pick(random, values);
    const offset = (): string => pick(random, offsets);
    return pick<() => CommandLine>(random, [
      () => ['SET', key(), value()],
      () => ['SET', key(), value(), pick(random, ['NX', 'XX', 'GET', 'KEEPTTL'])],
      () => ['SET', key(), value(), pick(random, ['NX', 'XX']), 'GET'],
      () => ['SET', key(), value(), 'EX', pick(random, ['1000', '0', '-1', MAX])],
      () => ['GET', key()],
      () => ['GETSET', key(), value()],
      () => ['GETDEL', key()],
      () => ['GETEX', key(), pick(random, ['PERSIST', 'EX', 'PX']), pick(random, ['1000', '5000'])],
      () => ['MGET', key(), key(), key()],
      () => ['MSETNX', key(), value(), key(), value()],
      () => ['APPEND', key(), value()],
      () => ['STRLEN', key()],
      () => ['SETRANGE', key(), pick(random, ['0', '1', '5', '200', '-1', 'a']), value()],
      () => ['GETRANGE', key(), offset(), offset()],
      () => ['INCR', key()],
      () => ['DECRBY', key(), value()],
      () => ['INCRBY', key(), value()],
      () => ['INCRBYFLOAT', key(), value()],
      () => ['LCS', key(), key(), pick(random, ['LEN', 'IDX'])],
      () => ['OBJECT', 'ENCODING', key()],
      () => ['DEL', key()],
      () => ['TTL', key()],
      () => ['RPUSH', 'list', 'x'],
    ])();
  });
});
