/** The built command line against real servers. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parseResults, type Results } from '../../src/results/document.ts';
import { ardent, startRedis, type RedisServer } from './fixtures.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ardent-test-bench-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const resultsIn = (path: string): Results =>
  parseResults(readFileSync(join(path, 'results.json'), 'utf8'), path);

/** A small matrix of Redis alone. */
function smallMatrix(...more: string[]): string[] {
  return [
    ...['matrix', '--engines', 'none', '-t', 'set,get,lpop', '-n', '2000', '-r', '1000', '-c', '5'],
    ...[
      '--seconds',
      '60',
      '--warmup',
      '0',
      '--repeats',
      '1',
      '--data-dir',
      directory,
      '--out',
      join(directory, 'out'),
    ],
    ...more,
  ];
}

/** Data directories of targets that were not removed. */
const leftBehind = (): string[] => readdirSync(directory).filter((name) => name.startsWith('ardent-bench-'));

describe('matrix', () => {
  it('measures, writes its files, and leaves nothing behind', async () => {
    const { code, stdout, stderr } = await ardent(smallMatrix('--seed', '7'));
    expect(stderr).toContain('[2/2] Redis (no persistence), run 1: 3 rows');
    expect(code).toBe(0);
    const results = resultsIn(join(directory, 'out'));
    expect(results.state).toBe('complete');
    expect(results.runs.map(({ state }) => state)).toEqual(new Array(6).fill('ok'));
    expect(results.runs.every(({ requests }) => requests === 2000)).toBe(true);
    // Every GET and LPOP found what was loaded for it.
    expect(
      results.runs.filter(({ workload }) => workload !== 'set').map(({ hits, misses }) => [hits, misses]),
    ).toEqual(new Array(4).fill([2000, 0]));
    expect(results.sessions.map(({ load }) => load?.foundKeys)).toEqual([1000, 1000]);
    expect(results.clientCeiling![0]).toMatchObject({ pipeline: 1 });
    expect(results.clientCeiling![0].opsPerSecond).toBeGreaterThan(0);
    expect(results.seed).toBe(7);
    expect(results.rerun).toContain('--seed 7');
    // The table on the screen holds the medians of the file.
    const row = stdout.split('\n').find((line) => line.startsWith('GET '))!;
    const cell = results.cells.find(
      ({ workload, target }) => workload === 'get' && target === 'redis-everysec',
    )!;
    expect(row).toContain(Math.round(cell.metrics.opsPerSecond.median).toLocaleString('en-US'));
    expect(
      readFileSync(join(directory, 'out', 'results.csv'), 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(7);
    expect(leftBehind()).toEqual([]);
  });

  it('Ctrl-C: partial results are kept, no process and no directory stays', async () => {
    let servers: string[] = [];
    const { code, stderr } = await ardent(
      smallMatrix('--repeats', '50', '--seconds', '5', '-n', '100000000', '-t', 'set'),
      (child) => {
        void (async () => {
          while (leftBehind().length === 0) await sleep(20);
          await sleep(1500);
          servers = leftBehind();
          child.kill('SIGINT');
        })();
      },
    );
    expect(servers).toHaveLength(1);
    expect(code).toBe(130);
    expect(stderr).toContain('SIGINT: stopping');
    const results = resultsIn(join(directory, 'out'));
    expect([results.state, results.partialReason]).toEqual(['partial', 'interrupted by SIGINT']);
    expect(leftBehind()).toEqual([]);
    expect(processesUsing(directory)).toEqual([]);
  });

  it('killed without warning: servers and directories go all the same', async () => {
    await ardent(
      smallMatrix('--repeats', '50', '--seconds', '5', '-n', '100000000', '-t', 'set'),
      (child) => {
        void (async () => {
          while (leftBehind().length === 0) await sleep(20);
          await sleep(1000);
          child.kill('SIGKILL');
        })();
      },
    );
    for (let i = 0; i < 100 && (leftBehind().length > 0 || processesUsing(directory).length > 0); i++)
      await sleep(50);
    expect(leftBehind()).toEqual([]);
    expect(processesUsing(directory)).toEqual([]);
  });

  it('a server that does not start fails in its column alone', async () => {
    const broken = join(directory, 'redis-server');
    writeFileSync(broken, '#!/bin/sh\necho "Fatal: cannot serve" >&2\nexit 3\n', { mode: 0o755 });
    const redis = await startRedis();
    try {
      const { code, stdout } = await ardent(
        smallMatrix('--redis-server', broken, '--target', `other=127.0.0.1:${redis.port}`, '-t', 'set'),
      );
      expect(code).toBe(4);
      expect(stdout).toContain('did not start: exit code 3: Fatal: cannot serve');
      const results = resultsIn(join(directory, 'out'));
      expect(results.cells.map(({ target, state }) => [target, state])).toEqual([
        ['redis-everysec', 'failed'],
        ['redis-none', 'failed'],
        ['other', 'ok'],
      ]);
    } finally {
      await redis.stop();
    }
  });

  it('a server that keeps data in memory is not shown as engine-bound', async () => {
    const { code, stderr } = await ardent(
      smallMatrix(
        ...['--engines', 'lmdb', '--modes', 'engine-bound', '--server-option', 'tier-memory=64mb'],
        ...['--no-redis', '-t', 'set'],
      ),
    );
    expect(code).toBe(2);
    expect(stderr).toContain('LMDB (engine-bound) did not start: it keeps 67108864 bytes in memory');
    expect(leftBehind()).toEqual([]);
  });

  it('a disk that takes no results: one line, and the table all the same', async () => {
    const out = join(directory, 'out');
    mkdirSync(join(out, 'results.json.new'), { recursive: true });
    mkdirSync(join(out, 'results.csv.new'));
    mkdirSync(join(out, 'report.html.new'));
    const { code, stdout, stderr } = await ardent(smallMatrix('-t', 'set'));
    expect(code).toBe(1);
    expect(stderr.match(/results cannot be written/g)).toHaveLength(1);
    expect(stdout).toMatch(/^SET +[\d,]+/m);
    expect(leftBehind()).toEqual([]);
  });

  it.each([
    [['--engines', 'bogus'], 'unknown engine "bogus"'],
    [['-t', 'sett'], 'unknown test "sett"'],
    [['-d', 'x'], 'value size "x"'],
    [['--distribution', 'normal'], 'unknown distribution "normal"'],
    [['--redis-server', 'no-such-redis'], 'no-such-redis was not found'],
    [['--target', 'nonsense'], 'expected name=host:port'],
    [['--baseline', 'nobody'], '--baseline nobody: no such column'],
    [['-P', '0'], '--pipeline 0'],
    [['--rate'], 'Not enough arguments following: rate'],
    [['--warmup', '-1'], '--warmup must be 0 or above'],
    [['--compressibility', '2'], '--compressibility must be'],
    [['--bogus-option'], 'bogus-option'],
  ])('a wrong option %j is told in one line, before anything is started', async (options, text) => {
    const { code, stderr } = await ardent(smallMatrix(...options));
    expect(code).toBe(1);
    expect(stderr.trimEnd().split('\n').at(-1)).toContain(text);
    expect(readdirSync(directory)).toEqual([]);
  });
});

/** Processes whose command line names `text`. */
function processesUsing(text: string): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return line.includes(text) && Number(pid) !== process.pid ? [line] : [];
      } catch {
        return [];
      }
    });
}

