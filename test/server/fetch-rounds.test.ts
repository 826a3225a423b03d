/**
 * How often a command is rolled back and run again when nothing it needs is in memory: a number that is
 * bounded, whatever its size. Over an engine and a tier that holds nothing but what is changed.
 */
import { afterEach, beforeEach, expect, test as always } from 'vitest';
import { Config } from '../../src/server/config.ts';
import { Tier } from '../../src/store/tier.ts';
import {
  connect,
  encodeCommand,
  FAULTS,
  startServer,
  type CommandLine,
  type RawClient,
  type RunningServer,
} from './harness.ts';

/** Faults at random would be counted too. */
const test = always.skipIf(FAULTS > 0);

let running: RunningServer;
let client: RawClient;
let tier: Tier;

beforeEach(async () => {
  tier = new Tier();
  const config = new Config();
  config.load('enable-debug-command', 'yes');
  running = await startServer({ store: tier, config, tier: '0' });
  client = await connect(running.port);
});

afterEach(async () => {
  client.close();
  await running.stop();
});

/** All that was written is in the engine, and nothing of it in memory. */
async function evictAll(): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (tier.dirtyBytes + tier.cutBytes > 0 || tier.residency().residentKeys > 0) {
    if (Date.now() > deadline) throw new Error('rows do not leave');
    if (tier.dirtyBytes + tier.cutBytes === 0) tier.evictor.sweep(1000, 0);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Fetches that a command makes over a tier that is empty. */
async function rounds(...command: CommandLine): Promise<{ reply: string; rounds: number }> {
  await evictAll();
  const before = tier.residency().fetchRounds;
  const reply = await client.send(...command);
  const after = tier.residency().fetchRounds;
  return { reply, rounds: after - before };
}

const names = (prefix: string, from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, i) => `${prefix}${from + i}`);

test('MGET, DEL and an EXEC over 10,000 keys', async () => {
  const keys = names('key:', 0, 10_000);
  await client.send('MSET', ...keys.flatMap((key) => [key, 'value']));
  const got = await rounds('MGET', ...keys);
  expect(got.reply.match(/value/g)).toHaveLength(10_000);
  expect(got.rounds).toBeLessThanOrEqual(3);
  await client.send('MULTI');
  for (let i = 0; i < 10_000; i += 100) await client.send('MGET', ...keys.slice(i, i + 100));
  expect((await rounds('EXEC')).rounds).toBeLessThanOrEqual(3);
  const removed = await rounds('DEL', ...keys);
  expect(removed.reply).toBe(':10000\r\n');
  expect(removed.rounds).toBeLessThanOrEqual(3);
});

/** The same for commands that arrive together. */
async function pipelined(
  commands: readonly (readonly string[])[],
): Promise<{ reply: string; rounds: number }> {
  await evictAll();
  const before = tier.residency().fetchRounds;
  client.write(Buffer.concat(commands.map((command) => encodeCommand(command))));
  const reply = (await client.read(commands.length)).toString();
  return { reply, rounds: tier.residency().fetchRounds - before };
}

test('commands that arrive together: their keys are fetched together', async () => {
  const keys = names('key:', 0, 250);
  await client.send('MSET', ...keys.flatMap((key) => [key, 'value']));
  for (const key of keys) await client.send('HSET', `hash:${key}`, 'field', 'value');
  const commands: [string, string[][]][] = [
    ['GET', keys.map((key) => ['GET', key])],
    ['HSET', keys.map((key) => ['HSET', `hash:${key}`, 'field', 'other'])],
    ['SET', keys.map((key) => ['SET', key, 'other', 'EX', '1000'])],
    ['MGET', keys.map((key) => ['MGET', key, `hash:${key}`, 'absent'])],
    ['EXPIRE', keys.map((key) => ['EXPIRE', key, '2000'])],
  ];
  for (const [name, sent] of commands) {
    const made = await pipelined(sent);
    expect(made.reply, name).not.toMatch(/^-/m);
    // They may not all be read at once from the connection.
    expect(made.rounds, name).toBeLessThanOrEqual(12);
  }
});

