import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { Tier } from '../../src/store/tier.ts';
import { compareRandomly, pick } from './random-commands.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
afterAll(() => pair.stop());
beforeEach(() => pair.flush());

const weights = [
  'MSET w1 30 w2 10 w3 20 w10 5',
  'MSET name1 one name2 two name3 three',
  'HSET h1 f 9 name eins',
  'HSET h2 f 7 name zwei',
  'HSET h3 f 8',
];

test('lists, sets and sorted sets', () =>
  pair.compare([
    'RPUSH l 3 1 10 2 -5 2.5',
    'SORT l',
    'SORT l DESC',
    'SORT l ALPHA',
    'SORT l ALPHA DESC',
    'SORT l LIMIT 1 2',
    'SORT l LIMIT 0 0',
    'SORT l LIMIT 4 100',
    'SORT l LIMIT 100 1',
    'SORT l LIMIT -3 2',
    'SORT l LIMIT 1 -1',
    'SORT l LIMIT 0 9223372036854775807',
    'SORT l DESC LIMIT 0 2 ASC',
    'SADD s 3 1 10 2',
    'SORT s',
    'SORT s ALPHA DESC LIMIT 0 3',
    'ZADD z 5 a 3 b 4 c',
    'SORT z ALPHA',
    'SORT z BY nosort',
    'SORT z BY nosort DESC',
    'SORT z BY nosort LIMIT 1 1',
    'SORT z BY nosort DESC LIMIT 0 2',
    'SORT z',
    'SORT l BY nosort',
    'SORT l BY nosort DESC LIMIT 1 2',
    'SORT absent',
    'SORT absent STORE r',
    'SET str x',
    'SORT str',
    'SORT str BY',
    'SORT l LIMIT 1',
    'SORT l LIMIT a 1',
    'SORT l GET',
    'SORT l bad',
    'SORT',
    'SORT_RO l STORE x',
    'SORT_RO l DESC',
  ]));

test('what is no number', () =>
  pair.compare([
    'RPUSH l 1 x 2',
    'SORT l',
    'SORT l STORE r',
    'EXISTS r',
    'DEL l',
    ['RPUSH', 'l', '1', '', '-1'],
    'SORT l',
    ['RPUSH', 'l', ' 5', '1e2', 'inf', '-inf', '0x10'],
    'SORT l',
    ['RPUSH', 'l', '5 '],
    'SORT l',
    'DEL l',
    'RPUSH l nan',
    'SORT l',
  ]));

test('BY and GET', () =>
  pair.compare([
    ...weights,
    'RPUSH l 1 2 3 10 4',
    'SORT l BY w*',
    'SORT l BY w* DESC',
    'SORT l BY w* GET # GET name* GET w*',
    'SORT l BY name* ALPHA',
    'SORT l BY name* ALPHA DESC LIMIT 1 2',
    'SORT l BY h*->f',
    'SORT l BY h*->f GET h*->name GET #',
    'SORT l BY h*->name ALPHA GET #',
    'SORT l BY w*->f GET w*->f',
    'SORT l BY nosort GET w*',
    'SORT l GET nostar',
    'SORT l GET h*->',
    'SORT l GET *',
    'SORT l GET #x',
    'SORT l BY name*',
    'SORT l BY w* BY nosort',
    'SORT l BY h* GET h*',
    'HSET 1->x f v',
    'SORT l GET *->x->f',
  ]));

test('STORE', () =>
  pair.compare([
    ...weights,
    'RPUSH l 3 1 2',
    'SORT l STORE r',
    'LRANGE r 0 -1',
    'TYPE r',
    'SORT l GET name* GET absent* STORE r',
    'LRANGE r 0 -1',
    'SET other x EX 100',
    'SORT l DESC STORE other',
    'LRANGE other 0 -1',
    'TTL other',
    'SORT l STORE l',
    'LRANGE l 0 -1',
    'SORT l LIMIT 0 0 STORE other',
    'EXISTS other',
    'SORT absent STORE l',
    'EXISTS l',
    'SADD s c b a',
    'SORT s BY nosort STORE r',
    'LRANGE r 0 -1',
    'SORT s STORE r',
    'SORT s ALPHA STORE a STORE b',
    'EXISTS a b',
  ]));

test('random commands', () =>
  compareRandomly(pair, 'sort', 1200, (random) => {
    const number = (): string => String(Math.floor(random() * 30 - 10));
    const source = (): string => pick(random, ['l', 's', 'z', 'r']);
    // Without ALPHA BY: elements of equal weight then stand in an order that each server has of its own.
    const options = (): string[] => [
      ...pick(random, [['ALPHA'], ['BY', 'w*'], ['BY', 'h*->f'], []]),
      ...pick(random, [[], ['DESC']]),
      ...pick(random, [[], ['LIMIT', number(), number()]]),
      ...pick(random, [[], ['GET', '#', 'GET', 'w*'], ['GET', 'h*->f']]),
      ...pick(random, [[], [], ['STORE', 'r']]),
    ];
    return pick<() => CommandLine>(random, [
      () => ['RPUSH', 'l', number()],
      () => ['SADD', 's', number()],
      () => ['ZADD', 'z', number(), number()],
      () => ['SET', `w${number()}`, `${number()}.${Math.floor(random() * 1e6)}`],
      () => ['HSET', `h${number()}`, 'f', `${number()}.${Math.floor(random() * 1e6)}`],
      () => ['LPOP', 'l'],
      () => ['SORT', source(), ...options()],
      () => ['SORT', source(), ...options()],
      () => ['LRANGE', 'r', '0', '-1'],
    ])();
  }));

// Last, with servers of its own: Redis 7.0 reads errno without having cleared it, and from a number
// out of range on may take any element for one.
test('a number out of range', async () => {
  const own = await startPair({ store: new Tier() });
  try {
    await own.compare(['RPUSH l 1e400', 'SORT l']);
  } finally {
    await own.stop();
  }
});
