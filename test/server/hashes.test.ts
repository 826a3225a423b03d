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

test('setting, getting and deleting fields', async () => {
  await pair.compare([
    'HSET h a 1 b 2',
    'HSET h a 3 c 4',
    'HSET h a 3',
    'HGET h a',
    'HGET h x',
    'HGET none a',
    'HMGET h a x c a',
    'HMGET none a b',
    'HMSET h d 5 e 6',
    'HMSET h d',
    'HMSET h d 1 e',
    'HSET h d 1 e',
    'HSET h',
    'HSETNX h a 9',
    'HSETNX h n 9',
    'HGET h n',
    'HSETNX fresh n 9',
    'HSETNX fresh n 9 x',
    'HLEN h',
    'HLEN none',
    'HEXISTS h a',
    'HEXISTS h x',
    'HEXISTS none x',
    'HSTRLEN h a',
    'HSTRLEN h x',
    'HSTRLEN none x',
    'HDEL h a a x',
    'HDEL none a',
    'HDEL h b c d e n b',
    'EXISTS h',
    'HKEYS h',
    'HVALS h',
    'HGETALL h',
    'HSET h a 1',
    'HKEYS h',
    'HVALS h',
    'HGETALL h',
    'SET s v',
    'HSET s a 1',
    'HMSET s a 1',
    'HSETNX s a 1',
    'HGET s a',
    'HMGET s a b',
    'HDEL s a',
    'HLEN s',
    'HEXISTS s a',
    'HSTRLEN s a',
    'HKEYS s',
    'HVALS s',
    'HGETALL s',
    'HGET h',
    'HMGET h',
    'HDEL h',
    'HLEN',
    'HEXISTS h',
  ]);
});

test('fields and values: empty, binary, 20 KB, 1 MB', async () => {
  const all = [Buffer.alloc(0), Buffer.from([0, 13, 10, 255, 0]), Buffer.alloc(20_000, 'x')];
  const large = Buffer.alloc(1 << 20, 'y');
  const commands: CommandLine[] = [];
  for (const field of all) {
    for (const value of all) {
      commands.push(['HSET', 'h', field, value], ['HGET', 'h', field], ['HSTRLEN', 'h', field]);
      commands.push(['HMGET', 'h', ...all], ['HSETNX', 'h', field, 'x']);
    }
  }
  commands.push(
    ['HSET', 'h', large, 'x', 'x', large],
    ['HGET', 'h', 'x'],
    ['HGET', 'h', large],
    ['HSTRLEN', 'h', 'x'],
  );
  await pair.compare(commands);
  await compareUnordered(pair, ['HKEYS h', 'HVALS h']);
  await compareUnordered(pair, ['HGETALL h'], 2);
  await pair.compare([...all, large, 'x'].map((field) => ['HDEL', 'h', field]));
});

test('OBJECT ENCODING follows the limits', async () => {
  const pairs = (count: number): string[] => Array.from({ length: count * 2 }, (_, i) => `v${i - (i % 2)}`);
  await pair.compare([
    'HSET h a 1',
    'OBJECT ENCODING h',
    ['HSET', 'h', 'long', 'x'.repeat(64)],
    'OBJECT ENCODING h',
    ['HSET', 'h', 'long', 'x'.repeat(65)],
    'OBJECT ENCODING h',
    'HDEL h long',
    'OBJECT ENCODING h',
    ['HSET', 'fields', 'x'.repeat(65), '1'],
    'OBJECT ENCODING fields',
    ['HSET', 'many', ...pairs(512)],
    'OBJECT ENCODING many',
    'HSET many one more',
    'OBJECT ENCODING many',
    ['HSETNX', 'nx', 'f', 'x'.repeat(65)],
    'OBJECT ENCODING nx',
    'HINCRBY counted f 1',
    'OBJECT ENCODING counted',
  ]);
});

