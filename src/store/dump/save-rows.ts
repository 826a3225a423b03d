/**
 * A dump of data that are not all in memory: a checkpoint brings everything into the engine, and a
 * thread reads the engine as it is then. This thread does nothing meanwhile.
 */
import { Worker } from 'node:worker_threads';
import { readMeta } from '../meta-row.ts';
import type { PersistentStore } from '../persistent-store.ts';
import { databasesOfMeta, readTierMeta } from '../tier-meta.ts';
import type { Tier } from '../tier.ts';
import { temporaryName } from './dump-file.ts';
import type { DumpStart, FromDumpThread } from './dump-thread.ts';
import type { DumpUnderWay } from './dumps.ts';
import { threadUrl, type SaveOptions, type SaveResult } from './save-slabs.ts';

export class RowSave implements DumpUnderWay {
  readonly done: Promise<SaveResult>;
  /** What changes meanwhile costs no memory here: the engine keeps its view. */
  readonly keptBytes = 0;
  fraction = 0;
  private readonly store: PersistentStore<Tier>;
  private worker: Worker | null = null;
  private abandoned = false;

  constructor(store: PersistentStore<Tier>, options: SaveOptions) {
    this.store = store;
    this.done = this.run(options);
  }

  abandon(): void {
    this.abandoned = true;
    this.worker?.postMessage('abandon');
  }

  private async run(options: SaveOptions): Promise<SaveResult> {
    const { checkpointer, engine } = this.store;
    const { hasher } = this.store.store;
    const began = performance.now();
    // Rows of databases that are being merged are in two places.
    let held = false;
    const release = (): void => {
      if (held) checkpointer.release();
      held = false;
    };
    try {
      let tier: Uint8Array;
      do {
        release();
        await this.store.store.merger.idle();
        await checkpointer.checkpoint();
        // Whichever checkpoint was the last, the engine is as at its cut, until the view is taken.
        await checkpointer.hold();
        held = true;
        const row = await readMeta(engine);
        if (row === null) throw new Error('the engine has no checkpoint');
        ({ tier } = row);
        if (this.abandoned) throw new Error('given up');
      } while (readTierMeta(tier).merges.length > 0);
      const databases = databasesOfMeta(tier);
      const port = engine.connect();
      const start: DumpStart = {
        path: options.path,
        temporary: temporaryName(options.path),
        format: options.format,
        hashKey: [hasher.key0, hasher.key1],
        compression: options.compression,
        checksum: options.checksum,
        aux: options.aux,
        databases,
        background: !options.foreground,
        engine: { name: engine.name, port },
      };
      const worker = new Worker(threadUrl('dump-thread'), {
        name: 'dump',
        workerData: start,
        transferList: [port],
        execArgv: [],
      });
      this.worker = worker;
      const total = databases.reduce((sum, { keys }) => sum + keys, 0);
      return await new Promise<SaveResult>((resolve, reject) => {
        worker.on('error', reject);
        worker.on('exit', () => reject(new Error('the thread of the dump has ended')));
        worker.on('message', (message: FromDumpThread) => {
          if ('opened' in message) release();
          else if ('error' in message) reject(new Error(message.error));
          else if ('progress' in message) this.fraction = total === 0 ? 1 : message.progress / total;
          else if ('bytes' in message) resolve({ ...message, elapsed: performance.now() - began });
        });
      });
    } finally {
      release();
      await this.worker?.terminate();
    }
  }
}
