/** Client libraries as their users use them, against real server processes. Runs what `npm run build` made. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { createClient, RESP_TYPES } from 'redis';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect, freePort, TIER } from './harness.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const PASSWORD = 'correct horse';
const BINARY = Buffer.concat([Buffer.from('\0\r\n*1\r\n\xff', 'latin1'), randomBytes(20_000)]);

describe.each(['leveldb', 'lmdb', 'rocksdb'])('on %s', (engine) => {
  let directory: string;
  let port: number;
  let child: ChildProcess;

  async function start(): Promise<void> {
    const parameters = { port, engine, dir: path.join(directory, 'data'), requirepass: PASSWORD };
    const tier = TIER === undefined ? {} : { 'tier-memory': TIER };
    const words = Object.entries({ ...parameters, ...tier }).flatMap(([name, value]) => [
      `--${name}`,
      String(value),
    ]);
    child = spawn(process.execPath, [MAIN, 'server', ...words], { cwd: directory, stdio: 'ignore' });
    while (true) {
      const client = await connect(port).catch(() => null);
      const reply = await client?.send('AUTH', PASSWORD);
      client?.close();
      if (reply === '+OK\r\n') return;
      if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async function kill(): Promise<void> {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  beforeEach(async () => {
    directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-clients-'));
    port = await freePort();
    await start();
  });
  afterEach(async () => {
    if (child.exitCode === null) await kill();
    rmSync(directory, { recursive: true, force: true });
  });

  test('ioredis', { timeout: 60_000 }, async () => {
    const options = { port, password: PASSWORD, retryStrategy: () => 50 };
    const redis = new Redis({ ...options, db: 3 });
    const second = new Redis(options);
    // While the server is away.
    for (const client of [redis, second]) client.on('error', () => undefined);
    try {
      await expect(new Redis({ port, lazyConnect: true, retryStrategy: null }).get('a')).rejects.toThrow(
        'NOAUTH',
      );

      expect(await redis.set('binary', BINARY)).toBe('OK');
      expect(await redis.getBuffer('binary')).toEqual(BINARY);
      const replies = await redis
        .pipeline()
        .hset('hash', { a: '1', b: '2' })
        .hgetall('hash')
        .lpush('hash', 'x')
        .zadd('scores', '1.5', 'a', '2', 'b')
        .zrange('scores', '0', '-1', 'WITHSCORES')
        .exec();
      expect(replies?.map(([error, reply]) => error?.message.slice(0, 9) ?? reply)).toEqual([
        2,
        { a: '1', b: '2' },
        'WRONGTYPE',
        2,
        ['a', '1.5', 'b', '2'],
      ]);
      await redis.watch('counter');
      await second.select(3);
      await second.incr('counter');
      expect(await redis.multi().incr('counter').exec()).toBeNull();
      expect(await redis.multi().incr('counter').get('counter').exec()).toEqual([
        [null, 2],
        [null, '2'],
      ]);

      const waiting = second.blpop('queue', 0);
      await redis.rpush('queue', 'job');
      expect(await waiting).toEqual(['queue', 'job']);

      const message = once(second, 'message');
      await second.subscribe('news');
      await redis.publish('news', 'hello');
      expect(await message).toEqual(['news', 'hello']);

      await redis.mset(Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`many:${i}`, String(i)])));
      const found = new Set<string>();
      for await (const keys of redis.scanStream({ match: 'many:*', count: 50 }))
        for (const key of keys as string[]) found.add(key);
      expect(found.size).toBe(500);

      // Database, subscription and data outlive the process.
      await kill();
      const subscribed = new Promise((resolve) => second.once('ready', resolve));
      await start();
      await subscribed;
      expect(await redis.getBuffer('binary')).toEqual(BINARY);
      expect(await redis.dbsize()).toBe(504);
      const again = once(second, 'message');
      while ((await redis.publish('news', 'still here')) === 0)
        await new Promise((resolve) => setTimeout(resolve, 20));
      expect(await again).toEqual(['news', 'still here']);
    } finally {
      redis.disconnect();
      second.disconnect();
    }
  });

  test('node-redis', { timeout: 60_000 }, async () => {
    const make = (RESP: 2 | 3) =>
      createClient({
        RESP,
        password: PASSWORD,
        database: 2,
        socket: { port, host: '127.0.0.1', reconnectStrategy: () => 50 },
      }).on('error', () => undefined);
    const resp2 = await make(2).connect();
    const redis = await make(3).connect();
    const cached = await createClient({
      RESP: 3,
      password: PASSWORD,
      database: 2,
      socket: { port, host: '127.0.0.1', reconnectStrategy: () => 50 },
      clientSideCache: { maxEntries: 100, ttl: 0 },
    })
      .on('error', () => undefined)
      .connect();
    try {
      await redis.set('binary', BINARY);
      const bytes = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
      expect(await bytes.get('binary')).toEqual(BINARY);
      await redis.hSet('hash', { a: '1', b: '2' });
      await redis.zAdd('scores', [
        { value: 'a', score: 1.5 },
        { value: 'b', score: Infinity },
      ]);
      for (const client of [resp2, redis]) {
        expect({ ...(await client.hGetAll('hash')) }).toEqual({ a: '1', b: '2' });
        expect(await client.zRangeWithScores('scores', 0, -1)).toEqual([
          { value: 'a', score: 1.5 },
          { value: 'b', score: Infinity },
        ]);
        expect(await client.zScore('scores', 'b')).toBe(Infinity);
        expect(await client.sendCommand(['OBJECT', 'ENCODING', 'hash'])).toBe('listpack');
        expect(await client.multi().incr('counter').get('counter').del('counter').exec()).toEqual([
          1,
          '1',
          1,
        ]);
        await expect(client.lPush('hash', 'x')).rejects.toThrow('WRONGTYPE');
        expect(
          await Promise.all(Array.from({ length: 300 }, (_, i) => client.set(`many:${i}`, i))),
        ).toHaveLength(300);
        const found = new Set<string>();
        for await (const keys of client.scanIterator({ MATCH: 'many:*', COUNT: 50 }))
          for (const key of keys) found.add(key);
        expect(found.size).toBe(300);

        const blocked = client.duplicate().on('error', () => undefined);
        await blocked.connect();
        const popped = blocked.blPop('queue', 0);
        await client.rPush('queue', 'job');
        expect(await popped).toEqual({ key: 'queue', element: 'job' });
        const received = new Promise<string[]>((resolve) => {
          void blocked
            .pSubscribe('news:*', (text, channel) => resolve([channel, text]))
            .then(() => client.publish('news:1', 'hello'));
        });
        expect(await received).toEqual(['news:1', 'hello']);
        blocked.destroy();
      }

      const statistics = () => cached.sendCommand(['CLIENT', 'TRACKINGINFO']);
      expect(JSON.stringify(await statistics())).toContain('on');
      expect(await cached.get('many:1')).toBe('1');
      await redis.set('many:1', 'changed');
      while ((await cached.get('many:1')) !== 'changed')
        await new Promise((resolve) => setTimeout(resolve, 10));

      await kill();
      await start();
      expect(await bytes.get('binary')).toEqual(BINARY);
      expect(await cached.get('many:1')).toBe('changed');
      expect(await resp2.get('many:2')).toBe('2');
    } finally {
      for (const client of [resp2, redis, cached]) client.destroy();
    }
  });
});
