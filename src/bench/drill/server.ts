/** Servers of a drill: a directory that outlives its processes, and a client for each. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ardentArguments } from '../ardent-command.ts';
import { Child, freePort, freshDirectory, removeDirectory } from '../child.ts';
import { infoFields } from '../control-connection.ts';

const START_TIMEOUT_MS = 120_000;
const POLL_MS = 10;

/** Started on a directory; may be ended and started again on it. */
export class DrillServer {
  readonly directory: string;
  readonly data: string;
  port = 0;
  client!: Redis;
  private child: Child | null = null;
  private readonly clients: Redis[] = [];
  private readonly command: (port: number, data: string) => [string, string[]];

  constructor(
    label: string,
    below: string,
    command: (port: number, data: string) => [string, string[]],
    data?: string,
  ) {
    this.directory = freshDirectory(label, below);
    this.data = data ?? join(this.directory, 'data');
    this.command = command;
  }

  async start(): Promise<this> {
    this.port = await freePort();
    const [program, args] = this.command(this.port, this.data);
    this.child = await Child.start(program, args, this.directory, join(this.directory, 'server.log'));
    const deadline = performance.now() + START_TIMEOUT_MS;
    for (;;) {
      if (!this.child.running) throw new Error(`the server did not start: ${this.child.obituary()}`);
      const client = this.connect();
      try {
        await client.connect();
        await client.ping();
        this.client = client;
        return this;
      } catch (error) {
        client.disconnect();
        if (performance.now() > deadline) throw error;
        await sleep(POLL_MS);
      }
    }
  }

  /** One more connection; to be connected by the caller. */
  connect(): Redis {
    const client = new Redis({
      ...{ host: '127.0.0.1', port: this.port, lazyConnect: true, enableReadyCheck: false },
      ...{ maxRetriesPerRequest: 0, retryStrategy: () => null },
    });
    // What goes wrong is told by the command that was sent.
    client.on('error', () => {});
    this.clients.push(client);
    return client;
  }

  async info(): Promise<Record<string, string>> {
    return infoFields(await this.client.info());
  }

  /** Ends the process; the directory stays. */
  async end(how: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    for (const client of this.clients.splice(0)) client.disconnect();
    await this.child?.stop(how);
    this.child = null;
  }

  async remove(): Promise<void> {
    await this.end('SIGKILL');
    removeDirectory(this.directory);
  }
}

export function ardentDrillServer(
  engine: string,
  below: string,
  settings: Record<string, string>,
  data?: string,
): DrillServer {
  return new DrillServer(
    `drill-${engine}`,
    below,
    (port, directory) => [process.execPath, ardentArguments(port, directory, { engine, ...settings })],
    data,
  );
}

export function redisDrillServer(executable: string, below: string): DrillServer {
  const server: DrillServer = new DrillServer('drill-redis', below, (port) => [
    executable,
    [
      ...[
        '--port',
        String(port),
        '--bind',
        '127.0.0.1',
        '--dir',
        server.directory,
        '--save',
        '',
        '--appendonly',
        'no',
      ],
      ...['--enable-debug-command', 'yes'],
    ],
  ]);
  return server;
}
