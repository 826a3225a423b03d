import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { compareUnordered, withDice, parseReply } from './replies.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
beforeEach(() => pair.flush());
afterAll(() => pair.stop());

/** The elements of an aggregate that our server replies with. */
async function elements(...command: CommandLine): Promise<string[]> {
  const tree = parseReply(await pair.ours.send(...command));
  if (typeof tree === 'string') throw new Error(tree);
  return tree.elements as string[];
}

const WHOLE = 'ZRANGE z 0 -1 WITHSCORES';
const SCORES = [
  '0',
  '-0',
  '1',
  '-1',
  '1.5',
  '0.1',
  '3.0',
  '1e3',
  '1e20',
  '1e-7',
  '123456789012345678',
  '5e-324',
  '1.7976931348623157e308',
  'inf',
  '-inf',
  '+inf',
  'Infinity',
  '0x10',
  '.5',
  '+7',
];

test('ZADD: scores as they are printed', async () => {
  const commands: CommandLine[] = [];
  SCORES.forEach((score, i) => {
    commands.push(
      ['ZADD', 'z', score, `m${i}`],
      ['ZSCORE', 'z', `m${i}`],
      ['ZADD', 'z', 'CH', score, 'moving'],
    );
    commands.push(['ZINCRBY', 'z', score, 'sum'], ['ZINCRBY', `fresh${i}`, score, 'm']);
  });
  for (const score of ['x', '', ' 1', '1 ', 'nan', '-nan', '1e400', '1e-400', '1,5', '(1', '--1', '0b1']) {
    commands.push(['ZADD', 'z', score, 'm'], ['ZINCRBY', 'z', score, 'm'], ['ZADD', 'z', 1, 'a', score, 'b']);
  }
  await pair.compare([...commands, WHOLE, 'ZMSCORE z m0 m1 none m3', 'ZSCAN fresh4 0']);
});

test('ZADD: every combination of options', async () => {
  const commands: CommandLine[] = [];
  for (let set = 0; set < 64; set++) {
    const options = ['NX', 'xx', 'GT', 'lt', 'CH', 'INCR'].filter((_, bit) => (set & (1 << bit)) !== 0);
    for (const pairs of [
      [1, 'a'],
      [5, 'a'],
      [9, 'a'],
      [5, 'new'],
      [0, 'a'],
      [1, 'a', 9, 'b', 5, 'new', 7, 'new'],
    ]) {
      commands.push(['DEL', 'z'], ['ZADD', 'z', 5, 'a', 5, 'b'], ['ZADD', 'z', ...options, ...pairs]);
      commands.push(
        ['ZRANGE', 'z', 0, -1, 'WITHSCORES'],
        ['DEL', 'none'],
        ['ZADD', 'none', ...options, ...pairs],
      );
      commands.push(['ZRANGE', 'none', 0, -1, 'WITHSCORES']);
    }
  }
  await pair.compare([
    ...commands,
    'ZADD z inf a',
    'ZINCRBY z -inf a',
    'ZADD z INCR -inf a',
    'ZADD z INCR 5 a',
    'ZADD z 1',
    'ZADD z NX',
    'ZADD z NX 1',
    'ZADD z 1 a 2',
    'ZADD z NX NX 1 nxnx',
    'ZADD z 1 a NX 2',
    'ZADD z ch 1 a ch 1',
    'ZADD z',
    'ZINCRBY z 1',
    'ZINCRBY z 1 a b',
    'SET s v',
    'ZADD s 1 a',
    'ZADD s x a',
    'ZADD s XX 1 a',
    'ZINCRBY s 1 a',
    WHOLE,
  ]);
});

