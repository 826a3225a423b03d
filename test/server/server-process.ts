/** `ardent` as its users run it: processes over a data directory of their own that is killed and begun again. Runs what `npm run build` made. */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { connect, freePort, type RawClient } from './harness.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
/** For what takes no more than a moment on an idle machine. */
const PATIENCE_MS = 240_000;

export interface Process {
  child: ChildProcess;
  ended: Promise<number | null>;
  output: () => string;
}

export type ServerProcess = Process & { client: RawClient };

/** The data directory of the test that runs; processes over it end with it. */
export class Directory {
  path = '';
  private running: Process[] = [];
  private readonly engine: string;

  constructor(name: string, engine = 'lmdb') {
    this.engine = engine;
    vi.setConfig({ testTimeout: 3 * PATIENCE_MS });
    beforeEach(() => {
      this.path = mkdtempSync(path.join(os.tmpdir(), `ardent-${name}-`));
    });
    afterEach(async () => {
      for (const { child } of this.running) child.kill('SIGKILL');
      await Promise.all(this.running.map(({ ended }) => ended));
      this.running = [];
      rmSync(this.path, { recursive: true, force: true });
    });
  }

  run(...args: string[]): Process {
    const child = spawn(process.execPath, [MAIN, ...args]);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    }
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    const started = { child, ended, output: () => output };
    this.running.push(started);
    return started;
  }

  runServer(port: number, ...args: string[]): Process {
    return this.run('server', '--port', String(port), '--dir', this.path, '--engine', this.engine, ...args);
  }

  /** A server that serves. */
  async serve(...args: string[]): Promise<ServerProcess> {
    const port = await freePort();
    const server = this.runServer(port, ...args);
    let client: RawClient | null = null;
    await until(async () => {
      client?.close();
      client = await connect(port).catch(() => null);
      return (await client?.send('PING')) === '+PONG\r\n';
    }, server.output);
    return { ...server, client: client! };
  }

  /** Changes a bit in every place where LMDB's file has these bytes, or at an offset to them; it may hold older versions of its pages. */
  damage(bytes: string | Buffer, offset = 0): void {
    const file = path.join(this.path, 'engine', 'data-000001.mdb');
    const content = readFileSync(file);
    let found = 0;
    for (let at = content.indexOf(bytes); at >= 0; at = content.indexOf(bytes, at + 1), found++)
      content[at + offset] ^= 1;
    expect(found).toBeGreaterThan(0);
    writeFileSync(file, content);
  }
}

export async function kill({ child, ended }: Process): Promise<void> {
  child.kill('SIGKILL');
  await ended;
}

/** Waits until something is so; fails, with what `tell` tells, when it takes far too long. */
export async function until(is: () => Promise<boolean>, tell: () => string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await is())) {
    if (Date.now() > deadline) throw new Error(tell());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A field of INFO. */
export async function info(client: RawClient, field: string): Promise<string> {
  const text = await client.send('INFO', 'everything');
  return new RegExp(`^${field}:(.*)\r$`, 'm').exec(text)?.[1] ?? `no field ${field}`;
}

/** Waits until a field of INFO has a value. */
export async function untilInfo(
  { client, output }: ServerProcess,
  field: string,
  value: string,
): Promise<void> {
  await until(async () => (await info(client, field)) === value, output);
}

/** Begins a checkpoint and waits until the engine has it. */
export async function checkpoint(client: RawClient): Promise<void> {
  const count = async (): Promise<number> => Number(await info(client, 'checkpoint_checkpoints'));
  const before = await count();
  await client.send('BGREWRITEAOF');
  await until(
    async () => (await count()) > before && (await info(client, 'checkpoint_state')) === 'idle',
    () => 'no checkpoint',
  );
}
