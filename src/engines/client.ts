import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  EngineError,
  type ApplyOptions,
  type Engine,
  type EngineName,
  type EngineStats,
  type PackedBatch,
  type PackedKeys,
  type PackedRows,
  type Range,
  type ScanOptions,
} from './engine.ts';
import type { Reply, Request, Result } from './protocol.ts';

const CHUNK_BYTES_DEFAULT = 256 * 1024;

interface Pending {
  resolve(result: Result): void;
  reject(error: EngineError): void;
}

/** An engine behind a port to its thread. */
export class EngineClient implements Engine {
  readonly name: EngineName;
  protected readonly port: MessagePort;
  private readonly pending = new Map<number, Pending>();
  private lastId = 0;
  private lastScan = 0;
  private dead: EngineError | undefined;

  constructor(name: EngineName, port: MessagePort) {
    this.name = name;
    this.port = port;
    port.on('message', (reply: Reply) => {
      const waiting = this.pending.get(reply.id);
      if (waiting === undefined) return;
      this.pending.delete(reply.id);
      if ('code' in reply) waiting.reject(new EngineError(reply.code, reply.message));
      else waiting.resolve(reply.result);
    });
  }

  async getMany(keys: PackedKeys): Promise<PackedRows> {
    const ask = (id: number): Request => ({ op: 'getMany', id, keys });
    return (await this.call(ask, keys.bytes)) as PackedRows;
  }

  async getPrefixed(prefixes: PackedKeys): Promise<PackedRows> {
    const ask = (id: number): Request => ({ op: 'getPrefixed', id, prefixes });
    return (await this.call(ask, prefixes.bytes)) as PackedRows;
  }

  async write(batch: PackedBatch, options?: { sync?: boolean }): Promise<void> {
    const sync = options?.sync === true;
    await this.call((id) => ({ op: 'write', id, batch, sync }), batch.bytes);
  }

  async applyRows(path: string, offset: number, length: number, options: ApplyOptions = {}): Promise<number> {
    return (await this.call((id) => ({
      op: 'applyRows',
      id,
      path,
      offset,
      length,
      options,
    }))) as number;
  }

  async *scan(options: ScanOptions): AsyncGenerator<PackedRows, void, undefined> {
    const { keysOnly = false, salvage = false, chunkBytes = CHUNK_BYTES_DEFAULT } = options;
    const range = rangeOf(options);
    const scan = ++this.lastScan;
    let next = this.call((id) => ({ op: 'scan', id, scan, range, keysOnly, salvage, chunkBytes }));
    try {
      for (;;) {
        const rows = (await next) as PackedRows | undefined;
        if (rows === undefined) return;
        // The next chunk is read while the caller works on this one.
        next = this.call((id) => ({ op: 'scanNext', id, scan, chunkBytes }));
        next.catch(ignore);
        yield rows;
      }
    } finally {
      if (this.dead === undefined) this.port.postMessage({ op: 'scanEnd', scan } satisfies Request);
    }
  }

  async deleteRange(range: Range): Promise<void> {
    await this.call((id) => ({ op: 'deleteRange', id, range: rangeOf(range) }));
  }

  async compact(): Promise<void> {
    await this.call((id) => ({ op: 'compact', id }));
  }

  async backup(directory: string): Promise<void> {
    await this.call((id) => ({ op: 'backup', id, directory }));
  }

  async stats(): Promise<EngineStats> {
    return (await this.call((id) => ({ op: 'stats', id }))) as EngineStats;
  }

  connect(): MessagePort {
    if (this.dead !== undefined) throw this.dead;
    const { port1, port2 } = new MessageChannel();
    this.port.postMessage({ op: 'connect', port: port1 } satisfies Request, [port1]);
    return port2;
  }

  close(): Promise<void> {
    this.end(new EngineError('ENGINE_DEAD', `the connection to engine ${this.name} is closed`));
    this.port.close();
    return Promise.resolve();
  }

  /** Rejects every pending and later call. */
  end(reason: EngineError): void {
    this.dead ??= reason;
    const pending = [...this.pending.values()];
    this.pending.clear();
    for (const waiting of pending) waiting.reject(reason);
  }

  protected call(ask: (id: number) => Request, transferred?: ArrayBuffer): Promise<Result> {
    if (this.dead !== undefined) return Promise.reject(this.dead);
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.port.postMessage(ask(id), transferred === undefined ? [] : [transferred]);
      this.pending.set(id, { resolve, reject });
    });
  }
}

/** Only the range's bounds, each in memory of its own: a view would carry its whole memory across. */
function rangeOf({ start, end }: Range): Range {
  return { start: Uint8Array.from(start), end: end && Uint8Array.from(end) };
}

/** A chunk read ahead may fail after the caller left; had it asked, the failure would be thrown there. */
function ignore(): void {}