test('HINCRBY', async () => {
  await pair.compare([
    'HINCRBY h n 5',
    'HINCRBY h n -7',
    'HGET h n',
    'HINCRBY h n 0',
    'HINCRBY h n x',
    'HINCRBY h n 1.5',
    'HINCRBY h n 9223372036854775808',
    'HINCRBY h n 9223372036854775807',
    'HINCRBY h n 3',
    'HINCRBY h n -9223372036854775808',
    'HINCRBY h m 9007199254740991',
    'HINCRBY h m 1',
    'HINCRBY h m 9007199254740993',
    'HINCRBY h m -9007199254740993',
    'HGET h m',
    'HSET h t text f 1.5 z 01 b 9223372036854775808 min -9223372036854775808',
    ['HSET', 'h', 'e', ''],
    ['HSET', 'h', 'blank', ' 1'],
    'HINCRBY h t 1',
    'HINCRBY h f 1',
    'HINCRBY h z 1',
    'HINCRBY h b 1',
    'HINCRBY h e 1',
    'HINCRBY h blank 1',
    'HINCRBY h min -1',
    'HINCRBY h min 1',
    'SET s v',
    'HINCRBY s n 1',
    'HINCRBY s n x',
    'HINCRBY h n',
    'HLEN h',
  ]);
});

test('HINCRBYFLOAT', async () => {
  const commands: CommandLine[] = [];
  const increments = [
    '0.1',
    '0.2',
    '-0.3',
    '3e2',
    '1e-5',
    '1e17',
    '10.5',
    '-0',
    '1e30',
    '-1e30',
    '0x1p3',
    '.5',
    '5.',
  ];
  for (const increment of increments)
    commands.push(['HINCRBYFLOAT', 'h', 'n', increment], ['HGET', 'h', 'n']);
  for (const increment of ['inf', '-inf', 'nan', 'x', '', ' 1', '1 ', '1e5000', '1,5']) {
    commands.push(['HINCRBYFLOAT', 'h', 'n', increment]);
  }
  await pair.compare([
    ...commands,
    'HSET h t text i inf f 1.5 g 5.0e3',
    ['HSET', 'h', 'e', ''],
    'HINCRBYFLOAT h t 1',
    'HINCRBYFLOAT h i 1',
    'HINCRBYFLOAT h f 1',
    'HINCRBYFLOAT h g 200',
    'HINCRBYFLOAT h e 1',
    'SET s v',
    'HINCRBYFLOAT s n 1',
    'HINCRBYFLOAT s n x',
    'HINCRBYFLOAT none n 0.0',
    'HGET none n',
    'OBJECT ENCODING none',
  ]);
});

test.each(['HRANDFIELD', 'SRANDMEMBER', 'ZRANDMEMBER'])('%s with a count beyond all memory', async (name) => {
  const add = { HRANDFIELD: 'HSET', SRANDMEMBER: 'SADD', ZRANDMEMBER: 'ZADD' }[name]!;
  await pair.ours.send(add, 'k', '1', ...(name === 'SRANDMEMBER' ? [] : ['b']));
  expect(await pair.ours.send(name, 'k', '-9223372036854775807')).toBe('-ERR value is out of range\r\n');
  const client = await pair.another();
  await pair.ours.send('CONFIG', 'SET', 'client-output-buffer-limit', 'normal 1000000 0 0');
  await expect(client.ours.send(name, 'k', '-999999999')).rejects.toThrow('connection closed');
  await pair.ours.send('CONFIG', 'SET', 'client-output-buffer-limit', 'normal 0 0 0');
  await pair.ours.send('DEL', 'k');
  client.ours.close();
  client.theirs.close();
});

test('HRANDFIELD: different fields, or repeated ones with a negative count', async () => {
  const all = Array.from({ length: 30 }, (_, i) => `$f${i}`);
  await pair.ours.send('HSET', 'h', ...all.flatMap((each) => [each.slice(1), `v${each.slice(2)}`]));
  for (const count of [1, 5, 11, 29, 30, 31, 1000]) {
    const found = await elements('HRANDFIELD', 'h', count);
    expect(found).toHaveLength(Math.min(count, 30));
    expect(new Set(found).size).toBe(found.length);
    for (const each of found) expect(all).toContain(each);
  }
  for (const count of [7, -70]) {
    const found = await elements('HRANDFIELD', 'h', count, 'WITHVALUES');
    expect(found).toHaveLength(2 * Math.abs(count));
    for (let i = 0; i < found.length; i += 2) expect(found[i + 1]).toBe(found[i].replace('f', 'v'));
  }
  expect(all).toContain(parseReply(await pair.ours.send('HRANDFIELD', 'h')));
  await pair.compare([
    'HSET one f v',
    'HRANDFIELD one',
    'HRANDFIELD one 1',
    'HRANDFIELD one 3',
    'HRANDFIELD one 3 withvalues',
    'HRANDFIELD one -3 WITHVALUES',
    'HRANDFIELD one 0',
    'HRANDFIELD one x',
    'HRANDFIELD one 1 nope',
    'HRANDFIELD one 1 WITHVALUES x',
    'HRANDFIELD one x nope',
    'HRANDFIELD one -9223372036854775808',
    'HRANDFIELD one -9223372036854775807 WITHVALUES',
    'HRANDFIELD one 9223372036854775807 WITHVALUES',
    'HRANDFIELD one 4611686018427387903 WITHVALUES',
    'HRANDFIELD none',
    'HRANDFIELD none 1',
    'HRANDFIELD none -1 WITHVALUES',
    'SET s v',
    'HRANDFIELD s',
    'HRANDFIELD s 2',
  ]);
});

