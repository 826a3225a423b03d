/** An RDB file read from its beginning to its end, with progress where somebody watches. */
import { createReadStream, statSync } from 'node:fs';
import { RdbError } from '../rdb/error.ts';
import { RdbReader } from '../rdb/reader.ts';
import type { RdbVisitor } from '../rdb/visitor.ts';
import { formatBytes, formatDuration } from '../report/format.ts';
import { UsageError } from './exit-codes.ts';

const PIECE_BYTES = 256 * 1024;
const PROGRESS_INTERVAL_MS = 200;

/** The file is damaged; the message has its name, the offset, the key and the reason. */
export class FileError extends Error {}

export interface ReadOptions {
  /** Called with the reader before the first byte. */
  onReader?(reader: RdbReader): void;
  /** Awaited after each piece of the file. */
  afterPiece?(): Promise<void> | undefined;
}

/** Returns the reader, which has read the whole file. */
export async function readFile(
  path: string,
  visitor: RdbVisitor,
  options: ReadOptions = {},
): Promise<RdbReader> {
  const stat = statSync(path);
  if (!stat.isFile()) throw new UsageError(`${path}: not a file`);
  const { size } = stat;
  const reader = new RdbReader(visitor, { size });
  options.onReader?.(reader);
  const progress = new Progress(path, size);
  try {
    for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES })) {
      reader.feed(piece as Buffer);
      const waiting = options.afterPiece?.();
      if (waiting !== undefined) await waiting;
      if (reader.done) break;
      progress.show(reader.offset);
    }
    reader.finish();
  } catch (error) {
    if (error instanceof RdbError) throw new FileError(`${path}: ${error.message}`);
    throw error;
  } finally {
    progress.clear();
  }
  return reader;
}

/** A line on standard error, if that is a terminal. */
class Progress {
  private readonly path: string;
  private readonly size: number;
  private readonly start = Date.now();
  private shown = Date.now();
  private readonly visible = process.stderr.isTTY;

  constructor(path: string, size: number) {
    this.path = path;
    this.size = size;
  }

  show(offset: number): void {
    const now = Date.now();
    if (!this.visible || now - this.shown < PROGRESS_INTERVAL_MS) return;
    this.shown = now;
    const seconds = (now - this.start) / 1000;
    const left = (seconds * (this.size - offset)) / offset;
    process.stderr.write(
      `\r\x1b[K${this.path}: ${((100 * offset) / this.size).toFixed(0)}% of ${formatBytes(this.size)}, ${formatBytes(offset / seconds)}/s, ${formatDuration(left)} left`,
    );
  }

  clear(): void {
    if (this.visible) process.stderr.write('\r\x1b[K');
  }
}
