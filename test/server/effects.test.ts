/** What list, set, hash and sorted set commands log: replayed, it gives the same data. */
import { expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { connect, encodeCommand, startServer, type CommandLine, TIER } from './harness.ts';
import { client, log, run, server, useLoggedServer } from './logged-server.ts';
import { parseReply, unordered, withDice, type Dice } from './replies.ts';

useLoggedServer();

test('commands that change nothing are not logged', async () => {
  await run('RPUSH l a', 'SADD s a', 'HSET h f v', 'ZADD z 1 a');
  const nothing = [
    'LPUSHX none a',
    'LPOP none',
    'LPOP l 0',
    'LREM l 0 x',
    'LINSERT l BEFORE x y',
    'LMOVE none l LEFT LEFT',
    'SADD s a',
    'SREM s x',
    'SMOVE s t x',
    'SPOP none',
    'SPOP s 0',
    'SINTERSTORE none none',
    'HSETNX h f w',
    'HDEL h x',
    'ZADD z 1 a',
    'ZADD z XX 1 b',
    'ZADD z NX 5 a',
    'ZADD z GT 0 a',
    'ZINCRBY z 0 a',
    'ZREM z x',
    'ZREMRANGEBYSCORE z 5 9',
    'ZPOPMIN none',
    'ZRANGESTORE none none 0 -1',
    'ZUNION 2 z s',
    'SUNION s',
    'BLPOP none 0.001',
    'LSET l 5 x',
    'SADD l x',
  ];
  expect(await run(...nothing)).toEqual([]);
});

test('what depends on dice, time or arithmetic is logged as its outcome', async () => {
  await run(
    'RPUSH l a b c d e f g h i j k',
    'ZADD z 1 a 2 b 3 c 4 d 5 e 6 f 7 g',
    'SADD one x',
    'SADD two x y',
  );
  expect(await run('SPOP one')).toEqual(['SREM one x']);
  expect((await run('SPOP two 1'))[0]).toMatch(/^SREM two [xy]$/);
  expect(await run('SADD two x y', 'SPOP two 2')).toEqual([expect.stringMatching(/^SADD two/), 'DEL two']);
  expect(await run('BLPOP none l 0', 'BRPOP l 0')).toEqual(['LPOP l', 'RPOP l']);
  expect(await run('LMPOP 2 none l LEFT COUNT 2', 'BLMPOP 0 1 l RIGHT')).toEqual(['LPOP l 2', 'RPOP l 1']);
  expect(await run('BRPOPLPUSH l m 0', 'BLMOVE l m left right 0')).toEqual([
    'RPOPLPUSH l m',
    'LMOVE l m LEFT RIGHT',
  ]);
  expect(await run('BZPOPMIN none z 0', 'BZPOPMAX z 0')).toEqual(['ZPOPMIN z', 'ZPOPMAX z']);
  expect(await run('ZMPOP 1 z MIN COUNT 2', 'BZMPOP 0 1 z MAX')).toEqual(['ZPOPMIN z 2', 'ZPOPMAX z 1']);
  expect(await run('ZINCRBY w 0.1 a', 'ZADD w INCR 0.2 a', 'ZINCRBY w inf a')).toEqual([
    'ZADD w 0.1 a',
    'ZADD w 0.30000000000000004 a',
    'ZADD w inf a',
  ]);
  expect(await run('HINCRBYFLOAT h f 1.5', 'HINCRBYFLOAT h f 0.1')).toEqual(['HSET h f 1.5', 'HSET h f 1.6']);
  expect(await run('HINCRBY h n 3')).toEqual(['HINCRBY h n 3']);
});

test('what DEBUG POPULATE fills is logged key by key, without those that were there', async () => {
  await run('SET p:1 kept');
  expect(await run('DEBUG POPULATE 3 p')).toEqual(['SET p:0 value:0', 'SET p:2 value:2']);
});

test('a client that was waiting is logged when it is served', async () => {
  const waiting = await connect(server.port);
  waiting.write(encodeCommand(['BLMOVE', 'a', 'b', 'LEFT', 'RIGHT', '0']));
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await run('SELECT 0', 'RPUSH a x y')).toEqual(['RPUSH a x y', 'LMOVE a b LEFT RIGHT']);
  await waiting.read(1);
  waiting.close();
});

