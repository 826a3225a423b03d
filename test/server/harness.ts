/**
 * Our server in this process, a real redis-server beside it, and a client that keeps replies as raw
 * bytes, so that both can be sent the same commands and must answer alike to the byte.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import type { EngineName } from '../../src/engines/engine.ts';
import { Config } from '../../src/server/config.ts';
import { Server, type ServerOptions } from '../../src/server/server.ts';
import { skipReply } from '../../src/resp/reply-parser.ts';
import { openPersistentStore } from '../../src/store/persistent-store.ts';
import { Tier } from '../../src/store/tier.ts';
import { ModelStore } from '../model/store.ts';
import { SEED } from '../seed.ts';

/** One command; numbers are sent in decimal. */
export type CommandLine = readonly (string | number | Buffer)[];

export interface Running {
  port: number;
  stop: () => Promise<void>;
}

export interface RunningServer extends Running {
  server: Server;
}

/**
 * With FAULTS set, to a chance in (0, 1], every access to a row meets a fault once with that chance, and
 * all answers must be what they are without.
 */
export const FAULTS = Number(process.env.FAULTS ?? 0);

/**
 * With TIER set, to a size, servers over a tier get an engine (ENGINE, lmdb unless given) that what is
 * more than that goes to, and checkpoints follow each other closely. All answers must be the same, too.
 */
export const { TIER, ENGINE = 'lmdb' } = process.env;

/** Changed bytes and milliseconds after which a checkpoint is made, so that as much as possible may leave. */
const CHECKPOINTS = { dirtyBytes: 16 * 1024, ageMs: 20 };

export interface StartOptions extends Partial<ServerOptions> {
  /** `tier-memory` of a server over a Tier that gets an engine, whatever TIER says. */
  tier?: string;
}

/** Starts our server on a free port, over the model store unless another is given. */
export async function startServer(options: StartOptions = {}): Promise<RunningServer> {
  const store = options.store ?? new ModelStore();
  const tier = options.tier ?? TIER;
  const engine =
    tier !== undefined && store instanceof Tier && options.config?.changed.has('tier-memory') !== true
      ? await putEngineUnder(store)
      : null;
  const config = options.config ?? new Config();
  if (engine !== null) config.load('tier-memory', tier!);
  const server = new Server({ ...options, store, config, evicts: engine !== null });
  if (FAULTS > 0) server.store.faultAtRandom(SEED, FAULTS);
  const port = await server.listenOnFreePort();
  return {
    server,
    port,
    stop: async () => {
      server.close();
      await engine?.close();
    },
  };
}

