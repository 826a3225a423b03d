/**
 * IMPORT: a dump's keys come into keyspaces that nothing leads to, and become the databases' in one step.
 *
 * The file itself makes it durable. It is copied into the data directory and synced while it is read; the
 * log then needs to say only that this copy was imported here. A crash before that leaves nothing but a
 * file to be removed; after it the start reads the copy again. When a checkpoint holds
 * what was imported the copy goes.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Keyspace } from '../keyspace.ts';
import { ChunkInstaller } from './chunk-installer.ts';
import { removeTemporary, syncDirectory, temporaryName } from './dump-file.ts';
import { newAnswer, type Handover } from './handover.ts';
import type { FromImportThread, ImportStart, ToImportThread } from './import-thread.ts';
import { meets, mergeStaged, type ImportMode, type Merged } from './merge.ts';
import type { CompactLimits } from './row-builder.ts';
import { RowInstaller } from './row-installer.ts';
import { threadUrl } from './save-slabs.ts';
import type { Tier } from '../tier.ts';

const DIRECTORY = 'imports';
/** CPU time of a slice of taking keys in. */
const SLICE_MS = 5;

export interface ImportSource {
  path: string;
  mode: ImportMode;
  /** Where all keys go; -1: to the databases that they are from. */
  database: number;
  /** Unix ms: keys that were due before are left out. */
  now: number;
}

export interface ImportCounts extends Merged {
  keys: number;
  /** Left out, because their time was over. */
  expired: number;
  /** Values of modules, left out. */
  modules: number;
  bytes: number;
}

/** What the thread sends to be taken in, chunks or items, which go on at `pos`. */
type Coming = Handover | { items: ArrayBuffer; length: number; pos: number };

/** One import, until it is committed or given up. */
export class Import {
  /** Name of the copy in the data directory. */
  readonly id: string;
  readonly source: ImportSource;
  /** Everything has been read and checked, and the copy is on disk. */
  readonly loaded: Promise<void>;
  /** Part of the file that is read, 0 to 1. */
  fraction = 0;
  private readonly tier: Tier;
  /** By database; undefined where the file has no keys. */
  private readonly staged: (Keyspace | undefined)[] = [];
  private readonly rows: RowInstaller;
  private readonly chunks: ChunkInstaller;
  private readonly worker: Worker;
  private readonly answer = newAnswer();
  private readonly waiting: Coming[] = [];
  private scheduled = false;
  private counts: Omit<ImportCounts, keyof Merged> | null = null;
  private over = false;
  private settle!: { resolve: () => void; reject: (error: Error) => void };

  constructor(
    tier: Tier,
    id: string,
    source: ImportSource,
    thread: Pick<ImportStart, 'copy' | 'links' | 'checksum' | 'limits' | 'spill'>,
  ) {
    this.tier = tier;
    this.id = id;
    this.source = source;
    const stagedFor = (database: number): Keyspace => (this.staged[database] ??= tier.stage());
    this.rows = new RowInstaller(tier, stagedFor);
    this.chunks = new ChunkInstaller(tier, stagedFor);
    this.loaded = new Promise((resolve, reject) => {
      this.settle = { resolve, reject };
    });
    const start: ImportStart = {
      ...thread,
      path: source.path,
      answer: this.answer,
      hashKey: [tier.hasher.key0, tier.hasher.key1],
      chunkBytes: tier.arena.chunkBytes,
      chunks: this.takesChunks(),
      now: source.now,
      database: source.database,
      databases: tier.databaseCount,
    };
    this.worker = new Worker(threadUrl('import-thread'), { name: 'import', workerData: start, execArgv: [] });
    this.worker.on('message', (message: FromImportThread) => {
      try {
        if (!this.over) this.receive(message);
      } catch (error) {
        this.abandon(error as Error);
      }
    });
    this.worker.on('error', (error) => this.abandon(error));
    this.worker.on('exit', () => this.abandon(new Error('the thread of the import has ended')));
  }

  /** Whole chunks are worth it for a file that fills some, where there is room for all of it. */
  private takesChunks(): boolean {
    const { arena, isWhole } = this.tier;
    let size: number;
    try {
      ({ size } = statSync(this.source.path));
    } catch {
      return false; // as the thread will tell
    }
    return (
      isWhole && size >= arena.chunkBytes / 8 && arena.slabBytes + arena.roomFor(size * 1.25) < arena.limit
    );
  }

  private receive(message: FromImportThread): void {
    if ('want' in message) {
      this.chunks.lend(message.want, this.answer);
    } else if ('error' in message) {
      throw new Error(message.error);
    } else if ('end' in message) {
      this.counts = message.end;
      this.schedule();
    } else if ('handover' in message) {
      this.waiting.push(message.handover);
      this.schedule();
    } else if ('items' in message) {
      this.waiting.push({ ...message, pos: 0 });
      this.schedule();
    } else {
      this.fraction = message.size === 0 ? 1 : message.done / message.size;
    }
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    setImmediate(() => {
      this.scheduled = false;
      try {
        this.slice();
      } catch (error) {
        if (this.over) this.schedule();
        else this.abandon(error as Error);
      }
    });
  }

  private slice(): void {
    const { waiting } = this;
    if (!this.over && waiting.length > 0 && this.take(waiting[0])) {
      waiting.shift();
      this.worker.postMessage('taken' satisfies ToImportThread);
    }
    if (this.over) this.discard();
    else if (waiting.length > 0) this.schedule();
    else if (this.counts !== null) this.settle.resolve();
  }

