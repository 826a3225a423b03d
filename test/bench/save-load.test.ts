/** `ardent rdb-save-load`, `rdb-perf` and `drill` against real servers, and their report in a real browser. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { saveLoadMatrix } from '../../src/bench/save-load/matrix.ts';
import type { SaveLoadMetric, SaveLoadResults } from '../../src/results/save-load-results.ts';
import { formatSaveLoad } from '../../src/report/save-load.ts';
import { launchChromium } from '../chromium.ts';
import { ardent, startRedis, type RedisServer } from './fixtures.ts';

let directory: string;
let files: string;
let redis: RedisServer;
beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), 'ardent-test-files-'));
  redis = await startRedis();
  const { client } = redis;
  for (let i = 0; i < 2000; i++) void client.set(`key:${i}`, `value ${i}`);
  void client.set('gone', 'soon', 'PX', 1);
  for (let i = 0; i < 300; i++) {
    void client.hset(`hash:${i}`, 'a', String(i), 'b', 'x'.repeat(i));
    void client.rpush(`list:${i}`, 'one', 'two', String(i));
    void client.sadd(`set:${i}`, 1, 2, i);
    void client.zadd(`zset:${i}`, i, 'member', -i, 'other');
  }
  await client.select(3);
  await client.set('elsewhere', '1');
  await client.save();
  const [, at] = (await client.config('GET', 'dir')) as string[];
  mkdirSync(join(files, 'below', 'deeper'), { recursive: true });
  for (const name of ['one.rdb', 'below/two.rdb', 'below/deeper/three.rdb']) {
    copyFileSync(join(at, 'dump.rdb'), join(files, name));
  }
});
afterAll(async () => {
  await redis.stop();
  rmSync(files, { recursive: true, force: true });
});
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ardent-test-save-load-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** The keys of the file: 2000 strings, 300 of each collection, one elsewhere; one more may not have expired yet. */
const KEYS = 3201;

function outcome(tool: string): { results: SaveLoadResults; path: string } {
  const [stamp, ...more] = readdirSync(join(directory, 'results', tool));
  expect(more).toEqual([]);
  const path = join(directory, 'results', tool, stamp);
  return { results: JSON.parse(readFileSync(join(path, 'results.json'), 'utf8')) as SaveLoadResults, path };
}

const common = (): string[] => ['--results-dir', join(directory, 'results'), '--data-dir', directory];
const leftBehind = (): string[] => readdirSync(directory).filter((name) => name.startsWith('ardent-bench-'));

it('one file: loaded, saved and counted on our server and on Redis', async () => {
  const { code, stdout } = await ardent([
    ...[
      'rdb-save-load',
      '--rdb',
      join(files, 'one.rdb'),
      '--targets',
      'lmdb,redis',
      '--verbose',
      ...common(),
    ],
  ]);
  const { results, path } = outcome('rdb-save-load');
  expect(results.results.map(({ error }) => error)).toEqual([undefined, undefined]);
  expect(code).toBe(0);
  expect(results.state).toBe('complete');
  for (const record of results.results) {
    expect([record.keys, record.dbSize]).toEqual([KEYS, KEYS]);
    expect([record.saveStatus, record.loadStatus]).toEqual(['ok', 'ok']);
    expect(record.loadTimeSec).toBeGreaterThan(0);
    expect(record.saveTimeSec).toBeGreaterThan(0);
    expect(record.rdbSizeMB).toBeGreaterThan(0.02);
    expect(record.usedMemoryMB).toBeGreaterThan(0);
  }
  // Our file is about as large as Redis's.
  const [ours, theirs] = results.results.map(({ rdbSizeMB }) => rdbSizeMB!);
  expect(ours / theirs).toBeLessThan(1.05);
  expect(stdout).toContain('ratio to Redis');
  expect(readFileSync(join(path, 'main.log'), 'utf8')).toContain('one.rdb on Redis');
  for (const log of results.logs) expect(existsSync(join(path, log.file))).toBe(true);
  expect(readFileSync(join(path, 'results.csv'), 'utf8').trim().split('\n')).toHaveLength(3);
  expect(leftBehind()).toEqual([]);
});

it('three files, a directory, and one that is damaged', async () => {
  const damaged = join(files, 'damaged.bin');
  const bytes = readFileSync(join(files, 'one.rdb'));
  writeFileSync(damaged, bytes.subarray(0, bytes.length / 2));
  const three = await ardent([
    ...['rdb-save-load', '--rdb', join(files, 'one.rdb'), '--rdb', join(files, 'below', 'two.rdb')],
    ...['--rdb', damaged, '--targets', 'redis', ...common()],
  ]);
  expect(three.code).toBe(3);
  expect(three.stderr).toContain(`${damaged}: `);
  expect(outcome('rdb-save-load').results.dataSets.map(({ label }) => label)).toEqual(['one.rdb', 'two.rdb']);
  rmSync(join(directory, 'results'), { recursive: true });

  const all = await ardent(['rdb-save-load', '--rdb-dir', files, '--targets', 'redis', ...common()]);
  expect(all.code).toBe(0);
  const { results } = outcome('rdb-save-load');
  expect(results.dataSets.map(({ label }) => label).sort()).toEqual([
    ...['below/deeper/three.rdb', 'below/two.rdb', 'one.rdb'],
  ]);
  expect(results.results.every(({ dbSize }) => dbSize === KEYS)).toBe(true);
});

