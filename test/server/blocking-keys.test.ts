/** Commands that wait for an element of a list or sorted set, beside a real Redis. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { encodeCommand, startPair, type Pair } from './harness.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
beforeEach(() => pair.flush());
afterAll(() => pair.stop());

/** Milliseconds in which a reply that is due has come. */
const SETTLED_MS = 25;
/** Also when commands have to wait for rows (FAULTS, TIER): then it is longer. */
async function settle(): Promise<void> {
  do {
    // Both have read what was sent before, however busy the machine is.
    await pair.compare(['PING']);
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    await pair.compare(['PING']);
  } while (pair.server.server.faults.waiting.size > 0);
}

/**
 * Lets clients wait, each with one of the `waits` and in their order, then sends the commands, and
 * demands that every waiting client has got the same from both servers, or nothing from either.
 * Returns what our server has sent them.
 */
async function wake(waits: readonly string[], commands: readonly string[]): Promise<string[]> {
  const waiting: Pair[] = [];
  for (const command of waits) {
    const each = await pair.another();
    waiting.push(each);
    each.ours.write(encodeCommand(command.split(' ')));
    each.theirs.write(encodeCommand(command.split(' ')));
    await settle();
  }
  await pair.compare(commands);
  await settle();
  const replies = waiting.map((each) =>
    [each.ours.unread, each.theirs.unread].map((bytes) => bytes.toString('latin1')),
  );
  for (const each of waiting) {
    each.ours.close();
    each.theirs.close();
  }
  await settle();
  expect(replies.map(([ours]) => ours)).toEqual(replies.map(([, theirs]) => theirs));
  return replies.map(([ours]) => ours);
}

test('what is there is taken at once; arguments are checked', async () => {
  await pair.compare([
    'RPUSH l a b c d e f g h',
    'BLPOP l 0',
    'BRPOP none l 0',
    'BLPOP l l none 1.5',
    'BRPOPLPUSH l m 0',
    'BLMOVE l m LEFT RIGHT 0',
    'BLMPOP 0 2 none l LEFT COUNT 2',
    'BLMPOP 0 1 l RIGHT',
    'LRANGE m 0 -1',
    'ZADD z 1 a 2 b 3 c 4 d 5 e',
    'BZPOPMIN z 0',
    'BZPOPMAX none z 0',
    'BZMPOP 0 2 none z MIN COUNT 2',
    'BZMPOP 0 1 z MAX',
    'EXISTS z',
    'SET s v',
    'BLPOP s 0',
    'BLPOP none s 0',
    'BRPOPLPUSH s l 0',
    'BLMPOP 0 1 s LEFT',
    'BZPOPMIN s 0',
    'BZMPOP 0 1 s MIN',
    'CLIENT UNBLOCK 9223372036854775807',
    'CLIENT UNBLOCK -9223372036854775808',
    'CLIENT UNBLOCK 9223372036854775808',
    'BLPOP l -1',
    'BLPOP l x',
    'BLPOP l inf',
    'BLPOP l nan',
    'BLPOP l 1e400',
    'BLPOP s -1',
    'BRPOPLPUSH l m x',
    'BLMOVE l m LEFT UP 0',
    'BLMOVE l m LEFT RIGHT x',
    'BLMPOP x 1 l LEFT',
    'BLMPOP -1 1 l LEFT',
    'BLMPOP 0 0 l LEFT',
    'BLMPOP 0 1 l LEFT COUNT 0',
    'BLMPOP x 0 l LEFT',
    'BZPOPMIN z x',
    'BZMPOP 0 0 z MIN',
    'BZMPOP x 0 z MIN',
    'BLPOP l',
    'BZMPOP 0 1 z',
  ]);
});