test('HSCAN gives every field that stays, with its value', async () => {
  for (const size of [0, 3, 600]) {
    const expected = Array.from({ length: size }, (_, i) => [`$f${i}`, `$v${i}`] as const);
    await pair.ours.send('DEL', 'h');
    if (size > 0) await pair.ours.send('HSET', 'h', ...expected.flat().map((each) => each.slice(1)));
    for (const count of [2, 10, 10_000]) {
      const found = new Map<string, string>();
      let cursor = '0';
      do {
        const [next, { elements: list }] = (await elements(
          'HSCAN',
          'h',
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
    'HSET small a 1 b 2 aa 3',
    'HSCAN small 0 MATCH b',
    'HSCAN small 0 MATCH 1',
    'HSCAN small 0 MATCH a? COUNT 1',
    'HSCAN small x',
    'HSCAN small 0 COUNT 0',
    'HSCAN small 0 NOVALUES',
    'HSCAN none 0 NOPE',
    'SET s v',
    'HSCAN s 0',
  ]);
});

test('RESP3: HGETALL is a map, pairs are nested', async () => {
  const three = await pair.another();
  await three.ours.send('HELLO', 3);
  await three.theirs.send('HELLO', 3);
  await three.compare([
    'HSET h a 1',
    'HGETALL h',
    'HGETALL none',
    'HKEYS h',
    'HVALS h',
    'HKEYS none',
    'HGET h x',
    'HMGET h a x',
    'HRANDFIELD h',
    'HRANDFIELD h 2',
    'HRANDFIELD h 2 WITHVALUES',
    'HRANDFIELD h -2 WITHVALUES',
    'HRANDFIELD none',
    'HRANDFIELD none 2 WITHVALUES',
    'HINCRBYFLOAT h a 0.5',
    'HSCAN h 0',
  ]);
  three.ours.close();
  three.theirs.close();
});

test('random commands leave the same hashes and get the same replies', () =>
  withDice(async (dice) => {
    const keys = ['h1', 'h2', 's'];
    const fields = Array.from({ length: 25 }, (_, i) => `f${i}${'x'.repeat(i * i)}`);
    const values = ['1', '-5', 'text', '', '2.5', 'x'.repeat(60), 'x'.repeat(3000), '9223372036854775807'];
    const makers: (() => CommandLine)[] = [
      () => ['HSET', dice.pick(keys), dice.pick(fields), dice.pick(values)],
      () => [
        'HSET',
        dice.pick(keys),
        ...dice.some(fields, 1, 4).flatMap((field) => [field, dice.pick(values)]),
      ],
      () => ['HSETNX', dice.pick(keys), dice.pick(fields), dice.pick(values)],
      () => ['HDEL', dice.pick(keys), ...dice.some(fields, 1, 5)],
      () => ['HGET', dice.pick(keys), dice.pick(fields)],
      () => ['HMGET', dice.pick(keys), ...dice.some(fields, 1, 5)],
      () => ['HINCRBY', dice.pick(keys), dice.pick(fields), dice.below(100) - 50],
      () => ['HINCRBYFLOAT', dice.pick(keys), dice.pick(fields), (dice.below(1000) - 500) / 8],
      () => [dice.pick(['HEXISTS', 'HSTRLEN']), dice.pick(keys), dice.pick(fields)],
      () => ['HLEN', dice.pick(keys)],
      () => ['OBJECT', 'ENCODING', dice.pick(keys)],
      () => (dice.chance(0.1) ? ['DEL', dice.pick(keys.slice(0, 2))] : ['HLEN', 'h1']),
    ];
    const commands: CommandLine[] = [['SET', 's', 'v']];
    for (let i = 0; i < 2500; i++) commands.push(dice.pick(makers)());
    await pair.compare(commands);
    await compareUnordered(
      pair,
      keys.map((key) => ['HGETALL', key]),
      2,
    );
  }));
