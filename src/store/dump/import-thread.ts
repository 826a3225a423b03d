/** The file that a thread runs which reads a dump: an RDB file or an image comes in, runs of records and pages go out. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { RdbError } from '../../rdb/error.ts';
import { RdbReader } from '../../rdb/reader.ts';
import { DumpFile, temporaryName } from './dump-file.ts';
import { IMAGE_MAGIC } from './image-format.ts';
import { ImageReader } from './image-reader.ts';
import { RowBuilder, type CompactLimits, type RowBuilderOptions } from './row-builder.ts';

/** What the thread is started with. */
export interface ImportStart {
  path: string;
  /** Where the file is copied to, synced, before the end is told; null: it is not. */
  copy: string | null;
  /** Of RDB files; an image's are always compared. */
  checksum: boolean;
  hashKey: readonly [number, number];
  limits: CompactLimits;
  now: number;
  database: number;
  databases: number;
}

/** A message was taken in: the next may come. */
export type ToImportThread = 'taken';

export interface ImportedCounts {
  keys: number;
  expired: number;
  modules: number;
}

export type FromImportThread =
  | { memory: ArrayBuffer; length: number; done: number; size: number }
  | { end: ImportedCounts & { bytes: number } }
  | { error: string };

const READ_BYTES = 256 * 1024;
/** Messages on their way. */
const MESSAGES_MAX = 8;

const port = parentPort!;
const start = workerData as ImportStart;
let underWay = 0;
let wake: (() => void) | null = null;
port.on('message', () => {
  underWay--;
  wake?.();
});
const post = (message: FromImportThread, moved: ArrayBuffer[] = []): void => port.postMessage(message, moved);

/** The file as it is read, from its beginning; what is read is copied. */
class Source {
  readonly size: number;
  done = 0;
  private readonly fd = openSync(start.path, 'r');
  private readonly copy = start.copy === null ? null : new DumpFile(start.copy, temporaryName(start.copy));

  constructor() {
    this.size = fstatSync(this.fd).size;
  }

  get isImage(): boolean {
    const magic = Buffer.alloc(IMAGE_MAGIC.length);
    readSync(this.fd, magic, 0, magic.length, 0);
    return magic.equals(IMAGE_MAGIC);
  }

  /** Fills memory as far as there is more; returns the bytes. */
  read(into: Buffer): number {
    let filled = 0;
    while (filled < into.length) {
      const got = readSync(this.fd, into, filled, into.length - filled, this.done);
      if (got === 0) break;
      filled += got;
      this.done += got;
    }
    this.copy?.write(into.subarray(0, filled));
    return filled;
  }

  async complete(): Promise<void> {
    await this.copy?.commit();
  }

  async abandon(): Promise<void> {
    await this.copy?.abandon();
  }

  close(): void {
    closeSync(this.fd);
  }
}

async function run(): Promise<void> {
  const source = new Source();
  try {
    const options: RowBuilderOptions = {
      ...start,
      send: (memory, length) => {
        underWay++;
        post({ memory, length, done: source.done, size: source.size }, [memory]);
      },
    };
    const counts = await (source.isImage ? readImage(source, options) : readRdb(source, options));
    await source.complete();
    post({ end: { ...counts, bytes: source.done } });
  } catch (error) {
    await source.abandon();
    throw error;
  } finally {
    source.close();
  }
}

/** Until what was sent is taken in, but for a few messages. */
async function room(): Promise<void> {
  while (underWay >= MESSAGES_MAX) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}

async function readRdb(source: Source, options: RowBuilderOptions): Promise<ImportedCounts> {
  const builder = new RowBuilder(options);
  const reader = new RdbReader(builder, { size: source.size, checksum: start.checksum });
  const bytes = Buffer.allocUnsafeSlow(READ_BYTES);
  while (!reader.done) {
    const got = source.read(bytes);
    if (got === 0) break;
    reader.feed(bytes.subarray(0, got));
    await room();
  }
  if (!reader.done) reader.finish();
  builder.flush();
  return builder.counts;
}

async function readImage(source: Source, options: RowBuilderOptions): Promise<ImportedCounts> {
  const reader = new ImageReader((into) => source.read(into), options);
  while (reader.next()) await room();
  return reader.counts;
}

run().catch((error: unknown) => {
  const reason = error instanceof RdbError ? `damaged at ${error.message}` : (error as Error).message;
  post({ error: `${start.path}: ${reason}` });
});
