/** `ardent server` as a process: command line, start, end, exit codes. Runs what `npm run build` made. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect, RawClient } from './harness.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

let directory: string;
let started: { child: ChildProcess; ended: Promise<Ended> }[] = [];

beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-cli-'));
});
afterEach(async () => {
  for (const { child } of started) child.kill('SIGKILL');
  await Promise.all(started.map(({ ended }) => ended));
  started = [];
  rmSync(directory, { recursive: true, force: true });
});

function run(...args: string[]): { child: ChildProcess; ended: Promise<Ended> } {
  const child = spawn(process.execPath, [MAIN, 'server', ...args], { cwd: directory });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  const ended = new Promise<Ended>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr })),
  );
  const running = { child, ended };
  started.push(running);
  return running;
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = net.createServer();
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as net.AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** A connection to a server that has loaded its data. */
async function ready(port: number): Promise<RawClient> {
  const deadline = Date.now() + 30_000;
  while (true) {
    try {
      const client = await connect(port);
      if ((await client.send('PING')) === '+PONG\r\n') return client;
      client.close();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test.each([
  [['--prot', '1'], 1, 'unknown parameter --prot; did you mean --port?'],
  [['--port', 'x'], 1, "port: argument couldn't be parsed into an integer"],
  [['--dbfilename', '../dump.rdb'], 1, "dbfilename: dbfilename can't be a path, just a filename"],
  [['--engine', 'sqlite'], 1, 'argument(s) must be one of the following: leveldb, lmdb, rocksdb'],
  [['--port'], 1, '--port needs a value'],
  [['nosuch.conf'], 1, 'cannot read configuration file'],
  [['extra.conf', 'more'], 1, 'cannot read configuration file'],
] as const)('%j ends with %d', async (args, code, message) => {
  const ended = await run(...args).ended;
  expect(ended.code).toBe(code);
  expect(ended.stderr).toContain(message);
  expect(ended.stderr.trim().split('\n')).toHaveLength(1);
});

test('a mistake in the configuration file is named by its line', async () => {
  writeFileSync(path.join(directory, 'a.conf'), '# comment\ninclude b.conf\n');
  writeFileSync(path.join(directory, 'b.conf'), 'port 1\nmaxclients none\n');
  const ended = await run('a.conf').ended;
  expect(ended.code).toBe(1);
  expect(ended.stderr).toMatch(/b\.conf:2: maxclients: argument couldn't be parsed into an integer/);
  for (const [line, said] of [
    ['tier-memry 1gb', /b\.conf:1: unknown parameter 'tier-memry'; did you mean 'tier-memory'\?/],
    ['include c.conf', /b\.conf:1: cannot read configuration file .*c\.conf: there is no such file/],
    ['include .', /b\.conf:1: cannot read configuration file .*: it is a directory/],
  ] as const) {
    writeFileSync(path.join(directory, 'b.conf'), `${line}\n`);
    expect((await run('a.conf').ended).stderr).toMatch(said);
  }
});

test('a port in use ends with 2, an unusable directory with 3', async () => {
  const taken = net.createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as net.AddressInfo;
  const busy = await run('--port', String(port), '--bind', '127.0.0.1').ended;
  await new Promise((resolve) => taken.close(resolve));
  expect(busy.code).toBe(2);
  expect(busy.stderr).toContain(`port ${port} on 127.0.0.1 is in use`);
  expect(readdirSync(directory)).toEqual([]);
  writeFileSync(path.join(directory, 'file'), '');
  const unusable = await run('--port', String(port), '--dir', 'file', '--unixsocket', 'socket').ended;
  expect(unusable.code).toBe(3);
  expect(readdirSync(directory)).toEqual(['file']);
  expect(unusable.stderr.trim().split('\n')).toHaveLength(1);
  expect(unusable.stderr).toContain('name another directory with --dir');
});

test('who connects while it starts is let in', async () => {
  const port = await freePort();
  run('--port', String(port));
  let first: net.Socket | null = null;
  for (const until = Date.now() + 30_000; first === null && Date.now() < until;) {
    first = await new Promise<net.Socket | null>((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(socket));
      socket.once('error', () => resolve(null));
    });
  }
  const client = new RawClient(first!);
  expect(await client.send('PING')).toBe('+PONG\r\n');
});

test('a unix socket with a path too long for the system ends with 2', async () => {
  const socket = path.join(directory, 'x'.repeat(108));
  const { code, stderr } = await run('--port', '0', '--unixsocket', socket).ended;
  expect(stderr).toContain('the path is longer than');
  expect(code).toBe(2);
  expect(readdirSync(directory)).toEqual([]);
});

test.each([
  ['--dir', 'file/data', 3, 'a part of the path is a file; name another directory with --dir'],
  ['--dir', '/proc/ardent/data', 3, 'the system allows no directory there'],
  ['--logfile', '/proc/ardent/server.log', 1, 'name another with --logfile'],
  ['--logfile', '.', 1, 'name another with --logfile'],
])('%s %s cannot be used: exit code %i', async (name, value, code, message) => {
  writeFileSync(path.join(directory, 'file'), '');
  const { ended } = run('--port', String(await freePort()), name, value);
  const { code: actual, stderr } = await ended;
  expect(stderr).toContain(message);
  expect(stderr.trim().split('\n')).toHaveLength(1);
  expect(actual).toBe(code);
});

test('starts with file and parameters, keeps its data over an end and a kill', async () => {
  const port = await freePort();
  const socket = path.join(directory, 's.sock');
  writeFileSync(
    path.join(directory, 'ardent.conf'),
    `port ${port}\nbind 127.0.0.1\ndir data\nunixsocket ${socket}\nunixsocketperm 700\npidfile p.pid\nmaxclients 50\n`,
  );
  const start = (): ReturnType<typeof run> => run('ardent.conf', '--maxclients', '60', '--engine', 'lmdb');

  const first = start();
  let client = await ready(port);
  expect(await client.send('SET', 'a', '1')).toBe('+OK\r\n');
  expect(await client.send('CONFIG', 'GET', 'maxclients')).toContain('\r\n60\r\n');
  expect(await client.send('CONFIG', 'GET', 'dir')).toContain(`\r\n${path.join(directory, 'data')}\r\n`);
  expect(statSync(socket).mode & 0o777).toBe(0o700);
  expect(readFileSync(path.join(directory, 'p.pid'), 'utf8').trim()).toBe(String(first.child.pid));
  const local = new RawClient(net.connect(socket));
  expect(await local.send('GET', 'a')).toBe('$1\r\n1\r\n');
  expect(await client.send('CONFIG', 'SET', 'timeout', '77')).toBe('+OK\r\n');
  expect(await client.send('CONFIG', 'REWRITE')).toBe('+OK\r\n');
  const rewritten = readFileSync(path.join(directory, 'ardent.conf'), 'utf8');
  expect(rewritten).toContain('maxclients 60\n');
  expect(rewritten).toContain('timeout 77\n');
  first.child.kill('SIGTERM');
  const ended = await first.ended;
  expect([ended.code, existsSync(path.join(directory, 'p.pid'))]).toEqual([0, false]);

  const second = start();
  client = await ready(port);
  expect(await client.send('GET', 'a')).toBe('$1\r\n1\r\n');
  expect(await client.send('CONFIG', 'GET', 'timeout')).toContain('\r\n77\r\n');
  await client.send('RPUSH', 'l', 'x', 'y');
  second.child.kill('SIGKILL');
  await second.ended;

  const third = start();
  client = await ready(port);
  expect(await client.send('LRANGE', 'l', 0, -1)).toBe('*2\r\n$1\r\nx\r\n$1\r\ny\r\n');
  client.write('SHUTDOWN\r\n');
  expect((await third.ended).code).toBe(0);
});

test('runs in the background, and returns when it serves', async () => {
  const port = await freePort();
  const args = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    'data',
    '--logfile',
    'log',
    '--daemonize',
  ];
  const ended = await run(...args).ended;
  expect(ended.code).toBe(0);
  const client = await connect(port);
  expect(await client.send('PING')).toBe('+PONG\r\n');
  client.write('SHUTDOWN NOSAVE\r\n');
  await client.readToEnd(15_000);
  // The process is gone a moment after its connections.
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const lines = readFileSync(path.join(directory, 'log'), 'utf8').trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg).join('\n')).toContain(
    'ready to accept',
  );
});
