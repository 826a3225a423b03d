/** Memory follows when data shrink: the account in INFO memory, over a socket, with an engine behind the tier. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Tier } from '../../src/store/tier.ts';
import { Random } from '../store/random.ts';
import { connect, encodeCommand, startServer, type RawClient, type RunningServer } from './harness.ts';

const CHUNK = 1 << 20;
const KEYS = 4000;
const DEADLINE_MS = 60_000;

let server: RunningServer;
let client: RawClient;
beforeAll(async () => {
  server = await startServer({ store: new Tier({ chunkBytes: CHUNK }), tier: '256mb' });
  client = await connect(server.port);
});
afterAll(async () => {
  client.close();
  await server.stop();
});

async function info(): Promise<Record<string, number>> {
  const text = await client.send('INFO', 'memory', 'stats');
  return Object.fromEntries(
    [...text.matchAll(/^(\w+):([\d.]+)\r$/gm)].map(([, name, value]) => [name, Number(value)]),
  );
}

async function all(commands: readonly string[][]): Promise<void> {
  client.write(Buffer.concat(commands.map(encodeCommand)));
  await client.read(commands.length, DEADLINE_MS);
}

/** What the account says once it is as `is` wants it. */
async function settled(is: (now: Record<string, number>) => boolean): Promise<Record<string, number>> {
  const end = Date.now() + DEADLINE_MS;
  for (;;) {
    const now = await info();
    if (is(now) || Date.now() > end) return now;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Slabs are within 10% of the blocks and chunks within 10% of the slabs, but for what a single one holds. */
const dense = (now: Record<string, number>): boolean =>
  now.allocator_active <= 1.1 * now.allocator_allocated + 1.5 * CHUNK &&
  now.allocator_resident <= 1.1 * now.allocator_active + 1.5 * CHUNK;

const keys = Array.from({ length: KEYS }, (_, i) => `key:${i}`);
const set = (bytes: number): string[][] => keys.map((key) => ['SET', key, 'x'.repeat(bytes)]);

test('small values, large ones in their place, nine of ten deleted, FLUSHALL: memory follows', async () => {
  await all(set(100));
  const small = await settled(dense);
  expect(small.allocator_allocated).toBeGreaterThan(KEYS * 100);
  expect(dense(small)).toBe(true);

  await all(set(3000));
  const large = await settled(dense);
  expect(large.allocator_allocated).toBeGreaterThan(KEYS * 3000);
  expect(dense(large)).toBe(true);

  const random = new Random(1);
  const deleted = keys.filter(() => random.below(10) !== 0);
  await all(deleted.map((key) => ['DEL', key]));
  const few = await settled((now) => dense(now) && now.allocator_resident < 0.5 * large.allocator_resident);
  expect(dense(few)).toBe(true);
  expect(few.allocator_resident).toBeLessThan(0.5 * large.allocator_resident);
  expect(few.active_defrag_hits).toBeGreaterThan(0);
  const left = keys.filter((key) => !deleted.includes(key));
  await all(left.slice(0, 100).map((key) => ['GET', key]));
  expect(await client.send('EXISTS', ...left)).toBe(`:${left.length}\r\n`);

  await client.send('FLUSHALL');
  const none = await settled((now) => now.allocator_resident === 0);
  expect(none).toMatchObject({ allocator_allocated: 0, allocator_active: 0, allocator_resident: 0 });
});