test('removing, counting, ranking', async () => {
  await pair.compare([
    'ZADD z 1 a 2 b 2 c 3 d',
    'ZCARD z',
    'ZCARD none',
    'ZSCORE z x',
    'ZSCORE none x',
    'ZMSCORE z a x d',
    'ZMSCORE none a x',
    'ZRANK z a',
    'ZRANK z c',
    'ZRANK z x',
    'ZRANK none x',
    'ZREVRANK z a',
    'ZREVRANK z d',
    'ZREVRANK z x',
    'ZREVRANK none x',
    'ZRANK z a WITHSCORE',
    'ZREM z a a x',
    'ZREM none a',
    'ZREM z b c d b',
    'EXISTS z',
    'SET s v',
    'ZREM s a',
    'ZCARD s',
    'ZSCORE s a',
    'ZMSCORE s a',
    'ZRANK s a',
    'ZREVRANK s a',
    'ZREM z',
    'ZMSCORE z',
    'ZCARD',
  ]);
});

test('members: empty, binary, 20 KB, 1 MB', async () => {
  const all = [
    Buffer.alloc(0),
    Buffer.from([0, 13, 10, 255, 0]),
    Buffer.from([255]),
    Buffer.alloc(20_000, 'x'),
    Buffer.alloc(1 << 20, 'y'),
  ];
  await pair.compare([
    ['ZADD', 'z', ...all.flatMap((member, i) => [i % 2, member])],
    WHOLE,
    ...all.map((member) => ['ZRANK', 'z', member]),
    ...all.map((member) => ['ZSCORE', 'z', member]),
    ['ZINCRBY', 'z', 1, all[3]],
    'ZRANGESTORE t z 1 3',
    'ZRANGE t 0 -1',
    'ZUNIONSTORE u 2 t z',
    'ZRANGE u 0 -1 WITHSCORES',
    'ZPOPMIN z 2',
    'ZPOPMAX z 2',
    WHOLE,
  ]);
});

test('OBJECT ENCODING follows the limits', async () => {
  const pairs = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => [`${i}`, `m${i}`]).flat();
  await pair.compare([
    'ZADD z 1 a',
    'OBJECT ENCODING z',
    ['ZADD', 'z', 1, 'x'.repeat(64)],
    'OBJECT ENCODING z',
    ['ZADD', 'z', 1, 'x'.repeat(65)],
    'OBJECT ENCODING z',
    'ZREMRANGEBYRANK z 1 -1',
    'OBJECT ENCODING z',
    ['ZADD', 'many', ...pairs(128)],
    'OBJECT ENCODING many',
    'ZADD many 1 more',
    'OBJECT ENCODING many',
    'ZRANGESTORE some many 0 9',
    'OBJECT ENCODING some',
    'ZUNIONSTORE all 2 many some',
    'OBJECT ENCODING all',
    'ZDIFFSTORE few 2 some none',
    'OBJECT ENCODING few',
  ]);
});

const RANK_EDGES = [0, 1, 2, 4, 5, -1, -3, -5, -6, '9223372036854775807', '-9223372036854775808', 'x', '1.5'];
const SCORE_EDGES = [
  '-inf',
  '+inf',
  '1',
  '(1',
  '2',
  '(2',
  '2.5',
  '(3',
  '3',
  '-0',
  '(',
  '',
  ' 2',
  '1e400',
  'nan',
  'x',
  '((1',
  '[1',
  '2 ',
];
const LEX_EDGES = ['-', '+', '[a', '(a', '[b', '(b', '[bb', '(c', '[e', '[', '(', '', 'a', '+a', '-a', '1'];

