/** The file that a thread runs which writes a dump: slabs of a snapshot or rows of an engine come in, an RDB file goes out. */
import { parentPort, workerData, type MessagePort } from 'node:worker_threads';
import { Slice } from '../../bytes/slice.ts';
import type { EngineName } from '../../engines/engine.ts';
import { connectEngine } from '../../engines/open.ts';
import { stepBack } from '../../engines/thread-priority.ts';
import { RDB_VERSION_WRITTEN } from '../../rdb/format.ts';
import { RdbWriter } from '../../rdb/writer.ts';
import { DumpFile } from './dump-file.ts';
import { PageSpill } from './page-spill.ts';
import { RowDump } from './row-dump.ts';
import { SlabReader, type DumpedDatabase, type SlabBatch } from './slab-reader.ts';

/** What the thread is started with. */
export interface DumpStart {
  path: string;
  temporary: string;
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
  const writer = new RdbWriter({
    write: (bytes) => output.write(bytes),
    patch: (offset, bytes) => output.patch(offset, bytes),
    compression: start.compression,
    checksum: start.checksum,
  });
  writer.begin(RDB_VERSION_WRITTEN);
  for (const [name, value] of start.aux) writer.aux(Slice.from(name), Slice.from(value));
  if (start.engine === null) readSlabs(output, writer);
  else readRows(output, writer, start.engine).catch(fail);
}

async function finish(output: DumpFile, writer: RdbWriter, keys: number): Promise<void> {
  writer.end();
  await output.commit();
  post({ bytes: output.bytes, keys });
}

async function readRows(
  output: DumpFile,
  writer: RdbWriter,
  from: { name: EngineName; port: MessagePort },
): Promise<void> {
  port.on('message', () => void fail(new Error('given up')));
  const rows = new RowDump(writer, start.databases);
  const told = setInterval(() => post({ progress: rows.keys }), PROGRESS_MS);
  try {
    await rows.run(connectEngine(from.name, from.port), () => post({ opened: true }));
  } finally {
    clearInterval(told);
  }
  if (!failed) await finish(output, writer, rows.keys);
}

function readSlabs(output: DumpFile, writer: RdbWriter): void {
  const spill = new PageSpill(`${start.temporary}.pages`);
  const reader = new SlabReader(writer, start.databases, spill);

  async function end(): Promise<void> {
    reader.finish();
    spill.close();
    await finish(output, writer, reader.keys);
  }

  port.on('message', (message: ToDumpThread) => {
    if (failed) return;
    if (message === 'end') end().catch(fail);
    else if (message === 'abandon') void fail(new Error('given up'));
    else {
      try {
        reader.take(message.batch);
        post({ memory: message.batch.bytes }, [message.batch.bytes]);
      } catch (error) {
        void fail(error);
      }
    }
  });
}