describe('bench', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  const bench = (...args: string[]): string[] => [
    ...['bench', '-p', String(redis.port), '-c', '5', '-r', '500', '--out', join(directory, 'out')],
    ...args,
  ];

  it('prints redis-benchmark’s own CSV', async () => {
    const { code, stdout } = await ardent(bench('-t', 'set,get', '-n', '1000', '--csv'));
    expect(code).toBe(0);
    const [header, set, get] = stdout.trim().split('\n');
    expect(header).toBe(
      '"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"',
    );
    expect(set).toMatch(/^"SET",("[\d.]+",?){7}$/);
    expect(get).toMatch(/^"GET",/);
  });

  it('drives redis-benchmark itself', async () => {
    const { code } = await ardent(bench('-t', 'set', '-n', '1000', '--driver', 'redis-benchmark'));
    expect(code).toBe(0);
    const [run] = resultsIn(join(directory, 'out')).runs;
    expect([run.state, run.requests]).toEqual(['ok', 1000]);
    expect(run.latency!.p50Us).toBeGreaterThan(0);
  });

  it('a command that the server does not know is unsupported, and not a failure', async () => {
    const name = `gone-${Date.now()}`;
    const server = await startRedis([
      '--rename-command',
      'XADD',
      name,
      '--rename-command',
      'ZADD',
      name + 'z',
    ]);
    try {
      const { code, stdout } = await ardent([
        ...['bench', '-p', String(server.port), '-t', 'set,xadd,zpopmin', '-n', '500', '-r', '50'],
        ...['--out', join(directory, 'out')],
      ]);
      expect(code).toBe(0);
      expect(stdout).toMatch(/^XADD +unsupported/m);
      expect(resultsIn(join(directory, 'out')).cells.map(({ state }) => state)).toEqual([
        'ok',
        'unsupported',
        'unsupported',
      ]);
    } finally {
      await server.stop();
    }
  });

  it('a command of one’s own; JSON lines', async () => {
    const { code, stdout } = await ardent(
      bench('-n', '300', '--json', 'hset', 'h', 'f:__rand_int__', '{value 5}'),
    );
    expect(code).toBe(0);
    const [run, end] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect([run.type, run.requests, run.errors]).toEqual(['run', 300, 0]);
    expect(end).toMatchObject({ type: 'end', state: 'complete' });
  });

  it('a foreign server is not flushed unless that is allowed', async () => {
    await redis.client.set('precious', '1');
    await ardent(bench('-t', 'set', '-n', '100'));
    expect(await redis.client.get('precious')).toBe('1');
    await ardent(bench('-t', 'set', '-n', '100', '--allow-flush'));
    expect(await redis.client.get('precious')).toBeNull();
  });

  it('wrong data: exit code 3', async () => {
    const running = ardent(
      bench('-t', 'get', '-n', '3000000', '--seconds', '2', '--verify', '--allow-flush'),
    );
    for (let i = 0; i < 200; i++) {
      await sleep(20);
      await redis.client.set('key:000000000001', 'corrupted', 'XX');
    }
    expect((await running).code).toBe(3);
  });

  it('steps to the knee', async () => {
    const { code, stdout } = await ardent(
      bench('-t', 'ping_mbulk', '--steps', '200:600:200', '--seconds', '0.5'),
    );
    expect(code).toBe(0);
    expect(stdout).toMatch(/followed up to \d+ ops\/s|overloaded at every rate/);
    expect(resultsIn(join(directory, 'out')).capacity![0].steps).toHaveLength(3);
  });

  it('results where there is a file: one line, before anything is measured', async () => {
    const out = join(directory, 'file');
    writeFileSync(out, '');
    const { code, stderr } = await ardent(['bench', '-p', '1', '-t', 'set', '--out', out]);
    expect([code, stderr]).toEqual([1, `ardent: EEXIST: file already exists, mkdir '${out}'\n`]);
  });

  it.each([
    ['bench', '--password'],
    ['matrix', '--target'],
    ['engines', '--benchmarks'],
  ])('%s %s without a value is refused', async (tool, option) => {
    const { code, stderr } = await ardent([tool, option]);
    expect([code, stderr]).toEqual([
      1,
      `ardent: Not enough arguments following: ${option.slice(2)}; see ardent ${tool} --help\n`,
    ]);
  });

  it('unreachable: one line, exit code 2', async () => {
    const { code, stderr } = await ardent([
      'bench',
      '-p',
      '1',
      '-t',
      'set',
      '-q',
      '--out',
      join(directory, 'out'),
    ]);
    expect(code).toBe(2);
    expect(stderr.trim()).toMatch(/^ardent: 127\.0\.0\.1:1 cannot be reached.*ECONNREFUSED[^\n]*$/);
  });
});

