/** SAVE image, BGSAVE image and IMPORT of them, by `ardent server` (what `npm run build` made). */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
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
  sendAll,
  settled,
  startArdent,
} from './dump-servers.ts';
import { connect, encodeCommand, type RawClient } from './harness.ts';

const image = (): string => path.join(directory, 'dump.image');
const digest = (client: RawClient): Promise<string> => patiently(client, 'DEBUG', 'DIGEST');

async function keys(client: RawClient): Promise<number> {
  const text = await patiently(client, 'INFO', 'keyspace');
  return [...text.matchAll(/keys=(\d+)/g)].reduce((sum, [, count]) => sum + Number(count), 0);
}

async function killed({ child }: Awaited<ReturnType<typeof startArdent>>): Promise<void> {
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('exit', resolve));
}

describe('an image', { timeout: 180_000 }, () => {
  it.each(seeds(2))('comes back where it was made, and in other servers (SEED=%i)', async (seed) => {
    const first = await startArdent();
    const { client } = first;
    await sendAll(client, dumpData(new Random(seed), 200, 3000));
    expect(await patiently(client, 'SAVE', 'image')).toBe('+OK\r\n');
    expect(readdirSync(directory).filter((name) => name.startsWith('temp-'))).toEqual([]);
    const before = await digest(client);
    const size = await keys(client);
    expect(await patiently(client, 'IMPORT', image())).toMatch(/^-ERR the server holds/);
    await client.send('FLUSHALL');
    expect(counts(await patiently(client, 'IMPORT', image()))).toMatchObject({ keys: size, expired: 0 });
    expect(await digest(client)).toBe(before);
    await killed(first);
    const again = await startArdent();
    expect(await digest(again.client)).toBe(before);
    await settled(again.client);
    expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
    // Another server orders by another hash.
    const other = await startArdent('--dir', path.join(directory, 'other'));
    expect(counts(await patiently(other.client, 'IMPORT', image()))).toMatchObject({ keys: size });
    expect(await digest(other.client)).toBe(before);
    await killed(other);
    const last = await startArdent('--dir', path.join(directory, 'other'));
    expect(await digest(last.client)).toBe(before);
    // It goes on as if nothing had been: the same changes, some of them refused, lead to the same data.
    const changes = [...dumpData(new Random(seed + 1), 200, 1000)].map(encodeCommand);
    for (const { client: changed } of [again, last]) {
      changed.write(Buffer.concat(changes));
      await changed.read(changes.length, PATIENCE_MS);
    }
    expect(await digest(last.client)).toBe(await digest(again.client));
  });

  it('and an RDB file, large enough for whole chunks, come back in any server', async () => {
    const { client } = await startArdent();
    const random = new Random(6);
    await sendAll(client, dumpData(random, 60, 500));
    const noise = (): string =>
      Array.from({ length: 1600 }, () => random.below(2 ** 32).toString(36)).join('');
    const filler = Array.from({ length: 100 }, (_, i) => [
      'MSET',
      ...Array.from({ length: 10 }, (_, j) => [`fill:${i}:${j}`, noise()]).flat(),
    ]);
    const deadlines = Array.from({ length: 100 }, (_, i) => ['PEXPIRE', `fill:${i}:1`, 10_000_000 + (i % 7)]);
    await sendAll(client, [['SELECT', 0], ...filler, ...deadlines]);
    for (const format of [[], ['image']]) expect(await patiently(client, 'SAVE', ...format)).toBe('+OK\r\n');
    const before = await digest(client);
    const other = await startArdent('--dir', path.join(directory, 'other'));
    for (const to of [client, other.client]) {
      for (const file of ['dump.image', 'dump.rdb']) {
        await to.send('FLUSHALL');
        const reply = await patiently(to, 'IMPORT', path.join(directory, file));
        expect(counts(reply)).toMatchObject({ keys: await keys(to), expired: 0 });
        expect(await digest(to)).toBe(before);
      }
    }
    await killed(other);
    const again = await startArdent('--dir', path.join(directory, 'other'));
    expect(await digest(again.client)).toBe(before);
    // A damaged file leaves nothing of the chunks that were taken before it was noticed.
    const bytes = readFileSync(image());
    bytes[bytes.length - 500_000] ^= 1;
    const broken = path.join(directory, 'broken.image');
    writeFileSync(broken, bytes);
    await client.send('FLUSHALL');
    expect(await patiently(client, 'IMPORT', broken)).toMatch(/^-ERR .*damaged at offset/);
    expect(await client.send('DBSIZE')).toBe(':0\r\n');
    expect(counts(await patiently(client, 'IMPORT', image(), 'REPLACE')).expired).toBe(0);
    expect(await digest(client)).toBe(before);
  }, 600_000);

  it('shows one moment, however much changes under it', async () => {
    const { client, port } = await startArdent();
    const random = new Random(3);
    await sendAll(client, dumpData(random, 200, 3000));
    const before = await digest(client);
    const writer = await connect(port);
    const changes: Buffer[] = [encodeCommand(['BGSAVE', 'image'])];
    for (const command of dumpData(new Random(4), 300, 1000)) changes.push(encodeCommand(command));
    for (let i = 0; i < 300; i++)
      changes.push(
        encodeCommand([random.pick(['DEL', 'PERSIST', 'SPOP', 'LPOP', 'ZPOPMIN']), `${i}key:${i}`]),
      );
    changes.push(encodeCommand(['FLUSHALL']));
    writer.write(Buffer.concat(changes));
    await writer.read(changes.length, PATIENCE_MS);
    while ((await info(client, 'rdb_bgsave_in_progress')) === '1')
      await new Promise((resolve) => setTimeout(resolve, 10));
    expect(await info(client, 'rdb_last_bgsave_status')).toBe('ok');
    await patiently(client, 'IMPORT', image(), 'REPLACE');
    await client.send('FLUSHALL');
    await patiently(client, 'IMPORT', image());
    expect(await digest(client)).toBe(before);
    writer.close();
  });

  it.each(['lmdb', 'leveldb', 'rocksdb'])('includes what has left memory (%s)', async (engine) => {
    const { client } = await startArdent('--tier-memory', '8mb', '--engine', engine);
    const whole = await startArdent('--dir', path.join(directory, 'whole'));
    const filler = Array.from({ length: 150 }, (_, i) => [
      'MSET',
      ...Array.from({ length: 100 }, (_, j) => [`fill:${i}:${j}`, String(j).repeat(500)]).flat(),
    ]);
    for (const to of [client, whole.client]) {
      await sendAll(to, dumpData(new Random(8), 100, 1000));
      await sendAll(to, [['SELECT', 0], ...filler]);
    }
    expect(await patiently(client, 'INFO', 'tier')).toMatch(/tier_evicted\w*:[1-9]/);
    expect(await patiently(client, 'SAVE', 'image')).toBe('+OK\r\n');
    const size = await keys(client);
    const other = await startArdent('--dir', path.join(directory, 'other'), '--engine', engine);
    expect(counts(await patiently(other.client, 'IMPORT', image()))).toMatchObject({ keys: size });
    expect(await digest(other.client)).toBe(await digest(whole.client));
  });

  it('is merged, sent to another database, and read by a new data directory', async () => {
    const { client } = await startArdent();
    await sendAll(client, [
      ['DEBUG', 'SET-ACTIVE-EXPIRE', '0'],
      ['MSET', 'a', 'old', 'b', 'old'],
      ['SET', 'gone', '1', 'PX', '50'],
      ['SET', 'stays', '1', 'EX', '1000'],
      ['BGSAVE', 'IMAGE', 'SCHEDULE'],
    ]);
    while (!existsSync(image())) await new Promise((resolve) => setTimeout(resolve, 10));
    await new Promise((resolve) => setTimeout(resolve, 60));
    await sendAll(client, [['FLUSHALL'], ['MSET', 'a', 'new', 'c', 'new']]);
    expect(counts(await patiently(client, 'IMPORT', image(), 'SKIP'))).toMatchObject({
      ...{ keys: 3, skipped: 1, replaced: 0, expired: 1 },
    });
    expect(await client.send('MGET', 'a', 'b', 'c')).toBe('*3\r\n$3\r\nnew\r\n$3\r\nold\r\n$3\r\nnew\r\n');
    expect(await client.send('TTL', 'stays')).toMatch(/^:(9\d\d|1000)\r\n/);
    expect(counts(await patiently(client, 'IMPORT', image(), 'REPLACE', 'DB', 3))).toMatchObject({ keys: 3 });
    await sendAll(client, [['SELECT', 3]]);
    expect(await client.send('MGET', 'a', 'b', 'c')).toBe('*3\r\n$3\r\nold\r\n$3\r\nold\r\n$-1\r\n');
    await sendAll(client, [['SAVE', 'image']]);
    expect(await patiently(client, 'IMPORT', image(), 'SKIP', 'DB', 1)).toMatch(
      /^-ERR .*damaged at offset 0: keys of the databases 0, 3 cannot all go to database 1; nothing/,
    );
    for (const wrong of [
      ['SAVE', 'picture'],
      ['BGSAVE', 'image', 'image'],
      ['SAVE', 'image', 'now'],
    ])
      expect(await client.send(...wrong)).toBe('-ERR syntax error\r\n');
    const fresh = path.join(directory, 'fresh');
    mkdirSync(fresh);
    copyFileSync(image(), path.join(fresh, 'dump.image'));
    const other = await startArdent('--dir', fresh);
    expect(await digest(other.client)).toBe(await digest(client));
  });

  it('that is damaged is refused, with the place', async () => {
    const { client } = await startArdent();
    await sendAll(client, dumpData(new Random(1), 60, 200));
    await patiently(client, 'SAVE', 'image');
    await client.send('FLUSHALL');
    const bytes = readFileSync(image());
    const broken = path.join(directory, 'broken.image');
    const random = new Random(5);
    for (let i = 0; i < 12; i++) {
      const copy = Buffer.from(bytes);
      copy[random.below(copy.length)] ^= 1 << random.below(8);
      writeFileSync(broken, i % 2 === 0 ? copy : copy.subarray(0, random.below(copy.length)));
      const reply = await patiently(client, 'IMPORT', broken);
      expect(reply).toMatch(/^-ERR .*broken\.image: damaged at offset \d+: .*; nothing was imported\r\n$/);
    }
    expect(await client.send('DBSIZE')).toBe(':0\r\n');
    expect(readdirSync(path.join(directory, 'imports'))).toEqual([]);
  });
});
