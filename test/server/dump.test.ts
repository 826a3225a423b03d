/** SAVE and BGSAVE of `ardent server` (what `npm run build` made), read by a real redis-server. */
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { Random, seeds } from '../store/random.ts';
import { dumpData } from './dump-data.ts';
import {
  counts,
  directory,
  info,
  PATIENCE_MS,
  patiently,
  redis,
  sendAll,
  settled,
  startArdent,
  startToFail,
  stops,
} from './dump-servers.ts';
import { connect, encodeCommand, type CommandLine } from './harness.ts';

/** Redis's digest of the file at `file`. */
async function digestOf(file: string): Promise<string> {
  const its = mkdtempSync(path.join(os.tmpdir(), 'ardent-dump-redis-'));
  stops.push(() => Promise.resolve(rmSync(its, { recursive: true, force: true })));
  copyFileSync(file, path.join(its, 'dump.rdb'));
  const client = await redis('--dir', its);
  return patiently(client, 'DEBUG', 'DIGEST');
}

/** Each some 100 KB of strings. */
const filler = (count: number): CommandLine[] =>
  Array.from({ length: count }, (_, i) => [
    'MSET',
    ...Array.from({ length: 100 }, (_, j) => [`fill:${i}:${j}`, String(j).repeat(500)]).flat(),
  ]);

const dump = (): string => path.join(directory, 'dump.rdb');
const strangers = (): string[] => readdirSync(directory).filter((name) => name.startsWith('temp-'));

describe('SAVE', () => {
  it.each(seeds(2))('writes what Redis loads as the same data (SEED=%i)', async (seed) => {
    const { client } = await startArdent();
    const theirs = await redis();
    await sendAll(client, dumpData(new Random(seed), 200, 2000));
    await sendAll(theirs, dumpData(new Random(seed), 200, 2000));
    expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
    const check = spawnSync('redis-check-rdb', [dump()], { encoding: 'utf8' });
    expect(check.stdout).toContain('RDB looks OK');
    expect(await digestOf(dump())).toBe(await patiently(theirs, 'DEBUG', 'DIGEST'));
    expect(strangers()).toEqual([]);
    expect(await info(client, 'rdb_changes_since_last_save')).toBe('0');
    expect(Number(await patiently(client, 'LASTSAVE').then((reply) => reply.slice(1)))).toBeGreaterThan(0);
  });

  it.each(['lmdb', 'rocksdb'])('includes what has left memory (%s)', async (engine) => {
    const { client } = await startArdent('--tier-memory', '8mb', '--engine', engine);
    const theirs = await redis();
    for (const to of [client, theirs]) {
      await sendAll(to, dumpData(new Random(8), 100, 1000));
      await sendAll(to, [['SELECT', 0], ...filler(150)]);
    }
    expect(await patiently(client, 'INFO', 'tier')).toMatch(/tier_evicted\w*:[1-9]/);
    expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
    expect(await digestOf(dump())).toBe(await patiently(theirs, 'DEBUG', 'DIGEST'));
  });

  it('writes an empty file of no data', async () => {
    const { client } = await startArdent('--rdbchecksum', 'no');
    expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
    expect(await digestOf(dump())).toBe(`+${'0'.repeat(40)}\r\n`);
  });

  it('leaves the file that was there when the new one cannot be written', async () => {
    const { client } = await startArdent();
    await client.send('SET', 'key', 'value');
    expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
    const before = readFileSync(dump());
    await client.send('CONFIG', 'SET', 'enable-protected-configs', 'yes');
    rmSync(dump());
    // A directory of that name is in the way.
    spawnSync('mkdir', ['-p', path.join(dump(), 'x')]);
    expect(await patiently(client, 'SAVE')).toMatch(/^-ERR .*EISDIR|^-ERR .*ENOTEMPTY/);
    expect(strangers()).toEqual([]);
    rmSync(dump(), { recursive: true });
    writeFileSync(dump(), before);
    expect(await client.send('GET', 'key')).toBe('$5\r\nvalue\r\n');
  });
});