describe('a port where no Redis server listens', () => {
  it.each([
    [
      'web',
      (socket: Socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')),
      'what answers there is no Redis server',
    ],
    [
      'shut',
      (socket: Socket) => socket.once('data', () => socket.destroy()),
      'it closes the connection at once',
    ],
  ])('%s', async (_, answer, reason) => {
    const server = createServer((socket) => answer(socket.on('error', () => undefined)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const options = ['-t', 'set', '-q', '--out', join(directory, 'out')];
    const { code, stderr } = await ardent(['bench', '-p', String(port), ...options]);
    server.close();
    expect([code, stderr]).toEqual([2, `ardent: 127.0.0.1:${port} cannot be reached: ${reason}\n`]);
  });
});

describe('compare and report', () => {
  /** A result set of one row whose runs have these rates. */
  async function made(name: string, factor: number): Promise<string> {
    const redis = await startRedis();
    const out = join(directory, name);
    await ardent([
      'bench',
      '-p',
      String(redis.port),
      '-t',
      'set',
      '-n',
      '200',
      '-c',
      '2',
      '-r',
      '50',
      '--out',
      out,
    ]);
    await redis.stop();
    const results = resultsIn(out);
    const [run] = results.runs;
    results.runs = [100, 101, 99, 100.5, 99.5].map((rate, index) => ({
      ...run,
      repeat: index + 1,
      order: index,
      opsPerSecond: rate * factor,
    }));
    // How the real run went depends on what else the machine does.
    results.cells[0].badges = [];
    const path = join(out, 'results.json');
    writeFileSync(path, JSON.stringify(results));
    return path;
  }

  it('a proven regression beyond the limit ends with 99, anything else with 0', async () => {
    const [before, slower, same] = [await made('a', 1), await made('b', 0.9), await made('c', 1.001)];
    const worse = await ardent(['compare', before, slower]);
    expect([worse.code, worse.stdout.includes('REGRESSION')]).toEqual([99, true]);
    expect((await ardent(['compare', before, slower, '--max-regression', '15%'])).code).toBe(0);
    const equal = await ardent(['compare', before, same]);
    expect([equal.code, equal.stdout.includes('no difference')]).toEqual([0, true]);
  });

  it('a row that a badge voids proves no regression', async () => {
    const [before, slower] = [await made('a', 1), await made('b', 0.9)];
    const results = resultsIn(join(directory, 'b'));
    results.cells[0].badges = [{ name: 'NOISY', reason: 'others used the machine' }];
    writeFileSync(slower, JSON.stringify(results));
    const { code, stdout } = await ardent(['compare', before, slower]);
    expect([code, stdout.includes('void: NOISY after')]).toEqual([0, true]);
  });

  it('report renders again; what is no result document is refused with its reason', async () => {
    const path = await made('a', 1);
    expect((await ardent(['report', path, '-f', 'markdown'])).stdout).toMatch(/^\| workload \|/);
    expect((await ardent(['report', path, '-f', 'html'])).stdout).toContain('<!doctype html>');
    const broken = join(directory, 'broken.json');
    writeFileSync(broken, JSON.stringify({ ...resultsIn(join(directory, 'a')), seed: 'x', cells: 3 }));
    const { code, stderr } = await ardent(['report', broken]);
    expect(code).toBe(1);
    expect(stderr.trim()).toContain('$.seed: expected a whole number');
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});

describe('engines', () => {
  it('every workload on every engine', async () => {
    const { code, stderr } = await ardent([
      ...['engines', '--keys', '300', '--seconds', '0.3', '--repeats', '1', '--requesters', '2', '-d', '50'],
      ...['--data-dir', directory, '--out', join(directory, 'out')],
    ]);
    expect([code, stderr.includes('failed')]).toEqual([0, false]);
    const results = resultsIn(join(directory, 'out'));
    expect(results.runs).toHaveLength(30);
    for (const run of results.runs) {
      expect([run.target, run.workload, run.state]).toEqual([run.target, run.workload, 'ok']);
      expect(run.misses).toBe(0);
      expect(run.latency!.count).toBeGreaterThan(0);
      if (run.workload === 'fillseq' || run.workload === 'readseq') expect(run.requests).toBe(300);
    }
    expect(leftBehind()).toEqual([]);
  });
});