test('a push wakes the clients that wait, first come first served', async () => {
  await wake(['BLPOP l 0'], ['RPUSH l a b', 'LRANGE l 0 -1']);
  await wake(['BRPOP l 0', 'BLPOP l 0', 'BLPOP l 0'], ['DEL l', 'RPUSH l a b c d', 'LRANGE l 0 -1']);
  await wake(['BLPOP l 0', 'BLPOP l 0', 'BLPOP l 0'], ['DEL l', 'RPUSH l a', 'RPUSH l b', 'EXISTS l']);
  await wake(['BLPOP x y z 0', 'BLPOP z x 0'], ['LPUSH z 1 2', 'LPUSH x 3', 'EXISTS x y z']);
  await wake(['BLPOP same same 0'], ['LPUSH same 1', 'LPUSH same 2', 'LLEN same']);
  await wake(
    ['BLMPOP 0 2 m n LEFT COUNT 3', 'BLMPOP 0 1 m RIGHT COUNT 9'],
    ['RPUSH m a b c d e', 'EXISTS m'],
  );
  await wake(['BZPOPMIN z 0', 'BZPOPMAX z 0'], ['ZADD z 1 a 2 b 3 c', 'ZRANGE z 0 -1']);
  await wake(['BZMPOP 0 2 y v MIN COUNT 2', 'BZPOPMIN v 0'], ['ZADD v 1 a 2 b 3 c', 'EXISTS v']);
});

test('a waiting client sleeps on when the key holds something else, or nothing again', async () => {
  await wake(['BLPOP l 0'], ['SET l v', 'DEL l', 'LPUSH l a', 'EXISTS l']);
  await wake(['BLPOP l 0'], ['SADD l v', 'DEL l', 'ZADD l 1 v', 'TYPE l']);
  await wake(['BZPOPMIN z 0', 'BLPOP z 0'], ['RPUSH z a', 'ZADD z 1 a', 'DEL z', 'ZADD z 1 m', 'EXISTS z']);
  await wake(['BLPOP k 0'], ['MULTI', 'LPUSH k a', 'DEL k', 'EXEC', 'EXISTS k']);
  await wake(['BLPOP k 0'], ['MULTI', 'LPUSH k a', 'DEL k', 'SET k v', 'EXEC', 'DEL k', 'RPUSH k b c']);
  await wake(['BZPOPMIN k 0'], ['DEL k', 'MULTI', 'ZADD k 1 a', 'DEL k', 'LPUSH k v', 'EXEC', 'TYPE k']);
  await wake(
    ['BLPOP first second 0'],
    ['DEL first second', 'SET first v', 'LPUSH second a', 'EXISTS second'],
  );
});

test('inside MULTI nobody waits, and a waiting client sees EXEC as one', async () => {
  await pair.compare([
    'MULTI',
    'BLPOP l 0',
    'BRPOPLPUSH l m 0',
    'BLMOVE l m LEFT LEFT 0',
    'BLMPOP 0 1 l LEFT',
    'BZPOPMIN z 0',
    'BZMPOP 0 1 z MIN',
    'EXEC',
  ]);
  await wake(['BLPOP l 0'], ['MULTI', 'LPUSH l a', 'LPUSH l b', 'LPUSH l c', 'EXEC', 'LRANGE l 0 -1']);
});

test('of several keys that an EXEC fills, the one that was filled first serves', async () => {
  const streams = ['XGROUP CREATE x g $ MKSTREAM', 'XGROUP CREATE y g $ MKSTREAM'];
  await pair.compare(streams);
  await wake(
    [
      'BLPOP l m l 0',
      'BLMPOP 0 2 l m RIGHT COUNT 2',
      'BZPOPMIN z y 0',
      'BZMPOP 0 2 y z MAX',
      'XREAD BLOCK 0 STREAMS x y $ $',
      'XREADGROUP GROUP g c COUNT 1 BLOCK 0 STREAMS x y > >',
    ],
    [
      'MULTI',
      ...['RPUSH m a b c d', 'RPUSH l a b c d', 'XADD y 1-1 f v', 'XADD x 1-1 f v', 'XADD x 1-2 f v'],
      ...['ZADD z 1 a 2 b', 'EXEC', 'LRANGE l 0 -1', 'LRANGE m 0 -1', 'ZRANGE z 0 -1'],
      ...['XINFO GROUPS x', 'XINFO GROUPS y'],
    ],
  );
  await pair.compare(['XGROUP SETID y g $']);
  await wake(
    ['XREADGROUP GROUP g c BLOCK 0 STREAMS x y > >', 'BLPOP m n 0'],
    ['XGROUP SETID x g $', 'MULTI', 'XADD y 2-1 f v', 'DEL x', 'RENAME l n', 'RPUSH l a', 'EXEC'],
  );
});