test('ranges by rank, score and bytes, both ways', async () => {
  const commands: CommandLine[] = [
    ['ZADD', 'z', 1, 'a', 2, 'b', 2, 'bb', 3, 'c', 3, 'd'],
    ['ZADD', 'lex', 0, 'a', 0, 'b', 0, 'bb', 0, 'c', 0, 'd'],
    ['SET', 's', 'v'],
  ];
  for (const start of RANK_EDGES) {
    for (const stop of RANK_EDGES) {
      commands.push(['ZRANGE', 'z', start, stop], ['ZRANGE', 'z', start, stop, 'REV', 'WITHSCORES']);
      commands.push(['ZREVRANGE', 'z', start, stop, 'withscores'], ['ZRANGE', 'none', start, stop]);
      commands.push(['ZRANGESTORE', 'to', 'z', start, stop], ['ZRANGE', 'to', 0, -1, 'WITHSCORES']);
      commands.push(['ZRANGESTORE', 'to', 'z', start, stop, 'REV'], ['ZRANGE', 'to', 0, -1]);
    }
  }
  for (const min of SCORE_EDGES) {
    for (const max of SCORE_EDGES) {
      commands.push(['ZRANGEBYSCORE', 'z', min, max], ['ZREVRANGEBYSCORE', 'z', max, min, 'WITHSCORES']);
      commands.push(
        ['ZCOUNT', 'z', min, max],
        ['ZCOUNT', 'none', min, max],
        ['ZRANGE', 'z', min, max, 'BYSCORE'],
      );
      commands.push(['ZRANGE', 'z', max, min, 'REV', 'BYSCORE', 'LIMIT', 1, 2, 'WITHSCORES']);
      commands.push(['ZRANGESTORE', 'to', 'z', min, max, 'BYSCORE', 'LIMIT', 1, -1], ['ZRANGE', 'to', 0, -1]);
    }
  }
  for (const min of LEX_EDGES) {
    for (const max of LEX_EDGES) {
      commands.push(['ZRANGEBYLEX', 'lex', min, max], ['ZREVRANGEBYLEX', 'lex', max, min]);
      commands.push(['ZLEXCOUNT', 'lex', min, max], ['ZLEXCOUNT', 'none', min, max]);
      commands.push(['ZRANGE', 'lex', max, min, 'BYLEX', 'REV', 'LIMIT', 1, 2]);
      commands.push(['ZRANGESTORE', 'to', 'lex', min, max, 'BYLEX'], ['ZRANGE', 'to', 0, -1]);
    }
  }
  await pair.compare([
    ...commands,
    'ZADD mixed 1 a 2 b 3 c 4 d',
    'ZRANGEBYLEX mixed [b [c',
    'ZRANGEBYLEX mixed (a (d LIMIT 0 1',
    'ZREVRANGEBYLEX mixed + [b',
    'ZLEXCOUNT mixed - (c',
    'ZRANGESTORE to mixed (a + BYLEX',
    'ZRANGE to 0 -1 WITHSCORES',
    'ZADD falling 3 a 2 b 1 c 0 d -1 e',
    'ZADD humped 0 a 1 b 0 c 2 aa',
    ...['falling', 'humped'].flatMap((key) =>
      ['- +', '[a [c', '(a (d', '[b +', '- (b', '[c [a', '[d [e', '+ -'].flatMap((range) => {
        const [min, max] = range.split(' ');
        return [
          `ZRANGEBYLEX ${key} ${range}`,
          `ZREVRANGEBYLEX ${key} ${max} ${min}`,
          `ZLEXCOUNT ${key} ${range}`,
          `ZRANGE ${key} ${max} ${min} BYLEX REV LIMIT 1 2`,
        ];
      }),
    ),
    'ZREMRANGEBYLEX falling [b [c',
    'ZREMRANGEBYLEX humped (a +',
    'ZRANGE humped 0 -1',
    'ZREMRANGEBYLEX mixed [b [c',
    'ZRANGE mixed 0 -1',
  ]);
});

