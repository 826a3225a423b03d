import { open, mkdir, readdir } from 'node:fs/promises';
import type { MessagePort } from 'node:worker_threads';
import { applyRowFile } from './apply-rows.ts';
import type { Binding, Scan, Site } from './binding.ts';
import {
  EngineError,
  type ApplyOptions,
  type EngineName,
  type PackedKeys,
  type PackedRows,
} from './engine.ts';
import { engineFailure } from './failure.ts';
import { directoryBytes } from './files.ts';
import { markCopy } from './identity.ts';
import { Lane } from './pace.ts';
import { prefixRange, RowPacker, unpackKeys } from './packed.ts';
import type { Reply, Request, Result } from './protocol.ts';
import { openRows, sealRows } from './row-checksum.ts';

const BATCH_BYTES_DEFAULT = 4 * 1024 * 1024;
const PREFIX_CHUNK_BYTES = 64 * 1024;
const DIRECTORY_MODE = 0o755;

/** The engine's thread: serves any number of ports from one binding. */
export class Host {
  private readonly engine: EngineName;
  private readonly directory: string;
  private readonly binding: Binding;
  private readonly writes: Lane;
  private readonly maintenance: Lane;
  /** Scans read one chunk at a time (see Binding). */
  private readonly scanning = new Lane();
  private readonly active = new Set<Promise<void>>();
  /** Open scans, by client. */
  private readonly scans = new Set<Map<number, Scan>>();
  private closing = false;

  constructor(engine: EngineName, site: Site, binding: Binding) {
    this.engine = engine;
    this.directory = site.directory;
    this.writes = site.writes;
    this.maintenance = site.maintenance;
    this.binding = binding;
  }

  serve(port: MessagePort): void {
    const scans = new Map<number, Scan>();
    this.scans.add(scans);
    port.on('message', (request: Request) => {
      if (request.op === 'connect') this.serve(request.port);
      else if (request.op === 'scanEnd') this.track(this.endScan(scans, request.scan));
      else if (request.op === 'close') void this.close(port, request.id, request.abandon);
      else this.track(this.answer(port, scans, request));
    });
    port.on('close', () => {
      this.scans.delete(scans);
      for (const scan of [...scans.keys()]) this.track(this.endScan(scans, scan));
    });
  }

  private track(work: Promise<void>): void {
    this.active.add(work);
    void work.finally(() => this.active.delete(work));
  }

  private async answer(
    port: MessagePort,
    scans: Map<number, Scan>,
    request: Exclude<Request, { op: 'connect' | 'scanEnd' | 'close' }>,
  ): Promise<void> {
    try {
      if (this.closing) throw this.closed();
      const result = await this.perform(scans, request);
      const packed = typeof result === 'object' && 'bytes' in result ? [result.bytes] : [];
      port.postMessage({ id: request.id, result } satisfies Reply, packed);
    } catch (error) {
      const { code, message } = engineFailure(this.engine, this.directory, error);
      port.postMessage({ id: request.id, code, message } satisfies Reply);
    }
  }

  private async perform(
    scans: Map<number, Scan>,
    request: Exclude<Request, { op: 'connect' | 'scanEnd' | 'close' }>,
  ): Promise<Result> {
    const { binding } = this;
    switch (request.op) {
      case 'getMany':
        return openRows(await binding.getMany(request.keys));
      case 'getPrefixed':
        return openRows(await this.getPrefixed(request.prefixes));
      case 'write':
        return this.writes.run(async () => {
          if (request.batch.rows > 0) await binding.write(sealRows(request.batch));
          if (request.sync) await binding.sync();
          return undefined;
        });
      case 'applyRows':
        return this.applyRows(request.path, request.offset, request.length, request.options);
      case 'scan': {
        const scan = await binding.scan(request.range, request.keysOnly, request.salvage);
        scans.set(request.scan, request.keysOnly ? scan : new CheckedScan(scan));
        return this.scanNext(scans, request.scan, request.chunkBytes);
      }
      case 'scanNext':
        return this.scanNext(scans, request.scan, request.chunkBytes);
      case 'deleteRange':
        await binding.deleteRange(request.range);
        return undefined;
      case 'compact':
        await this.maintenance.run(() => binding.compact());
        return undefined;
      case 'backup':
        await this.maintenance.run(() => this.backup(request.directory));
        return undefined;
      case 'stats': {
        const diskBytes = await directoryBytes(this.directory);
        return { diskBytes, ...(await binding.stats()) };
      }
    }
  }

