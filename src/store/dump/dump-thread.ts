/** The file that a thread runs which writes a dump: slabs of a snapshot or rows of an engine come in, an RDB file or an image goes out. */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { Slice } from '../../bytes/slice.ts';
import type { EngineName } from '../../engines/engine.ts';
import { connectEngine } from '../../engines/open.ts';
import { stepBack } from '../../engines/thread-priority.ts';
import { RDB_VERSION_WRITTEN } from '../../rdb/format.ts';
import { RdbWriter } from '../../rdb/writer.ts';
import { DumpFile } from './dump-file.ts';
import { ImageWriter } from './image-writer.ts';
import { PageSpill } from './page-spill.ts';
import { RowDump } from './row-dump.ts';
import type { RowSink } from './row-sink.ts';
import { SlabImage } from './slab-image.ts';
import { SlabReader, type DumpedDatabase, type SlabBatch, type SlabSink } from './slab-reader.ts';
import { ValueExport } from './value-export.ts';

export type DumpFormat = 'rdb' | 'image';

/** What the thread is started with. */
export interface DumpStart {
  path: string;
  temporary: string;
  format: DumpFormat;
  /** What images say of the order of their trees. */
  hashKey: readonly [number, number];
  /** Of RDB files, as are the next two. */
  compression: boolean;
  checksum: boolean;
  /** Fields about the file, as Redis writes them. */
  aux: readonly (readonly [string, string])[];
  databases: readonly DumpedDatabase[];
  /** Let the event loop go first. */
  background: boolean;
  /** What rows are read from; null: slabs come. */
  engine: { name: EngineName; port: MessagePort } | null;
}

export type ToDumpThread = { batch: SlabBatch } | 'end' | 'abandon';

export type FromDumpThread =
  /** A batch's memory, to be filled again. */
  | { memory: ArrayBuffer }
  /** The view of the engine is taken. */
  | { opened: true }
  /** Keys read so far. */
  | { progress: number }
  | { bytes: number; keys: number }
  | { error: string; code: string | undefined };

/** Milliseconds between two words of how far it is. */
const PROGRESS_MS = 200;

const port = parentPort!;
const start = workerData as DumpStart;
if (start.background) stepBack();

const post = (message: FromDumpThread, moved: ArrayBuffer[] = []): void => port.postMessage(message, moved);
let file: DumpFile | null = null;
let failed = false;

async function fail(error: unknown): Promise<void> {
  if (failed) return;
  failed = true;
  await file?.abandon();
  const { message, code } = error as NodeJS.ErrnoException;
  post({ error: message, code });
}

try {
  run();
} catch (error) {
  void fail(error);
}

function run(): void {
  const output = new DumpFile(start.path, start.temporary);
  file = output;
  const writer = start.format === 'image' ? imageWriter(output) : rdbWriter(output);
  if (start.engine === null) readSlabs(output, writer);
  else readRows(output, writer, start.engine).catch(fail);
}

/** Takes what is read: rows, or slabs; `end` when that was all. */
interface Writer {
  rows: RowSink;
  slabs: () => SlabSink;
  end(keys: number): void;
}

function rdbWriter(output: DumpFile): Writer {
  const writer = new RdbWriter({
    write: (bytes) => output.write(bytes),
    patch: (offset, bytes) => output.patch(offset, bytes),
    compression: start.compression,
    checksum: start.checksum,
  });
  writer.begin(RDB_VERSION_WRITTEN);
  for (const [name, value] of start.aux) writer.aux(Slice.from(name), Slice.from(value));
  const rows = new ValueExport(writer);
  const slabs = (): SlabSink =>
    new SlabReader(rows, start.databases, new PageSpill(`${start.temporary}.pages`));
  return { rows, slabs, end: () => writer.end() };
}

function imageWriter(output: DumpFile): Writer {
  const writer = new ImageWriter(
    (bytes) => output.write(bytes),
    (bytes) => output.writeLater(bytes),
  );
  writer.begin(start);
  return {
    rows: writer,
    slabs: () => new SlabImage(writer, start.databases),
    end: (keys) => writer.end(keys),
  };
}

async function finish(output: DumpFile, writer: Writer, keys: number): Promise<void> {
  writer.end(keys);
  await output.commit();
  post({ bytes: output.bytes, keys });
}

async function readRows(
  output: DumpFile,
  writer: Writer,
  from: { name: EngineName; port: MessagePort },
): Promise<void> {
  port.on('message', () => void fail(new Error('given up')));
  const rows = new RowDump(writer.rows, start.databases);
  const told = setInterval(() => post({ progress: rows.keys }), PROGRESS_MS);
  try {
    await rows.run(connectEngine(from.name, from.port), () => post({ opened: true }));
  } finally {
    clearInterval(told);
  }
  if (!failed) await finish(output, writer, rows.keys);
}

function readSlabs(output: DumpFile, writer: Writer): void {
  const slabs = writer.slabs();
  const waiting: (SlabBatch | 'end')[] = [];

  async function end(): Promise<void> {
    slabs.finish();
    await finish(output, writer, slabs.keys);
  }

  async function take(batch: SlabBatch): Promise<void> {
    await slabs.take(batch);
    post({ memory: batch.bytes }, [batch.bytes]);
  }

  /** One a turn: all messages that have come are delivered in one, in which no sync of the file would be seen to end. */
  function next(): void {
    const message = waiting.shift()!;
    if (waiting.length > 0) setImmediate(next);
    if (!failed) (message === 'end' ? end() : take(message)).catch(fail);
  }

  port.on('message', (message: ToDumpThread) => {
    if (message === 'abandon') {
      void fail(new Error('given up'));
      return;
    }
    waiting.push(message === 'end' ? message : message.batch);
    if (waiting.length === 1) setImmediate(next);
  });
}
