/** A real Redis, the built command line, and a run of the load in this thread. */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { LoadControl } from '../../src/bench/control.ts';
import runLoad from '../../src/bench/load-worker.ts';
import type { LoadReport, LoadSpec } from '../../src/bench/load-spec.ts';

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export interface RedisServer {
  port: number;
  process: ChildProcess;
  client: Redis;
  stop(): Promise<void>;
}

export async function startRedis(more: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort();
  const directory = mkdtempSync(join(tmpdir(), 'ardent-test-redis-'));
  const process = spawn('redis-server', ['--port', String(port), '--save', '', '--dir', directory, ...more], {
    stdio: 'ignore',
  });
  const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50 });
  client.on('error', () => {});
  await client.ping();
  return {
    port,
    process,
    client,
    async stop() {
      client.disconnect();
      if (process.exitCode === null && process.signalCode === null) {
        process.kill('SIGKILL');
        await new Promise((resolve) => process.once('exit', resolve));
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** One load worker's work, here. */
export function load(port: number, spec: Partial<LoadSpec>): Promise<LoadReport> {
  const control = new LoadControl(null, 1);
  control.go();
  return runLoad({
    address: { host: '127.0.0.1', port },
    driver: 'raw',
    mix: [{ line: 'PING', weight: 1, access: 'none', name: 'PING' }],
    keyspace: 100,
    distribution: 'uniform',
    valueSizes: '10',
    compressibility: 0,
    verify: false,
    connections: 4,
    pipeline: 1,
    open: null,
    requests: 1000,
    seconds: null,
    warmupSeconds: 0,
    warmupRequests: null,
    intervalSeconds: 1,
    timeoutSeconds: 5,
    seed: 1,
    worker: 0,
    workers: 1,
    control: control.memory,
    ...spec,
  });
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** `ardent …`, to its end. */
export function ardent(args: string[], onStart: (child: ChildProcess) => void = () => {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [MAIN, ...args],
      { maxBuffer: 64 * 1024 * 1024 },
      (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : (error.code as unknown as number | null), stdout, stderr });
      },
    );
    onStart(child);
  });
}