function randomCommand(dice: Dice): CommandLine {
  const key = dice.pick(['l1', 'l2', 's1', 's2', 'h1', 'z1', 'z2']);
  const other = dice.pick(['l1', 'l2', 's1', 's2', 'z1', 'z2']);
  const member = (): string => `m${dice.below(12)}`;
  const side = (): string => dice.pick(['LEFT', 'RIGHT']);
  return dice.pick<() => CommandLine>([
    () => ['RPUSH', key, member(), member()],
    () => ['BLPOP', key, other, '0.001'],
    () => ['BLMOVE', key, other, side(), side(), '0.001'],
    () => ['LMPOP', 2, key, other, side(), 'COUNT', 2],
    () => ['LREM', key, dice.below(5) - 2, member()],
    () => ['SADD', key, member(), member(), member()],
    () => ['SPOP', key],
    () => ['SPOP', key, dice.below(4)],
    () => ['SMOVE', key, other, member()],
    () => [dice.pick(['SUNIONSTORE', 'SDIFFSTORE', 'SINTERSTORE']), key, other, 's1'],
    () => ['HSET', key, member(), member()],
    () => ['HINCRBYFLOAT', key, `n${dice.below(3)}`, dice.below(100) / 7],
    () => ['HDEL', key, member()],
    () => ['ZADD', key, dice.below(10), member(), dice.below(10), member()],
    () => ['ZINCRBY', key, dice.below(100) / 7, member()],
    () => ['ZADD', key, 'GT', 'INCR', dice.below(100) / 7, member()],
    () => ['BZPOPMIN', key, other, '0.001'],
    () => ['ZMPOP', 2, key, other, 'MAX', 'COUNT', 2],
    () => ['ZUNIONSTORE', key, 2, other, 'z1', 'WEIGHTS', 1, 2],
  ])();
}

test('the log of random commands, replayed, gives the same data', () =>
  withDice(async (dice) => {
    for (let i = 0; i < 1500; i++) await client.send(...randomCommand(dice));
    const replayed = await startServer({ store: new Tier() });
    const other = await connect(replayed.port);
    const count = log.lines().length;
    other.write(Buffer.concat(log.frames));
    const replies = (await other.read(count)).toString('latin1');
    expect(replies).not.toMatch(/^-/m);
    for (const key of ['l1', 'l2', 's1', 's2', 'h1', 'z1', 'z2']) {
      const type = parseReply(await client.send('TYPE', key));
      expect(parseReply(await other.send('TYPE', key))).toBe(type);
      const [group, ...read]: [number, ...string[]] =
        type === '+list'
          ? [1, 'LRANGE', key, '0', '-1']
          : type === '+zset'
            ? [2, 'ZRANGE', key, '0', '-1', 'WITHSCORES']
            : type === '+hash'
              ? [2, 'HGETALL', key]
              : [1, type === '+set' ? 'SMEMBERS' : 'EXISTS', key];
      const [mine, theirs] = [await client.send(...read), await other.send(...read)];
      if (type === '+list' || type === '+zset') expect(theirs).toBe(mine);
      else expect(unordered(theirs, group)).toEqual(unordered(mine, group));
    }
    other.close();
    await replayed.stop();
  }));

// With an engine below it no tier is full.
test.skipIf(TIER !== undefined)(
  'of a command that the full tier ends early nothing is left, in memory or in the log',
  async () => {
    const { memory } = server.server.store;
    const replayed = await startServer({ store: new Tier() });
    const other = await connect(replayed.port);
    const large = Array.from({ length: 500 }, (_, i) => `${i}-`.padEnd(6000, 'x'));
    const commands = [
      ['RPUSH', 'l', ...large],
      ['LPUSH', 'l', ...large],
      ['SADD', 's', ...large],
      ['HSET', 'h', ...large.flatMap((field) => [field, 'v'])],
      ['ZADD', 'z', ...large.flatMap((member, i) => [i, member])],
    ];
    for (const command of commands) {
      memory.limit = memory.used + 2_000_000;
      const lines = log.lines().length;
      expect(await client.send(...command)).toMatch(/^-OOM/);
      expect(log.lines()).toHaveLength(lines);
      memory.limit = Infinity;
      await client.send('RPUSH', 'l', 'after');
      const { length } = log.lines();
      other.write(Buffer.concat(log.frames));
      await other.read(length);
      log.frames.length = 0;
      for (const read of ['LRANGE l 0 -1', 'SMEMBERS s', 'HKEYS h', 'ZRANGE z 0 -1 WITHSCORES']) {
        const [mine, theirs] = [await client.send(...read.split(' ')), await other.send(...read.split(' '))];
        expect(unordered(theirs)).toEqual(unordered(mine));
      }
    }
    for (const read of ['LLEN l', 'SCARD s', 'HLEN h', 'ZCARD z'])
      expect(await client.send(...read.split(' '))).toBe(
        read === 'LLEN l' ? `:${commands.length}\r\n` : ':0\r\n',
      );
    other.close();
    await replayed.stop();
  },
);
