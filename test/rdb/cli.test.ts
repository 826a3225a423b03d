/** `ardent rdb`: what it prints, how it ends, and that it never leaves half a file. */
import { execFile } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { file, FILES, i64, key, length, listpack, RECORDS, string } from './encodings.ts';
import { Events } from './events.ts';
import { readAll } from './files.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-rdb-cli-'));

interface Ended {
  code: number;
  out: string;
  err: string;
}

const at = (name: string): string => path.join(directory, name);

function rdb(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [MAIN, 'rdb', ...args],
      { cwd: directory, maxBuffer: 64 * 1024 * 1024 },
      (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

const without = (...names: string[]): Buffer[] =>
  Object.entries(RECORDS)
    .filter(([name]) => !names.some((part) => name.startsWith(part)))
    .map(([, record]) => record);

beforeAll(() => {
  writeFileSync(at('all.rdb'), file(12, ...Object.values(RECORDS)));
  writeFileSync(at('plain.rdb'), file(11, ...without('module', 'hash metadata', 'hash listpack ex')));
  writeFileSync(at('deadlines.rdb'), FILES.get('hash metadata')!);
  writeFileSync(
    at('damaged.rdb'),
    file(10, RECORDS.string, key(16, 'broken', string(listpack(['a', 'b', 'c'])))),
  );
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe('info', () => {
  test('as JSON', async () => {
    const { code, out } = await rdb('info', 'all.rdb', '--json', '--top', '2');
    expect(code).toBe(0);
    const info = JSON.parse(out);
    expect(info).toMatchObject({
      version: 12,
      checksum: 'right',
      trailingBytes: 0,
      aux: { 'redis-ver': '7.0.15', 'redis-bits': '64' },
      databases: { 0: { expiring: 2 }, 3: { keys: 1, expiring: 0 } },
      types: { stream: { keys: 3, elements: 9 }, module: { keys: 1 }, zset: { keys: 4, elements: 16 } },
      encodings: { 'hash-metadata': 1, 'stream-listpacks3': 1, 'hash-zipmap': 1 },
      expiry: { later: 2 },
      fieldDeadlines: 5,
      libraries: 1,
      modules: ['test__rdb', 'graphdata'],
    });
    expect(info.biggest.map((one: { type: string }) => one.type)).toEqual(['list', 'list']);
    const types = Object.values(info.types) as { keys: number }[];
    expect(types.reduce((sum, { keys }) => sum + keys, 0)).toBe(info.keys);
  });

  test('for people', async () => {
    const { code, out } = await rdb('info', 'plain.rdb');
    expect(code).toBe(0);
    expect(out).toContain('RDB version 11');
    for (const title of ['Types', 'Encodings', 'Databases', 'Expiry', 'Biggest keys']) {
      expect(out).toContain(`\n${title}\n`);
    }
  });
});

describe('verify', () => {
  test('a sound file, and one that is not', async () => {
    expect(await rdb('verify', 'all.rdb')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^all.rdb: sound, version 12/),
    });
    const both = await rdb('verify', 'damaged.rdb', 'plain.rdb');
    expect(both.code).toBe(3);
    expect(both.out).toMatch(/^plain.rdb: sound/);
    expect(both.err).toContain(
      'ardent: damaged.rdb: offset 48, key "broken" in database 0: 3 packed entries are not a multiple of 2\n',
    );
  });

  test.each([
    ['a member is there twice', key(2, 'k', length(2), string('a'), string('a'))],
    ['a field is there twice', key(16, 'k', string(listpack(['a', 1, 'a', 2])))],
    ['a member is there twice', key(17, 'k', string(listpack(['a', 1, 'a', 2])))],
    [
      'a consumer owns an entry that is not pending, or that another one owns',
      key(
        15,
        'k',
        length(0),
        length(0),
        length(5),
        length(0),
        length(1),
        string('g'),
        length(5),
        length(0),
        length(0),
        length(1),
        string('c'),
        i64(0),
        length(1),
        Buffer.alloc(16),
      ),
    ],
    [
      'a pending entry of a group belongs to no consumer',
      key(
        15,
        'k',
        length(0),
        length(0),
        length(5),
        length(0),
        length(1),
        string('g'),
        length(5),
        length(0),
        length(1),
        Buffer.alloc(16),
        i64(0),
        length(1),
        length(0),
      ),
    ],
  ])('%s', async (reason, record) => {
    writeFileSync(at('repeated.rdb'), file(10, record));
    const { code, err } = await rdb('verify', 'repeated.rdb');
    expect(err).toMatch(`key "k" in database 0: ${reason}\n`);
    expect(code).toBe(3);
  });

  test('a file that is not there, or is none', async () => {
    expect(await rdb('verify', 'nowhere.rdb')).toMatchObject({
      code: 1,
      err: expect.stringContaining('nowhere.rdb'),
    });
    expect(await rdb('verify', '.')).toMatchObject({ code: 1, err: 'ardent: .: not a file\n' });
  });
});

describe('convert', () => {
  test('writes version 10, with or without compression and checksum', async () => {
    const lines = (name: string): string[] => {
      const events = new Events();
      readAll(readFileSync(at(name)), events);
      return events.lines;
    };
    expect((await rdb('convert', 'plain.rdb', 'new.rdb')).code).toBe(0);
    expect((await rdb('convert', '--no-compression', '--no-checksum', 'plain.rdb', 'raw.rdb')).code).toBe(0);
    expect(lines('new.rdb')[0]).toBe('version 10');
    expect(lines('raw.rdb')).toEqual(lines('new.rdb'));
    expect(readFileSync(at('raw.rdb')).length).toBeGreaterThan(readFileSync(at('new.rdb')).length);
    expect(readFileSync(at('raw.rdb')).subarray(-8).equals(Buffer.alloc(8))).toBe(true);
    // In place, and again: nothing changes any more.
    const before = readFileSync(at('new.rdb'));
    expect((await rdb('convert', 'new.rdb', 'new.rdb')).code).toBe(0);
    expect(readFileSync(at('new.rdb')).equals(before)).toBe(true);
  });

  test('refuses to lose anything unless told to', async () => {
    const refused = await rdb('convert', 'deadlines.rdb', 'lossy.rdb');
    expect(refused.code).toBe(1);
    expect(refused.err).toContain('no place for 2 deadlines of hash fields');
    expect(existsSync(at('lossy.rdb'))).toBe(false);
    expect((await rdb('convert', '--lossy', 'deadlines.rdb', 'lossy.rdb')).code).toBe(0);
    expect(existsSync(at('lossy.rdb'))).toBe(true);
  });

  test('leaves the old file when the source is damaged', async () => {
    writeFileSync(at('old.rdb'), 'old');
    expect((await rdb('convert', 'damaged.rdb', 'old.rdb')).code).toBe(3);
    expect(readFileSync(at('old.rdb'), 'utf8')).toBe('old');
    expect(readdirSync(directory).filter((name) => name.startsWith('temp-'))).toEqual([]);
  });
});

describe('convert into what is no file', () => {
  test.each(['.', '/dev/null'])('%s is refused and stays', async (output) => {
    const { code, err } = await rdb('convert', 'plain.rdb', output);
    expect([code, err]).toEqual([1, `ardent: ${output}: not a file\n`]);
  });

  test('what a link leads to is replaced, the link stays', async () => {
    writeFileSync(at('target.rdb'), 'old');
    symlinkSync('target.rdb', at('link.rdb'));
    expect((await rdb('convert', 'plain.rdb', 'link.rdb')).code).toBe(0);
    expect(lstatSync(at('link.rdb')).isSymbolicLink()).toBe(true);
    expect((await rdb('verify', 'target.rdb')).code).toBe(0);
  });
});

describe('dump', () => {
  test('prints a line of JSON for each key', async () => {
    const { code, out } = await rdb('dump', 'all.rdb');
    expect(code).toBe(0);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const line = (name: string): unknown => lines.find((one) => one.key === name);
    expect(line('string')).toEqual({ db: 0, key: 'string', type: 'string', value: 'value' });
    expect(line('zset')).toMatchObject({
      members: [
        ['a', 1.5],
        ['b', 'inf'],
        ['c', '-inf'],
        ['d', -3],
        ['e', 17179869184.5],
      ],
    });
    expect(line('hm')).toMatchObject({
      type: 'hash',
      fields: [
        ['f', 'v', 4e12],
        ['g', 'w'],
        ['h', 'x', 4e12 + 1000],
      ],
    });
    expect(line('set')).toMatchObject({ members: ['a', '-5'] });
    expect(line('in 3')).toMatchObject({ db: 3 });
    expect(line('expires')).toMatchObject({ expiresAt: 4_000_000_000_123 });
    expect(line('freq')).toMatchObject({ frequency: 200 });
    expect(line('idle')).toMatchObject({ idleSeconds: 100 });
    expect(line('module')).toEqual({ db: 0, key: 'module', type: 'module', module: 'test__rdb' });
    expect((line('list ziplist') as { elements: unknown[] }).elements.at(-1)).toEqual({ base64: 'AP8=' });
    expect(line('stream3')).toEqual({
      ...{ db: 0, key: 'stream3', type: 'stream' },
      entries: [
        ['1700000000000-0', ['name', 'ann', 'age', '30']],
        ['1700000000005-1', ['other', 'value']],
        ['1700000000007-0', ['name', 'bob', 'age', '-5']],
      ],
      lastId: '1700000000007-0',
      firstId: '1700000000000-0',
      maxDeletedId: '1700000000006-0',
      entriesAdded: 4,
      groups: [
        {
          name: 'group',
          lastId: '1700000000005-1',
          entriesRead: null,
          pending: [
            ['1700000000000-0', 1_700_000_001_000, 3],
            ['1700000000005-1', 1_700_000_001_000, 3],
          ],
          consumers: [
            {
              ...{ name: 'alice', seenAt: 1_700_000_002_000, activeAt: 1_700_000_001_500 },
              pending: ['1700000000000-0', '1700000000005-1'],
            },
            { name: 'bob', seenAt: 1_700_000_002_000, activeAt: 1_700_000_001_500, pending: [] },
          ],
        },
      ],
    });
  });

  test('only some keys', async () => {
    const keys = async (...args: string[]): Promise<string[]> =>
      (await rdb('dump', 'all.rdb', ...args)).out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).key);
    expect(await keys('--db', '3')).toContain('in 3');
    expect(await keys('--match', 'stream?')).toEqual(['stream2', 'stream3']);
    expect(await keys('--type', 'stream,module')).toEqual(['module', 'stream', 'stream2', 'stream3']);
    for (const db of ['-1', 'x', '1.5'])
      expect((await rdb('dump', 'all.rdb', '--db', db)).err).toBe('ardent: --db must be a whole number\n');
    expect((await rdb('dump', 'all.rdb', '--type', 'tree')).err).toContain('types are string, list, set');
  });

  test('a long string that is not all there at once', async () => {
    const value = Buffer.alloc(1_000_000, Buffer.from([1, 2, 250, 7]));
    writeFileSync(at('long.rdb'), file(10, key(0, 'long', length(value.length), value), RECORDS.list));
    const [line] = (await rdb('dump', 'long.rdb')).out.split('\n');
    expect(Buffer.from(JSON.parse(line).value.base64, 'base64').equals(value)).toBe(true);
  });
});

test('a word that is no command', async () => {
  expect(await rdb()).toMatchObject({
    code: 1,
    err: expect.stringContaining('info, verify, convert or dump'),
  });
  expect((await rdb('look', 'all.rdb')).code).toBe(1);
});