test('moves: chains, circles, targets of the wrong type', async () => {
  await wake(['BRPOPLPUSH a b 0', 'BRPOPLPUSH b c 0', 'BLPOP c 0'], ['LPUSH a x', 'EXISTS a b c']);
  await wake(
    ['BLPOP c 0', 'BLMOVE b c LEFT LEFT 0', 'BLMOVE a b RIGHT LEFT 0'],
    ['RPUSH a x y', 'EXISTS a b c', 'LRANGE a 0 -1'],
  );
  await wake(['BRPOPLPUSH p q 0', 'BRPOPLPUSH q p 0'], ['RPUSH p foo', 'LRANGE p 0 -1', 'LRANGE q 0 -1']);
  await wake(['BRPOPLPUSH self self 0'], ['RPUSH self foo', 'LRANGE self 0 -1']);
  await wake(['BLMOVE src text LEFT RIGHT 0'], ['SET text v', 'RPUSH src foo bar', 'LRANGE src 0 -1']);
  await wake(
    ['BLMOVE from dead LEFT RIGHT 0', 'BLMOVE from to LEFT RIGHT 0'],
    ['SET dead v', 'RPUSH from foo', 'EXISTS from', 'LRANGE to 0 -1'],
  );
  for (const from of ['LEFT', 'RIGHT']) {
    for (const to of ['LEFT', 'RIGHT']) {
      await wake([`BLMOVE m n ${from} ${to} 0`, 'BLPOP n 0'], ['DEL m n', 'RPUSH m 1 2 3', 'LRANGE m 0 -1']);
    }
  }
});

test('keys that come by other ways wake too', async () => {
  await wake(['BLPOP l 0'], ['RPUSH other a b', 'RENAME other l', 'LRANGE l 0 -1']);
  await wake(['BLPOP m 0'], ['RPUSH other a b', 'COPY other m', 'LRANGE m 0 -1']);
  await wake(['BZPOPMIN z 0'], ['ZADD a 1 x 2 y', 'ZUNIONSTORE z 1 a', 'ZRANGE z 0 -1']);
  await wake(['BZPOPMIN y 0'], ['ZRANGESTORE y a 0 -1', 'ZRANGE y 0 -1']);
  await wake(['BLPOP sorted 0'], ['RPUSH numbers 3 1 2', 'SORT numbers STORE sorted', 'LRANGE sorted 0 -1']);
  await wake(['BLPOP target 0'], ['RPUSH start a', 'LMOVE start target LEFT LEFT', 'EXISTS target start']);
  await wake(['BZPOPMAX inc 0'], ['ZINCRBY inc 5 a', 'EXISTS inc']);
});

test('a wait ends after its timeout', async () => {
  const started = Date.now();
  const waiting = await pair.another();
  for (const command of [
    'BLPOP l 0.02',
    'BRPOP l 0.02',
    'BRPOPLPUSH l m 0.02',
    'BLMOVE l m LEFT LEFT 0.02',
    'BLMPOP 0.02 1 l LEFT',
    'BZPOPMIN z 0.02',
    'BZMPOP 0.02 1 z MIN',
    'BLPOP l 0.0001',
  ]) {
    await waiting.compare([command]);
  }
  expect(Date.now() - started).toBeGreaterThanOrEqual(7 * 20);
  await pair.compare(['RPUSH l a', 'LRANGE l 0 -1']);
  waiting.ours.close();
  waiting.theirs.close();
});

test('commands sent behind one that waits run after it', async () => {
  const waiting = await pair.another();
  const pipeline = Buffer.concat(
    [['BLPOP', 'l', '0'], ['PING'], ['BLPOP', 'l', '0'], ['LLEN', 'l']].map(encodeCommand),
  );
  waiting.ours.write(pipeline);
  waiting.theirs.write(pipeline);
  await settle();
  await pair.compare(['RPUSH l a']);
  await settle();
  await pair.compare(['RPUSH l b c']);
  const [ours, theirs] = await Promise.all([waiting.ours.read(4), waiting.theirs.read(4)]);
  expect(ours.toString()).toBe(theirs.toString());
  waiting.ours.close();
  waiting.theirs.close();
});
