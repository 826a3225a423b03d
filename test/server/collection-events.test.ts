/** Keyspace events of list, set, hash and sorted set commands, in their order, beside a real Redis. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { encodeCommand, startPair, type CommandLine, type Pair, type RawClient } from './harness.ts';
import { withDice, type Dice } from './replies.ts';

let pair: Pair;
let listeners: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
  listeners = await pair.another();
  for (const [client, listener] of [
    [pair.ours, listeners.ours],
    [pair.theirs, listeners.theirs],
  ]) {
    await client.send('CONFIG', 'SET', 'notify-keyspace-events', 'KEAnm');
    await listener.send('PSUBSCRIBE', '__key*@0__:*');
  }
});
afterAll(async () => {
  listeners.ours.close();
  listeners.theirs.close();
  await pair.stop();
});

/** Everything the listener has been sent, up to a mark that is published last. */
async function heard(client: RawClient, listener: RawClient): Promise<string> {
  await client.send('PUBLISH', '__key__@0__:mark', 'end');
  let text = '';
  while (!text.endsWith('$3\r\nend\r\n')) text += (await listener.read(1)).toString('latin1');
  return text;
}

async function compareEvents(commands: readonly (CommandLine | string)[]): Promise<void> {
  for (const command of commands) {
    const parts = typeof command === 'string' ? command.split(' ') : command;
    pair.ours.write(encodeCommand(parts));
    pair.theirs.write(encodeCommand(parts));
    await Promise.all([pair.ours.read(1), pair.theirs.read(1)]);
    const [ours, theirs] = await Promise.all([
      heard(pair.ours, listeners.ours),
      heard(pair.theirs, listeners.theirs),
    ]);
    expect([parts.join(' '), ours]).toEqual([parts.join(' '), theirs]);
  }
}

test('each command tells what it did', async () => {
  await compareEvents([
    'LPUSH l a b',
    'RPUSH l c d e f g h',
    'LPUSHX l a',
    'RPUSHX none a',
    'LINSERT l BEFORE a x',
    'LINSERT l BEFORE none x',
    'LSET l 0 y',
    'LREM l 1 a',
    'LREM l 1 none',
    'LTRIM l 0 7',
    'LTRIM l 0 100',
    'LPOP l',
    'RPOP l 2',
    'LPOP l 0',
    'LMOVE l m LEFT RIGHT',
    'LMOVE l l LEFT RIGHT',
    'RPOPLPUSH m n',
    'LMPOP 1 l LEFT',
    'BLPOP l 0',
    'BLMOVE l o LEFT LEFT 0',
    'BLMPOP 0 1 o LEFT',
    'LTRIM n 5 9',
    'RPUSH l z z',
    'LREM l 0 z',
    'SADD s a b c d',
    'SADD s a',
    'SREM s a x',
    'SMOVE s t b',
    'SMOVE s t b',
    'SMOVE s s c',
    'SADD t c',
    'SMOVE s t c',
    'SPOP s',
    'SPOP t 2',
    'SPOP t 5',
    'SADD a 1 2 3',
    'SADD b 2 3',
    'SUNIONSTORE u a b',
    'SUNIONSTORE u a b',
    'SINTERSTORE u a b',
    'SDIFFSTORE u a b',
    'SDIFFSTORE u b a',
    'SDIFFSTORE u b a',
    'HSET h a 1 b 2',
    'HSET h a 1',
    'HMSET h c 1',
    'HSETNX h d 1',
    'HSETNX h d 1',
    'HINCRBY h n 1',
    'HINCRBYFLOAT h n 1.5',
    'HINCRBYFLOAT g n 1.5',
    'HDEL h a x',
    'HDEL h b c d n',
    'ZADD z 1 a 2 b 3 c 4 d 5 e 6 f',
    'ZADD z 1 a',
    'ZADD z 2 a',
    'ZADD z XX 3 a',
    'ZADD z NX 3 a',
    'ZADD z INCR 1 a',
    'ZINCRBY z 0 a',
    'ZINCRBY z 1 a',
    'ZREM z a x',
    'ZRANGESTORE y z 0 1',
    'ZRANGESTORE y z 0 1',
    'ZRANGESTORE y z 9 10',
    'ZRANGESTORE y z 9 10',
    'ZREMRANGEBYRANK z 0 0',
    'ZREMRANGEBYSCORE z 3 3',
    'ZREMRANGEBYLEX z [zz [zzz',
    'ZPOPMIN z',
    'ZPOPMAX z',
    'ZADD z 1 a 2 b 3 c',
    'BZPOPMIN z 0',
    'ZMPOP 1 z MIN',
    'BZMPOP 0 1 z MAX',
    'ZADD p 1 a',
    'ZADD q 1 a 2 b',
    'ZUNIONSTORE u 2 p q',
    'ZINTERSTORE u 2 p q',
    'ZDIFFSTORE u 2 q p',
    'ZDIFFSTORE u 2 p q',
    'ZREM q a b',
    'ZREMRANGEBYSCORE p -inf +inf',
    'SET text v',
    'ZUNIONSTORE text 1 q',
    'ZADD q 1 a',
    'SET text v',
    'ZUNIONSTORE text 1 q',
    'SET text v',
    'SUNIONSTORE text a b',
  ]);
});