test('LIMIT and options of ranges', async () => {
  const commands: CommandLine[] = [
    ['ZADD', 'z', 1, 'a', 2, 'b', 2, 'bb', 3, 'c', 3, 'd'],
    ['SET', 's', 'v'],
  ];
  const edges = [0, 1, 3, 5, 6, -1, -2, '9223372036854775807', 'x'];
  for (const offset of edges) {
    for (const count of edges) {
      for (const range of ['ZRANGEBYSCORE z -inf +inf', 'ZREVRANGEBYSCORE z 3 1', 'ZRANGEBYLEX z - +']) {
        commands.push([...range.split(' '), 'LIMIT', offset, count]);
      }
      commands.push(
        ['ZRANGE', 'z', 0, -1, 'LIMIT', offset, count],
        ['ZRANGE', 'none', 0, -1, 'LIMIT', offset, count],
      );
    }
  }
  await pair.compare([
    ...commands,
    'ZRANGE z 0 -1 BYSCORE BYLEX',
    'ZRANGE z - + BYLEX WITHSCORES',
    'ZRANGE z 0 -1 REV REV',
    'ZRANGE z 0 -1 LIMIT',
    'ZRANGE z 0 -1 LIMIT 1',
    'ZRANGE z 0 -1 NOPE',
    'ZRANGE z 0 3 BYSCORE LIMIT 0 1 LIMIT 1 2 WITHSCORES WITHSCORES',
    'ZREVRANGE z 0 -1 REV',
    'ZREVRANGE z 0 -1 BYSCORE',
    'ZREVRANGE z 0 -1 LIMIT 0 1',
    'ZRANGEBYSCORE z 0 1 REV',
    'ZRANGEBYLEX z - + WITHSCORES',
    'ZRANGEBYLEX z - + BYLEX',
    'ZRANGESTORE to z 0 -1 WITHSCORES',
    'ZRANGESTORE to none 0 -1',
    'EXISTS to',
    'ZADD to 1 x',
    'ZRANGESTORE to none x -1',
    'ZRANGESTORE to none 0 -1',
    'EXISTS to',
    'ZRANGESTORE to s 0 -1',
    'ZRANGESTORE s z 1 2',
    'TYPE s',
    'ZRANGESTORE z z 1 2',
    WHOLE,
    'SET s v',
    'ZRANGE s 0 -1',
    'ZRANGE s x -1',
    'ZRANGEBYSCORE s 0 1',
    'ZREVRANGE s 0 1',
    'ZCOUNT s 0 1',
    'ZLEXCOUNT s - +',
    'ZRANGE z 0',
    'ZCOUNT z 0',
  ]);
});

test('ZREMRANGEBY…', async () => {
  const commands: CommandLine[] = [['SET', 's', 'v']];
  const fill: CommandLine = ['ZADD', 'z', 1, 'a', 2, 'b', 2, 'bb', 3, 'c', 3, 'd'];
  const fillLex: CommandLine = ['ZADD', 'z', 0, 'a', 0, 'b', 0, 'bb', 0, 'c', 0, 'd'];
  const all: [string, CommandLine, readonly (string | number)[]][] = [
    ['ZREMRANGEBYRANK', fill, RANK_EDGES],
    ['ZREMRANGEBYSCORE', fill, SCORE_EDGES],
    ['ZREMRANGEBYLEX', fillLex, LEX_EDGES],
  ];
  for (const [name, filling, edges] of all) {
    for (const low of edges) {
      for (const high of edges) {
        commands.push(['DEL', 'z'], filling, [name, 'z', low, high], ['ZRANGE', 'z', 0, -1], ['EXISTS', 'z']);
      }
    }
    commands.push([name, 'none', edges[0], edges[1]], [name, 's', edges[0], edges[1]], [name, 's', 'x', 'y']);
  }
  await pair.compare(commands);
});

test('ZPOPMIN, ZPOPMAX, ZMPOP', async () => {
  await pair.compare([
    'ZADD z 1 a 2 b 2 c 3 d 4 e 5 f',
    'ZPOPMIN z',
    'ZPOPMAX z',
    'ZPOPMIN z 2',
    'ZPOPMAX z 0',
    'ZPOPMAX z -1',
    'ZPOPMAX z x',
    'ZPOPMAX z 1 2',
    'ZPOPMAX z 9',
    'EXISTS z',
    'ZPOPMIN z',
    'ZPOPMIN z 2',
    'ZPOPMIN none -1',
    'SET s v',
    'ZPOPMIN s',
    'ZPOPMIN s 2',
    'ZPOPMIN s 0',
    'ZADD a 1 x 2 y 3 z',
    'ZADD b 1 p 2 q',
    'ZMPOP 1 a MIN',
    'ZMPOP 2 none a max COUNT 1',
    'ZMPOP 3 none a b MIN COUNT 10',
    'ZMPOP 3 none a b MAX count 2',
    'ZMPOP 3 none a b MIN COUNT 10',
    'ZMPOP 2 none s MIN',
    'ZMPOP 0 a MIN',
    'ZMPOP x a MIN',
    'ZMPOP 2 a MIN',
    'ZMPOP 1 a UP',
    'ZMPOP 1 a MIN COUNT',
    'ZMPOP 1 a MIN COUNT 0',
    'ZMPOP 1 a MIN COUNT 1 COUNT 1',
    'ZMPOP 1 a',
    'ZPOPMIN',
  ]);
});