it('servers by command line and by address', async () => {
  const other = await startRedis();
  try {
    const { code } = await ardent([
      ...['rdb-save-load', '--rdb', join(files, 'one.rdb'), '--allow-flush', ...common()],
      ...['--targets', `there=127.0.0.1:${other.port}`],
      ...['--targets', "cmd=redis-server --port {port} --dir {dir} --save ''"],
    ]);
    expect(code).toBe(0);
    const { results } = outcome('rdb-save-load');
    expect(results.results.map(({ db, dbSize }) => [db, dbSize])).toEqual([
      ['there', KEYS],
      ['cmd', KEYS],
    ]);
    expect(await other.client.zrange('zset:7', '0', '-1', 'WITHSCORES')).toEqual([
      'other',
      '-7',
      'member',
      '7',
    ]);
    expect(await other.client.hget('hash:9', 'b')).toBe('x'.repeat(9));
  } finally {
    await other.stop();
  }
});

it('what cannot be: one line each', async () => {
  const cases: [string[], string][] = [
    [['rdb-save-load'], 'no file is given'],
    [['rdb-save-load', '--rdb', join(directory, 'absent.rdb')], 'absent.rdb'],
    [['rdb-save-load', '--rdb-dir', directory], 'there is no .rdb file in it'],
    [['rdb-save-load', '--rdb', join(files, 'one.rdb'), '--targets', 'x=127.0.0.1:1'], '--allow-flush'],
    [['rdb-save-load', '--rdb', join(files, 'one.rdb'), '--targets', 'berkeley'], 'berkeley'],
    [['rdb-perf', '--rdb-types', 'string,blob'], 'blob'],
    [['rdb-perf', '--perf-rdb-maxmemory', 'lots'], 'lots'],
    [['drill', '--drills', 'fire'], 'fire'],
  ];
  for (const [args, said] of cases) {
    const { code, stderr } = await ardent([...args, ...(args[0] === 'drill' ? [] : common())]);
    expect([args.join(' '), code]).toEqual([args.join(' '), 1]);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain(said);
  }
});

it('two types by two sizes, and the report in Chromium', async () => {
  const { code } = await ardent([
    ...['rdb-perf', '--rdb-types', 'string,hash', '--perf-rdb-maxmemory', '16mb,24mb'],
    ...['--targets', 'lmdb,redis', '--seed', '3', ...common()],
  ]);
  const { results, path } = outcome('rdb-perf');
  expect(results.results.flatMap(({ error }) => error ?? [])).toEqual([]);
  expect(code).toBe(0);
  expect(results.results).toHaveLength(8);
  for (const { dbSize, keys } of results.results) expect(dbSize).toBe(keys);
  // The server that needs most for a key has its memory filled as was asked, and none more than that.
  for (const { id, tierBytes } of results.dataSets) {
    const used = results.results.flatMap((record) => (record.dataSet === id ? [record.usedMemoryMB!] : []));
    const share = (Math.max(...used) * 2 ** 20) / tierBytes!;
    expect(share).toBeGreaterThan(0.5);
    expect(share).toBeLessThan(1.01);
  }
  const matrix = JSON.parse(readFileSync(join(path, 'matrix.json'), 'utf8')) as { cells: unknown[] };
  expect(matrix.cells).toHaveLength(8);

  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
      if (!/^(file|data):/.test(request.url())) complaints.push(request.url());
    });
    await page.goto(`file://${join(path, 'report.html')}`);
    const cells = saveLoadMatrix(results);
    const expected = (metric: SaveLoadMetric): Record<string, string> =>
      Object.fromEntries(
        cells.map((cell) => [
          `${cell.dataSet} ${cell.target}`,
          cell.metrics[metric] === undefined ? '–' : formatSaveLoad(metric, cell.metrics[metric].median),
        ]),
      );
    const shown = (): Promise<unknown> =>
      page.evaluate(`Object.fromEntries([...document.querySelectorAll('#cells tbody td')].map((cell) => [
        cell.closest('tr').dataset.workload + ' ' + cell.dataset.target, cell.querySelector('.value').textContent]))`);
    for (const metric of ['loadTimeSec', 'saveTimeSec', 'rdbSizeMB', 'usedMemoryMB'] as const) {
      await page.click(`[data-metric=${metric}]`);
      expect(await shown()).toEqual(expected(metric));
    }
    const visible = (): Promise<number> => page.locator('#cells tbody tr:visible').count();
    expect(await visible()).toBe(4);
    await page.selectOption('[data-filter=type]', 'hash');
    expect(await visible()).toBe(2);
    await page.selectOption('[data-filter=tier]', '16.0 MB');
    expect(await visible()).toBe(1);
    expect(complaints).toEqual([]);
  } finally {
    await browser.close();
  }
}, 300_000);

it('drills: saved, wiped, brought back, and nothing lost by accidents', async () => {
  const { code, stdout, stderr } = await ardent([
    ...[
      'drill',
      '--engines',
      'lmdb',
      '--keys',
      '1500',
      '--rounds',
      '4',
      '--seed',
      '11',
      '--json',
      ...common(),
    ],
  ]);
  const drills = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { drill: string; state: string; detail: string });
  expect(drills.filter(({ state }) => state === 'failed')).toEqual([]);
  expect([code, stderr]).toEqual([0, '']);
  expect(drills.map(({ drill }) => drill)).toEqual([
    ...['rdb', 'image', 'backup', 'round-trip', 'damaged', 'disk-full', 'kill'],
  ]);
  expect(leftBehind()).toEqual([]);
}, 300_000);
