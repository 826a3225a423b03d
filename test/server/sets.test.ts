import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { compareUnordered, withDice, parseReply, unordered } from './replies.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
beforeEach(() => pair.flush());
afterAll(() => pair.stop());

/** The elements of an aggregate that our server replies with. */
async function members(...command: CommandLine): Promise<string[]> {
  const tree = parseReply(await pair.ours.send(...command));
  if (typeof tree === 'string') throw new Error(tree);
  return tree.elements as string[];
}

test('adding, asking and removing', async () => {
  await compareUnordered(pair, [
    'SADD s a b c a',
    'SADD s a',
    'SADD s d a',
    'SMEMBERS s',
    'SMEMBERS none',
    'SCARD s',
    'SCARD none',
    'SISMEMBER s a',
    'SISMEMBER s x',
    'SISMEMBER none x',
    'SMISMEMBER s a x b a',
    'SMISMEMBER none a x',
    'SREM s a a x',
    'SREM none a',
    'SREM s b c d a b',
    'EXISTS s',
    'SET v x',
    'SADD v a',
    'SREM v a',
    'SCARD v',
    'SMEMBERS v',
    'SISMEMBER v a',
    'SMISMEMBER v a b',
    'SADD s',
    'SREM s',
    'SISMEMBER s',
    'SMISMEMBER s',
    'SCARD',
    'SMEMBERS s t',
  ]);
});

test('members: empty, binary, 20 KB, 1 MB, integers of every size', async () => {
  const all = [
    Buffer.alloc(0),
    Buffer.from([0, 13, 10, 255, 0]),
    Buffer.alloc(20_000, 'x'),
    Buffer.alloc(1 << 20, 'y'),
    '0',
    '-0',
    '1',
    '01',
    '9223372036854775807',
    '-9223372036854775808',
    '9223372036854775808',
  ];
  await compareUnordered(pair, [
    ['SADD', 's', ...all],
    ['SADD', 's', ...all],
    ['SMISMEMBER', 's', ...all],
    'SMEMBERS s',
    ['SREM', 's', all[3], all[0], all[8]],
    'SMEMBERS s',
    ['SMOVE', 's', 't', all[2]],
    'SUNION s t',
    'SUNIONSTORE t s t',
    'SCARD t',
  ]);
});

test('OBJECT ENCODING follows integers and limits', async () => {
  const numbers = Array.from({ length: 513 }, (_, i) => String(i));
  await pair.compare([
    'SADD s 1 2 3',
    'OBJECT ENCODING s',
    'SADD s x',
    'OBJECT ENCODING s',
    'SREM s x',
    'OBJECT ENCODING s',
    'SADD mixed 1 x',
    'OBJECT ENCODING mixed',
    ['SADD', 'most', ...numbers.slice(0, 512)],
    'OBJECT ENCODING most',
    ['SADD', 'most', ...numbers],
    'OBJECT ENCODING most',
    'SADD other 2 3 4',
    'SINTERSTORE common other s',
    'OBJECT ENCODING common',
    'SUNIONSTORE together other mixed',
    'OBJECT ENCODING together',
  ]);
});

test('SMOVE', async () => {
  await compareUnordered(pair, [
    'SADD a 1 2',
    'SADD b 2 3',
    'SET v x',
    'SMOVE a b 1',
    'SMOVE a b 1',
    'SMOVE a b 2',
    'EXISTS a',
    'SMEMBERS b',
    'SMOVE b c 3',
    'SMEMBERS c',
    'SMOVE b b 2',
    'SMOVE b b 9',
    'SMOVE none b 9',
    'SMOVE none v 9',
    'SMOVE b v 2',
    'SMOVE b v 99',
    'SMOVE v b 2',
    'SMOVE v v 2',
    'SMOVE a b',
    'SMEMBERS b',
  ]);
});

