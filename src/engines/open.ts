import { once } from 'node:events';
import { resolve } from 'node:path';
import { MessageChannel, Worker, type MessagePort } from 'node:worker_threads';
import { EngineClient } from './client.ts';
import {
  EngineError,
  type CloseOptions,
  type Engine,
  type EngineName,
  type EngineOptions,
  type OpenEngineOptions,
} from './engine.ts';
import { resolveOptions } from './options.ts';
import type { Opened, Start } from './protocol.ts';

/** Where the worker's JavaScript is: beside this file, or in dist when this file runs as TypeScript. */
function workerUrl(): URL {
  const sources = import.meta.url.endsWith('.ts');
  return new URL(sources ? '../../dist/engines/worker.js' : './worker.js', import.meta.url);
}

/** LMDB has no lock against its own process. */
const openDirectories = new Set<string>();

function claim(name: EngineName, directory: string): void {
  if (openDirectories.has(directory)) {
    throw new EngineError(
      'ENGINE_LOCKED',
      `engine ${name} in ${directory} is already open in this process; close it first, or use ` +
        `another directory`,
    );
  }
  openDirectories.add(directory);
}

/**
 * Opens an engine in a thread of its own, making it if the directory is new or empty.
 * @throws EngineError
 */
export async function openEngine(
  name: EngineName,
  directory: string,
  options: EngineOptions = {},
  { salvage = false, redone = false }: OpenEngineOptions = {},
): Promise<OwnedEngine> {
  const { port1, port2 } = new MessageChannel();
  const start: Start = {
    engine: name,
    directory: resolve(directory),
    options: resolveOptions(name, options),
    salvage,
    redone,
    port: port1,
  };
  claim(name, start.directory);
  const worker = new Worker(workerUrl(), {
    name: `engine-${name}`,
    workerData: start,
    transferList: [port1],
    // Options of the program that has the engine, such as --input-type, do not concern its thread.
    execArgv: [],
  });
  worker.on('exit', () => openDirectories.delete(start.directory));
  try {
    const [opened] = (await once(worker, 'message')) as [Opened];
    if (!opened.opened) throw new EngineError(opened.code, opened.message);
  } catch (error) {
    port2.close();
    await worker.terminate();
    throw error instanceof EngineError ? error : deadThread(name, start.directory, error);
  }
  return new OwnedEngine(name, start.directory, worker, port2);
}

/** A client, in this thread, of an engine that another thread opened; `port` is from its `connect`. */
export function connectEngine(name: EngineName, port: MessagePort): Engine {
  const client = new EngineClient(name, port);
  port.on('close', () => client.end(deadThread(name)));
  return client;
}

/** The engine as its opener holds it: closing it ends the thread. */
export class OwnedEngine extends EngineClient {
  private readonly worker: Worker;
  private closed: Promise<void> | undefined;

  constructor(name: EngineName, directory: string, worker: Worker, port: MessagePort) {
    super(name, port);
    this.worker = worker;
    worker.on('error', (cause) => this.end(deadThread(name, directory, cause)));
    worker.on('exit', () => this.end(deadThread(name, directory)));
  }

  override close(options: CloseOptions = {}): Promise<void> {
    this.closed ??= this.shutDown(options.abandon === true);
    return this.closed;
  }

  private async shutDown(abandon: boolean): Promise<void> {
    const exited = once(this.worker, 'exit');
    try {
      await this.call((id) => ({ op: 'close', id, abandon }));
    } finally {
      this.end(new EngineError('ENGINE_DEAD', `engine ${this.name} is closed`));
      this.port.close();
      await this.worker.terminate();
      await exited;
    }
  }

  /** Ends the thread at once, as its crash would. What was not synced is as after a crash. */
  async kill(): Promise<void> {
    await this.worker.terminate();
  }
}

function deadThread(name: EngineName, directory?: string, cause?: unknown): EngineError {
  const where = directory === undefined ? '' : ` of ${directory}`;
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  return new EngineError(
    'ENGINE_DEAD',
    `the thread of engine ${name}${where} has ended${why}; nothing more is written; restart to recover`,
    cause,
  );
}