  /** Before `commit`: keys can be merged only with keys that are in memory. */
  async ready(): Promise<void> {
    await this.loaded;
    const { staged, source, tier } = this;
    if (source.mode !== 'instead' && meets(tier, staged)) await tier.warmer.finish();
  }

  /** Whether that was all of it. */
  private take(coming: Coming): boolean {
    if ('items' in coming) {
      coming.pos = this.rows.take(coming.items, coming.pos, coming.length, SLICE_MS);
      return coming.pos >= coming.length;
    }
    const { chunks } = this;
    if (!chunks.busy) chunks.begin(coming);
    chunks.go(SLICE_MS);
    return !chunks.busy;
  }

  /** Makes what was loaded a part of the databases, in one step. The log must then say so. */
  commit(): ImportCounts {
    const { memory } = this.tier;
    const { limit } = memory;
    // Half a merge would be worse than a little more memory than allowed, for a moment.
    memory.limit = Infinity;
    let merged: Merged;
    try {
      merged = mergeStaged(this.tier, this.staged, this.source.mode);
    } finally {
      memory.limit = limit;
    }
    this.finish();
    this.chunks.end();
    return { ...this.counts!, ...merged };
  }

  /** Gives it up: soon nothing of it is left in memory. */
  abandon(reason = new Error('given up')): void {
    if (this.over) return;
    this.finish();
    this.discard();
    this.settle.reject(reason);
  }

  private discard(): void {
    const { chunks, staged } = this;
    this.waiting.length = 0;
    // What has begun to be taken over can be freed when it is all there.
    if (chunks.busy) {
      try {
        chunks.go(SLICE_MS);
      } catch {
        // why it is given up is told already
      }
      this.schedule();
      return;
    }
    chunks.end();
    for (const keyspace of staged.splice(0)) if (keyspace !== undefined) this.tier.discard(keyspace);
  }

  private finish(): void {
    this.over = true;
    void this.worker.terminate();
  }
}

export class Imports {
  private readonly tier: Tier;
  private readonly directory: string;
  private readonly limits: () => CompactLimits;
  /** Copies that no checkpoint has made superfluous yet. */
  private readonly unsettled = new Set<string>();
  unsettledBytes = 0;
  /** Milliseconds from the commit of the last import until the engine had all of it; -1: not yet, or none. */
  lastSettledMs = -1;

  /** @param directory the data directory */
  constructor(tier: Tier, directory: string, limits: () => CompactLimits) {
    this.tier = tier;
    this.directory = path.join(directory, DIRECTORY);
    this.limits = limits;
  }

  private file(id: string): string {
    return path.join(this.directory, id);
  }

  /** Files in the data directory itself are the server's dumps, or were put there in their place. */
  private isOwn(file: string): boolean {
    try {
      return realpathSync(path.dirname(file)) === realpathSync(path.dirname(this.directory));
    } catch {
      return false; // as the thread will tell
    }
  }

  private spill(id: string): string {
    return temporaryName(this.file(`${id}.pages`));
  }

  /** Begins to load a file; nothing of it is seen before `commit`. */
  begin(source: ImportSource, checksum: boolean): Import {
    if (!existsSync(this.directory)) {
      mkdirSync(this.directory, { recursive: true, mode: 0o750 });
      syncDirectory(path.dirname(this.directory));
    }
    const id = `${randomBytes(8).toString('hex')}${path.extname(source.path) === '.image' ? '.image' : '.rdb'}`;
    const loading = new Import(this.tier, id, source, {
      copy: this.file(id),
      links: this.isOwn(source.path),
      spill: this.spill(id),
      checksum,
      limits: this.limits(),
    });
    return loading;
  }

  /** The log says that this copy was imported here: loads it again. */
  async replay(id: string, source: Omit<ImportSource, 'path'>): Promise<void> {
    const loading = new Import(
      this.tier,
      id,
      { ...source, path: this.file(id) },
      { copy: null, links: false, spill: this.spill(id), checksum: true, limits: this.limits() },
    );
    await loading.ready();
    loading.commit();
    this.keep(id);
  }

  /** The import is in the log: its copy is needed until a checkpoint holds it. */
  keep(id: string): void {
    if (this.unsettled.has(id)) return;
    this.unsettled.add(id);
    this.unsettledBytes += statSync(this.file(id)).size;
  }

  /** Copies that the log may ask for. */
  files(): string[] {
    return [...this.unsettled].map((id) => this.file(id));
  }

  /** An import was given up: its copy is of no use. */
  forget(id: string): void {
    rmSync(this.file(id), { force: true });
  }

  /** After a start: removes what no log entry has asked for. */
  clean(): void {
    if (!existsSync(this.directory)) return;
    removeTemporary(this.directory);
    for (const name of readdirSync(this.directory)) if (!this.unsettled.has(name)) this.forget(name);
  }

  /** Has everything that was imported brought into the engine by `checkpoint`, and the copies removed. */
  async settle(checkpoint: () => Promise<void>): Promise<void> {
    const ids = [...this.unsettled];
    if (ids.length === 0) return;
    const began = performance.now();
    await checkpoint();
    for (const id of ids) {
      this.unsettled.delete(id);
      this.forget(id);
    }
    if (this.unsettled.size === 0) this.unsettledBytes = 0;
    this.lastSettledMs = performance.now() - began;
  }
}
