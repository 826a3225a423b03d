/**
 * A dump of the memory tier as it is at one moment. This thread only copies slabs, in slices; a
 * thread of its own reads, packs, writes and syncs.
 */
import { Worker } from 'node:worker_threads';
import { SLICE_PADDING } from '../../bytes/slice.ts';
import { SLAB_BYTES, SLAB_RUN } from '../arena.ts';
import { ArenaSnapshot, KEPT_BYTES_HIGH } from '../arena-snapshot.ts';
import { LoopLoad } from '../loop-load.ts';
import type { Tier } from '../tier.ts';
import { temporaryName } from './dump-file.ts';
import type { DumpFormat, DumpStart, FromDumpThread, ToDumpThread } from './dump-thread.ts';
import type { SlabBatch } from './slab-reader.ts';

const SLABS_A_BATCH = 16;
const BATCH_BYTES = SLABS_A_BATCH * SLAB_BYTES;
/** Batches on their way to the thread or back. */
const BATCHES = 8;
/** CPU time of a slice of copying. */
const SLICE_MS = 1;

/** Bytes of memory that a dump takes: batches, the thread's heap and pages, and what is kept of what changes. */
export const DUMP_MEMORY = BATCHES * BATCH_BYTES + 64 * 1024 * 1024 + KEPT_BYTES_HIGH;

export interface SaveOptions {
  /** Path of the file. */
  path: string;
  format: DumpFormat;
  /** Of RDB files, as are the next two. */
  compression: boolean;
  checksum: boolean;
  aux: readonly (readonly [string, string])[];
  /** Somebody waits for it: no pauses for others. */
  foreground: boolean;
  onSlice?: (ms: number) => void;
}

export interface SaveResult {
  bytes: number;
  keys: number;
  /** Milliseconds. */
  elapsed: number;
}

/** Where the JavaScript of a thread is: beside this file, or in dist when this file runs as TypeScript. */
export function threadUrl(name: string): URL {
  const sources = import.meta.url.endsWith('.ts');
  return new URL(sources ? `../../../dist/store/dump/${name}.js` : `./${name}.js`, import.meta.url);
}

/** One save under way. */
export class SlabSave {
  readonly done: Promise<SaveResult>;
  private readonly tier: Tier;
  private readonly options: SaveOptions;
  private readonly worker: Worker;
  private readonly snapshot: ArenaSnapshot;
  private readonly free: ArrayBuffer[] = [];
  private made = 0;
  private scheduled = false;
  private ended = false;
  private readonly load = new LoopLoad();
  private readonly started = performance.now();
  private settle!: { resolve: (result: SaveResult) => void; reject: (error: Error) => void };

  /** What the tier holds at this moment is what the file will hold. */
  constructor(tier: Tier, options: SaveOptions) {
    this.tier = tier;
    this.options = options;
    this.done = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    if (tier.arena.snapshot !== null) throw new Error('a snapshot is under way');
    this.snapshot = new ArenaSnapshot(tier.arena);
    tier.arena.snapshot = this.snapshot;
    const start: DumpStart = {
      path: options.path,
      temporary: temporaryName(options.path),
      format: options.format,
      hashKey: [tier.hasher.key0, tier.hasher.key1],
      compression: options.compression,
      checksum: options.checksum,
      aux: options.aux,
      databases: tier.dumpedDatabases(),
      background: !options.foreground,
      engine: null,
    };
    this.worker = new Worker(threadUrl('dump-thread'), { name: 'dump', workerData: start, execArgv: [] });
    this.worker.on('message', (message: FromDumpThread) => this.receive(message));
    this.worker.on('error', (error) => this.end(error));
    this.worker.on('exit', () => this.end(new Error('the thread of the dump has ended')));
    this.schedule(0);
  }

  /** Bytes kept of what has changed under it. */
  get keptBytes(): number {
    return this.snapshot.keptBytes;
  }

