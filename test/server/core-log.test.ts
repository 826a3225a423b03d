/** When replies leave: after the log has what they acknowledge, whatever happens to the log. */
import { afterEach, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import type { CommandLog, SyncPolicy } from '../../src/server/command-log.ts';
import { Config } from '../../src/server/config.ts';
import { Tier } from '../../src/store/tier.ts';
import { ModelStore } from '../model/store.ts';
import { connect, FAULTS, startServer, type RawClient, type RunningServer } from './harness.ts';

/** A log in memory that can be made to fail, and syncs when it is told to. */
class LogDouble implements CommandLog {
  readonly frames: Buffer[] = [];
  position = 0;
  syncedPosition = 0;
  policy: SyncPolicy = 'everysec';
  onSynced: () => void = () => {};
  failure: string | null = null;

  append(payload: Buffer): number {
    if (this.failure !== null) throw new Error(this.failure);
    this.frames.push(Buffer.from(payload));
    this.position += payload.length;
    return this.position;
  }

  sync(): void {
    this.syncedPosition = this.position;
    this.onSynced();
  }
}

let running: RunningServer;
let log: LogDouble;
const clients: RawClient[] = [];

async function start(config: Record<string, string> = {}): Promise<void> {
  log = new LogDouble();
  running = await startServer({ log, config: new Config(config) });
}

async function client(): Promise<RawClient> {
  const connected = await connect(running.port);
  clients.push(connected);
  return connected;
}

afterEach(async () => {
  for (const connected of clients.splice(0)) connected.close();
  await running.stop();
});

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, milliseconds));
const text = (): string[] => log.frames.map((frame) => frame.toString('latin1'));
const words = (...parts: string[]): string =>
  `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`;

// With random faults a turn ends where a command waits.
test.skipIf(FAULTS > 0)('a turn is one frame; each frame begins in database 0', async () => {
  await start();
  const one = await client();
  one.write('SET a 1\r\nGET a\r\nSELECT 3\r\nSET b 2\r\n');
  await one.read(4);
  await one.send('SET', 'c', '3');
  expect(text()).toEqual([
    words('SET', 'a', '1') + words('SELECT', '3') + words('SET', 'b', '2'),
    words('SELECT', '3') + words('SET', 'c', '3'),
  ]);
});

test('what changes nothing is not logged', async () => {
  await start();
  const one = await client();
  for (const line of ['DEL nosuch', 'GET a', 'LPOP nosuch', 'MULTI', 'GET a', 'EXEC', 'NOSUCH', 'SET a'])
    await one.send(...line.split(' '));
  expect(text()).toEqual([]);
});

test('an EXEC is one group', async () => {
  await start();
  const one = await client();
  one.write('MULTI\r\nSET a 1\r\nSELECT 2\r\nINCR n\r\nGET a\r\nEXEC\r\n');
  await one.read(6);
  expect(text()).toEqual([
    words('MULTI') + words('SET', 'a', '1') + words('SELECT', '2') + words('INCR', 'n') + words('EXEC'),
  ]);
});

test('an expired key leaves a DEL before what met it', async () => {
  await start();
  running.server.cron.activeExpire = false;
  const one = await client();
  await one.send('SET', 'a', '1', 'PX', '5');
  await pause(20);
  await one.send('APPEND', 'a', 'x');
  expect(text().at(-1)).toBe(words('DEL', 'a') + words('APPEND', 'a', 'x'));
});

test('replay of the frames gives the same data', async () => {
  await start();
  const one = await client();
  for (const line of [
    'SET a 1',
    'INCRBY a 41',
    'RPUSH l x y z',
    'LPOP l',
    'SELECT 5',
    'HSET h f v',
    'MULTI',
    'SADD s m',
    'EXEC',
  ])
    await one.send(...line.split(' '));
  await one.send('MSET', ...Array.from({ length: 4000 }, (_, i) => [`k${i}`, `v${i}`]).flat());
  const copy = await startServer({ store: new ModelStore() });
  for (const frame of log.frames) await copy.server.replay(Slice.from(frame));
  const other = await connect(copy.port);
  try {
    expect(await other.send('GET', 'a')).toBe('$2\r\n42\r\n');
    expect(await other.send('LRANGE', 'l', '0', '-1')).toBe('*2\r\n$1\r\ny\r\n$1\r\nz\r\n');
    await other.send('SELECT', '5');
    expect(await other.send('HGETALL', 'h')).toBe('*2\r\n$1\r\nf\r\n$1\r\nv\r\n');
    expect(await other.send('SISMEMBER', 's', 'm')).toBe(':1\r\n');
    expect(await other.send('DBSIZE')).toBe(':4002\r\n');
  } finally {
    other.close();
    await copy.stop();
  }
});

test('with always, replies wait for the sync, those of readers who saw the data too', async () => {
  await start({ appendfsync: 'always' });
  const [writer, reader] = [await client(), await client()];
  writer.write('SET a 1\r\nPING\r\n');
  await pause(50);
  reader.write('GET a\r\n');
  await pause(50);
  expect(writer.unread.length + reader.unread.length).toBe(0);
  log.sync();
  expect((await writer.read(2)).toString()).toBe('+OK\r\n+PONG\r\n');
  expect((await reader.read()).toString()).toBe('$1\r\n1\r\n');
  expect(await reader.send('GET', 'a')).toBe('$1\r\n1\r\n');
});

test('replies that wait for the log count against the output limit', async () => {
  await start({ appendfsync: 'always', 'client-output-buffer-limit': 'normal 1mb 0 0' });
  const one = await client();
  const value = 'x'.repeat(300 * 1024);
  one.write(`SET a ${value.slice(0, 60_000)}\r\n`);
  one.write('GET a\r\n'.repeat(40));
  await one.readToEnd();
});