test('intersection, union, difference, replied and stored', async () => {
  const commands: CommandLine[] = [
    ['SADD', 'a', 1, 2, 3, 4, 5, 6],
    ['SADD', 'b', 4, 5, 6, 7],
    ['SADD', 'c', 5, 'x', 'y'],
    ['SET', 'v', 'x'],
  ];
  const inputs = [
    'a',
    'a b',
    'b a',
    'a b c',
    'a a',
    'a none',
    'none a',
    'none none',
    'a b a',
    'a v',
    'v',
    'none v',
  ];
  for (const keys of inputs) {
    const list = keys.split(' ');
    for (const operation of ['SINTER', 'SUNION', 'SDIFF']) {
      commands.push(
        [operation, ...list],
        [`${operation}STORE`, 'to', ...list],
        ['SMEMBERS', 'to'],
        ['TYPE', 'to'],
      );
      commands.push(['SADD', 'target', 'kept'], ['EXPIRE', 'target', 100]);
      commands.push([`${operation}STORE`, 'target', ...list], ['SMEMBERS', 'target'], ['TTL', 'target']);
      // The target as a source, and a target of another type.
      commands.push(
        ['SADD', 'own', 5, 'z'],
        [`${operation}STORE`, 'own', 'own', ...list],
        ['SMEMBERS', 'own'],
      );
      commands.push(['SET', 'text', 'x'], [`${operation}STORE`, 'text', ...list], ['TYPE', 'text']);
    }
    for (const limit of [[], ['LIMIT', 0], ['LIMIT', 1], ['LIMIT', 2], ['LIMIT', 100]]) {
      commands.push(['SINTERCARD', list.length, ...list, ...limit]);
    }
  }
  await compareUnordered(pair, [
    ...commands,
    'SINTERCARD 0 a',
    'SINTERCARD x a',
    'SINTERCARD 3 a b',
    'SINTERCARD 1 a LIMIT',
    'SINTERCARD 1 a LIMIT -1',
    'SINTERCARD 1 a LIMIT x',
    'SINTERCARD 1 a NOPE 1',
    'SINTERCARD 1 a LIMIT 1 LIMIT 2',
    'SINTERCARD 9223372036854775807 a',
    'SINTERCARD 1',
    'SINTER',
    'SINTERSTORE to',
    'DBSIZE',
  ]);
});

test('SPOP takes members of the set, each once', async () => {
  const all = Array.from({ length: 40 }, (_, i) => `m${i}`);
  await pair.ours.send('SADD', 's', ...all);
  const popped = await members('SPOP', 's', 15);
  const single = parseReply(await pair.ours.send('SPOP', 's')) as string;
  const left = await members('SMEMBERS', 's');
  expect([...popped, single, ...left].sort()).toEqual(all.map((each) => `$${each}`).sort());
  expect(popped).toHaveLength(15);
  expect((await members('SPOP', 's', 100)).sort()).toEqual(left.sort());
  await compareUnordered(pair, [
    'EXISTS s',
    'SADD one x',
    'SPOP one',
    'EXISTS one',
    'SADD two x y',
    'SPOP two 2',
    'EXISTS two',
    'SPOP two',
    'SPOP two 2',
    'SPOP two 0',
    'SADD two x',
    'SPOP two 0',
    'SPOP two -1',
    'SPOP two x',
    'SPOP two 1 2',
    'SPOP none -1',
    'SET v x',
    'SPOP v',
    'SPOP v 2',
    'SPOP v 0',
    'SPOP',
  ]);
});

test('SRANDMEMBER: different members, or repeated ones with a negative count', async () => {
  const all = Array.from({ length: 30 }, (_, i) => `$m${i}`);
  await pair.ours.send('SADD', 's', ...all.map((each) => each.slice(1)));
  for (const count of [1, 5, 9, 11, 29, 30, 31, 1000]) {
    const found = await members('SRANDMEMBER', 's', count);
    expect(found).toHaveLength(Math.min(count, 30));
    expect(new Set(found).size).toBe(found.length);
    for (const each of found) expect(all).toContain(each);
  }
  const seen = new Set<string>();
  for (const each of await members('SRANDMEMBER', 's', -3000)) seen.add(each);
  expect([...seen].sort()).toEqual([...all].sort());
  expect(await members('SRANDMEMBER', 's', -7)).toHaveLength(7);
  expect(all).toContain(await pair.ours.send('SRANDMEMBER', 's').then(parseReply));
  expect(await members('SCARD', 's').catch((error: Error) => error.message)).toBe(':30');
  await pair.compare([
    'SADD one x',
    'SRANDMEMBER one',
    'SRANDMEMBER one 1',
    'SRANDMEMBER one 3',
    'SRANDMEMBER one -3',
    'SRANDMEMBER one 0',
    'SRANDMEMBER one x',
    'SRANDMEMBER one 1 2',
    'SRANDMEMBER one -9223372036854775808',
    'SRANDMEMBER one 9223372036854775807',
    'SRANDMEMBER none',
    'SRANDMEMBER none 1',
    'SRANDMEMBER none -1',
    'SET v x',
    'SRANDMEMBER v',
    'SRANDMEMBER v 2',
  ]);
});

test('random picks are spread evenly', async () => {
  await pair.ours.send('SADD', 's', ...Array.from({ length: 20 }, (_, i) => i));
  for (const command of [
    ['SRANDMEMBER', 's', 5],
    ['SRANDMEMBER', 's', 12],
    ['SRANDMEMBER', 's', -5],
  ] as const) {
    const counts = new Map<string, number>();
    for (let round = 0; round < 600; round++) {
      for (const each of await members(...command)) counts.set(each, (counts.get(each) ?? 0) + 1);
    }
    const expected = (600 * Math.abs(command[2])) / 20;
    let chiSquare = 0;
    for (const count of counts.values()) chiSquare += (count - expected) ** 2 / expected;
    expect(counts.size).toBe(20);
    expect(chiSquare).toBeLessThan(60); // 19 degrees of freedom: once in a million
  }
});

