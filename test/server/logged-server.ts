/** A server whose log stays in memory, afresh for each test, for what commands log. */
import { afterEach, beforeEach } from 'vitest';
import { Config } from '../../src/server/config.ts';
import { Tier } from '../../src/store/tier.ts';
import { connect, startServer, type RawClient, type RunningServer } from './harness.ts';
import { MemoryLog } from './memory-log.ts';

export let log: MemoryLog;
export let server: RunningServer;
export let client: RawClient;

/** To be called once by a file of tests. */
export function useLoggedServer(): void {
  beforeEach(async () => {
    log = new MemoryLog();
    const config = new Config({ 'enable-debug-command': 'yes' });
    server = await startServer({ log, store: new Tier(), config });
    client = await connect(server.port);
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });
}

/** Sends command lines; returns what they have logged. */
export async function run(...lines: string[]): Promise<string[]> {
  log.frames.length = 0;
  for (const line of lines) await client.send(...line.split(' '));
  return log.lines();
}