test('unions, intersections and differences, replied and stored', async () => {
  const commands: CommandLine[] = [
    ['ZADD', 'a', 1, 'x', 2, 'y', 3, 'z', 'inf', 'up'],
    ['ZADD', 'b', 0.1, 'x', 0.2, 'y', '-inf', 'up', 4, 'w'],
    ['SADD', 'set', 'x', 'y', 'q'],
    ['SADD', 'numbers', 1, 2, 3],
    ['SET', 's', 'v'],
    ['RPUSH', 'l', 'v'],
  ];
  const inputs = [
    'a',
    'a b',
    'b a',
    'a set',
    'set a b',
    'set',
    'set numbers',
    'a a',
    'a none',
    'none a',
    'none',
    'a s',
    'none l',
    'a b a',
  ];
  const options: (number | string)[][] = [
    [],
    ['AGGREGATE', 'MIN'],
    ['aggregate', 'max'],
    ['AGGREGATE', 'SUM'],
  ];
  for (const keys of inputs) {
    const list = keys.split(' ');
    for (const operation of ['ZUNION', 'ZINTER', 'ZDIFF']) {
      for (const aggregate of options) {
        for (const weights of [
          [],
          ['WEIGHTS', 2, '-1.5', 'inf'].slice(0, list.length + 1),
          ['WEIGHTS', 0, 0, 0].slice(0, list.length + 1),
        ]) {
          const command = [list.length, ...list, ...weights, ...aggregate];
          commands.push([operation, ...command, 'WITHSCORES'], [operation, ...command]);
          commands.push([`${operation}STORE`, 'to', ...command], ['ZRANGE', 'to', 0, -1, 'WITHSCORES']);
        }
      }
      commands.push(
        ['ZADD', 'own', 7, 'x', 8, 'own'],
        [`${operation}STORE`, 'own', list.length + 1, 'own', ...list],
      );
      commands.push(['ZRANGE', 'own', 0, -1, 'WITHSCORES'], ['SET', 'text', 'v']);
      commands.push(
        [`${operation}STORE`, 'text', list.length, ...list],
        ['TYPE', 'text'],
        ['DEL', 'text', 'own'],
      );
    }
    for (const limit of [[], ['LIMIT', 0], ['LIMIT', 1], ['LIMIT', 100]]) {
      commands.push(['ZINTERCARD', list.length, ...list, ...limit]);
    }
  }
  for (const name of [
    'ZUNION',
    'ZINTER',
    'ZDIFF',
    'ZINTERCARD',
    'ZUNIONSTORE to',
    'ZINTERSTORE to',
    'ZDIFFSTORE to',
  ]) {
    for (const rest of [
      '0 a',
      '-1 a',
      'x a',
      '3 a b',
      '1 a b',
      '1 s',
      '2 a b WEIGHTS 1',
      '2 a b WEIGHTS 1 x',
      '2 a b WEIGHTS 1 2 3',
      '2 a b WEIGHTS',
      '2 a b AGGREGATE',
      '2 a b AGGREGATE avg',
      '1 a WITHSCORES',
      '1 a LIMIT 1',
      '1 a LIMIT',
      '1 a LIMIT -1',
      '1 a LIMIT x',
      '1 a NOPE',
      '2 a b WITHSCORES WEIGHTS 1 2 AGGREGATE MIN AGGREGATE MAX WITHSCORES',
      '9223372036854775807 a',
      '1',
    ]) {
      commands.push(`${name} ${rest}`.split(' '));
    }
  }
  await pair.compare(commands);
});

