/**
 * Commands that meet what is not in memory: rolled back, fetched for, run again, while others go on.
 * Over the model store, every access of which faults once; fetching ends when the test says so.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { OutOfTierError, ROW_FAULT } from '../../src/store/api.ts';
import { ModelDatabase, ModelStore } from '../model/store.ts';
import { connect, encodeCommand, startServer, type RawClient, type RunningServer } from './harness.ts';
import { MemoryLog } from './memory-log.ts';

let store: ModelStore;
let log: MemoryLog;
let running: RunningServer;
let clients: RawClient[];
/** Fetches that wait for `fetched`. */
let fetching: (() => void)[];

beforeEach(async () => {
  store = new ModelStore();
  log = new MemoryLog();
  clients = [];
  fetching = [];
  running = await startServer({ store, log });
});

afterEach(async () => {
  for (const client of clients) client.close();
  await running.stop();
});

async function client(): Promise<RawClient> {
  const connected = await connect(running.port);
  clients.push(connected);
  return connected;
}

/** From now on every access faults once, and nothing is fetched before `fetched`. */
function evict(): void {
  store.faultAtRandom(1, 1);
  store.fetchRows = () => new Promise((resolve) => fetching.push(resolve));
}

/** Everything is in memory again; what waits goes on. */
function fetched(): void {
  store.faultAtRandom(1, 0);
  for (const resolve of fetching.splice(0)) resolve();
}

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 5000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('it does not happen');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

/** A command is under way and waits. */
const waiting = (count = 1): Promise<void> => until(() => fetching.length >= count);

const line = (...words: string[]): Buffer => encodeCommand(words);

test('only the connection waits whose command it is, and what it sent next stays behind', async () => {
  const [one, other] = [await client(), await client()];
  await one.send('SET', 'a', '1');
  evict();
  one.write(Buffer.concat([line('GET', 'a'), line('PING'), line('GET', 'b')]));
  await waiting();
  expect(await other.send('PING')).toBe('+PONG\r\n');
  expect(one.unread.length).toBe(0);
  fetched();
  expect((await one.read(3)).toString()).toBe('$1\r\n1\r\n+PONG\r\n$-1\r\n');
});

test('nothing of the run that was rolled back is seen: log, events, monitors, counters', async () => {
  const [one, watcher, listener] = [await client(), await client(), await client()];
  await one.send('CONFIG', 'SET', 'notify-keyspace-events', 'KEA', 'slowlog-log-slower-than', '0');
  await one.send('RPUSH', 'l', 'x');
  await listener.send('PSUBSCRIBE', '__keyevent@*');
  await one.send('CONFIG', 'RESETSTAT');
  await one.send('SLOWLOG', 'RESET');
  log.frames.length = 0;
  await watcher.send('MONITOR');
  evict();
  one.write(line('RPOPLPUSH', 'l', 'm'));
  await waiting();
  expect(await listener.send('PING')).toContain('pong');
  fetched();
  expect((await one.read()).toString()).toBe('$1\r\nx\r\n');
  expect((await listener.read(3)).toString().match(/__keyevent@0__:\w+/g)).toEqual([
    '__keyevent@0__:lpush',
    '__keyevent@0__:rpop',
    '__keyevent@0__:del',
  ]);
  expect(log.lines()).toEqual(['RPOPLPUSH l m']);
  const stats = await one.send('INFO', 'commandstats');
  expect(/cmdstat_rpoplpush:calls=(\d+)/.exec(stats)?.[1]).toBe('1');
  expect((await one.send('SLOWLOG', 'GET')).match(/RPOPLPUSH/g)).toHaveLength(1);
  expect((await watcher.read(2)).toString().match(/RPOPLPUSH/g)).toHaveLength(1);
});

test('an EXEC is one unit: its watches hold while it waits', async () => {
  const [one, other] = [await client(), await client()];
  await one.send('SET', 'a', '1');
  await one.send('WATCH', 'w');
  await one.send('MULTI');
  await one.send('INCR', 'a');
  await one.send('SELECT', '3');
  await one.send('LPUSH', 'l', 'x');
  log.frames.length = 0;
  evict();
  one.write(line('EXEC'));
  await waiting();
  // Another client comes in between.
  store.faultAtRandom(1, 0);
  expect(await other.send('SET', 'w', '1')).toBe('+OK\r\n');
  fetched();
  expect((await one.read()).toString()).toBe('*-1\r\n');
  expect(await one.send('GET', 'a')).toBe('$1\r\n1\r\n');
  expect(log.lines()).toEqual(['SET w 1']);
});