test('SORT BY and GET of as many keys', async () => {
  const ids = names('', 0, 5000);
  await client.send('RPUSH', 'ids', ...ids);
  await client.send('MSET', ...ids.flatMap((id) => [`weight:${id}`, String(5000 - Number(id))]));
  await client.send('MSET', ...ids.flatMap((id) => [`name:${id}`, `n${id}`]));
  const sorted = await rounds('SORT', 'ids', 'BY', 'weight:*', 'GET', 'name:*', 'GET', '#', 'LIMIT', 0, 3000);
  expect(sorted.reply.slice(0, 40)).toContain('$5\r\nn4999\r\n$4\r\n4999\r\n');
  expect(sorted.rounds).toBeLessThan(20);
  expect((await rounds('SORT', 'ids', 'BY', 'weight:*', 'STORE', 'sorted')).rounds).toBeLessThan(20);
});

test('SORT BY and GET of fields of as many hashes, each of many pages', async () => {
  const ids = names('', 0, 300);
  const fields = names('field:', 0, 150).flatMap((field) => [field, 'v'.repeat(20)]);
  await client.send('RPUSH', 'numbers', ...ids);
  for (const id of ids)
    await client.send('HSET', `hash:${id}`, ...fields, 'weight', String(300 - Number(id)), 'name', `n${id}`);
  const sorted = await rounds('SORT', 'numbers', 'BY', 'hash:*->weight', 'GET', 'hash:*->name');
  expect(sorted.reply.slice(0, 40)).toContain('$4\r\nn299\r\n$4\r\nn298\r\n');
  expect(sorted.rounds).toBeLessThan(20);
});

test('sets of many pages: union, intersection, members that are added and asked for', async () => {
  await client.send('SADD', 'a', ...names('member:', 0, 20_000));
  await client.send('SADD', 'b', ...names('member:', 10_000, 30_000));
  const union = await rounds('SUNIONSTORE', 'union', 'a', 'b');
  expect(union.reply).toBe(':30000\r\n');
  expect(union.rounds).toBeLessThan(30);
  const inter = await rounds('SINTERSTORE', 'inter', 'a', 'b');
  expect(inter.reply).toBe(':10000\r\n');
  expect(inter.rounds).toBeLessThan(30);
  const added = await rounds('SADD', 'a', ...names('other:', 0, 5000));
  expect(added.reply).toBe(':5000\r\n');
  expect(added.rounds).toBeLessThan(30);
  expect((await rounds('SMISMEMBER', 'a', ...names('member:', 0, 5000))).rounds).toBeLessThan(30);
});

test('hashes and sorted sets of many pages', async () => {
  await client.send('HSET', 'h', ...names('field:', 0, 20_000).flatMap((field) => [field, 'v']));
  await client.send('ZADD', 'z', ...names('member:', 0, 20_000).flatMap((member, i) => [i, member]));
  const set = await rounds('HSET', 'h', ...names('field:', 0, 4000).flatMap((field) => [field, 'w']));
  expect(set.rounds).toBeLessThan(30);
  const got = await rounds('HMGET', 'h', ...names('field:', 0, 4000));
  expect(got.reply.match(/w/g)).toHaveLength(4000);
  expect(got.rounds).toBeLessThan(30);
  const added = await rounds('ZADD', 'z', ...names('member:', 0, 4000).flatMap((member) => [-1, member]));
  expect(added.rounds).toBeLessThan(30);
  expect((await rounds('ZRANGE', 'z', 0, -1)).rounds).toBeLessThan(30);
});

test('a list larger than the memory: read as a whole, and added to', async () => {
  const element = 'x'.repeat(1000);
  for (let i = 0; i < 6; i++) await client.send('RPUSH', 'l', ...names(element, 1000 * i, 1000 * (i + 1)));
  const all = await rounds('LRANGE', 'l', 0, -1);
  expect(all.reply.slice(0, 8)).toBe('*6000\r\n$');
  expect(all.rounds).toBeLessThan(30);
  expect((await rounds('LPUSH', 'l', ...names(element, 0, 500))).rounds).toBeLessThan(30);
});

