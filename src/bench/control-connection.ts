/** A quiet connection beside the load, for what the bench itself asks of a target. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import type { Child } from './child.ts';
import type { Address } from './load-spec.ts';

const CONNECT_TIMEOUT_MS = 2_000;
const COMMAND_TIMEOUT_MS = 60_000;
/** In which a server has said that it is there. */
const GREETING_TIMEOUT_MS = 10_000;

/** Commands that a node of a cluster answers for itself alone. */
const WHOLE_CLUSTER: ReadonlySet<string> = new Set(['DBSIZE', 'FLUSHALL']);

/** INFO's text as a dictionary. */
export function infoFields(text: string): Record<string, string> {
  const lines = text.split('\r\n').filter((line) => line.includes(':'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]),
  );
}

/** What ended a connection before it began, where the client's or the system's words do not say it. */
function plainly(error: Error & { code?: string }): Error {
  if (error.message.startsWith('Unknown RESP type'))
    return new Error('what answers there is no Redis server');
  if (error.code === 'EPIPE' || error.code === 'ECONNRESET' || error.message === 'Connection is closed.')
    return new Error('it closes the connection at once');
  return error;
}

export class ControlConnection {
  private readonly client: Redis | Cluster;

  private constructor(client: Redis | Cluster) {
    this.client = client;
  }

  /** @param commandTimeoutMs how long one command may take */
  static async open(address: Address, commandTimeoutMs = COMMAND_TIMEOUT_MS): Promise<ControlConnection> {
    const login = {
      username: address.user,
      password: address.password,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      connectTimeout: CONNECT_TIMEOUT_MS,
      commandTimeout: commandTimeoutMs,
    };
    const client =
      address.cluster === true
        ? new Cluster([{ host: address.host, port: address.port }], {
            redisOptions: login,
            lazyConnect: true,
            clusterRetryStrategy: () => null,
          })
        : new Redis({
            ...(address.path === undefined
              ? { host: address.host, port: address.port }
              : { path: address.path }),
            ...login,
            db: address.database ?? 0,
            lazyConnect: true,
            retryStrategy: () => null,
          });
    let reason: Error | null = null;
    client.on('error', (error: Error & { lastNodeError?: Error }) => (reason = error.lastNodeError ?? error));
    const greeting = client.connect().then(() => client.ping());
    try {
      if ((await Promise.race([greeting, sleep(GREETING_TIMEOUT_MS, null, { ref: false })])) === null)
        throw new Error(`no answer in ${GREETING_TIMEOUT_MS / 1000} s`);
    } catch (error) {
      // What ends with the connection has been told.
      greeting.catch(() => undefined);
      client.disconnect();
      throw plainly(reason ?? (error as Error));
    }
    return new ControlConnection(client);
  }

  /** As `open`, tried again until a server that is starting answers. Throws when it has ended, or time is over. */
  static async openWhenUp(
    address: Address,
    timeoutMs: number,
    server: Child,
    commandTimeoutMs = COMMAND_TIMEOUT_MS,
  ): Promise<ControlConnection> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      if (!server.running) throw new Error(server.obituary());
      try {
        // PING, which it begins with, is refused while a server loads.
        return await ControlConnection.open(address, commandTimeoutMs);
      } catch (error) {
        if (performance.now() > deadline) throw error;
        await sleep(10);
      }
    }
  }

  /** One command line without placeholders; arguments with blanks in them apart. */
  async call(line: string, ...further: string[]): Promise<unknown> {
    const [name, ...args] = line.split(' ');
    if (this.client instanceof Cluster && WHOLE_CLUSTER.has(name)) {
      const replies = await Promise.all(this.client.nodes('master').map((node) => node.call(name, ...args)));
      return name === 'DBSIZE' ? replies.reduce<number>((sum, keys) => sum + Number(keys), 0) : replies[0];
    }
    return this.client.call(name, ...args, ...further);
  }

  /** INFO as a dictionary; empty when the target has none. */
  async info(): Promise<Record<string, string>> {
    let text: string;
    try {
      text = String(await this.client.call('INFO'));
    } catch {
      return {};
    }
    return infoFields(text);
  }

  close(): void {
    this.client.disconnect();
  }
}
