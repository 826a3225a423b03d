/** What `ardent check` makes of an engine that cannot be read, or not all of it. Real servers over LevelDB. */
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { freePort } from './harness.ts';
import { checkpoint, Directory, kill, type ServerProcess } from './server-process.ts';

const KEYS = 2000;
const directory = new Directory('damaged-engine', 'leveldb');

async function end({ child, ended }: ServerProcess): Promise<void> {
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
}

async function check(...flags: string[]): Promise<{ code: number | null; output: string }> {
  const process = directory.run('check', directory.path, ...flags);
  return { code: await process.ended, output: process.output() };
}

const engineFile = (name: string): string => path.join(directory.path, 'engine', name);

/** All keys in a table of the engine; one more in the log only. */
async function fill(): Promise<void> {
  let server = await directory.serve();
  for (let i = 0; i < KEYS; i++)
    await server.client.send('SET', `key ${i}`, `value of ${i}`.padEnd(100, '.'));
  await checkpoint(server.client);
  await end(server);
  // LevelDB makes a table of its log when it is opened.
  server = await directory.serve();
  await server.client.send('SET', 'late', 'written after the checkpoint');
  await kill(server);
}

test('a block that cannot be read: an error for its keys, and the repair keeps all others', async () => {
  await fill();
  const tables = readdirSync(path.join(directory.path, 'engine')).filter((name) => name.endsWith('.ldb'));
  const size = (name: string): number => statSync(engineFile(name)).size;
  const [largest] = tables.sort((a, b) => size(b) - size(a));
  const bytes = readFileSync(engineFile(largest));
  const middle = bytes.length >>> 1;
  bytes.fill(0xff, middle, middle + 16);
  writeFileSync(engineFile(largest), bytes);

  let server = await directory.serve();
  const counts = { sound: 0, damaged: 0 };
  for (let i = 0; i < KEYS; i++) {
    const reply = await server.client.send('GET', `key ${i}`);
    if (reply.includes(`value of ${i}.`)) counts.sound++;
    else if (reply.startsWith('-DAMAGED the value of this key is damaged on disk')) counts.damaged++;
    else expect.fail(`key ${i}: ${reply}`);
  }
  expect(counts.damaged).toBeGreaterThan(0);
  expect(counts.sound).toBeGreaterThan(KEYS * 0.8);
  expect(await server.client.send('GET', 'late')).toContain('written after');
  await kill(server);

  const found = await check();
  expect(found.code, found.output).toBe(3);
  expect(found.output).toContain('rows cannot be read');
  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);
  expect(repaired.output).toMatch(/loss: .*rows cannot be read and will be gone/);
  expect((await check()).code).toBe(0);

  server = await directory.serve();
  expect(await server.client.send('GET', 'late')).toContain('written after');
  let kept = 0;
  for (let i = 0; i < KEYS; i++) {
    const reply = await server.client.send('GET', `key ${i}`);
    if (reply !== '$-1\r\n') expect(reply).toContain(`value of ${i}.`);
    if (reply !== '$-1\r\n') kept++;
  }
  expect(kept).toBeGreaterThanOrEqual(counts.sound);
  expect(await server.client.send('DBSIZE')).toBe(`:${kept + 1}\r\n`);
  await end(server);
});

test('an engine that does not open: the log is left as it is, and the repair makes the engine anew', async () => {
  await fill();
  const logs = (): string[] => readdirSync(path.join(directory.path, 'log'));
  const before = logs();
  for (const name of readdirSync(path.join(directory.path, 'engine')))
    if (name.startsWith('MANIFEST')) writeFileSync(engineFile(name), 'damaged');
  const refused = directory.runServer(await freePort());
  expect(await refused.ended).toBe(3);
  expect(refused.output()).toContain('ardent check');

  const found = await check();
  expect(found.code, found.output).toBe(3);
  expect(found.output).toMatch(/log: not looked at/);
  expect(logs()).toEqual(before);
  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);

  const server = await directory.serve();
  expect(await server.client.send('DBSIZE')).toBe(`:${KEYS + 1}\r\n`);
  expect(await server.client.send('GET', 'late')).toContain('written after');
  expect(await server.client.send('GET', 'key 7')).toContain('value of 7.');
  await end(server);
});