test('SSCAN gives every member that stays', async () => {
  for (const size of [0, 3, 600]) {
    const expected = Array.from({ length: size }, (_, i) => `$m${i}`).sort();
    await pair.ours.send('DEL', 's');
    if (size > 0) await pair.ours.send('SADD', 's', ...expected.map((each) => each.slice(1)));
    for (const count of [2, 10, 10_000]) {
      const found = new Set<string>();
      let cursor = '0';
      do {
        const [next, elements] = (await members('SSCAN', 's', cursor, 'COUNT', count)) as unknown as [
          string,
          { elements: string[] },
        ];
        for (const each of elements.elements) found.add(each);
        cursor = next.slice(1);
      } while (cursor !== '0');
      expect([...found].sort()).toEqual(expected);
    }
  }
  await pair.flush();
  await pair.compare([
    'SADD s 1 11 2',
    'SSCAN s 0 MATCH 1?* COUNT 100',
    'SSCAN s 0 MATCH 9*',
    'SSCAN s 0 MATCH 2',
    'SSCAN s 0 match [3-9]',
    'SSCAN s 99 MATCH 2',
    'SSCAN s x',
    'SSCAN s -1 MATCH 2',
    'SSCAN s 18446744073709551615 MATCH 2',
    'SSCAN s 18446744073709551616',
    'SSCAN s 1.5',
    ['SSCAN', 's', '', 'MATCH', '2'],
    ['SSCAN', 's', ' 1'],
    'SSCAN s 0 COUNT 0',
    'SSCAN s 0 COUNT -1',
    'SSCAN s 0 COUNT x',
    'SSCAN s 0 COUNT',
    'SSCAN s 0 TYPE set',
    'SSCAN none 0 NOPE',
    'SSCAN none x',
    'SET v x',
    'SSCAN v 0',
    'SSCAN s',
  ]);
});

test('RESP3 replies with sets', async () => {
  const three = await pair.another();
  const hello = await three.ours.send('HELLO', 3);
  expect(hello[0]).toBe('%');
  await three.theirs.send('HELLO', 3);
  await compareUnordered(three, [
    'SADD s a b c',
    'SMEMBERS s',
    'SMEMBERS none',
    'SINTER s s',
    'SINTER s none',
    'SUNION s',
    'SDIFF s none',
    'SDIFF none',
    'SPOP s 0',
    'SPOP none 3',
    'SPOP none',
    'SRANDMEMBER none',
    'SRANDMEMBER none 2',
    'SRANDMEMBER s 3',
    'SMISMEMBER s a x',
    'SPOP s 3',
  ]);
  three.ours.close();
  three.theirs.close();
});

test('random commands leave the same sets and get the same replies', () =>
  withDice(async (dice) => {
    const keys = ['s1', 's2', 's3', 's4', 'v'];
    const elements = Array.from({ length: 30 }, (_, i) =>
      i % 3 === 0 ? String(i) : `m${i}${'x'.repeat(i * i)}`,
    );
    const makers: (() => CommandLine)[] = [
      () => ['SADD', dice.pick(keys), ...dice.some(elements, 1, 6)],
      () => ['SADD', dice.pick(keys), ...dice.some(elements, 1, 6)],
      () => ['SREM', dice.pick(keys), ...dice.some(elements, 1, 4)],
      () => ['SMOVE', dice.pick(keys), dice.pick(keys), dice.pick(elements)],
      () => ['SISMEMBER', dice.pick(keys), dice.pick(elements)],
      () => ['SMEMBERS', dice.pick(keys)],
      () => [dice.pick(['SINTER', 'SUNION', 'SDIFF']), ...dice.some(keys, 1, 4)],
      () => [
        dice.pick(['SINTERSTORE', 'SUNIONSTORE', 'SDIFFSTORE']),
        dice.pick(keys.slice(1, 4)),
        ...dice.some(keys, 1, 3),
      ],
      () => ['SINTERCARD', 2, dice.pick(keys), dice.pick(keys), 'LIMIT', dice.below(4)],
      () => ['OBJECT', 'ENCODING', dice.pick(keys)],
      () => (dice.chance(0.2) ? ['SPOP', dice.pick(keys), 100] : ['SCARD', dice.pick(keys)]),
    ];
    const commands: CommandLine[] = [['SET', 'v', 'x']];
    for (let i = 0; i < 2500; i++) commands.push(dice.pick(makers)());
    for (const key of keys) commands.push(['SMEMBERS', key]);
    await compareUnordered(pair, commands);
    expect(unordered(await pair.ours.send('SUNION', ...keys.slice(0, 4)))).toEqual(
      unordered(await pair.theirs.send('SUNION', ...keys.slice(0, 4))),
    );
  }));
