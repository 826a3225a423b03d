/**
 * Rows that have been damaged on disk: the keys that they belong to answer with an error and can be deleted,
 * all others serve. Real servers over LMDB, whose one file is changed while none of them runs. Runs what
 * `npm run build` made.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, freePort, type RawClient } from './harness.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const MEMBERS = 2000;
const DAMAGED = /^-DAMAGED the value of this key is damaged on disk \(row [0-9a-f]+\)/;

interface Process {
  child: ChildProcess;
  ended: Promise<number | null>;
  output: () => string;
}

let directory: string;
let running: Process[] = [];

beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-damaged-'));
});
afterEach(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended));
  running = [];
  rmSync(directory, { recursive: true, force: true });
});

function run(...args: string[]): Process {
  const child = spawn(process.execPath, [MAIN, ...args]);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  const started = { child, ended, output: () => output };
  running.push(started);
  return started;
}

async function startServer(): Promise<Process & { client: RawClient }> {
  const port = await freePort();
  const server = run('server', '--port', String(port), '--dir', directory, '--engine', 'lmdb');
  const deadline = Date.now() + 30_000;
  for (;;) {
    const client = await connect(port).catch(() => null);
    if (client !== null && (await client.send('PING')) === '+PONG\r\n') return { ...server, client };
    client?.close();
    if (Date.now() > deadline) throw new Error(server.output());
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function check(...flags: string[]): Promise<{ code: number | null; output: string }> {
  const process = run('check', directory, ...flags);
  return { code: await process.ended, output: process.output() };
}

/** Changes a bit in every place where the engine's file has these bytes; it may hold older versions of its pages. */
function damage(bytes: string): void {
  const file = path.join(directory, 'engine', 'data-000001.mdb');
  const content = readFileSync(file);
  let found = 0;
  for (let at = content.indexOf(bytes); at >= 0; at = content.indexOf(bytes, at + 1), found++)
    content[at] ^= 1;
  expect(found).toBeGreaterThan(0);
  writeFileSync(file, content);
}

/** The same for the meta row or its copy: a version of 1, and one of the tier's part. */
function damageMeta(key: 'm' | 'M'): void {
  const file = path.join(directory, 'engine', 'data-000001.mdb');
  const content = readFileSync(file);
  let found = 0;
  for (let at = content.indexOf(key); at >= 0; at = content.indexOf(key, at + 1)) {
    if (at + 42 > content.length || content.readUInt32LE(at + 5) !== 1 || content[at + 41] !== 1) continue;
    content[at + 20] ^= 1;
    found++;
  }
  expect(found).toBeGreaterThan(0);
  writeFileSync(file, content);
}

