/** RDB files and real servers that make and take them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { RdbReader, type RdbReaderOptions } from '../../src/rdb/reader.ts';
import type { RdbVisitor } from '../../src/rdb/visitor.ts';
import { RdbWriter, type RdbWriterOptions } from '../../src/rdb/writer.ts';
import { connect, startRedis, type RawClient, type Running } from '../server/harness.ts';

/** A real redis-server whose RDB file can be written, read and replaced. */
export class RedisWithFile {
  readonly directory: string;
  readonly client: RawClient;
  private readonly running: Running;

  private constructor(directory: string, running: Running, client: RawClient) {
    this.directory = directory;
    this.running = running;
    this.client = client;
  }

  /** `file`: what it loads at the start. */
  static async start(args: readonly string[] = [], file?: Buffer): Promise<RedisWithFile> {
    const directory = mkdtempSync(path.join(os.tmpdir(), 'ardent-rdb-'));
    if (file !== undefined) writeFileSync(path.join(directory, 'dump.rdb'), file);
    const running = await startRedis(['--dir', directory, ...args]);
    const client = await connect(running.port);
    // While it loads it answers -LOADING.
    for (let i = 0; i < 500 && (await client.send('PING')).startsWith('-LOADING'); i++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return new RedisWithFile(directory, running, client);
  }

  get path(): string {
    return path.join(this.directory, 'dump.rdb');
  }

  /** The file that SAVE writes now. */
  async save(): Promise<Buffer> {
    const reply = await this.client.send('SAVE');
    if (reply !== '+OK\r\n') throw new Error(reply);
    return readFileSync(this.path);
  }

  async digest(): Promise<string> {
    return this.client.send('DEBUG', 'DIGEST');
  }

  async stop(): Promise<void> {
    this.client.close();
    await this.running.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** Feeds the file to a reader in pieces of `pieceBytes`. */
export function readAll(
  file: Uint8Array,
  visitor: RdbVisitor,
  pieceBytes = 64 * 1024,
  options: RdbReaderOptions = { size: file.length },
): RdbReader {
  const reader = new RdbReader(visitor, options);
  for (let at = 0; at < file.length; at += pieceBytes) reader.feed(file.subarray(at, at + pieceBytes));
  reader.finish();
  return reader;
}

/** Collects what a writer writes, patches included. */
export class Collected {
  readonly parts: Buffer[] = [];
  private length = 0;
  patches = 0;

  write(bytes: Buffer): void {
    this.parts.push(Buffer.from(bytes));
    this.length += bytes.length;
  }

  patch(offset: number, bytes: Buffer): void {
    this.patches++;
    for (const part of this.parts) {
      if (offset < part.length) {
        // A patched length never lies in two parts.
        bytes.copy(part, offset);
        return;
      }
      offset -= part.length;
    }
    throw new Error('a patch beyond what was written');
  }

  bytes(): Buffer {
    return Buffer.concat(this.parts, this.length);
  }
}

/** The file as our writer writes it. */
export function rewrite(
  file: Uint8Array,
  options: Partial<RdbWriterOptions> = {},
  pieceBytes?: number,
): Buffer {
  const collected = new Collected();
  const writer = new RdbWriter({
    write: (bytes) => collected.write(bytes),
    patch: (offset, bytes) => collected.patch(offset, bytes),
    ...options,
  });
  readAll(file, writer, pieceBytes);
  return collected.bytes();
}