  private async getPrefixed(prefixes: PackedKeys): Promise<PackedRows> {
    const packer = new RowPacker();
    for (const prefix of unpackKeys(prefixes)) {
      await this.scanning.run(async () => {
        const scan = await this.binding.scan(prefixRange(prefix), false);
        try {
          for (;;) {
            const rows = await scan.next(PREFIX_CHUNK_BYTES);
            if (rows === undefined) return;
            packer.append(rows);
            // Where all of it is one chunk, which is usual, the end is known without being asked for.
            if (rows.length < PREFIX_CHUNK_BYTES) return;
          }
        } finally {
          await scan.close();
        }
      });
    }
    return packer.take();
  }

  private async scanNext(scans: Map<number, Scan>, id: number, chunkBytes: number): Promise<Result> {
    const rows = await this.scanning.run(async () => scans.get(id)?.next(chunkBytes));
    if (rows === undefined) await this.endScan(scans, id);
    return rows;
  }

  private async endScan(scans: Map<number, Scan>, id: number): Promise<void> {
    const scan = scans.get(id);
    if (scan === undefined) return;
    scans.delete(id);
    // In the lane, so as not to close what is being read.
    await this.scanning.run(() => scan.close());
  }

  private async backup(to: string): Promise<void> {
    await mkdir(to, { recursive: true, mode: DIRECTORY_MODE });
    if ((await readdir(to)).length > 0) {
      throw new EngineError('ENGINE_IO', `${to} is not empty; give the backup a directory of its own`);
    }
    await this.binding.backup(to);
    await markCopy(this.engine, to);
  }

  private async applyRows(
    path: string,
    offset: number,
    length: number,
    options: ApplyOptions,
  ): Promise<number> {
    const windowBytes = options.batchBytes ?? BATCH_BYTES_DEFAULT;
    const batchBytes = Math.min(windowBytes, this.binding.applyBytesMax);
    const file = await open(path, 'r');
    let rows: number;
    try {
      rows = await applyRowFile({ file, path, offset, length }, { windowBytes, batchBytes }, (batch) =>
        this.writes.run(() => this.binding.write(batch)),
      );
    } finally {
      await file.close();
    }
    if (options.sync === true) await this.writes.run(() => this.binding.sync());
    return rows;
  }

  private closed(): EngineError {
    return new EngineError('ENGINE_DEAD', `engine ${this.engine} in ${this.directory} is closed`);
  }

  private async close(port: MessagePort, id: number, abandon: boolean): Promise<void> {
    this.closing = true;
    if (abandon) this.binding.abandonWrite?.();
    let reply: Reply = { id, result: undefined };
    try {
      const reason = this.closed();
      await this.writes.end(reason);
      await this.maintenance.end(reason);
      await Promise.all(this.active);
      for (const scans of this.scans) {
        for (const scan of [...scans.keys()]) await this.endScan(scans, scan);
      }
      await this.binding.close();
    } catch (error) {
      const { code, message } = engineFailure(this.engine, this.directory, error);
      reply = { id, code, message };
    }
    // The opener ends the thread, and with it all other ports, when it has the reply.
    port.postMessage(reply);
  }
}

/** A scan whose rows are checked. */
class CheckedScan implements Scan {
  private readonly scan: Scan;

  constructor(scan: Scan) {
    this.scan = scan;
  }

  async next(chunkBytes: number): Promise<PackedRows | undefined> {
    const rows = await this.scan.next(chunkBytes);
    return rows === undefined ? undefined : openRows(rows);
  }

  close(): Promise<void> {
    return this.scan.close();
  }
}