/** Begins a checkpoint and waits until the engine has it. */
async function checkpoint(client: RawClient): Promise<void> {
  const count = async (): Promise<number> =>
    Number(/checkpoint_checkpoints:(\d+)/.exec(await client.send('INFO', 'checkpoint'))?.[1]);
  const idle = async (): Promise<boolean> =>
    (await client.send('INFO', 'checkpoint')).includes('checkpoint_state:idle');
  const before = await count();
  await client.send('BGREWRITEAOF');
  const deadline = Date.now() + 30_000;
  while ((await count()) === before || !(await idle())) {
    if (Date.now() > deadline) throw new Error(await client.send('INFO', 'checkpoint'));
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A directory whose engine has strings, a set of many pages and deadlines; ends with a kill after `late`. */
async function fill(late: string[][] = []): Promise<void> {
  const { client, child, ended } = await startServer();
  await client.send('MSET', 'one', 'content of one', 'two', 'content of two', 'three', 'content of three');
  await client.send('SET', 'brief', 'content of brief', 'PX', 3_600_000);
  await client.send('SADD', 'set', ...Array.from({ length: MEMBERS }, (_, i) => `member ${i} of the set`));
  await client.send('RPUSH', 'list', 'a', 'b');
  await checkpoint(client);
  for (const command of late) await client.send(...command);
  child.kill('SIGKILL');
  await ended;
}

test('a damaged value is an error for its key alone, and can be deleted', async () => {
  await fill();
  damage('content of two');
  damage('content of brief');
  damage('member 1234 of the set');

  const listed = await check();
  expect(listed.code).toBe(3);
  for (const key of ['two', 'brief', 'set']) {
    expect(listed.output).toContain(`key "${key}": its value is damaged`);
  }

  const { client, output, child, ended } = await startServer();
  expect(output()).toMatch(/row 6b[0-9a-f]+74776f is damaged: its checksum does not match/);
  for (const command of [
    ['GET', 'two'],
    ['APPEND', 'two', 'x'],
    ['TYPE', 'two'],
    ['EXISTS', 'two'],
    ['SADD', 'two', 'x'],
    ['GET', 'brief'],
    ['SCARD', 'set'],
    ['SISMEMBER', 'set', 'member 1 of the set'],
    ['SADD', 'set', 'x'],
    ['RENAME', 'set', 'other'],
    ['COPY', 'two', 'other'],
  ]) {
    expect(await client.send(...command), command.join(' ')).toMatch(DAMAGED);
  }
  expect(await client.send('GET', 'one')).toContain('content of one');
  expect(await client.send('LRANGE', 'list', 0, -1)).toBe('*2\r\n$1\r\na\r\n$1\r\nb\r\n');
  expect(await client.send('DBSIZE')).toBe(':6\r\n');
  expect(await client.send('INFO', 'tier')).toContain('tier_damaged_keys:3');

  expect(await client.send('DEL', 'two')).toBe(':1\r\n');
  expect(await client.send('UNLINK', 'set')).toBe(':1\r\n');
  expect(await client.send('SET', 'brief', 'anew')).toBe('+OK\r\n');
  expect(await client.send('SADD', 'set', 'x')).toBe(':1\r\n');
  expect(await client.send('GET', 'two')).toBe('$-1\r\n');
  expect(await client.send('INFO', 'tier')).toContain('tier_damaged_keys:0');
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  const sound = await check();
  expect(sound.output).toContain('sound');
  expect(sound.code, sound.output).toBe(0);
});

test('what the log holds after the checkpoint: whole values heal, what follows from a damaged one is damaged', async () => {
  await fill([
    ['SET', 'one', 'written later'],
    ['APPEND', 'two', ' and more'],
    ['RENAME', 'three', 'four'],
    ['SUNIONSTORE', 'union', 'set', 'nothing'],
    ['RPUSH', 'list', 'c'],
  ]);
  for (const value of ['one', 'two', 'three']) damage(`content of ${value}`);
  damage('member 7 of the set');
  let server = await startServer();
  expect(await server.client.send('GET', 'one')).toContain('written later');
  const damaged = async (client: RawClient): Promise<void> => {
    for (const key of ['two', 'three', 'four', 'set', 'union']) {
      expect(await client.send('TYPE', key), key).toMatch(DAMAGED);
    }
    expect(await client.send('LLEN', 'list')).toBe(':3\r\n');
    expect(await client.send('EXISTS', 'nothing')).toBe(':0\r\n');
  };
  await damaged(server.client);
  // It stays so when the next checkpoint has replaced rows and log.
  expect(await server.client.send('SAVE')).toMatch(/^-/);
  await checkpoint(server.client);
  server.child.kill('SIGKILL');
  await server.ended;
  server = await startServer();
  await damaged(server.client);
  expect(await server.client.send('FLUSHALL')).toBe('+OK\r\n');
  expect(await server.client.send('INFO', 'tier')).toContain('tier_damaged_keys:0');
});

test('check --repair says what will be lost, and drops it', async () => {
  await fill();
  damage('content of three');
  damage('member 99 of the set');
  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);
  for (const key of ['three', 'set']) {
    expect(repaired.output).toContain(`loss: database 0, key "${key}" will be dropped with its value`);
  }
  expect(repaired.output).toContain('repaired: ');
  const { client } = await startServer();
  expect(await client.send('DBSIZE')).toBe(':4\r\n');
  expect(await client.send('SADD', 'set', 'x')).toBe(':1\r\n');
  expect(await client.send('TTL', 'brief')).toMatch(/^:3[56]\d\d\r\n$/);
});

test('rows that do not tell their keys: an error for these keys alone, until they are deleted or the repair drops them', async () => {
  const long = 'long key '.padEnd(1500, '.');
  await fill();
  const first = await startServer();
  expect(await first.client.send('SET', long, 'content of a long key')).toBe('+OK\r\n');
  await checkpoint(first.client);
  first.child.kill('SIGKILL');
  await first.ended;
  damage('three');
  damage('content of a long key');

  const { client, output, child, ended } = await startServer();
  expect(output()).toMatch(
    /row 6b[0-9a-f]+ is damaged: its checksum does not match; it does not tell its key/,
  );
  expect(await client.send('DBSIZE')).toBe(':7\r\n');
  expect(await client.send('INFO', 'tier')).toContain('tier_damaged_keys:2');
  expect(await client.send('SAVE')).toMatch(/^-/);
  expect(await client.send('GET', 'three')).toMatch(DAMAGED);
  expect(await client.send('GET', long)).toMatch(DAMAGED);
  expect(await client.send('GET', 'one')).toContain('content of one');
  expect(await client.send('GET', 'nothing')).toBe('$-1\r\n');
  expect(await client.send('DEL', long, 'nothing')).toBe(':1\r\n');
  expect(await client.send('DBSIZE')).toBe(':6\r\n');
  child.kill('SIGTERM');
  expect(await ended).toBe(0);

  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);
  expect(repaired.output).toContain('loss: database 0, key "three" will be dropped');
  const again = await startServer();
  expect(await again.client.send('DBSIZE')).toBe(':5\r\n');
  expect(await again.client.send('GET', 'three')).toBe('$-1\r\n');
});

test('the meta row is there twice', async () => {
  await fill();
  damageMeta('m');
  const listed = await check();
  expect(listed.code).toBe(3);
  expect(listed.output).toContain('the meta row is not as it was written; the other of the two is used');
  const { client, output, child, ended } = await startServer();
  expect(output()).toContain('the meta row is not as it was written');
  expect(await client.send('DBSIZE')).toBe(':6\r\n');
  child.kill('SIGKILL');
  await ended;
  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);
  expect((await check()).code).toBe(0);

  damageMeta('m');
  damageMeta('M');
  const port = await freePort();
  const refused = run('server', '--port', String(port), '--dir', directory, '--engine', 'lmdb');
  expect(await refused.ended).toBe(3);
  expect(refused.output()).toContain('restore the directory from a backup');
  const vain = await check('--repair');
  expect(vain.code).toBe(3);
  expect(vain.output).toContain('neither is its copy');
});
