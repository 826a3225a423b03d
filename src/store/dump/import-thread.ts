/** The file that a thread runs which reads a dump: an RDB file comes in, messages of records and pages go out. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { RdbError } from '../../rdb/error.ts';
import { RdbReader } from '../../rdb/reader.ts';
import { DumpFile, temporaryName } from './dump-file.ts';
import { RowBuilder, type CompactLimits } from './row-builder.ts';

/** What the thread is started with. */
export interface ImportStart {
  path: string;
  /** Where the file is copied to, synced, before the end is told; null: it is not. */
  copy: string | null;
  checksum: boolean;
  hashKey: readonly [number, number];
  limits: CompactLimits;
  now: number;
  database: number;
  databases: number;
}

/** A message was taken in: the next may come. */
export type ToImportThread = 'taken';

export type FromImportThread =
  | { memory: ArrayBuffer; length: number; done: number; size: number }
  | { end: { keys: number; expired: number; modules: number; bytes: number } }
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

run().catch((error: unknown) => {
  const reason = error instanceof RdbError ? `damaged at ${error.message}` : (error as Error).message;
  post({ error: `${start.path}: ${reason}` });
});

async function run(): Promise<void> {
  const fd = openSync(start.path, 'r');
  const copy = start.copy === null ? null : new DumpFile(start.copy, temporaryName(start.copy));
  try {
    const { size } = fstatSync(fd);
    let done = 0;
    const builder = new RowBuilder({
      ...start,
      send: (memory, length) => {
        underWay++;
        post({ memory, length, done, size }, [memory]);
      },
    });
    const reader = new RdbReader(builder, { size, checksum: start.checksum });
    const bytes = Buffer.allocUnsafeSlow(READ_BYTES);
    while (!reader.done) {
      const got = readSync(fd, bytes, 0, READ_BYTES, done);
      if (got === 0) break;
      done += got;
      const piece = bytes.subarray(0, got);
      copy?.write(piece);
      reader.feed(piece);
      while (underWay >= MESSAGES_MAX) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    if (!reader.done) reader.finish();
    builder.flush();
    await copy?.commit();
    post({ end: { ...builder.counts, bytes: done } });
  } catch (error) {
    await copy?.abandon();
    throw error;
  } finally {
    closeSync(fd);
  }
}