function randomCommand(dice: Dice): CommandLine {
  const key = dice.pick(['l1', 'l2', 's1', 's2', 'h1', 'z1', 'z2']);
  const other = dice.pick(['l1', 'l2', 's1', 's2', 'z1', 'z2']);
  const member = (): string => `m${dice.below(5)}`;
  const side = (): string => dice.pick(['LEFT', 'RIGHT']);
  return dice.pick<() => CommandLine>([
    () => ['RPUSH', key, member()],
    () => ['LPOP', key],
    () => ['LMOVE', key, other, side(), side()],
    () => ['LREM', key, 0, member()],
    () => ['LTRIM', key, dice.below(3), 3],
    () => ['SADD', key, member(), member()],
    () => ['SREM', key, member(), member()],
    () => ['SMOVE', key, other, member()],
    () => [dice.pick(['SUNIONSTORE', 'SDIFFSTORE', 'SINTERSTORE']), key, other, 's1'],
    () => ['HSET', key, member(), member()],
    () => ['HDEL', key, member(), member()],
    () => ['ZADD', key, dice.below(3), member()],
    () => ['ZADD', key, 'GT', 'INCR', dice.below(3), member()],
    () => ['ZREM', key, member()],
    () => ['ZPOPMIN', key, dice.below(3)],
    () => ['ZRANGESTORE', key, other, 0, dice.below(2)],
    () => ['ZINTERSTORE', key, 2, other, 'z1'],
  ])();
}

test('a read that finds no key tells it', async () => {
  await compareEvents([
    'FLUSHALL',
    ...['LLEN', 'SCARD', 'SMEMBERS', 'HLEN', 'HKEYS', 'HVALS', 'HGETALL', 'ZCARD'].map((name) => `${name} k`),
    ...[
      'LINDEX k 0',
      'LRANGE k 0 1',
      'LPOS k a',
      'SISMEMBER k a',
      'SMISMEMBER k a b',
      'SRANDMEMBER k',
      'SSCAN k 0',
    ],
    ...[
      'SINTER k j',
      'SUNION k',
      'SDIFFSTORE to k',
      'SINTERCARD 1 k',
      'HGET k f',
      'HMGET k f',
      'HEXISTS k f',
    ],
    ...[
      'HSTRLEN k f',
      'HRANDFIELD k 1',
      'HSCAN k 0',
      'ZSCORE k a',
      'ZMSCORE k a',
      'ZRANK k a',
      'ZREVRANK k a',
    ],
    ...[
      'ZRANGE k 0 1',
      'ZRANGEBYSCORE k 0 1',
      'ZCOUNT k 0 1',
      'ZLEXCOUNT k - +',
      'ZRANDMEMBER k',
      'ZSCAN k 0',
    ],
    ...[
      'ZRANGESTORE to k 0 1',
      'ZUNION 2 k j',
      'ZINTERSTORE to 1 k',
      'ZINTERCARD 1 k',
      'LPOP k',
      'SPOP k',
      'ZPOPMIN k',
    ],
    ...['SREM k a', 'HDEL k f', 'ZREM k a', 'LREM k 0 a', 'LSET k 0 a', 'LTRIM k 0 1', 'LMOVE k j LEFT LEFT'],
    ...[
      'SMOVE k j a',
      'HINCRBY k f 1',
      'BLPOP j 0.001',
      'LMPOP 1 j LEFT',
      'ZMPOP 1 j MIN',
      'ZREMRANGEBYRANK j 0 1',
    ],
  ]);
});

test('random commands tell the same', () =>
  withDice(async (dice) => {
    await pair.flush();
    await compareEvents(Array.from({ length: 500 }, () => randomCommand(dice)));
  }));