test('an EXEC that faults in its middle runs as a whole, once', async () => {
  const one = await client();
  await one.send('SET', 'a', '1');
  await one.send('CONFIG', 'RESETSTAT');
  await one.send('MULTI');
  for (const command of ['INCR a', 'SELECT 3', 'LPUSH l x', 'SELECT 0', 'INCR a', 'INCR b', 'GET c'])
    await one.send(...command.split(' '));
  log.frames.length = 0;
  store.faultAtRandom(1, 1);
  expect(await one.send('EXEC')).toBe('*7\r\n:2\r\n+OK\r\n:1\r\n+OK\r\n:3\r\n:1\r\n$-1\r\n');
  expect(log.lines()).toEqual([
    'MULTI',
    'INCR a',
    'SELECT 3',
    'LPUSH l x',
    'SELECT 0',
    'INCR a',
    'INCR b',
    'EXEC',
  ]);
  store.faultAtRandom(1, 0);
  const stats = await one.send('INFO', 'commandstats');
  expect(/cmdstat_incr:calls=(\d+)/.exec(stats)?.[1]).toBe('3');
  expect(/cmdstat_exec:calls=(\d+)/.exec(stats)?.[1]).toBe('1');
});

test('KEYS goes through the keys in parts, and nothing is found twice', async () => {
  const one = await client();
  const keys = Array.from({ length: 3500 }, (_, i) => `key:${i}`);
  await one.send('MSET', ...keys.flatMap((key) => [key, 'v']));
  const scan = ModelDatabase.prototype.scan;
  const cursors: number[] = [];
  ModelDatabase.prototype.scan = function (cursor, count, visit) {
    cursors.push(cursor);
    const next = scan.call(this, cursor, count, visit);
    if (cursors.filter((each) => each === cursor).length === 1) throw ROW_FAULT;
    return next;
  };
  store.faultAtRandom(1, Number.MIN_VALUE);
  try {
    const reply = await one.send('KEYS', 'key:*');
    expect([...reply.matchAll(/key:\d+/g)].map(String).sort()).toEqual(keys.sort());
    expect(cursors.length).toBe(2 * new Set(cursors).size);
    expect(new Set(cursors).size).toBe(4);
  } finally {
    ModelDatabase.prototype.scan = scan;
  }
});

test('a client that goes while it waits leaves nothing behind', async () => {
  const [one, other] = [await client(), await client()];
  evict();
  one.write(line('SET', 'a', '1'));
  await waiting();
  expect(running.server.faults.waiting.size).toBe(1);
  one.reset();
  await until(() => running.server.faults.waiting.size === 0);
  fetched();
  expect(await other.send('EXISTS', 'a')).toBe(':0\r\n');
});

test('CLIENT KILL and CLIENT LIST see a waiting client; CLIENT UNBLOCK does not concern it', async () => {
  const [one, other] = [await client(), await client()];
  const id = /:(\d+)/.exec(await one.send('CLIENT', 'ID'))![1];
  evict();
  one.write(line('SET', 'a', '1'));
  await waiting();
  expect(await other.send('CLIENT', 'LIST', 'ID', id)).toContain('cmd=set');
  expect(await other.send('CLIENT', 'UNBLOCK', id)).toBe(':0\r\n');
  expect(await other.send('CLIENT', 'KILL', 'ID', id)).toBe(':1\r\n');
  fetched();
  await one.readToEnd();
  expect(await other.send('EXISTS', 'a')).toBe(':0\r\n');
});

test('CLIENT PAUSE holds a write back that has its rows only now', async () => {
  const [one, other] = [await client(), await client()];
  evict();
  one.write(line('SET', 'a', '1'));
  await waiting();
  await other.send('CLIENT', 'PAUSE', '60000', 'WRITE');
  fetched();
  expect(await other.send('EXISTS', 'a')).toBe(':0\r\n');
  await other.send('CLIENT', 'UNPAUSE');
  expect((await one.read()).toString()).toBe('+OK\r\n');
});

test('a peer that has ended its side gets the replies to what it had sent', async () => {
  const one = await client();
  evict();
  one.write(Buffer.concat([line('SET', 'a', '1'), line('GET', 'a')]));
  await waiting();
  one.end();
  await new Promise((resolve) => setTimeout(resolve, 20));
  fetched();
  expect((await one.readToEnd()).toString()).toBe('+OK\r\n$1\r\n1\r\n');
});

