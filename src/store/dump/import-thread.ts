/** The file that a thread runs which reads a dump: an RDB file or an image comes in, chunks of records and pages go out. */
import { closeSync, fstatSync, fsync, linkSync, openSync, read, readSync, rmSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { RdbError } from '../../rdb/error.ts';
import { RdbReader } from '../../rdb/reader.ts';
import { ChunkTarget } from './chunk-target.ts';
import { DumpFile, syncDirectory, temporaryName } from './dump-file.ts';
import { Borrower, memoryOf, type Handover, type Want } from './handover.ts';
import { IMAGE_MAGIC } from './image-format.ts';
import { ImageReader, type ImageSource } from './image-reader.ts';
import { ItemTarget } from './item-target.ts';
import { RowBuilder, type RowBuilderOptions } from './row-builder.ts';
import type { RowTarget } from './row-target.ts';

/** What the thread is started with. */
export interface ImportStart extends Omit<RowBuilderOptions, 'size'> {
  path: string;
  /** Where the file is copied to, synced, before the end is told; null: it is not. */
  copy: string | null;
  /** The file is only ever replaced by another, never changed: a second name for it does instead of a copy. */
  links: boolean;
  /** Path of a file for what has to wait for its turn. */
  spill: string;
  /** Of RDB files; an image's are always compared. */
  checksum: boolean;
  hashKey: readonly [number, number];
  chunkBytes: number;
  /** Whether chunks are handed over, as long as there is room for them. */
  chunks: boolean;
  /** Where the answers to wants come. */
  answer: SharedArrayBuffer;
}

/** A handover or a run of items is taken in: the next may come. Or: what was read will be in the engine, and no copy is needed. */
export type ToImportThread = 'taken' | 'no copy';

export interface ImportedCounts {
  keys: number;
  expired: number;
  modules: number;
}

export type FromImportThread =
  | { want: Want }
  /** What was made of the file before an offset. */
  | { handover: Handover; before: number }
  /** As in row-items.ts. */
  | { items: ArrayBuffer; length: number; before: number }
  /** Bytes read, of so many. */
  | { done: number; size: number }
  | { end: ImportedCounts & { bytes: number } }
  | { error: string };

const PIECE_BYTES = 512 * 1024;
/** Pieces between two words of how far it is. */
const PIECES_A_WORD = 8;
/** Pieces that are being read, and copied, while one is taken. */
const PIECES_AHEAD = 2;
/** Handovers, and runs of items, on their way. */
const HANDOVERS_MAX = 2;
const RUNS_MAX = 8;

const readFile = promisify(read);
const syncFile = promisify(fsync);

const port = parentPort!;
const start = workerData as ImportStart;
let underWay = 0;
let wake: (() => void) | null = null;
let source: Source | null = null;
port.on('message', (message: ToImportThread) => {
  if (message === 'no copy') {
    void source?.dropCopy();
    return;
  }
  underWay--;
  wake?.();
});
const post = (message: FromImportThread, moved: ArrayBuffer[] = []): void => port.postMessage(message, moved);

function chunks(): ChunkTarget {
  const send = (handover: Handover): void => {
    underWay++;
    post({ handover, before: source!.offset }, memoryOf(handover));
  };
  return new ChunkTarget(start, new Borrower(port, start.answer), send, items);
}

function items(): ItemTarget {
  return new ItemTarget(start, (memory, length) => {
    underWay++;
    post({ items: memory, length, before: source!.offset }, [memory]);
  });
}

/** Gives a file a second name, if its file system can. */
function linked(file: string, name: string): boolean {
  try {
    linkSync(file, name);
    return true;
  } catch {
    return false;
  }
}

/** The file as it is read, from its beginning; what is read is copied, or the file linked. */
class Source implements ImageSource {
  readonly size: number;
  done = 0;
  private readonly fd: number;
  private copy: DumpFile | null = null;
  /** Another name of the same file, instead of a copy; null: there is none. */
  private link: string | null = null;

  constructor() {
    const { copy } = start;
    if (copy !== null && start.links && linked(start.path, copy)) this.link = copy;
    this.fd = openSync(this.link ?? start.path, 'r');
    this.size = fstatSync(this.fd).size;
    if (copy !== null && this.link === null) this.copy = new DumpFile(copy, temporaryName(copy));
  }

  /** Byte of the file before which all that has been taken of it stands. */
  get offset(): number {
    return Math.min(this.done, this.size);
  }

  get isImage(): boolean {
    const magic = Buffer.alloc(IMAGE_MAGIC.length);
    readSync(this.fd, magic, 0, magic.length, 0);
    return magic.equals(IMAGE_MAGIC);
  }

  read(into: Buffer): number {
    const at = this.done;
    for (let filled = 0; filled < into.length;) {
      const got = readSync(this.fd, into, filled, into.length - filled, this.done);
      if (got === 0) break;
      filled += got;
      this.done += got;
    }
    const bytes = into.subarray(0, this.done - at);
    this.copy?.write(bytes, at);
    return bytes.length;
  }

  async readLater(into: Buffer): Promise<number> {
    const at = this.done;
    this.done += into.length;
    let filled = 0;
    while (filled < into.length) {
      const { bytesRead } = await readFile(this.fd, into, filled, into.length - filled, at + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    await this.copy?.writeLater(into.subarray(0, filled), at);
    return filled;
  }

  /** Pieces one after the other, each lent until the next; reading and copying go on beside what is done with them. */
  async *pieces(): AsyncGenerator<Buffer> {
    const buffers = Array.from({ length: PIECES_AHEAD + 1 }, () => Buffer.allocUnsafeSlow(PIECE_BYTES));
    const coming: Promise<number>[] = [];
    const next = (): Promise<number> => this.readLater(buffers[asked++ % buffers.length]);
    let asked = 0;
    try {
      for (let piece = 0; ; piece++) {
        while (coming.length < PIECES_AHEAD) coming.push(next());
        const got = await coming.shift()!;
        if (got === 0) break;
        yield buffers[piece % buffers.length].subarray(0, got);
        if (piece % PIECES_A_WORD === 0) post({ done: piece * PIECE_BYTES, size: this.size });
      }
    } finally {
      await Promise.all(coming);
    }
  }

  async complete(): Promise<void> {
    const { copy, link } = this;
    this.copy = this.link = null;
    await copy?.commit();
    if (link === null) return;
    await syncFile(this.fd);
    syncDirectory(path.dirname(link));
  }

  /** Removes the copy, or the link; the file can be read on. */
  async dropCopy(): Promise<void> {
    const { copy, link } = this;
    this.copy = this.link = null;
    if (link !== null) rmSync(link, { force: true });
    await copy?.abandon();
  }

  close(): void {
    closeSync(this.fd);
  }
}

async function run(): Promise<void> {
  source = new Source();
  try {
    const target = start.chunks ? chunks() : items();
    const counts = await (source.isImage ? readImage(source, target) : readRdb(source, target));
    await source.complete();
    post({ end: { ...counts, bytes: source.size } });
  } catch (error) {
    await source.dropCopy();
    throw error;
  } finally {
    source.close();
  }
}

/** Until what was handed over is taken in, but for a little. */
async function room(target: RowTarget): Promise<void> {
  while (underWay >= (target instanceof ChunkTarget ? HANDOVERS_MAX : RUNS_MAX)) {
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
}

async function readRdb(source: Source, target: RowTarget): Promise<ImportedCounts> {
  const builder = new RowBuilder({ ...start, size: source.size }, target);
  const reader = new RdbReader(builder, { size: source.size, checksum: start.checksum });
  for await (const bytes of source.pieces()) {
    reader.feed(bytes);
    await room(builder.target);
    if (reader.done) break;
  }
  if (!reader.done) reader.finish();
  builder.target.flush();
  return builder.counts;
}

async function readImage(source: Source, target: RowTarget): Promise<ImportedCounts> {
  const reader = new ImageReader(source, { ...start, size: source.size }, target, start.spill);
  let words = 0;
  await reader.run(async () => {
    if (words++ % PIECES_A_WORD === 0) post({ done: source.done, size: source.size });
    await room(reader.target);
  });
  reader.target.flush();
  return reader.counts;
}

run().catch((error: unknown) => {
  const reason = error instanceof RdbError ? `damaged at ${error.message}` : (error as Error).message;
  post({ error: `${start.path}: ${reason}` });
});
