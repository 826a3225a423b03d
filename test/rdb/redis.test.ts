/** Files of a real Redis are read, written by us, and loaded by a real Redis again. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fill } from './content.ts';
import { RedisWithFile, rewrite } from './files.ts';

/** Limits under which Redis chooses other encodings. */
const CONFIGURATIONS: Record<string, string[]> = {
  defaults: [],
  'nothing packed': [
    ['--hash-max-listpack-entries', '0'],
    ['--zset-max-listpack-entries', '0'],
    ['--set-max-intset-entries', '0'],
    ['--list-max-listpack-size', '1'],
    ['--stream-node-max-entries', '1'],
  ].flat(),
  'everything packed': [
    ['--hash-max-listpack-entries', '1000000'],
    ['--hash-max-listpack-value', '100000000'],
    ['--zset-max-listpack-entries', '1000000'],
    ['--zset-max-listpack-value', '100000000'],
    ['--set-max-intset-entries', '1000000'],
    ['--list-max-listpack-size', '32000'],
    ['--stream-node-max-entries', '0'],
    ['--stream-node-max-bytes', '0'],
  ].flat(),
  'no compression, no checksum': ['--rdbcompression', 'no', '--rdbchecksum', 'no'],
  'LFU, lists compressed in memory': [
    ['--maxmemory-policy', 'allkeys-lfu'],
    ['--list-compress-depth', '1'],
  ].flat(),
  LRU: ['--maxmemory-policy', 'allkeys-lru'],
};

/** Bytes of the file that Redis writes with its defaults. */
async function sizeByRedis(redis: RedisWithFile): Promise<number> {
  return (await redis.save()).length;
}

describe.each(Object.entries(CONFIGURATIONS))('redis-server with %s', (_name, args) => {
  let source: RedisWithFile;
  let target: RedisWithFile;
  let file: Buffer;
  let digest: string;

  beforeAll(async () => {
    source = await RedisWithFile.start(args);
    await fill(source.client);
    digest = await source.digest();
    file = await source.save();
  });

  afterAll(async () => {
    await source?.stop();
    await target?.stop();
  });

  test('its file, written by us, loads with the same digest', async () => {
    const ours = rewrite(file);
    target = await RedisWithFile.start([], ours);
    expect(await target.digest()).toBe(digest);
    expect(ours.length).toBeLessThan(1.05 * (await sizeByRedis(target)));
    writeFileSync(target.path, ours);
    expect(execFileSync('redis-check-rdb', [target.path], { encoding: 'utf8' })).toContain('Checksum OK');
    await target.stop();
  });

  test('the size of the pieces makes no difference', () => {
    // Uncompressed: what of a long string is compressed together depends on the pieces.
    const options = { compression: false };
    expect(rewrite(file, options, 7).equals(rewrite(file, options))).toBe(true);
  });
});