test('clients that wait for a list are served in their order, before the reply to who filled it', async () => {
  const [first, second, pusher, other] = [await client(), await client(), await client(), await client()];
  first.write(line('BLPOP', 'q', '0'));
  await until(() => running.server.blocking.count === 1);
  second.write(line('BLMOVE', 'q', 'done', 'LEFT', 'RIGHT', '0'));
  await until(() => running.server.blocking.count === 2);
  store.fetchRows = () => new Promise((resolve) => fetching.push(resolve));
  const serve = running.server.blocking.serve.bind(running.server.blocking);
  // The push itself has its rows; serving has not.
  running.server.blocking.serve = () => {
    store.faultAtRandom(1, 1);
    return serve();
  };
  pusher.write(Buffer.concat([line('RPUSH', 'q', 'a', 'b', 'c'), line('LLEN', 'q')]));
  await waiting();
  expect(await other.send('PING')).toBe('+PONG\r\n');
  expect(pusher.unread.length + first.unread.length + second.unread.length).toBe(0);
  running.server.blocking.serve = serve;
  fetched();
  expect((await first.read()).toString()).toBe('*2\r\n$1\r\nq\r\n$1\r\na\r\n');
  expect((await second.read()).toString()).toBe('$1\r\nb\r\n');
  expect((await pusher.read(2)).toString()).toBe(':3\r\n:1\r\n');
});

test('a wait that times out while it is being served ends with its timeout', async () => {
  const [one, pusher] = [await client(), await client()];
  one.write(line('BLPOP', 'q', '0.05'));
  await until(() => running.server.blocking.count === 1);
  store.fetchRows = () => new Promise((resolve) => fetching.push(resolve));
  const serve = running.server.blocking.serve.bind(running.server.blocking);
  running.server.blocking.serve = () => {
    store.faultAtRandom(1, 1);
    return serve();
  };
  pusher.write(line('RPUSH', 'q', 'a'));
  await waiting();
  expect((await one.read()).toString()).toBe('*-1\r\n');
  running.server.blocking.serve = serve;
  fetched();
  expect((await pusher.read()).toString()).toBe(':1\r\n');
  expect(await pusher.send('LLEN', 'q')).toBe(':1\r\n');
});

test('expired keys go once though their rows are fetched first', async () => {
  const one = await client();
  await one.send('CONFIG', 'SET', 'notify-keyspace-events', 'Ex');
  await one.send('SUBSCRIBE', '__keyevent@0__:expired');
  const other = await client();
  log.frames.length = 0;
  store.faultAtRandom(1, 1);
  for (const key of ['a', 'b', 'c']) await other.send('SET', key, '1', 'PX', '20');
  const messages = (await one.read(3)).toString().match(/\$1\r\n[abc]/g);
  expect(messages?.sort()).toEqual(['$1\r\na', '$1\r\nb', '$1\r\nc']);
  expect(log.lines().filter((logged) => logged.startsWith('DEL'))).toHaveLength(3);
  expect(await other.send('INFO', 'stats')).toContain('expired_keys:3\r\n');
});

test('rows that cannot be had are an error of their command alone', async () => {
  const [one, other] = [await client(), await client()];
  store.faultAtRandom(1, 1);
  store.fetchRows = () =>
    Promise.reject(new OutOfTierError('it needs 3 bytes of memory, tier-memory and overdraft are 2'));
  expect(await one.send('GET', 'a')).toBe(
    '-OOM it needs 3 bytes of memory, tier-memory and overdraft are 2\r\n',
  );
  expect(await one.send('MULTI')).toBe('+OK\r\n');
  await one.send('GET', 'a');
  expect(await one.send('EXEC')).toMatch(/^-EXECABORT .*it needs 3 bytes/);
  expect(await other.send('PING')).toBe('+PONG\r\n');
});

test('replay waits for rows, and goes on behind them', async () => {
  const one = await client();
  store.faultAtRandom(1, 1);
  const frame = ['MULTI', 'SET a 1', 'SELECT 3', 'RPUSH l x', 'EXEC'].map((each) => line(...each.split(' ')));
  const replayed = running.server.replay(Slice.from(Buffer.concat(frame)));
  expect(replayed).toBeInstanceOf(Promise);
  await replayed;
  await running.server.replay(Slice.from(line('RPUSH', 'l', 'y')));
  store.faultAtRandom(1, 0);
  expect(await one.send('GET', 'a')).toBe('$1\r\n1\r\n');
  expect(await one.send('LLEN', 'l')).toBe(':1\r\n');
  expect(store.database(3).keys.get('l')?.content).toEqual(['x']);
});
