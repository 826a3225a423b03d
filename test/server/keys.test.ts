import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { cmd, startPair, type CommandLine, type Pair, type RawClient } from './harness.ts';
import { Tier } from '../../src/store/tier.ts';
import { compareRandomly, pick, seeded } from './random-commands.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
afterAll(() => pair.stop());
beforeEach(async () => {
  await pair.compare(['SELECT 0']);
  await pair.flush();
});

const MAX = '9223372036854775807';
const MIN = '-9223372036854775808';

/** The bulk strings of a flat reply, sorted: both servers have an order of their own. */
function bulks(reply: string): string[] {
  return [...reply.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map((match) => match[1]).sort();
}

test('DEL, UNLINK, EXISTS, TOUCH, TYPE', () =>
  pair.compare([
    'MSET a 1 b 2 c 3',
    'EXISTS a b x a',
    'TOUCH a x a',
    'DEL a x b a',
    'UNLINK c c',
    'EXISTS a b c',
    'DEL',
    'EXISTS',
    'RPUSH l x',
    'SADD s x',
    'HSET h f v',
    'ZADD z 1 x',
    'SET str x',
    ...['l', 's', 'h', 'z', 'str', 'absent'].map((key) => `TYPE ${key}`),
    'TYPE',
  ]));

describe('deadlines', () => {
  test('EXPIRE and its kin', () =>
    pair.compare([
      'SET k v',
      'TTL k',
      'PTTL k',
      'EXPIRETIME k',
      'PEXPIRETIME absent',
      'TTL absent',
      'EXPIRE k 100',
      'TTL k',
      'EXPIRE absent 100',
      'PEXPIRE k 200000',
      'TTL k',
      'EXPIREAT k 99999999999',
      'EXPIRETIME k',
      'PEXPIRETIME k',
      'PEXPIREAT k 99999999999999',
      'EXPIRETIME k',
      'PEXPIRETIME k',
      'PERSIST k',
      'PERSIST k',
      'PERSIST absent',
      'TTL k',
      'EXPIRE k 0',
      'EXISTS k',
      'SET k v',
      'EXPIRE k -1',
      'EXISTS k',
      'SET k v',
      'EXPIREAT k 1',
      'EXISTS k',
      'SET k v',
      `PEXPIRE k ${MIN}`,
      'EXISTS k',
      'SET k v',
      `EXPIRE k ${MAX}`,
      `EXPIRE k ${MIN}`,
      `PEXPIRE k ${MAX}`,
      'EXPIRE k 9223372036854775',
      'EXPIRE k 9223372036854776',
      'EXPIRE k -9223372036854776',
      'EXPIREAT k 9223372036854776',
      'PEXPIREAT k 9223372036854770000',
      'EXPIRE k a',
      'EXPIRE k 1.5',
      'EXPIRE k',
      'EXPIRE absent a',
      'EXPIRE absent 9223372036854776',
    ]));

  test('conditions', () =>
    pair.compare([
      'SET k v',
      'EXPIRE k 100 XX',
      'EXPIRE k 100 GT',
      'TTL k',
      'EXPIRE k 100 NX',
      'EXPIRE k 200 NX',
      'EXPIRE k 50 GT',
      'EXPIRE k 150 GT',
      'TTL k',
      'EXPIRE k 200 LT',
      'EXPIRE k 20 LT',
      'TTL k',
      'EXPIRE k 30 XX GT',
      'TTL k',
      'PERSIST k',
      'EXPIRE k 30 LT',
      'TTL k',
      'EXPIRE k -1 GT',
      'EXPIRE k -1 LT',
      'EXISTS k',
      'EXPIRE absent 1 NX',
      'EXPIRE k 1 NX XX',
      'EXPIRE k 1 NX GT',
      'EXPIRE k 1 GT LT',
      'EXPIRE k 1 NX NX',
      'EXPIRE k 1 bad',
      'EXPIRE k a bad',
    ]));

  test('a key whose time has come is gone for every command', async () => {
    await pair.compare(['SET a v PX 1', 'RPUSH b v', 'PEXPIRE b 1', 'SET c v PXAT 1']);
    await new Promise((resolve) => setTimeout(resolve, 10));
    await pair.compare([
      'EXISTS a b c',
      'GET a',
      'TTL b',
      'TYPE c',
      'KEYS *',
      'RANDOMKEY',
      'SCAN 0 COUNT 100',
      'RENAME a x',
      'COPY a x',
      'PERSIST a',
      'APPEND a new',
      'DEL b',
      'DBSIZE',
    ]);
  });
});

describe('KEYS and SCAN', () => {
  const keys = ['', '*', 'a', 'abc', 'abd', 'a*c', 'b', 'h[llo', 'key:1', 'key:10', 'key:2'];

  beforeEach(() => pair.compare(keys.map((key) => ['SET', key, 'v'])));

  test.each([
    '*',
    '**',
    '?',
    'a*',
    'abc',
    'absent',
    'ab?',
    'a\\*c',
    'key:[12]',
    'key:[^1]*',
    '[ab]',
    'h[*',
    'h\\[llo',
    '*c',
    '',
  ])('pattern %j', async (pattern) => {
    for (const command of [
      ['KEYS', pattern],
      ['SCAN', '0', 'COUNT', '1000', 'MATCH', pattern],
    ]) {
      const [ours, theirs] = await Promise.all([pair.ours.send(...command), pair.theirs.send(...command)]);
      expect(bulks(ours)).toEqual(bulks(theirs));
    }
  });

  test('errors and edges', () =>
    pair.compare([
      'SCAN',
      'SCAN a',
      'SCAN 1.5',
      ['SCAN', ' 0'],
      'SCAN 18446744073709551616',
      'SCAN 0 COUNT 0',
      'SCAN 0 COUNT -1',
      'SCAN 0 COUNT a',
      'SCAN 0 COUNT',
      'SCAN 0 MATCH',
      'SCAN 0 bad x',
      'SCAN 0 COUNT 100 MATCH nothing',
      'SCAN 0 COUNT 100 TYPE hash',
      'SCAN 0 COUNT 100 TYPE nosuch',
      'SCAN 0 COUNT 100 MATCH a TYPE STRING',
      'SCAN 0 MATCH absent COUNT 9223372036854775807',
      'FLUSHDB',
      'SCAN 0',
      ['SCAN', ''],
      'SCAN 5',
      'SCAN -1',
      'KEYS *',
      'RANDOMKEY',
    ]));

  test('a cursor that was never given leads to the end', async () => {
    for (const cursor of ['4294967296', '9007199254740991', '18446744073709551615', '-1'])
      expect(await pair.ours.send('SCAN', cursor, 'COUNT', 5)).toBe('*2\r\n$1\r\n0\r\n*0\r\n');
  });

  test('a whole iteration visits every key', async () => {
    const random = seeded('scan');
    await pair.flush();
    const present = new Set<string>();
    for (let i = 0; i < 500; i++) present.add(`key:${Math.floor(random() * 1e6)}`);
    for (const key of present) await pair.ours.send(random() < 0.5 ? 'SET' : 'LPUSH', key, 'v');
    for (const options of [[], ['COUNT', 7], ['COUNT', 1000], ['MATCH', 'key:1*', 'COUNT', 50]]) {
      const visited = new Set<string>();
      let cursor = '0';
      let calls = 0;
      do {
        const [next, ...found] = scanReply(await pair.ours.send('SCAN', cursor, ...options));
        for (const key of found) visited.add(key);
        cursor = next;
        calls++;
        // Keys that come and go meanwhile do not disturb it.
        if (calls < 50) await pair.ours.send('SET', `other:${calls}`, 'v');
      } while (cursor !== '0' && calls < 2000);
      expect(cursor).toBe('0');
      const wanted = [...present].filter((key) => options[0] !== 'MATCH' || key.startsWith('key:1'));
      expect(wanted.filter((key) => !visited.has(key))).toEqual([]);
    }
    const strings = scanReply(await pair.ours.send(...cmd('SCAN 0 COUNT 100000 TYPE string')));
    for (const key of strings.slice(1)) expect(await pair.ours.send('TYPE', key)).toBe('+string\r\n');
    expect(strings.length).toBeGreaterThan(100);
  });

  function scanReply(reply: string): string[] {
    return [...reply.matchAll(/\$\d+\r\n([^\r]*)\r\n/g)].map((match) => match[1]);
  }
});

test('RANDOMKEY reaches every key', async () => {
  await pair.ours.send(...cmd('MSET a 1 b 2 c 3'));
  const seen = new Set<string>();
  for (let i = 0; i < 200; i++) seen.add(await pair.ours.send('RANDOMKEY'));
  expect([...seen].sort()).toEqual(['$1\r\na\r\n', '$1\r\nb\r\n', '$1\r\nc\r\n']);
});

test('RENAME, RENAMENX, COPY, MOVE', () =>
  pair.compare([
    'SET a 1 EX 100',
    'RENAME a b',
    'TTL b',
    'EXISTS a',
    'RENAME absent x',
    'RENAME absent absent',
    'RENAME b b',
    'RENAMENX b b',
    'RENAMENX absent b',
    'RPUSH l 1 2 3',
    'RENAMENX b l',
    'RENAME l b',
    'LRANGE b 0 -1',
    'TTL b',
    'RENAMENX b c',
    'TYPE c',
    'COPY c d',
    'COPY c d',
    'RPUSH c 4',
    'COPY c d REPLACE',
    'LRANGE d 0 -1',
    'COPY c c',
    'COPY c c DB 1',
    'COPY c c DB 1',
    'COPY absent x',
    'COPY c e DB 0 REPLACE DB 2',
    'COPY c x DB',
    'COPY c x bad',
    'COPY c x DB a',
    'COPY c x DB 16',
    'COPY c x DB -1',
    'COPY c x DB 9999999999',
    'SET t v EX 100',
    'COPY t u',
    'TTL u',
    'MOVE t 1',
    'EXISTS t',
    'MOVE t 1',
    'MOVE c 1',
    'MOVE c 0',
    'MOVE c 16',
    'MOVE c a',
    'MOVE c 9999999999',
    'SELECT 1',
    'TTL t',
    'LRANGE c 0 -1',
    'DBSIZE',
    'SELECT 2',
    'LRANGE e 0 -1',
    'SADD s a b',
    'COPY s s2',
    'SREM s a',
    'SMEMBERS s',
    'SCARD s2',
    'HSET h f v',
    'COPY h h2',
    'HDEL h f',
    'HGETALL h2',
    'ZADD z 1 a 2 b',
    'COPY z z2',
    'ZRANGE z2 0 -1 WITHSCORES',
    'SELECT 0',
  ]));

describe('OBJECT', () => {
  test('encodings of strings', () =>
    pair.compare(
      [
        ['SET', 'k', '12345'],
        ['SET', 'k', MAX],
        ['SET', 'k', MIN],
        ['SET', 'k', '9223372036854775808'],
        ['SET', 'k', '00'],
        ['SET', 'k', ''],
        ['SET', 'k', 'x'.repeat(44)],
        ['SET', 'k', 'x'.repeat(45)],
        ['APPEND', 'fresh', '12'],
        ['SET', 'k', '5'],
        ['APPEND', 'k', '6'],
        ['INCR', 'k'],
        ['INCRBYFLOAT', 'k', '1'],
        ['COPY', 'k', 'k2', 'REPLACE'],
        ['SET', 'k', '7', 'KEEPTTL'],
        ['SETRANGE', 'k', '0', '8'],
        ['RENAME', 'k', 'k3'],
        ['GETSET', 'k', '9'],
        ['BITFIELD', 'k', 'GET', 'u8', '0'],
        ['SETBIT', 'k', '1', '0'],
        ['MSET', 'k', '10'],
      ].flatMap((command): CommandLine[] => [
        command,
        ...['k', 'k2', 'k3', 'fresh'].map((key) => ['OBJECT', 'ENCODING', key]),
        ['OBJECT', 'REFCOUNT', 'k'],
      ]),
    ));

  test('encodings of collections', async () => {
    const many = (from: number, to: number): string[] =>
      Array.from({ length: to - from }, (_, i) => String(from + i));
    const long = 'x'.repeat(65);
    const steps: CommandLine[] = [
      ['RPUSH', 'list', 'a'],
      ['SADD', 'set', ...many(0, 512)],
      ['SADD', 'set', '512'],
      ['SREM', 'set', ...many(0, 500)],
      ['SADD', 'set2', '1', '2'],
      ['SADD', 'set2', 'a'],
      ['SREM', 'set2', 'a'],
      ['SADD', 'set3', '01'],
      ['HSET', 'hash', ...many(0, 1024)],
      ['HSET', 'hash', 'f', 'v'],
      ['HDEL', 'hash', ...many(0, 1000)],
      ['HSET', 'hash2', 'f', 'x'.repeat(64)],
      ['HSET', 'hash2', 'f', long],
      ['HSET', 'hash2', 'f', 'v'],
      ['HSET', 'hash3', long, 'v'],
      ['ZADD', 'zset', ...many(0, 128).flatMap((n) => [n, n])],
      ['ZADD', 'zset', '1', '128'],
      ['ZREMRANGEBYRANK', 'zset', '0', '-2'],
      ['ZADD', 'zset2', '1', 'x'.repeat(64)],
      ['ZADD', 'zset2', '1', long],
      ['COPY', 'zset', 'zset3'],
      ['SUNIONSTORE', 'set4', 'set2', 'set3'],
      ['SINTERSTORE', 'set5', 'set2', 'set2'],
      ['ZUNIONSTORE', 'zset4', '1', 'zset2'],
      ['ZRANGESTORE', 'zset5', 'zset', '0', '-1'],
    ];
    const keys = ['list', 'set', 'set2', 'set3', 'set4', 'set5', 'hash', 'hash2', 'hash3'].concat([
      'zset',
      'zset2',
      'zset3',
      'zset4',
      'zset5',
    ]);
    for (const step of steps) {
      await pair.compare([step, ...keys.map((key) => ['OBJECT', 'ENCODING', key])]);
    }
  });

  test('configured limits', async () => {
    const limits = ['hash-max-listpack-entries', 'set-max-intset-entries', 'zset-max-listpack-entries'];
    const values = ['hash-max-listpack-value', 'zset-max-listpack-value'];
    await pair.compare([
      ...limits.map((name) => `CONFIG SET ${name} 2`),
      ...values.map((name) => `CONFIG SET ${name} 3`),
      'HSET h a 1 b 2',
      'OBJECT ENCODING h',
      'HSET h c 3',
      'OBJECT ENCODING h',
      'HSET long a abcd',
      'OBJECT ENCODING long',
      'SADD s 1 2',
      'OBJECT ENCODING s',
      'SADD s 3',
      'OBJECT ENCODING s',
      'ZADD z 1 abc 2 b',
      'OBJECT ENCODING z',
      'ZADD z 1 abcd',
      'OBJECT ENCODING z',
      ...limits.map((name, i) => `CONFIG SET ${name} ${[512, 512, 128][i]}`),
      ...values.map((name) => `CONFIG SET ${name} 64`),
    ]);
  });

  test('the time a key was not used', async () => {
    const { store } = pair.server.server;
    await pair.ours.send('SET', 'k', 'v');
    await pair.ours.send('SADD', 's', 'm');
    await pair.ours.send('SET', 'other', 'v');
    const real = Date.now;
    try {
      Date.now = () => real() + 60_000;
      for (const command of ['TYPE k', 'EXISTS k s', 'TTL k']) {
        await pair.ours.send(...cmd(command));
      }
      expect(await pair.ours.send('OBJECT', 'IDLETIME', 'k')).toMatch(/^:(59|60|61)\r\n$/);
      expect(await pair.ours.send('TOUCH', 'k', 's')).toBe(':2\r\n');
      for (const key of ['k', 's']) {
        expect(await pair.ours.send('OBJECT', 'IDLETIME', key)).toMatch(/^:[01]\r\n$/);
      }
      await pair.ours.send('GET', 'other');
      expect(await pair.ours.send('OBJECT', 'IDLETIME', 'other')).toMatch(/^:[01]\r\n$/);
    } finally {
      Date.now = real;
    }
    expect(store.database(0).size).toBe(3);
  });

  test('the other subcommands', async () => {
    await pair.compare([
      'SET k v',
      'OBJECT IDLETIME k',
      'OBJECT IDLETIME absent',
      'OBJECT FREQ k',
      'OBJECT FREQ absent',
      'OBJECT REFCOUNT k',
      'OBJECT REFCOUNT absent',
      'OBJECT ENCODING absent',
      'OBJECT ENCODING',
      'OBJECT ENCODING k k',
      'OBJECT nosuch k',
      'OBJECT',
      'SET n 9999',
      'OBJECT REFCOUNT n',
      'SET n 10000',
      'OBJECT REFCOUNT n',
    ]);
    expect(await pair.ours.send('OBJECT', 'HELP')).toMatch(/^\*11\r\n\+OBJECT <subcommand>/);
  });
});

test('keyspace events', async () => {
  const listen = async (client: RawClient): Promise<void> => {
    await client.send('SUBSCRIBE', '__keyevent@0__:none');
    await client.send('PSUBSCRIBE', '__keyevent@*__:*');
  };
  const other = await pair.another();
  await pair.compare(['CONFIG SET notify-keyspace-events KEAn']);
  await listen(other.ours);
  await listen(other.theirs);
  const commands = [
    'SET a 1 EX 100',
    'GETEX a PERSIST',
    'GETEX a EX 10',
    'GETDEL a',
    'MSET a 1 b 2',
    'APPEND a x',
    'SETRANGE a 0 y',
    'INCR n',
    'INCRBYFLOAT n 1',
    'SETBIT b 1 1',
    'BITOP NOT c b',
    'BITFIELD c SET u8 0 1',
    'EXPIRE c 100',
    'PERSIST c',
    'EXPIRE c -1',
    'RENAME a d',
    'COPY d e',
    'MOVE e 1',
    'RPUSH l 2 1',
    'SORT l STORE m',
    'SORT absent STORE m',
    'DEL l d',
    'SET last 1',
  ];
  await pair.compare(commands);
  const events = async (client: RawClient): Promise<string> => {
    let text = '';
    while (!text.endsWith('__keyevent@0__:set\r\n$4\r\nlast\r\n')) text += (await client.read(1)).toString();
    return text;
  };
  const [ours, theirs] = await Promise.all([events(other.ours), events(other.theirs)]);
  expect(ours).toBe(theirs);
  await pair.compare([['CONFIG', 'SET', 'notify-keyspace-events', '']]);
  other.ours.close();
  other.theirs.close();
});

test('random commands', () =>
  compareRandomly(pair, 'keys', 2500, (random) => {
    const key = (): string => pick(random, ['a', 'b', 'c', 'd']);
    const condition = (): string[] => pick(random, [[], [], ['NX'], ['XX'], ['GT'], ['LT'], ['XX', 'LT']]);
    const seconds = (): string => pick(random, ['100', '200', '300', '1000', '-1']);
    return pick<() => CommandLine>(random, [
      () => ['SET', key(), 'v'],
      () => ['RPUSH', key(), 'x'],
      () => ['SADD', key(), '1'],
      () => ['HSET', key(), 'f', 'v'],
      () => ['ZADD', key(), '1', 'm'],
      () => ['DEL', key()],
      () => ['EXISTS', key(), key()],
      () => ['TYPE', key()],
      () => ['EXPIRE', key(), seconds(), ...condition()],
      () => ['PEXPIREAT', key(), pick(random, ['99999999999999', '88888888888888']), ...condition()],
      () => ['TTL', key()],
      () => ['PERSIST', key()],
      () => ['RENAME', key(), key()],
      () => ['RENAMENX', key(), key()],
      () => ['COPY', key(), key(), ...pick(random, [[], ['REPLACE'], ['DB', '1'], ['DB', '1', 'REPLACE']])],
      () => ['MOVE', key(), '1'],
      () => ['SELECT', pick(random, ['0', '1'])],
      () => ['OBJECT', 'ENCODING', key()],
      () => ['DBSIZE'],
    ])();
  }));
