import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { withDice } from './replies.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
beforeEach(() => pair.flush());
afterAll(() => pair.stop());

const WHOLE = 'LRANGE l 0 -1';

test('pushing and popping', async () => {
  await pair.compare([
    'LPUSH l a b c',
    'RPUSH l d e',
    WHOLE,
    'LLEN l',
    'LPUSHX l x y',
    'RPUSHX l z',
    'LPUSHX none x',
    'RPUSHX none x',
    'EXISTS none',
    WHOLE,
    'LPOP l',
    'RPOP l',
    'LPOP l 2',
    'RPOP l 2',
    'LPOP l 0',
    'RPOP l 100',
    'EXISTS l',
    'LPOP l',
    'LPOP l 0',
    'LPOP l 3',
    'RPOP l 3',
    'LPOP l -1',
    'LPOP l x',
    'LPOP l 1 2',
    'RPOP l 1 2',
    'LPUSH l',
    'LPUSH',
    'LLEN l',
    'LLEN',
    'SET s v',
    'LPUSH s a',
    'RPUSH s a',
    'LPUSHX s a',
    'LPOP s',
    'LPOP s 2',
    'LPOP s -2',
    'LLEN s',
  ]);
});

test('elements: empty, binary, 20 KB, 1 MB', async () => {
  const elements = [
    Buffer.alloc(0),
    Buffer.from([0, 13, 10, 255, 0]),
    Buffer.alloc(20_000, 'x'),
    Buffer.alloc(1 << 20, 'y'),
    '1234567890123456789',
    '-0',
  ];
  await pair.compare([
    ['RPUSH', 'l', ...elements],
    ['LPUSH', 'l', ...elements],
    WHOLE,
    'LRANGE l 1 3',
    'LINDEX l 3',
    'LINDEX l -3',
    ['LPOS', 'l', elements[2]],
    ['LPOS', 'l', elements[2], 'RANK', '-9223372036854775808'],
    ['LPOS', 'l', elements[2], 'RANK', '9223372036854775807'],
    ['LREM', 'l', 1, elements[3]],
    ['LSET', 'l', 0, elements[3]],
    ['LINSERT', 'l', 'BEFORE', elements[2], elements[1]],
    'LMOVE l l LEFT RIGHT',
    'RPOPLPUSH l other',
    'LPOP l 3',
    'RPOP l 3',
    WHOLE,
    'LRANGE other 0 -1',
  ]);
});

test('indexes and ranges, at and beyond every edge', async () => {
  const edges = [
    0,
    1,
    4,
    5,
    6,
    -1,
    -5,
    -6,
    '9007199254740993',
    '9223372036854775807',
    '-9223372036854775808',
    '9223372036854775808',
    'x',
    '',
    '01',
  ];
  const commands: CommandLine[] = [['RPUSH', 'l', 'a', 'b', 'c', 'd', 'e']];
  for (const start of edges) {
    commands.push(['LINDEX', 'l', start], ['LINDEX', 'none', start], ['LSET', 'l', start, 'a']);
    for (const stop of edges) commands.push(['LRANGE', 'l', start, stop], ['LRANGE', 'none', start, stop]);
  }
  for (const start of edges) {
    for (const stop of edges) {
      commands.push(['DEL', 't'], ['RPUSH', 't', 'a', 'b', 'c', 'd', 'e'], ['LTRIM', 't', start, stop]);
      commands.push(['LRANGE', 't', 0, -1], ['EXISTS', 't']);
    }
  }
  await pair.compare([
    ...commands,
    'SET s v',
    'LINDEX s 0',
    'LINDEX s x',
    'LSET s 0 a',
    'LSET none 0 a',
    'LSET none x a',
    'LTRIM s 0 1',
    'LTRIM s x 1',
    'LTRIM none 0 1',
    'LRANGE s 0 1',
    'LRANGE s x 1',
  ]);
});

test('LREM, LINSERT', async () => {
  const fill = 'RPUSH l a b a a c a b a';
  const commands: string[] = [];
  for (const count of ['0', '1', '2', '3', '9', '-1', '-2', '-3', '-9', 'x', '-9223372036854775808']) {
    for (const element of ['a', 'b', 'c', 'd']) {
      commands.push('DEL l', fill, `LREM l ${count} ${element}`, WHOLE, `LREM none ${count} a`);
    }
  }
  await pair.compare([
    ...commands,
    'DEL l',
    'RPUSH l a a a',
    'LREM l 0 a',
    'EXISTS l',
    fill,
    'LINSERT l BEFORE a x',
    'LINSERT l after c y',
    'LINSERT l AfTeR a z',
    'LINSERT l before none z',
    WHOLE,
    'LINSERT l beside a z',
    'LINSERT none before a z',
    'LINSERT none beside a z',
    'LINSERT l before a',
    'SET s v',
    'LINSERT s before a z',
    'LREM s 0 a',
    'LREM s x a',
  ]);
});

test('LPOS', async () => {
  const commands: string[] = ['RPUSH l a b c 1 2 3 c c'];
  for (const rank of ['', ' RANK 1', ' RANK 2', ' RANK -1', ' RANK -2', ' RANK 4', ' RANK -9', ' RANK 0']) {
    for (const count of ['', ' COUNT 0', ' COUNT 1', ' COUNT 2', ' COUNT -1']) {
      for (const comparisons of ['', ' MAXLEN 0', ' MAXLEN 1', ' MAXLEN 3', ' MAXLEN 100', ' MAXLEN -1']) {
        commands.push(`LPOS l c${rank}${count}${comparisons}`, `LPOS none c${rank}${count}${comparisons}`);
      }
    }
  }
  await pair.compare([
    ...commands,
    'LPOS l c RANK',
    'LPOS l c RANK x',
    'LPOS l c COUNT x',
    'LPOS l c NOPE 1',
    'LPOS l',
    'LPOS l c RANK 2 RANK 1',
    'LPOS l c RANK -9223372036854775807',
    'SET s v',
    'LPOS s c',
    'LPOS s c COUNT 2',
  ]);
});