describe('BGSAVE', () => {
  it.each(seeds(2))('shows one moment, however much changes under it (SEED=%i)', async (seed) => {
    const { client, port } = await startArdent();
    const theirs = await redis();
    const random = new Random(seed);
    await sendAll(client, dumpData(new Random(seed), 200, 3000));
    await sendAll(theirs, dumpData(new Random(seed), 200, 3000));
    const writer = await connect(port);
    // In one write with what follows: the changes come while the file is made.
    const changes: Buffer[] = [encodeCommand(['BGSAVE'])];
    for (const command of dumpData(new Random(seed + 1), 300, 1000)) changes.push(encodeCommand(command));
    for (let i = 0; i < 300; i++) {
      changes.push(
        encodeCommand([random.pick(['DEL', 'PERSIST', 'SPOP', 'LPOP', 'ZPOPMIN']), `${i}key:${i}`]),
      );
    }
    changes.push(encodeCommand(['FLUSHALL']));
    writer.write(Buffer.concat(changes));
    await writer.read(changes.length, PATIENCE_MS);
    while ((await info(client, 'rdb_bgsave_in_progress')) === '1') {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    expect(await info(client, 'rdb_last_bgsave_status')).toBe('ok');
    expect(await digestOf(dump())).toBe(await patiently(theirs, 'DEBUG', 'DIGEST'));
    writer.close();
  });

  it('is one at a time, and can be scheduled', async () => {
    const { client } = await startArdent();
    client.write('BGSAVE\r\nBGSAVE\r\nBGSAVE SCHEDULE\r\n');
    const replies = (await client.read(3)).toString();
    expect(replies).toBe(
      '+Background saving started\r\n-ERR Background save already in progress\r\n+Background saving scheduled\r\n',
    );
    const deadline = Date.now() + PATIENCE_MS;
    while ((await info(client, 'rdb_saves')) !== '2' && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(await info(client, 'rdb_saves')).toBe('2');
  });

  it('stops writes after a failure, with save points', async () => {
    const { client } = await startArdent('--save', '900 1000');
    spawnSync('mkdir', ['-p', path.join(dump(), 'x')]);
    await client.send('BGSAVE');
    const deadline = Date.now() + PATIENCE_MS;
    while ((await info(client, 'rdb_last_bgsave_status')) !== 'err' && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect(await client.send('SET', 'key', 'value')).toMatch(/^-MISCONF Redis is configured to save RDB/);
    expect(await client.send('CONFIG', 'SET', 'stop-writes-on-bgsave-error', 'no')).toBe('+OK\r\n');
    expect(await client.send('SET', 'key', 'value')).toBe('+OK\r\n');
  });

  it('comes by itself at a save point', async () => {
    const { client } = await startArdent('--save', '1 2');
    await client.send('MSET', 'a', '1', 'b', '2');
    await client.send('SET', 'c', '3');
    const deadline = Date.now() + PATIENCE_MS;
    while (!existsSync(dump()) && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect(existsSync(dump())).toBe(true);
  });
});

describe('SHUTDOWN', () => {
  it('SAVE writes the file before the end', async () => {
    const { client, child } = await startArdent();
    await client.send('SET', 'key', 'value');
    const ended = new Promise((resolve) => child.once('exit', resolve));
    client.write('SHUTDOWN SAVE\r\n');
    expect(await ended).toBe(0);
    expect(existsSync(dump())).toBe(true);
  });
});

/** A directory for a Redis: what lies in ours is loaded at the first start. */
function elsewhere(): string {
  const its = mkdtempSync(path.join(os.tmpdir(), 'ardent-dump-redis-'));
  stops.push(() => Promise.resolve(rmSync(its, { recursive: true, force: true })));
  return its;
}

/** A file that a real Redis has written of random data, and its digest. */
async function theirFile(
  seed: number,
  keys = 150,
  scale = 1500,
): Promise<{ file: string; digest: string; keys: number }> {
  const its = elsewhere();
  const client = await redis('--dir', its);
  await sendAll(client, dumpData(new Random(seed), keys, scale));
  await patiently(client, 'SAVE');
  let total = 0;
  for (const [, count] of (await patiently(client, 'INFO', 'keyspace')).matchAll(/keys=(\d+)/g))
    total += Number(count);
  return {
    file: path.join(its, 'dump.rdb'),
    digest: await patiently(client, 'DEBUG', 'DIGEST'),
    keys: total,
  };
}

describe('IMPORT', () => {
  it.each(seeds(2))('loads what Redis has saved, and it is there after a kill (SEED=%i)', async (seed) => {
    const { file, digest, keys } = await theirFile(seed);
    const { client, child } = await startArdent();
    const reply = counts(await patiently(client, 'IMPORT', file));
    expect(reply).toMatchObject({ keys, replaced: 0, skipped: 0, expired: 0 });
    expect(await patiently(client, 'DEBUG', 'DIGEST')).toBe(digest);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    const again = await startArdent();
    expect(await patiently(again.client, 'DEBUG', 'DIGEST')).toBe(digest);
    await settled(again.client);
    expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
    again.child.kill('SIGKILL');
    await new Promise((resolve) => again.child.once('exit', resolve));
    const last = await startArdent();
    expect(await patiently(last.client, 'DEBUG', 'DIGEST')).toBe(digest);
  });

  it('asks what is to become of keys that exist', async () => {
    const its = elsewhere();
    const theirs = await redis('--dir', its);
    await sendAll(theirs, [['MSET', 'a', 'theirs', 'b', 'theirs'], ['RPUSH', 'l', '1', '2'], ['SAVE']]);
    const { client } = await startArdent();
    const file = path.join(its, 'dump.rdb');
    await sendAll(client, [['MSET', 'a', 'ours', 'c', 'ours', 'd', 'ours', 'e', 'ours']]);
    expect(await client.send('IMPORT', file)).toMatch(/^-ERR the server holds 4 keys.*nothing was imported/);
    expect(counts(await client.send('IMPORT', file, 'SKIP'))).toMatchObject({
      keys: 3,
      skipped: 1,
      replaced: 0,
    });
    expect(await client.send('MGET', 'a', 'b', 'c')).toBe(
      '*3\r\n$4\r\nours\r\n$6\r\ntheirs\r\n$4\r\nours\r\n',
    );
    expect(await client.send('LRANGE', 'l', '0', '-1')).toBe('*2\r\n$1\r\n1\r\n$1\r\n2\r\n');
    await client.send('DEL', 'l');
    expect(counts(await client.send('IMPORT', file, 'REPLACE'))).toMatchObject({ replaced: 2, skipped: 0 });
    expect(await client.send('MGET', 'a', 'b', 'c')).toBe(
      '*3\r\n$6\r\ntheirs\r\n$6\r\ntheirs\r\n$4\r\nours\r\n',
    );
    expect(counts(await client.send('IMPORT', file, 'REPLACE', 'DB', 3))).toMatchObject({
      keys: 3,
      replaced: 0,
    });
    expect(await client.send('DBSIZE')).toBe(':6\r\n');
    await client.send('SELECT', 3);
    expect(await client.send('DBSIZE')).toBe(':3\r\n');
    expect(await client.send('IMPORT', file, 'NONSENSE')).toBe('-ERR syntax error\r\n');
    expect(await client.send('IMPORT', '/no/such/file', 'SKIP')).toMatch(/^-ERR \/no\/such\/file: ENOENT.*/);
  });

  it.each(['dump.rdb', 'dump.image'])(
    'merges more than memory holds, and it is there after a kill (%s)',
    async (name) => {
      const its = elsewhere();
      const theirs = await redis('--dir', its);
      await sendAll(theirs, [...dumpData(new Random(9), 60, 1000), ['SELECT', 0], ...filler(300), ['SAVE']]);
      let file = path.join(its, 'dump.rdb');
      if (name === 'dump.image') {
        const { client } = await startArdent('--dir', its);
        await patiently(client, 'SAVE', 'image');
        file = path.join(its, name);
      }
      const started = await startArdent('--tier-memory', '4mb');
      await sendAll(started.client, [['MSET', 'fill:0:0', 'ours', 'only:ours', '1']]);
      const reply = counts(await patiently(started.client, 'IMPORT', file, 'REPLACE'));
      expect(reply).toMatchObject({ replaced: 1, skipped: 0 });
      expect(await started.client.send('SET', 'fill:0:1', 'later')).toBe('+OK\r\n');
      started.child.kill('SIGKILL');
      await new Promise((resolve) => started.child.once('exit', resolve));
      const { client } = await startArdent('--tier-memory', '4mb');
      expect(await patiently(client, 'INFO', 'tier')).toMatch(/tier_complete:0/);
      expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
      expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
      await sendAll(theirs, [['MSET', 'only:ours', '1', 'fill:0:1', 'later']]);
      expect(await digestOf(dump())).toBe(await patiently(theirs, 'DEBUG', 'DIGEST'));
    },
  );

  it.each([
    ['import-checkpointed', 'lmdb'],
    ['import-checkpointed', 'leveldb'],
    ['import-checkpointed', 'rocksdb'],
    ['import-logged', 'lmdb'],
  ] as const)('killed at %s leaves nothing of it, or all (%s)', async (fault, engine) => {
    const its = elsewhere();
    const theirs = await redis('--dir', its);
    await sendAll(theirs, [...dumpData(new Random(11), 60, 1000), ['SELECT', 0], ...filler(300), ['SAVE']]);
    const file = path.join(its, 'dump.rdb');
    const args = ['--engine', engine, '--tier-memory', '4mb'];
    const first = await startToFail(fault, ...args);
    const own = [['MSET', 'fill:0:0', 'ours', 'only:ours', '1']];
    await sendAll(first.client, own);
    const before = await patiently(first.client, 'DEBUG', 'DIGEST');
    const exit = new Promise((resolve) => first.child.once('exit', (_, signal) => resolve(signal)));
    first.client.write(encodeCommand(['IMPORT', file, 'SKIP']));
    expect(await exit).toBe('SIGKILL');
    const { client } = await startArdent(...args);
    expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
    if (fault === 'import-checkpointed') {
      expect(await patiently(client, 'DEBUG', 'DIGEST')).toBe(before);
      expect(await client.send('DBSIZE')).toBe(':2\r\n');
      // Rows of what was given up are no part of what is imported again.
      expect(counts(await patiently(client, 'IMPORT', file, 'SKIP'))).toMatchObject({ skipped: 1 });
    }
    await sendAll(theirs, own);
    expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
    expect(await digestOf(dump())).toBe(await patiently(theirs, 'DEBUG', 'DIGEST'));
  });

  it('goes on item by item when there is no room for more chunks', async () => {
    const its = elsewhere();
    const theirs = await redis('--dir', its);
    const random = new Random(10);
    const noise = (): string =>
      Array.from({ length: 1200 }, () => random.below(2 ** 32).toString(36)).join('');
    // Ten times as much in memory as in the file.
    const wide = Array.from({ length: 600 }, (_, i) => ['SET', `wide:${i}`, noise() + 'x'.repeat(92_000)]);
    await sendAll(theirs, [...dumpData(random, 60, 1000), ['SELECT', 0], ...wide, ['SAVE']]);
    const started = await startArdent('--tier-memory', '44mb');
    await patiently(started.client, 'IMPORT', path.join(its, 'dump.rdb'));
    expect(await patiently(started.client, 'INFO', 'tier')).toMatch(/tier_evicted_keys:[1-9]/);
    started.child.kill('SIGKILL');
    await new Promise((resolve) => started.child.once('exit', resolve));
    expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
    const { client } = await startArdent('--tier-memory', '44mb');
    expect(await patiently(client, 'SAVE')).toBe('+OK\r\n');
    expect(await digestOf(dump())).toBe(await patiently(theirs, 'DEBUG', 'DIGEST'));
  });

  it('names the place of damage, and loads nothing', async () => {
    const { file } = await theirFile(1, 60, 200);
    const bytes = readFileSync(file);
    const broken = path.join(directory, 'broken.rdb');
    const { client } = await startArdent();
    const random = new Random(5);
    for (let i = 0; i < 8; i++) {
      const copy = Buffer.from(bytes);
      copy[random.below(copy.length)] ^= 1 << random.below(8);
      writeFileSync(broken, i % 2 === 0 ? copy : copy.subarray(0, random.below(copy.length)));
      const reply = await patiently(client, 'IMPORT', broken);
      expect(reply).toMatch(/^-ERR .*broken\.rdb: damaged at offset \d+.*: .*; nothing was imported\r\n$/);
    }
    expect(await client.send('DBSIZE')).toBe(':0\r\n');
    expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
  });

  it.each([
    ['row by row', 1],
    ['in chunks', 40_000],
  ])('names file, offset and key where a key stands twice (%s)', async (_, keys) => {
    const file = path.join(directory, 'twins.rdb');
    const text = (string: string): Buffer => Buffer.concat([Buffer.of(string.length), Buffer.from(string)]);
    const pairs = [...Array(keys).keys(), 0].map((i) => [
      Buffer.of(0),
      text(`key "${i}"`),
      text('v'.repeat(60)),
    ]);
    const end = Buffer.of(0xff, 0, 0, 0, 0, 0, 0, 0, 0);
    const bytes = Buffer.concat([Buffer.from('REDIS0010'), Buffer.of(0xfe, 0), ...pairs.flat(), end]);
    writeFileSync(file, bytes);
    const { client } = await startArdent();
    const reply = await patiently(client, 'IMPORT', file);
    expect(reply).toMatch(
      /^-ERR .*twins\.rdb: damaged before offset \d+: key "key \\"0\\"" in database 0 occurs twice; nothing was imported\r\n$/,
    );
    expect(Number(/offset (\d+)/.exec(reply)![1])).toBeLessThanOrEqual(bytes.length);
    expect(await client.send('DBSIZE')).toBe(':0\r\n');
  });

  it('leaves out what has expired', async () => {
    const its = elsewhere();
    const theirs = await redis('--dir', its);
    await sendAll(theirs, [
      ['SET', 'gone', '1', 'PX', '60'],
      ['SET', 'stays', '1', 'EX', '1000'],
      ['DEBUG', 'SET-ACTIVE-EXPIRE', '0'],
      ['SAVE'],
    ]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const { client } = await startArdent();
    expect(counts(await client.send('IMPORT', path.join(its, 'dump.rdb')))).toMatchObject({
      keys: 1,
      expired: 1,
    });
    expect(await client.send('TTL', 'stays')).toMatch(/^:(9\d\d|1000)\r\n/);
  });

  it('comes by itself when a new data directory has a dump', async () => {
    const { file, digest } = await theirFile(2, 60, 200);
    copyFileSync(file, dump());
    const { client, child } = await startArdent();
    expect(await patiently(client, 'DEBUG', 'DIGEST')).toBe(digest);
    await client.send('FLUSHALL');
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    // Not a second time.
    const again = await startArdent();
    expect(await again.client.send('DBSIZE')).toBe(':0\r\n');
  });

  it('DEBUG RELOAD changes nothing', async () => {
    const { client } = await startArdent();
    await sendAll(client, dumpData(new Random(7), 200, 2000));
    const before = await patiently(client, 'DEBUG', 'DIGEST');
    expect(await patiently(client, 'DEBUG', 'RELOAD')).toBe('+OK\r\n');
    expect(await patiently(client, 'DEBUG', 'DIGEST')).toBe(before);
  });
});

describe('BACKUP', () => {
  it.each(['lmdb', 'leveldb', 'rocksdb'])(
    'is a directory that a server opens, of one moment (%s)',
    async (engine) => {
      const { client } = await startArdent('--engine', engine);
      await sendAll(client, dumpData(new Random(3), 100, 800));
      await client.send('BGREWRITEAOF');
      // After the checkpoint, or while it runs: in the log alone.
      for (let i = 0; i < 100; i++) await client.send('SET', `late:${i}`, i);
      const copy = path.join(directory, 'copies', 'first');
      const digest = await patiently(client, 'DEBUG', 'DIGEST');
      expect(await patiently(client, 'BACKUP', copy)).toMatch(/pause_microseconds/);
      await client.send('FLUSHALL');
      await client.send('SET', 'later', '1');
      expect(await patiently(client, 'BACKUP', copy)).toMatch(/^-ERR .* is not empty/);
      const its = await startArdent('--dir', copy, '--engine', engine);
      expect(await patiently(its.client, 'DEBUG', 'DIGEST')).toBe(digest);
      await its.client.send('SET', 'in-the-copy', '1');
      expect(await client.send('DBSIZE')).toBe(':1\r\n');
    },
  );
});