test('a value larger than the limit is borrowed for, one larger than the overdraft refused at once', async () => {
  const long = 'x'.repeat(17 * 1024 * 1024);
  const set = await rounds('SET', 'long', long);
  expect(set.reply).toBe('+OK\r\n');
  expect(set.rounds).toBeLessThan(10);
  const got = await rounds('GET', 'long');
  expect(got.reply.length).toBe(long.length + '$17825792\r\n\r\n'.length);
  expect(got.rounds).toBeLessThan(30);
  const before = tier.residency().fetchRounds;
  expect(await client.send('SETRANGE', 'huge', 200 * 1024 * 1024, 'x')).toMatch(/^-OOM /);
  expect(tier.residency().fetchRounds - before).toBeLessThan(10);
  expect(await client.send('EXISTS', 'huge')).toBe(':0\r\n');
  expect(await client.send('PING')).toBe('+PONG\r\n');
});

test('DEBUG DIGEST of more than a unit of work may hold, and of one moment', async () => {
  const whole = await startServer({ config: running.server.config });
  const beside = await connect(whole.port);
  for (const one of [client, beside]) {
    for (let i = 0; i < 40; i++) await one.send('RPUSH', 'list', Buffer.alloc(4 * 1024 * 1024, `${i}.`));
    for (let i = 0; i < 40; i++) await one.send('SET', `string:${i}`, Buffer.alloc(64 * 1024, `${i}.`));
    await one.send('SADD', 'set', ...names('member:', 0, 2500));
    await one.send('HSET', 'hash', ...names('field:', 0, 5000));
    await one.send('ZADD', 'zset', ...names('', 0, 5000));
    for (let i = 0; i < 300; i++) await one.send('XADD', 'stream', `1-${i + 1}`, 'field', 'value');
    await one.send('SELECT', 5);
    await one.send('SET', 'brief', 'value', 'EX', 1000);
    await one.send('SELECT', 0);
  }
  await evictAll();
  const digest = await client.send('DEBUG', 'DIGEST');
  expect(digest).toBe(await beside.send('DEBUG', 'DIGEST'));

  await client.send('DEL', 'list');
  const writer = await connect(running.port);
  await evictAll();
  client.write(encodeCommand(['DEBUG', 'DIGEST']));
  for (let i = 0; i < 10; i++) await writer.send('SET', `late:${i}`, 'value');
  const changed = (await client.read()).toString();
  expect(changed).toBe(await client.send('DEBUG', 'DIGEST'));
  expect(changed).not.toBe(digest);
  writer.close();
  beside.close();
  await whole.stop();
}, 240_000);

test('DEBUG POPULATE of more than the memory', async () => {
  const populated = await rounds('DEBUG', 'POPULATE', 30_000, 'key', 1000);
  expect(populated.reply).toBe('+OK\r\n');
  expect(populated.rounds).toBeLessThan(200);
  expect(await client.send('DBSIZE')).toBe(':30000\r\n');
});

test('MEMORY DOCTOR tells when the memory is too small for what is used', async () => {
  expect(await client.send('MEMORY', 'DOCTOR')).toContain('No memory problem');
  await client.send('MSET', ...names('key:', 0, 1000).flatMap((key) => [key, 'value']));
  for (let i = 0; i < 110; i++) {
    tier.evictor.sweep(1000, 0);
    await rounds('GET', `key:${i}`);
  }
  expect(await client.send('MEMORY', 'DOCTOR')).toContain('Raise tier-memory (0 bytes)');
});

test('CONFIG SET tier-memory makes a tier smaller while it is used', async () => {
  expect(await client.send('CONFIG', 'SET', 'tier-memory', '64mb')).toBe('+OK\r\n');
  expect(await client.send('DEBUG', 'POPULATE', 40_000, 'key', 500)).toBe('+OK\r\n');
  expect(tier.memory.used).toBeGreaterThan(20_000_000);
  expect(tier.residency().residentKeys).toBe(40_000);
  expect(await client.send('CONFIG', 'SET', 'tier-memory', '8mb')).toBe('+OK\r\n');
  const deadline = Date.now() + 20_000;
  while (tier.memory.used > 8 * 1024 * 1024) {
    if (Date.now() > deadline) throw new Error(`${tier.memory.used} bytes stay in memory`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(await client.send('DBSIZE')).toBe(':40000\r\n');
  expect(await client.send('STRLEN', 'key:39999')).toBe(':500\r\n');
});