async function putEngineUnder(store: Tier): Promise<{ close: () => Promise<void> }> {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-tier-'));
  const persistent = await openPersistentStore(store, {
    path: directory,
    engine: ENGINE as EngineName,
    appendfsync: 'no',
    evicts: true,
    checkpoint: CHECKPOINTS,
    replay: () => undefined,
  });
  return {
    close: async () => {
      await persistent.close(0);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as net.AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Starts a real redis-server without persistence; `args` are further command-line parameters. */
export async function startRedis(args: readonly string[] = []): Promise<Running> {
  const port = await freePort();
  const directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-redis-'));
  const child: ChildProcess = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--enable-debug-command', 'yes', ...args],
    { cwd: directory, stdio: 'ignore' },
  );
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const deadline = Date.now() + 10_000;
  while (true) {
    try {
      const client = await connect(port);
      client.close();
      break;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
  return {
    port,
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Milliseconds after which an unanswered command fails the test. */
const REPLY_TIMEOUT_MS = 60_000;

/** A connection that returns replies as the bytes that came. */
export class RawClient {
  private readonly socket: net.Socket;
  /** Bytes [0, length) of a memory that doubles as needed. */
  private memory: Buffer = Buffer.alloc(1024);
  private length = 0;
  private waiting: {
    count: number;
    resolve: (bytes: Buffer) => void;
    reject: (error: Error) => void;
  } | null = null;
  /** The server has closed the connection. */
  ended = false;

  constructor(socket: net.Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      if (this.length + chunk.length > this.memory.length) {
        const memory = Buffer.alloc(Math.max(this.memory.length * 2, this.length + chunk.length));
        this.memory.copy(memory, 0, 0, this.length);
        this.memory = memory;
      }
      this.length += chunk.copy(this.memory, this.length);
      this.settle();
    });
    socket.on('error', () => socket.destroy());
    // Not half open any longer than the test wants.
    socket.on('end', () => socket.end());
    socket.on('close', () => {
      this.ended = true;
      this.settle();
    });
  }

  /** Bytes that have come and were not read. */
  get unread(): Buffer {
    return this.memory.subarray(0, this.length);
  }

  private settle(): void {
    const { waiting } = this;
    if (waiting === null) return;
    const end = endOfReplies(this.unread, waiting.count);
    if (end >= 0) {
      this.waiting = null;
      const bytes = Buffer.from(this.memory.subarray(0, end));
      this.memory.copyWithin(0, end, this.length);
      this.length -= end;
      waiting.resolve(bytes);
    } else if (this.ended) {
      this.waiting = null;
      waiting.reject(new Error(`connection closed; received ${JSON.stringify(this.unread.toString())}`));
    }
  }

  /** Sends bytes as they are. */
  write(bytes: string | Buffer): void {
    this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  }

  /** The next `count` replies (or pushes), as they came. */
  async read(count = 1, timeoutMs = REPLY_TIMEOUT_MS): Promise<Buffer> {
    if (this.waiting !== null) throw new Error('a read is under way');
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting = null;
        reject(new Error(`no reply in ${timeoutMs} ms; received ${JSON.stringify(this.unread.toString())}`));
      }, timeoutMs);
      this.waiting = {
        count,
        resolve: (bytes) => {
          clearTimeout(timer);
          resolve(bytes);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      this.settle();
    });
  }

  /** Everything the server sends until it closes the connection. */
  async readToEnd(timeoutMs = REPLY_TIMEOUT_MS): Promise<Buffer> {
    const deadline = Date.now() + timeoutMs;
    while (!this.ended) {
      if (Date.now() > deadline) throw new Error('the server keeps the connection open');
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return this.unread;
  }

  /** Sends one command and returns its reply as text, one character a byte. */
  async send(...command: CommandLine): Promise<string> {
    this.write(encodeCommand(command));
    return (await this.read(1)).toString('latin1');
  }

  close(): void {
    this.socket.destroy();
  }

  /** Closes the connection at once, with a reset: what was sent last counts for nothing. */
  reset(): void {
    this.socket.resetAndDestroy();
  }

  /** Sends no more; what the server sends is still received. */
  end(): void {
    this.socket.end();
  }

  /** Stops receiving. */
  pause(): void {
    this.socket.pause();
  }
}

function endOfReplies(bytes: Buffer, count: number): number {
  let pos = 0;
  for (let i = 0; i < count; i++) {
    pos = skipReply(bytes, pos, bytes.length);
    if (pos < 0) return -1;
  }
  return pos;
}

export function connect(port: number, host = '127.0.0.1'): Promise<RawClient> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ port, host, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.removeListener('error', reject);
      resolve(new RawClient(socket));
    });
  });
}

export function encodeCommand(command: CommandLine): Buffer {
  const parts: Buffer[] = [Buffer.from(`*${command.length}\r\n`)];
  for (const part of command) {
    const bytes = Buffer.isBuffer(part) ? part : Buffer.from(String(part));
    parts.push(Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n'));
  }
  return Buffer.concat(parts);
}

/** A command as one would type it, split at blanks: `cmd('SET key value')`. */
export const cmd = (line: string): string[] => line.split(' ');

/** Our server and a real one, each with a connection. */
export class Pair {
  readonly ours: RawClient;
  readonly theirs: RawClient;
  private readonly running: readonly Running[];
  readonly server: RunningServer;
  readonly redis: Running;

  constructor(server: RunningServer, redis: Running, ours: RawClient, theirs: RawClient) {
    this.server = server;
    this.redis = redis;
    this.running = [server, redis];
    this.ours = ours;
    this.theirs = theirs;
  }

  /**
   * Sends the commands, one after the other, to both and demands identical raw replies. A command is
   * a list of arguments or a line that is split at blanks.
   */
  async compare(commands: readonly (CommandLine | string)[]): Promise<void> {
    for (const command of commands) {
      const parts = typeof command === 'string' ? cmd(command) : command;
      const [ours, theirs] = await Promise.all([this.ours.send(...parts), this.theirs.send(...parts)]);
      expect(`${parts.join(' ')} => ${ours}`).toBe(`${parts.join(' ')} => ${theirs}`);
    }
  }

  /** A further connection to each, compared the same way. */
  async another(): Promise<Pair> {
    return new Pair(this.server, this.redis, await connect(this.server.port), await connect(this.redis.port));
  }

  /** Empties both. */
  async flush(): Promise<void> {
    await this.ours.send('FLUSHALL');
    await this.theirs.send('FLUSHALL');
  }

  async stop(): Promise<void> {
    this.ours.close();
    this.theirs.close();
    for (const running of this.running) await running.stop();
  }
}

/** Starts both. */
export async function startPair(
  options: Partial<ServerOptions> = {},
  redisArgs: readonly string[] = [],
): Promise<Pair> {
  const [server, redis] = await Promise.all([startServer(options), startRedis(redisArgs)]);
  return new Pair(server, redis, await connect(server.port), await connect(redis.port));
}