test('ZRANDMEMBER: different members, or repeated ones with a negative count', async () => {
  const all = Array.from({ length: 30 }, (_, i) => `$${i}`);
  await pair.ours.send('ZADD', 'z', ...all.flatMap((each) => [each.slice(1), each.slice(1)]));
  for (const count of [1, 5, 11, 29, 30, 31, 1000]) {
    const found = await elements('ZRANDMEMBER', 'z', count);
    expect(found).toHaveLength(Math.min(count, 30));
    expect(new Set(found).size).toBe(found.length);
    for (const each of found) expect(all).toContain(each);
  }
  for (const count of [7, -70]) {
    const found = await elements('ZRANDMEMBER', 'z', count, 'WITHSCORES');
    expect(found).toHaveLength(2 * Math.abs(count));
    for (let i = 0; i < found.length; i += 2) expect(found[i + 1]).toBe(found[i]);
  }
  expect(all).toContain(parseReply(await pair.ours.send('ZRANDMEMBER', 'z')));
  await pair.compare([
    'ZADD one 1.5 m',
    'ZRANDMEMBER one',
    'ZRANDMEMBER one 1',
    'ZRANDMEMBER one 3 withscores',
    'ZRANDMEMBER one -3 WITHSCORES',
    'ZRANDMEMBER one 0',
    'ZRANDMEMBER one x',
    'ZRANDMEMBER one 1 nope',
    'ZRANDMEMBER one 1 WITHSCORES x',
    'ZRANDMEMBER one -9223372036854775808',
    'ZRANDMEMBER one -9223372036854775807 WITHSCORES',
    'ZRANDMEMBER none',
    'ZRANDMEMBER none 1',
    'ZRANDMEMBER none -1 WITHSCORES',
    'SET s v',
    'ZRANDMEMBER s',
    'ZRANDMEMBER s 2',
  ]);
});

test('ZSCAN gives every member that stays, with its score', async () => {
  for (const size of [0, 3, 200]) {
    const expected = Array.from({ length: size }, (_, i) => [`$m${i}`, `$${i / 2}`] as const);
    await pair.ours.send('DEL', 'z');
    const pairs = expected.flatMap(([member, score]) => [score.slice(1), member.slice(1)]);
    if (size > 0) await pair.ours.send('ZADD', 'z', ...pairs);
    for (const count of [2, 10, 10_000]) {
      const found = new Map<string, string>();
      let cursor = '0';
      do {
        const [next, { elements: list }] = (await elements(
          'ZSCAN',
          'z',
          cursor,
          'COUNT',
          count,
        )) as unknown as [string, { elements: string[] }];
        for (let i = 0; i < list.length; i += 2) found.set(list[i], list[i + 1]);
        cursor = next.slice(1);
      } while (cursor !== '0');
      expect([...found].sort()).toEqual([...expected].sort());
    }
  }
  await pair.compare([
    'ZADD small 1 a 0.1 b inf c',
    'ZSCAN small 0 MATCH b',
    'ZSCAN small 0 MATCH c COUNT 1',
    'ZSCAN small x',
    'ZSCAN none 0 NOPE',
    'SET s v',
    'ZSCAN s 0',
  ]);
});