test('when the log fails no reply of the turn leaves, writes are refused, and service resumes', async () => {
  await start();
  const [writer, other] = [await client(), await client()];
  await other.send('SET', 'b', '1');
  log.failure = 'no space left on device';
  writer.write('SET a 1\r\n');
  await pause(150);
  expect(writer.unread.length).toBe(0);
  expect(await other.send('SET', 'b', '2')).toBe(
    '-MISCONF Errors writing to the log: no space left on device\r\n',
  );
  expect(await other.send('PING')).toMatch(/^-MISCONF /);
  expect(await other.send('CONFIG', 'GET', 'port')).toMatch(/^\*2/);
  // A reader of what is not logged waits with it.
  const reader = await client();
  reader.write('GET a\r\n');
  await pause(150);
  expect(reader.unread.length).toBe(0);
  expect(await other.send('INFO', 'persistence')).toContain('aof_last_write_status:err');
  log.failure = null;
  expect((await writer.read()).toString()).toBe('+OK\r\n');
  expect((await reader.read()).toString()).toBe('$1\r\n1\r\n');
  expect(await other.send('SET', 'b', '3')).toBe('+OK\r\n');
  expect(text()).toEqual([words('SET', 'b', '1'), words('SET', 'a', '1'), words('SET', 'b', '3')]);
});

test('an unexpected error stops writes and is handed on', async () => {
  const store = new ModelStore();
  const errors: unknown[] = [];
  log = new LogDouble();
  running = await startServer({ store, log, onFatal: (error) => errors.push(error) });
  const one = await client();
  await one.send('SET', 'a', '1');
  store.database(0).randomKey = () => {
    throw new Error('the index is broken');
  };
  expect(await one.send('RANDOMKEY')).toBe(
    '-MISCONF The server stops after an error: the index is broken\r\n',
  );
  expect(await one.send('SET', 'a', '2')).toMatch(/^-MISCONF /);
  expect(errors).toHaveLength(1);
});

test('clients are told while data is being loaded', async () => {
  log = new LogDouble();
  running = await startServer({ loading: true });
  const one = await client();
  expect(await one.send('GET', 'a')).toBe('-LOADING Redis is loading the dataset in memory\r\n');
  expect(await one.send('INFO', 'persistence')).toContain('loading:1');
  running.server.attach({ log });
  expect(await one.send('SET', 'a', '1')).toBe('+OK\r\n');
});

test('a full tier refuses what needs memory', async () => {
  const store = new ModelStore();
  running = await startServer({ store, config: new Config({ 'tier-memory': '1mb' }) });
  const one = await client();
  const refused = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
  await one.send('SET', 'a', '1');
  store.memory.used = 2 * 1024 * 1024;
  expect(await one.send('SET', 'b', '1')).toBe(refused);
  expect(await one.send('GET', 'a')).toBe('$1\r\n1\r\n');
  expect(await one.send('MULTI')).toBe('+OK\r\n');
  expect(await one.send('GET', 'a')).toBe(refused);
  expect(await one.send('EXEC')).toMatch(/^-EXECABORT/);
  expect(await one.send('DEL', 'a')).toBe(':1\r\n');
  expect(await one.send('CONFIG', 'GET', 'maxmemory')).toBe('*2\r\n$9\r\nmaxmemory\r\n$7\r\n1048576\r\n');
  expect(await one.send('CONFIG', 'SET', 'maxmemory', '100mb')).toBe('+OK\r\n');
  expect(await one.send('SET', 'b', '1')).toBe('+OK\r\n');
});

test('what was logged comes back under a smaller limit; then the limit holds', async () => {
  log = new LogDouble();
  const store = new Tier({ databases: 16 });
  running = await startServer({ store, loading: true, config: new Config({ 'tier-memory': '1mb' }) });
  const { server } = running;
  for (let i = 0; i < 300; i++)
    await server.replay(Slice.from(Buffer.from(words('SET', `key:${i}`, 'x'.repeat(10_000)))));
  server.attach({ log });
  expect(store.memory.used).toBeGreaterThan(2 ** 20);
  const one = await client();
  expect(await one.send('DBSIZE')).toBe(':300\r\n');
  expect(await one.send('SET', 'more', '1')).toMatch(/^-OOM /);
  expect(await one.send('DEL', 'key:0')).toBe(':1\r\n');
});

test('a full tier refuses commands before they begin: none stops half-way', async () => {
  const store = new Tier({ databases: 16 });
  running = await startServer({ store, config: new Config({ 'tier-memory': '2mb' }) });
  const one = await client();
  await one.send('RPUSH', 'list', ...Array.from({ length: 2000 }, (_, i) => `element ${i}`));
  // One turn: the gate must close within it.
  const fill = Array.from({ length: 3000 }, (_, i) => words('SET', `key:${i}`, 'x'.repeat(1000)));
  one.write(fill.join(''));
  const replies = (await one.read(fill.length)).toString().split('\r\n').slice(0, -1);
  const stored = replies.filter((reply) => reply === '+OK').length;
  expect(replies.filter((reply) => reply.startsWith('-OOM '))).toHaveLength(fill.length - stored);
  expect(await one.send('DBSIZE')).toBe(`:${stored + 1}\r\n`);
  expect(store.memory.used).toBeLessThan(2 * 2 ** 20);
  expect(await one.send('LPOP', 'list', '2000')).toMatch(/^\*2000\r\n/);
  expect(await one.send('EXISTS', 'list')).toBe(':0\r\n');
});
