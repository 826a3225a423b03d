/** What tests of dumps have in common: `ardent server` (what `npm run build` made) and Redis in directories that go afterwards. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach } from 'vitest';
import type { FaultPoint } from '../../src/store/fault-point.ts';
import {
  connect,
  encodeCommand,
  ENGINE,
  freePort,
  startRedis,
  TIER,
  type CommandLine,
  type RawClient,
} from './harness.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
export const PATIENCE_MS = 60_000;
/** With TIER, as for servers of this process; what a test asks for itself comes later and counts. */
const MODE =
  TIER === undefined
    ? []
    : ['--engine', ENGINE, '--tier-memory', TIER, '--checkpoint-dirty', '1mb', '--checkpoint-age', '1'];

/** Of the test that runs. */
export let directory: string;
/** What is to end after it. */
export const stops: (() => Promise<void>)[] = [];

beforeEach(() => {
  directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-dump-'));
});
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  rmSync(directory, { recursive: true, force: true });
});

export function startArdent(
  ...args: string[]
): Promise<{ client: RawClient; port: number; child: ChildProcess }> {
  return startToFail(undefined, ...args);
}

/** The same, to be killed at a fault point (src/store/fault-point.ts). */
export async function startToFail(
  fault: FaultPoint | undefined,
  ...args: string[]
): Promise<{ client: RawClient; port: number; child: ChildProcess }> {
  const env = fault === undefined ? process.env : { ...process.env, ARDENT_FAULT: fault };
  const port = await freePort();
  const child = spawn(
    process.execPath,
    [
      MAIN,
      'server',
      '--port',
      String(port),
      '--dir',
      directory,
      '--enable-debug-command',
      'yes',
      ...MODE,
      ...args,
    ],
    { stdio: 'ignore', env },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  stops.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { client: await ready(port), port, child };
}

export async function ready(port: number): Promise<RawClient> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    try {
      const client = await connect(port);
      if (!(await client.send('PING')).startsWith('-LOADING')) return client;
      client.close();
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export async function redis(...args: string[]): Promise<RawClient> {
  const running = await startRedis(args);
  stops.push(running.stop);
  return ready(running.port);
}

export async function sendAll(client: RawClient, commands: Iterable<CommandLine>): Promise<void> {
  for (const command of commands) {
    client.write(encodeCommand(command));
    const reply = (await client.read(1, PATIENCE_MS)).toString('latin1');
    if (reply.startsWith('-')) throw new Error(`${String(command[0])}: ${reply}`);
  }
}

export async function patiently(client: RawClient, ...command: CommandLine): Promise<string> {
  client.write(encodeCommand(command));
  return (await client.read(1, PATIENCE_MS)).toString('latin1');
}

export async function info(client: RawClient, field: string): Promise<string> {
  const text = await patiently(client, 'INFO', 'persistence');
  return new RegExp(`^${field}:(.*)\r$`, 'm').exec(text)?.[1] ?? '';
}

/** What is in the import's reply, which is a flat list of names and numbers. */
export function counts(reply: string): Record<string, number> {
  const words = reply.split('\r\n').filter((line) => !/^[*$]/.test(line) && line !== '');
  const found: Record<string, number> = {};
  for (let i = 0; i + 1 < words.length; i += 2) found[words[i]] = Number(words[i + 1].replace(':', ''));
  return found;
}

export async function settled(client: RawClient): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while ((await info(client, 'import_unsettled_bytes')) !== '0' && Date.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