test('RESP3: scores are doubles, pairs are nested', async () => {
  const three = await pair.another();
  await three.ours.send('HELLO', 3);
  await three.theirs.send('HELLO', 3);
  await three.compare([
    'ZADD z 1 a 2.5 b inf c -0 d 0 e -inf f 0.1 g',
    'ZADD z INCR 1 a',
    'ZADD z NX INCR 1 a',
    'ZINCRBY z 0.5 a',
    'ZSCORE z a',
    'ZSCORE z x',
    'ZMSCORE z a x c d',
    'ZRANK z x',
    'ZRANGE z 0 -1',
    'ZRANGE z 0 -1 WITHSCORES',
    'ZRANGEBYSCORE z -inf +inf WITHSCORES LIMIT 1 2',
    'ZREVRANGE z 0 1 WITHSCORES',
    'ZRANGE none 0 -1 WITHSCORES',
    'ZUNION 2 z none WITHSCORES',
    'ZINTER 1 z',
    'ZDIFF 1 z WITHSCORES',
    'ZPOPMIN z',
    'ZPOPMAX z 1',
    'ZPOPMIN none',
    'ZPOPMIN none 2',
    'ZMPOP 1 z MIN COUNT 2',
    'ZMPOP 1 none MIN',
    'BZPOPMIN z 0',
    'BZMPOP 0 1 z MAX',
    'ZADD one 1.5 m',
    'ZRANDMEMBER one',
    'ZRANDMEMBER one 2',
    'ZRANDMEMBER one 2 WITHSCORES',
    'ZRANDMEMBER one -2 WITHSCORES',
    'ZRANDMEMBER none',
    'ZSCAN one 0',
  ]);
  three.ours.close();
  three.theirs.close();
});

test('random commands leave the same sorted sets and get the same replies', () =>
  withDice(async (dice) => {
    const keys = ['z1', 'z2', 'z3', 'set', 's'];
    const members = Array.from({ length: 30 }, (_, i) => `m${i}${'x'.repeat(i % 7 === 0 ? i * i : 0)}`);
    const score = (): string =>
      dice.chance(0.2) ? dice.pick(SCORES.filter((each) => each !== '-0')) : String(dice.below(20) - 10);
    const bound = (): string => dice.pick(['', '(']) + score();
    const index = (): number => dice.below(30) - 15;
    const key = (): string => dice.pick(keys);
    const target = (): string => dice.pick(['z1', 'z2', 'z3']);
    const makers: (() => CommandLine)[] = [
      () => ['ZADD', key(), ...dice.some(members, 1, 5).flatMap((member) => [score(), member])],
      () => ['ZADD', key(), ...dice.some(members, 1, 5).flatMap((member) => [score(), member])],
      () => ['ZADD', key(), dice.pick(['NX', 'XX', 'GT', 'LT']), 'CH', score(), dice.pick(members)],
      () => ['ZINCRBY', key(), score(), dice.pick(members)],
      () => ['ZREM', key(), ...dice.some(members, 1, 4)],
      () => ['ZRANK', key(), dice.pick(members)],
      () => ['ZSCORE', key(), dice.pick(members)],
      () => [dice.pick(['ZRANGE', 'ZREVRANGE']), key(), index(), index(), 'WITHSCORES'],
      () => ['ZRANGEBYSCORE', key(), bound(), bound(), 'LIMIT', dice.below(5), dice.below(8) - 2],
      () => ['ZREVRANGEBYSCORE', key(), bound(), bound(), 'WITHSCORES'],
      () => ['ZCOUNT', key(), bound(), bound()],
      () => (dice.chance(0.3) ? ['ZREMRANGEBYSCORE', key(), bound(), bound()] : ['ZCARD', key()]),
      () => (dice.chance(0.3) ? ['ZREMRANGEBYRANK', key(), index(), index()] : ['ZCARD', key()]),
      () => [dice.pick(['ZPOPMIN', 'ZPOPMAX']), key(), dice.below(3)],
      () => ['ZRANGESTORE', target(), key(), index(), index()],
      () => [dice.pick(['ZUNIONSTORE', 'ZINTERSTORE']), target(), 2, key(), key(), 'WEIGHTS', 2, 1],
      () => [dice.pick(['ZDIFF', 'ZUNION', 'ZINTER']), 2, key(), key(), 'WITHSCORES'],
      () => ['SADD', 'set', ...dice.some(members, 1, 3)],
      () => ['OBJECT', 'ENCODING', key()],
    ];
    const commands: CommandLine[] = [['SET', 's', 'v']];
    for (let i = 0; i < 2500; i++) commands.push(dice.pick(makers)());
    for (const each of keys) commands.push(['ZRANGE', each, 0, -1, 'WITHSCORES']);
    await pair.compare(commands);
    await compareUnordered(pair, ['SMEMBERS set']);
  }));