  /** How much of it is copied, 0 to 1. */
  get fraction(): number {
    return this.snapshot.slabs === 0 ? 1 : 1 - this.snapshot.remaining / this.snapshot.slabs;
  }

  /** Gives the file up; `done` rejects. */
  abandon(): void {
    this.post('abandon');
  }

  private post(message: ToDumpThread, moved: ArrayBuffer[] = []): void {
    if (!this.ended) this.worker.postMessage(message, moved);
  }

  private receive(message: FromDumpThread): void {
    if ('memory' in message) {
      if (message.memory.byteLength === BATCH_BYTES + SLICE_PADDING) this.free.push(message.memory);
      else this.made--;
      this.schedule(0);
    } else if ('error' in message) {
      this.end(new Error(message.error));
    } else if ('bytes' in message) {
      this.end(null, { ...message, elapsed: performance.now() - this.started });
    }
  }

  private end(error: Error | null, result?: SaveResult): void {
    if (this.ended) return;
    this.ended = true;
    if (this.tier.arena.snapshot === this.snapshot) this.tier.arena.snapshot = null;
    void this.worker.terminate();
    if (result !== undefined) this.settle.resolve(result);
    else this.settle.reject(error ?? new Error('the dump has failed'));
  }

  private schedule(afterMs: number): void {
    if (this.scheduled || this.ended) return;
    this.scheduled = true;
    const run = (): void => {
      this.scheduled = false;
      this.slice();
    };
    if (afterMs < 1) setImmediate(run);
    else setTimeout(run, afterMs);
  }

  /** Copies slabs for a millisecond, as long as there is memory for them. */
  private slice(): void {
    const { snapshot, options } = this;
    if (this.ended || this.tier.arena.snapshot !== snapshot) return;
    const began = performance.now();
    let elapsed = 0;
    while (elapsed < SLICE_MS && snapshot.nextSlab >= 0) {
      const memory = this.free.pop() ?? this.newBatch();
      if (memory === undefined) break;
      this.fill(memory);
      elapsed = performance.now() - began;
    }
    options.onSlice?.(elapsed);
    if (snapshot.nextSlab < 0) {
      this.tier.arena.snapshot = null;
      this.post('end');
      return;
    }
    if (this.free.length === 0 && this.made === BATCHES) return; // until one comes back
    this.schedule(this.pauseMs(elapsed));
  }

  private pauseMs(sliceMs: number): number {
    const { options, snapshot } = this;
    if (options.foreground || snapshot.keptBytes > KEPT_BYTES_HIGH) return 0;
    return this.load.restAfter(sliceMs);
  }

  private newBatch(): ArrayBuffer | undefined {
    if (this.made === BATCHES) return undefined;
    this.made++;
    return new ArrayBuffer(BATCH_BYTES + SLICE_PADDING);
  }

  private fill(memory: ArrayBuffer): void {
    const { snapshot } = this;
    const { classes, fresh } = snapshot.tables;
    let words = new Int32Array(memory, 0, memory.byteLength >>> 2);
    const told: number[] = [];
    let slabs = 0;
    for (let slab = snapshot.nextSlab; slab >= 0; slab = snapshot.nextSlab) {
      const length = snapshot.runLength(slab);
      if (slabs + length > SLABS_A_BATCH) {
        if (slabs > 0) break;
        // A run that is larger than a batch.
        this.free.push(memory);
        this.made++;
        memory = new ArrayBuffer(length * SLAB_BYTES + SLICE_PADDING);
        words = new Int32Array(memory, 0, memory.byteLength >>> 2);
      }
      snapshot.copy(slab, words, (slabs * SLAB_BYTES) >>> 2);
      told.push(slab, classes[slab], classes[slab] === SLAB_RUN ? length : fresh[slab]);
      slabs += length;
    }
    const batch: SlabBatch = { bytes: memory, slabs: Int32Array.from(told) };
    this.post({ batch }, [memory]);
  }
}
