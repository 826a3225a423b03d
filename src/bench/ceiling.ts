/**
 * What the client itself can do: the same driver, connections and workers against a responder that
 * parses PINGs and does nothing else. A rate near to it may be the client's limit and not the server's.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ClientCeiling } from '../results/document.ts';
import { Child, freePort, freshDirectory, removeDirectory } from './child.ts';
import { ControlConnection } from './control-connection.ts';
import type { LoadPool } from './load.ts';
import type { LoadSettings } from './plan.ts';

const WARMUP_SECONDS = 0.15;
const SECONDS = 0.35;
const START_TIMEOUT_MS = 5_000;

/** The ceiling at each of `pipelines`; shorter than that if the responder fails or `stopping` becomes true. */
export async function clientCeilings(
  pipelines: readonly number[],
  settings: LoadSettings & { driver: 'raw' | 'ioredis' },
  pool: LoadPool,
  stopping: () => boolean,
): Promise<ClientCeiling[]> {
  const directory = freshDirectory('responder');
  let responder: Child | null = null;
  const ceilings: ClientCeiling[] = [];
  try {
    const address = { host: '127.0.0.1', port: await freePort() };
    const script = fileURLToPath(new URL('./bare-responder.js', import.meta.url));
    responder = await Child.start(
      process.execPath,
      [script, String(address.port)],
      directory,
      join(directory, 'output.log'),
    );
    const control = await ControlConnection.openWhenUp(address, START_TIMEOUT_MS, responder);
    control.close();
    for (const pipeline of new Set(pipelines)) {
      if (stopping()) break;
      const outcome = await pool.run({
        ...settings,
        address,
        mix: [{ line: 'PING', weight: 1, access: 'none', name: 'PING' }],
        pipeline,
        open: null,
        verify: false,
        requests: null,
        seconds: SECONDS,
        warmupSeconds: WARMUP_SECONDS,
        warmupRequests: null,
      });
      if (outcome.failure === null)
        ceilings.push({
          pipeline,
          opsPerSecond: outcome.opsPerSecond,
          clientUtilisation: outcome.utilisation,
        });
    }
  } catch {
    // The ceiling is a help for judging; the run goes on without it.
  } finally {
    await responder?.stop('SIGKILL');
    removeDirectory(directory);
  }
  return ceilings;
}
