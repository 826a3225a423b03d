/**
 * Rows that have been damaged on disk: the keys that they belong to answer with an error and can be deleted,
 * all others serve. Real servers over LMDB, whose one file is changed while none of them runs.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { freePort, type RawClient } from './harness.ts';
import { checkpoint, Directory, kill, untilInfo, type ServerProcess } from './server-process.ts';

const MEMBERS = 2000;
const DAMAGED = /^-DAMAGED the value of this key is damaged on disk \(row [0-9a-f]+\)/;

const directory = new Directory('damaged');

/** A server that has read everything. */
async function startServer(...args: string[]): Promise<ServerProcess> {
  const server = await directory.serve(...args);
  await untilInfo(server, 'tier_warming', '0');
  return server;
}

async function check(...flags: string[]): Promise<{ code: number | null; output: string }> {
  const process = directory.run('check', directory.path, ...flags);
  return { code: await process.ended, output: process.output() };
}

/** Changes a bit of the meta row or its copy: those have version 1, and 2 of the tier's part. */
function damageMeta(key: 'm' | 'M'): void {
  const file = path.join(directory.path, 'engine', 'data-000001.mdb');
  const content = readFileSync(file);
  let found = 0;
  for (let at = content.indexOf(key); at >= 0; at = content.indexOf(key, at + 1)) {
    if (at + 42 > content.length || content.readUInt32LE(at + 5) !== 1 || content[at + 41] !== 2) continue;
    content[at + 20] ^= 1;
    found++;
  }
  expect(found).toBeGreaterThan(0);
  writeFileSync(file, content);
}

/** A directory whose engine has strings, a set of many pages and deadlines; ends with a kill after `late`. */
async function fill(late: string[][] = []): Promise<void> {
  const server = await startServer();
  const { client } = server;
  await client.send('MSET', 'one', 'content of one', 'two', 'content of two', 'three', 'content of three');
  await client.send('SET', 'brief', 'content of brief', 'PX', 3_600_000);
  await client.send('SADD', 'set', ...Array.from({ length: MEMBERS }, (_, i) => `member ${i} of the set`));
  await client.send('RPUSH', 'list', 'a', 'b');
  await checkpoint(client);
  for (const command of late) await client.send(...command);
  await kill(server);
}

test('a damaged value is an error for its key alone, and can be deleted', async () => {
  await fill();
  directory.damage('content of two');
  directory.damage('content of brief');
  directory.damage('member 1234 of the set');

  const listed = await check();
  expect(listed.code).toBe(3);
  for (const key of ['two', 'brief', 'set']) {
    expect(listed.output).toContain(`key "${key}": its value is damaged`);
  }

  const { client, output, child, ended } = await startServer();
  expect(output()).toMatch(/row 6b[0-9a-f]+74776f is damaged/);
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
  for (const value of ['one', 'two', 'three']) directory.damage(`content of ${value}`);
  directory.damage('member 7 of the set');
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
  await kill(server);
  server = await startServer();
  await damaged(server.client);
  expect(await server.client.send('FLUSHALL')).toBe('+OK\r\n');
  expect(await server.client.send('INFO', 'tier')).toContain('tier_damaged_keys:0');
});

test('check --repair says what will be lost, and drops it', async () => {
  await fill();
  directory.damage('content of three');
  directory.damage('member 99 of the set');
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
  await kill(first);
  directory.damage('three');
  directory.damage('content of a long key');

  const { client, output, child, ended } = await startServer();
  expect(output()).toMatch(
    /row 6b[0-9a-f]+ is damaged: it is not what was written; it does not tell its key/,
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

test('rows that do not tell their keys are not lost when their database is merged with an import', async () => {
  const long = 'long key '.padEnd(1500, '.');
  const imported = 500;
  const first = await startServer('--enable-debug-command', 'yes');
  for (const database of [1, 0]) {
    await first.client.send('SELECT', database);
    await first.client.send('DEBUG', 'POPULATE', imported, 'imported');
  }
  expect(await first.client.send('SAVE')).toBe('+OK\r\n');
  await first.client.send('FLUSHALL');
  await first.client.send('MSET', 'one', 'content of one', 'three', 'content of three');
  await first.client.send('SET', long, 'content of a long key');
  await first.client.send('SELECT', 1);
  await first.client.send('SET', 'alone', 'content of it');
  await checkpoint(first.client);
  await kill(first);
  directory.damage('three');
  directory.damage('content of a long key');
  // The id of its database, after which there are no other rows of keys: their order stays as it was.
  directory.damage('alone', -8);

  const expectDamaged = async ({ client }: ServerProcess, others: number): Promise<void> => {
    expect(await client.send('DBSIZE')).toBe(`:${3 + others}\r\n`);
    expect(await client.send('GET', 'three')).toMatch(DAMAGED);
    expect(await client.send('GET', long)).toMatch(DAMAGED);
    expect(await client.send('GET', 'one')).toContain('content of one');
    expect(await client.send('GET', 'nothing')).toBe('$-1\r\n');
    await client.send('SELECT', 1);
    expect(await client.send('DBSIZE')).toBe(`:${1 + others}\r\n`);
    expect(await client.send('GET', 'alone')).toMatch(DAMAGED);
    await client.send('SELECT', 0);
  };
  const warmed = await startServer();
  await expectDamaged(warmed, 0);
  await kill(warmed);

  const cold = await directory.serve('--tier-warm-up', 'no');
  expect(await cold.client.send('IMPORT', path.join(directory.path, 'dump.rdb'), 'REPLACE')).toMatch(/^[+*]/);
  await expectDamaged(cold, imported);
  await checkpoint(cold.client);
  await kill(cold);

  const again = await startServer();
  await expectDamaged(again, imported);
  await kill(again);
  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);
  const { client } = await startServer();
  expect(await client.send('DBSIZE')).toBe(`:${1 + imported}\r\n`);
});

test('the meta row is there twice', async () => {
  await fill();
  damageMeta('m');
  const listed = await check();
  expect(listed.code).toBe(3);
  expect(listed.output).toContain('the meta row is not as it was written; the other of the two is used');
  const server = await startServer();
  expect(server.output()).toContain('the meta row is not as it was written');
  expect(await server.client.send('DBSIZE')).toBe(':6\r\n');
  await kill(server);
  const repaired = await check('--repair');
  expect(repaired.code, repaired.output).toBe(0);
  expect((await check()).code).toBe(0);

  damageMeta('m');
  damageMeta('M');
  const refused = directory.runServer(await freePort());
  expect(await refused.ended).toBe(3);
  expect(refused.output()).toContain('restore the directory from a backup');
  const vain = await check('--repair');
  expect(vain.code).toBe(3);
  expect(vain.output).toContain('neither is its copy');
});
