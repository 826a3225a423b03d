/** The cluster driver against a real Redis Cluster: three nodes on the loopback. */
import { mkdtempSync, rmSync } from 'node:fs';
import { spawn, type ChildProcess } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parseResults } from '../../src/results/document.ts';
import { readFileSync } from 'node:fs';
import { ardent, freePort } from './fixtures.ts';

const SLOTS = 16_384;
let directory: string;
const nodes: { port: number; process: ChildProcess; client: Redis }[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ardent-test-cluster-'));
  const ends: { port: number; bus: number }[] = [];
  for (let index = 0; index < 3; index++) {
    const [port, bus] = [await freePort(), await freePort()];
    const process = spawn(
      'redis-server',
      [
        ...['--port', String(port), '--cluster-enabled', 'yes', '--cluster-port', String(bus)],
        ...['--cluster-config-file', `nodes-${index}.conf`, '--save', '', '--dir', directory],
      ],
      { stdio: 'ignore' },
    );
    const client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, enableReadyCheck: false });
    client.on('error', () => {});
    await client.ping();
    const [from, to] = [Math.floor((index * SLOTS) / 3), Math.floor(((index + 1) * SLOTS) / 3) - 1];
    await client.call('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to));
    for (const end of ends)
      await client.call('CLUSTER', 'MEET', '127.0.0.1', String(end.port), String(end.bus));
    ends.push({ port, bus });
    nodes.push({ port, process, client });
  }
  const formed = async (): Promise<boolean> => {
    const states = await Promise.all(nodes.map(({ client }) => client.call('CLUSTER', 'INFO')));
    return states.every((state) => /cluster_state:ok[^]*cluster_known_nodes:3/.test(String(state)));
  };
  while (!(await formed())) await sleep(50);
}, 60_000);

afterAll(async () => {
  for (const { client, process } of nodes) {
    client.disconnect();
    process.kill('SIGKILL');
    if (process.exitCode === null) await new Promise((resolve) => process.once('exit', resolve));
  }
  rmSync(directory, { recursive: true, force: true });
});

it('keys are loaded over all nodes, proved, and found again', async () => {
  const { code, stderr } = await ardent([
    ...['bench', '-p', String(nodes[0].port), '--cluster', '--driver', 'ioredis', '--allow-flush'],
    ...['-t', 'set,get,lpop', '-n', '1000', '-r', '500', '-c', '4', '--out', join(directory, 'out')],
  ]);
  expect([code, stderr]).toEqual([0, expect.stringContaining('3 rows')]);
  const path = join(directory, 'out', 'results.json');
  const results = parseResults(readFileSync(path, 'utf8'), path);
  expect(results.sessions[0].load!.foundKeys).toBe(500);
  expect(results.runs.map(({ workload, requests, errors }) => [workload, requests, errors])).toEqual([
    ['set', 1000, 0],
    ['get', 1000, 0],
    ['lpop', 1000, 0],
  ]);
  expect(results.runs.slice(1).map(({ hits }) => hits)).toEqual([1000, 1000]);
  // One node's memory is not the cluster's.
  expect(results.runs[0].resources).toBeNull();
  const sizes = await Promise.all(nodes.map(({ client }) => client.dbsize()));
  expect(Math.min(...sizes)).toBeGreaterThan(50);
}, 60_000);

it('without --cluster the way is told', async () => {
  const { code, stderr } = await ardent([
    ...['bench', '-p', String(nodes[0].port), '-t', 'set', '-n', '100', '-r', '50'],
    ...['--out', join(directory, 'other'), '--no-tui'],
  ]);
  expect(code).not.toBe(0);
  expect(stderr).toContain('--cluster');
}, 60_000);