test('RPOPLPUSH, LMOVE: other lists, the same list, what is left of them', async () => {
  const commands: string[] = ['SET s v'];
  for (const from of ['LEFT', 'RIGHT']) {
    for (const to of ['left', 'Right']) {
      commands.push('DEL l m', 'RPUSH l a b c', 'RPUSH m x', `LMOVE l m ${from} ${to}`);
      commands.push(WHOLE, 'LRANGE m 0 -1', `LMOVE l l ${from} ${to}`, WHOLE);
      commands.push('DEL one', 'RPUSH one a', 'EXPIRE one 1000', `LMOVE one one ${from} ${to}`, 'TTL one');
      commands.push(`LMOVE one l ${from} ${to}`, 'EXISTS one', WHOLE);
      commands.push(`LMOVE none l ${from} ${to}`, `LMOVE none s ${from} ${to}`);
      commands.push(`LMOVE l s ${from} ${to}`, `LMOVE s l ${from} ${to}`);
    }
  }
  await pair.compare([
    ...commands,
    'RPOPLPUSH l m',
    'RPOPLPUSH l l',
    'RPOPLPUSH l s',
    'RPOPLPUSH s l',
    'RPOPLPUSH none l',
    'LMOVE l m LEFT UP',
    'LMOVE l m UP LEFT',
    'LMOVE none m UP LEFT',
    'LMOVE l m LEFT',
    WHOLE,
    'LRANGE m 0 -1',
  ]);
});

test('LMPOP', async () => {
  await pair.compare([
    'RPUSH a 1 2 3 4 5',
    'RPUSH b 6 7',
    'SET s v',
    'LMPOP 1 a LEFT',
    'LMPOP 2 none a RIGHT COUNT 2',
    'LMPOP 3 none a b left count 10',
    'LMPOP 3 none a b left count 10',
    'LMPOP 3 none a b left count 10',
    'LMPOP 2 none s LEFT',
    'LMPOP 2 s none LEFT',
    'LMPOP 0 a LEFT',
    'LMPOP x a LEFT',
    'LMPOP -1 a LEFT',
    'LMPOP 2 a LEFT',
    'LMPOP 1 a UP',
    'LMPOP 1 a LEFT COUNT',
    'LMPOP 1 a LEFT COUNT 0',
    'LMPOP 1 a LEFT COUNT x',
    'LMPOP 1 a LEFT COUNT -1',
    'LMPOP 1 a LEFT COUNT 1 COUNT 2',
    'LMPOP 1 a LEFT NOPE 1',
    'LMPOP 9223372036854775807 a LEFT',
    'LMPOP 1 a',
    'EXISTS a b',
  ]);
});

test('random commands leave the same lists and get the same replies', () =>
  withDice(async (dice) => {
    const keys = ['l1', 'l2', 'l3', 's'];
    const elements = ['a', 'b', 'c', '1', '-7', '', 'x'.repeat(300), 'y'.repeat(3000)];
    const index = (): number => dice.below(24) - 12;
    const side = (): string => dice.pick(['LEFT', 'RIGHT']);
    const makers: (() => CommandLine)[] = [
      () => ['LPUSH', dice.pick(keys), ...dice.some(elements, 1, 6)],
      () => ['RPUSH', dice.pick(keys), ...dice.some(elements, 1, 6)],
      () => ['LPUSHX', dice.pick(keys), dice.pick(elements)],
      () => ['LPOP', dice.pick(keys)],
      () => ['RPOP', dice.pick(keys)],
      () => [dice.pick(['LPOP', 'RPOP']), dice.pick(keys), dice.below(5)],
      () => ['LRANGE', dice.pick(keys), index(), index()],
      () => ['LINDEX', dice.pick(keys), index()],
      () => ['LSET', dice.pick(keys), index(), dice.pick(elements)],
      () => ['LREM', dice.pick(keys), dice.below(7) - 3, dice.pick(elements)],
      () => [
        'LINSERT',
        dice.pick(keys),
        dice.pick(['BEFORE', 'AFTER']),
        dice.pick(elements),
        dice.pick(elements),
      ],
      () => [
        'LPOS',
        dice.pick(keys),
        dice.pick(elements),
        'RANK',
        dice.pick([-3, -1, 1, 2]),
        'COUNT',
        dice.below(3),
      ],
      () => ['LMOVE', dice.pick(keys), dice.pick(keys), side(), side()],
      () => ['LMPOP', 2, dice.pick(keys), dice.pick(keys), side(), 'COUNT', 1 + dice.below(4)],
      () => ['LLEN', dice.pick(keys)],
      () => (dice.chance(0.2) ? ['LTRIM', dice.pick(keys), index(), index()] : ['LLEN', 'l1']),
    ];
    const commands: CommandLine[] = [['SET', 's', 'v']];
    for (let i = 0; i < 2500; i++) commands.push(dice.pick(makers)());
    for (const key of keys) commands.push(['LRANGE', key, 0, -1]);
    await pair.compare(commands);
  }));
