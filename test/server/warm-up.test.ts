/** What a server answers after a kill while nothing of its data is in memory yet, and when it comes there. */
import { existsSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { RawClient } from './harness.ts';
import { checkpoint, Directory, info, kill, until, untilInfo, type ServerProcess } from './server-process.ts';

const directory = new Directory('warm-up');
const DAMAGED = /^-DAMAGED/;
const HELD = ['--tier-warm-up', 'no', '--enable-debug-command', 'yes'];
const KEYS = 3000;
/** So many keys have a filter on disk. */
const FILTERED = 60_000;

/** Of all data, which it brings into memory. */
async function digest(client: RawClient): Promise<string> {
  client.write('DEBUG DIGEST\r\n');
  return (await client.read(1, 60_000)).toString();
}

/** Waits until everything is in memory. */
async function whole(server: ServerProcess): Promise<void> {
  await server.client.send('CONFIG', 'SET', 'tier-warm-up', 'yes');
  await untilInfo(server, 'tier_complete', '1');
}

/** A directory with values of every kind in two databases, of which some are only in the log. */
async function fill(...args: string[]): Promise<ServerProcess> {
  const server = await directory.serve('--enable-debug-command', 'yes', ...args);
  const { client } = server;
  for (let i = 0; i < KEYS; i += 500) {
    const pairs = Array.from({ length: 500 }, (_, j) => [`key:${i + j}`, `value of ${i + j}`]);
    await client.send('MSET', ...pairs.flat());
  }
  await client.send('SADD', 'set', ...Array.from({ length: 3000 }, (_, i) => `member ${i}`));
  await client.send('RPUSH', 'list', ...Array.from({ length: 3000 }, (_, i) => `element ${i}`));
  await client.send('ZADD', 'zset', ...Array.from({ length: 1000 }, (_, i) => [i, `m${i}`]).flat());
  await client.send('SET', 'long', 'x'.repeat(50_000));
  await client.send('SET', 'k'.repeat(2000), 'of a long key');
  await client.send('SET', 'brief', 'v', 'PX', 3_600_000);
  await client.send('SELECT', 1);
  await client.send('SET', 'one', 'of database 1');
  await client.send('SELECT', 0);
  await checkpoint(client);
  await client.send('APPEND', 'key:7', ', longer');
  await client.send('DEL', 'key:8');
  await client.send('SADD', 'set', 'late');
  await client.send('SET', 'late', 'in the log alone');
  return server;
}

test('everything is served before anything is in memory, and after it has come there', async () => {
  await kill(await fill());
  const server = await directory.serve(...HELD);
  const { client } = server;
  expect(await info(client, 'tier_warming')).toBe('1');
  expect(await info(client, 'tier_complete')).toBe('0');
  expect(await info(client, 'tier_warmed_rows')).toBe('0');
  expect(Number(await info(client, 'tier_resident_keys'))).toBeLessThan(100);
  expect(await client.send('DBSIZE')).toBe(`:${KEYS + 6}\r\n`);
  expect(await client.send('GET', 'key:7')).toContain('value of 7, longer');
  expect(await client.send('GET', 'key:8')).toBe('$-1\r\n');
  expect(await client.send('SET', 'key:9', 'new', 'GET')).toContain('value of 9');
  expect(await client.send('SET', 'fresh', 'v', 'NX')).toBe('+OK\r\n');
  expect(await client.send('SET', 'key:10', 'v', 'NX')).toBe('$-1\r\n');
  expect(await client.send('DEL', 'key:11', 'key:12', 'absent')).toBe(':2\r\n');
  expect(await client.send('PEXPIRE', 'key:13', 1)).toBe(':1\r\n');
  expect(await client.send('TTL', 'brief')).toMatch(/^:3[56]\d\d\r\n$/);
  expect(await client.send('SCARD', 'set')).toBe(':3001\r\n');
  expect(await client.send('GET', 'k'.repeat(2000))).toContain('of a long key');
  const names = new Set((await client.send('KEYS', 'key:*')).match(/key:\d+/g));
  const scanned = new Set<string>();
  let cursor = '0';
  do {
    const reply = await client.send('SCAN', cursor, 'MATCH', 'key:*', 'COUNT', 100);
    cursor = /^\*2\r\n\$\d+\r\n(\d+)/.exec(reply)![1];
    for (const name of reply.match(/key:\d+/g) ?? []) scanned.add(name);
  } while (cursor !== '0');
  for (const found of [names, scanned]) {
    for (let i = 0; i < KEYS; i++)
      if (i !== 13) expect(found.has(`key:${i}`), `key:${i}`).toBe(![8, 11, 12].includes(i));
  }
  for (let i = 0; i < 20; i++) expect(await client.send('RANDOMKEY')).toMatch(/^\$/);
  await until(
    async () => (await client.send('DBSIZE')) === `:${KEYS + 4}\r\n`,
    () => 'a key that nobody has read does not expire',
  );

  await whole(server);
  // What was changed, deleted or came meanwhile is not undone by what the engine has.
  expect(await client.send('GET', 'key:7')).toContain('value of 7, longer');
  expect(await client.send('GET', 'key:9')).toContain('new');
  expect(await client.send('EXISTS', 'key:8', 'key:11', 'key:12', 'key:13')).toBe(':0\r\n');
  expect(await client.send('DBSIZE')).toBe(`:${KEYS + 4}\r\n`);
  const changed = await digest(client);
  expect(await info(client, 'tier_warming')).toBe('0');
  expect(await info(client, 'tier_resident_keys')).toBe(await info(client, 'tier_keys'));
  expect(server.output()).toMatch(
    /warm-up: \d+ keys are read.*\n[^]*warm-up: \d+ rows in .* all of them are in memory/,
  );
  await kill(server);
  const again = await directory.serve('--enable-debug-command', 'yes');
  expect(await digest(again.client)).toBe(changed);
});

test('databases are emptied, exchanged and merged with an import while nothing is in memory', async () => {
  const filled = await fill();
  await filled.client.send('SAVE');
  await kill(filled);
  const server = await directory.serve(...HELD);
  const { client } = server;
  expect(await client.send('SET', 'key:1', 'changed')).toBe('+OK\r\n');
  expect(await client.send('SWAPDB', 0, 1)).toBe('+OK\r\n');
  expect(await client.send('GET', 'one')).toContain('of database 1');
  expect(await client.send('FLUSHDB')).toBe('+OK\r\n');
  expect(await client.send('DBSIZE')).toBe(':0\r\n');
  expect(await client.send('SWAPDB', 0, 1)).toBe('+OK\r\n');
  // Those that are there stay, so all of them have to be known.
  expect(await client.send('IMPORT', path.join(directory.path, 'dump.rdb'), 'SKIP')).toMatch(/^[+*]/);
  expect(await client.send('GET', 'key:1')).toContain('changed');
  expect(await client.send('DBSIZE')).toBe(`:${KEYS + 6}\r\n`);
  const merged = await digest(client);
  await kill(server);
  const again = await directory.serve(...HELD);
  expect(await digest(again.client)).toBe(merged);
  await again.client.send('FLUSHALL');
  await whole(again);
  expect(await digest(again.client)).toBe(`+${'0'.repeat(40)}\r\n`);
});

test('damaged rows are errors for their keys before and after they have been come upon', async () => {
  await kill(await fill());
  directory.damage('value of 500');
  // The last that came: it was moved by no split, which leaves a page's old bytes where they were.
  directory.damage('member 2999');
  const server = await directory.serve(...HELD);
  const { client } = server;
  expect(await client.send('GET', 'key:500')).toMatch(DAMAGED);
  expect(await client.send('SMEMBERS', 'set')).toMatch(DAMAGED);
  expect(await client.send('GET', 'key:501')).toContain('value of 501');
  expect(await client.send('DBSIZE')).toBe(`:${KEYS + 6}\r\n`);
  await kill(server);
  const warmed = await directory.serve('--enable-debug-command', 'yes');
  await untilInfo(warmed, 'tier_complete', '1');
  expect(Number(await info(warmed.client, 'tier_warmed_rows'))).toBeGreaterThan(KEYS);
  expect(await info(warmed.client, 'tier_damaged_keys')).toBe('2');
  expect(warmed.output()).toContain('2 damaged rows');
  expect(await warmed.client.send('SCARD', 'set')).toMatch(DAMAGED);
  expect(await warmed.client.send('DEL', 'set', 'key:500')).toBe(':2\r\n');
  expect(await warmed.client.send('DBSIZE')).toBe(`:${KEYS + 4}\r\n`);
});

test('an expiry index that is damaged is made anew before anything is served', async () => {
  const filled = await fill();
  const deadline = Date.now() + 3_600_000;
  for (let i = 0; i < 300; i++) await filled.client.send('PEXPIREAT', `key:${i + 100}`, deadline + i);
  await checkpoint(filled.client);
  await kill(filled);
  // The deadlines of the index's entries stand in their slots: words of 32 bits, the second with its sign turned.
  const words = Buffer.alloc(8);
  words.writeInt32LE(Math.floor((deadline + 200) / 2 ** 32), 0);
  words.writeInt32LE(((deadline + 200) % 2 ** 32) ^ 0x80000000, 4);
  directory.damage(words);
  const server = await directory.serve(...HELD);
  expect(server.output()).toMatch(/row 70[0-9a-f]+ is damaged/);
  expect(await info(server.client, 'db0')).toMatch(/expires=301,/);
  expect(await info(server.client, 'tier_warmed_rows')).toBe('0');
});

test('what is more than memory stays in the engine', async () => {
  const filled = await directory.serve('--tier-memory', '16mb');
  const { client } = filled;
  for (let i = 0; i < 20_000; i += 500) {
    const pairs = Array.from({ length: 500 }, (_, j) => [`key:${i + j}`, `${i + j} ${'x'.repeat(1000)}`]);
    await client.send('MSET', ...pairs.flat());
  }
  await checkpoint(client);
  await kill(filled);
  const server = await directory.serve('--tier-memory', '16mb');
  await untilInfo(server, 'tier_warming', '0');
  expect(await info(server.client, 'tier_complete')).toBe('0');
  expect(Number(await info(server.client, 'tier_resident_keys'))).toBeGreaterThan(3000);
  expect(await info(server.client, 'tier_evicted_keys')).toBe('0');
  expect(server.output()).toMatch(/warm-up: .* there is no more room in memory/);
  for (let i = 0; i < 20_000; i += 371)
    expect(await server.client.send('STRLEN', `key:${i}`)).toBe(`:${1001 + String(i).length}\r\n`);
  expect(await server.client.send('DBSIZE')).toBe(':20000\r\n');
});

test('the filter on disk spares new keys the engine; one that is damaged, old or gone is not trusted', async () => {
  const filled = await directory.serve('--enable-debug-command', 'yes');
  await filled.client.send('DEBUG', 'POPULATE', FILTERED, 'key', 10);
  await checkpoint(filled.client);
  const filters = path.join(directory.path, 'filters');
  const files = (): string[] => (existsSync(filters) ? readdirSync(filters) : []);
  await until(() => Promise.resolve(files().some((name) => name.endsWith('.filter'))), filled.output);
  const file = path.join(filters, files()[0]);
  const grown = (from: number) => (): Promise<boolean> => Promise.resolve(statSync(file).size > from);
  let size = statSync(file).size;
  await filled.client.send('SET', 'second', 'of the second checkpoint');
  await checkpoint(filled.client);
  await until(grown(size), filled.output);
  await kill(filled);
  const old = readFileSync(file);

  /** Writes new keys and looks for old ones; returns how many rows were asked for in vain. */
  let round = 0;
  const use = async ({ client }: ServerProcess): Promise<number> => {
    expect(await client.send('SET', 'key:77', 'x', 'NX')).toBe('$-1\r\n');
    expect(await client.send('EXISTS', 'key:5', 'key:59999', 'second', 'absent')).toBe(':3\r\n');
    for (let i = 0; i < 300; i++) await client.send('SET', `new:${round}:${i}`, 'v');
    expect(await client.send('DBSIZE')).toBe(`:${FILTERED + 1 + 300 * ++round}\r\n`);
    return Number(await info(client, 'tier_absent_rows'));
  };
  let server = await directory.serve(...HELD);
  expect(await use(server)).toBeLessThan(60);
  size = statSync(file).size;
  await checkpoint(server.client);
  await until(grown(size), server.output);
  await kill(server);

  // What is new since the mark of an older checkpoint is not in a file of then.
  const recent = readFileSync(file);
  writeFileSync(file, old);
  server = await directory.serve(...HELD);
  expect(server.output()).toMatch(/\.filter is not of checkpoint \d+, or damaged: not used/);
  expect(await server.client.send('EXISTS', 'new:0:0', 'new:0:299')).toBe(':2\r\n');
  await use(server);
  await kill(server);

  recent[recent.length >> 1] ^= 4;
  writeFileSync(file, recent);
  server = await directory.serve(...HELD);
  expect(server.output()).toContain('not used');
  await use(server);
  await kill(server);

  rmSync(filters, { recursive: true });
  server = await directory.serve(...HELD);
  await use(server);
  expect(await server.client.send('EXISTS', 'new:0:0', 'new:1:0', 'new:2:0')).toBe(':3\r\n');
});
