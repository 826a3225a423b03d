/**
 * IMPORT: a dump's keys come into keyspaces that nothing leads to, and become the databases' in one step.
 *
 * What makes it durable is one of two. While all that was loaded is in memory, the file itself: it is copied into
 * the data directory and synced while it is read, and the log then needs to say only that this copy was
 * imported here; the start reads it again, until a checkpoint holds what was imported. Where memory does not
 * suffice, checkpoints bring the loaded rows into the engine while there come more, and what is clean
 * leaves memory. The meta row names those keyspaces, so that a start after a crash gives them up. When a
 * last checkpoint has all of them the log says that they are the databases' now, and no copy is needed.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { RowFault, type WorkingSet } from '../api.ts';
import type { Keyspace } from '../keyspace.ts';
import type { ImportMode, Merge } from '../merge.ts';
import type { Tier } from '../tier.ts';
import { ChunkInstaller } from './chunk-installer.ts';
import { removeTemporary, syncDirectory, temporaryName } from './dump-file.ts';
import { newAnswer } from './handover.ts';
import type { FromImportThread, ImportStart, ToImportThread } from './import-thread.ts';
import type { CompactLimits } from './row-builder.ts';
import { RowInstaller, TwinKeyError } from './row-installer.ts';
import { threadUrl } from './save-slabs.ts';

const DIRECTORY = 'imports';
/** CPU time of a slice of taking keys in. */
const SLICE_MS = 5;
/** Taking in waits while it would slow writers down by more. */
const WRITER_DELAY_MS = 1;
const WAIT_MS = 10;

export interface ImportSource {
  path: string;
  mode: ImportMode;
  /** Where all keys go; -1: to the databases that they are from. */
  database: number;
  /** Unix ms: keys that were due before are left out. */
  now: number;
}

export interface ImportCounts {
  keys: number;
  /** Left out, because their time was over. */
  expired: number;
  /** Values of modules, left out. */
  modules: number;
  bytes: number;
  /** Keys that were there already and have the imported value now, or have kept their own. */
  replaced: number;
  skipped: number;
}

/** What an import has to do with checkpoints. */
export interface ImportPace {
  /** What writers are held up for. */
  writerDelayMs: () => number;
  /** Lets no checkpoint begin until what it returns is called. */
  holdCheckpoints: () => () => void;
}

/** Before there are checkpoints, and writers. */
const UNPACED: ImportPace = { writerDelayMs: () => 0, holdCheckpoints: () => () => {} };

/** What the thread sends to be taken in. */
type Coming = Extract<FromImportThread, { before: number }>;

/** One import, until it is committed or given up. */
export class Import {
  /** Name of the copy in the data directory, and of what is staged. */
  readonly id: string;
  readonly source: ImportSource;
  /** Everything has been read and checked, the copy is on disk, and `commit` may follow. */
  readonly loaded: Promise<void>;
  /** Part of the file that is read, 0 to 1. */
  fraction = 0;
  private readonly tier: Tier;
  private readonly rows: RowInstaller;
  private readonly chunks: ChunkInstaller;
  private readonly worker: Worker;
  private readonly answer = newAnswer();
  private readonly pace: ImportPace;
  private readonly waiting: Coming[] = [];
  private wake: () => void = () => {};
  private counts: Omit<ImportCounts, 'replaced' | 'skipped'> | null = null;
  private failure: Error | null = null;
  private over = false;
  /** Cuts begun before anything was loaded. */
  private readonly cuts: number;
  private copied: boolean;
  /** A cut between taking over chunks and what is in them would write wrong rows: set as long as chunks may come. */
  private release: (() => void) | null = null;

  constructor(
    tier: Tier,
    id: string,
    source: ImportSource,
    thread: Pick<ImportStart, 'copy' | 'links' | 'checksum' | 'limits' | 'spill'>,
    pace: ImportPace,
  ) {
    this.tier = tier;
    this.id = id;
    this.source = source;
    this.pace = pace;
    this.cuts = tier.cutNumber;
    this.copied = thread.copy !== null;
    const staging = tier.stage(id);
    const stagedFor = (database: number): Keyspace => tier.staged(staging, database);
    this.rows = new RowInstaller(tier, stagedFor);
    this.chunks = new ChunkInstaller(tier, stagedFor);
    const chunks = this.takesChunks();
    if (chunks) this.release = pace.holdCheckpoints();
    const start: ImportStart = {
      ...thread,
      path: source.path,
      answer: this.answer,
      hashKey: [tier.hasher.key0, tier.hasher.key1],
      chunkBytes: tier.arena.chunkBytes,
      chunks,
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
    this.loaded = this.load();
    // Who waits for it is told.
    this.loaded.catch((error: unknown) => this.abandon(error as Error));
  }

  /** Some of it may be in the engine, and out of memory: all of it must be in the engine before `commit`. */
  get isInEngine(): boolean {
    return this.tier.cutNumber > this.cuts;
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
      return;
    }
    if ('error' in message) throw new Error(message.error);
    if ('end' in message) this.counts = message.end;
    else if ('before' in message) this.waiting.push(message);
    else this.fraction = message.size === 0 ? 1 : message.done / message.size;
    this.wake();
  }

  private async load(): Promise<void> {
    for (;;) {
      const coming = await this.next();
      if (coming === null) break;
      try {
        await ('items' in coming ? this.takeItems(coming) : this.takeChunks(coming));
      } catch (error) {
        throw this.placed(error as Error, coming);
      }
      this.post('taken');
    }
    this.rows.end();
  }

  /** Where in the file a key stands again: that is found when it is taken in. */
  private placed(error: Error, { before }: Coming): Error {
    if (!(error instanceof TwinKeyError)) return error;
    return new Error(`${this.source.path}: damaged before offset ${before}: ${error.message}`);
  }

  private post(message: ToImportThread): void {
    this.worker.postMessage(message);
  }

  /** What the thread has sent next; null: there is no more. Rejects when the import is over. */
  private async next(): Promise<Coming | null> {
    while (this.waiting.length === 0 && this.counts === null && this.failure === null)
      await new Promise<void>((resolve) => (this.wake = resolve));
    this.stopIfOver();
    return this.waiting.shift() ?? null;
  }

  private stopIfOver(): void {
    if (this.failure !== null) throw this.failure;
  }

  /** Takes chunks over, in slices. What has begun is brought to its end, also when the import is given up: it can be freed when it is all there. */
  private async takeChunks({ handover }: Extract<Coming, { handover: unknown }>): Promise<void> {
    const { chunks } = this;
    this.staged(() => chunks.begin(handover));
    while (chunks.busy) {
      await new Promise((resolve) => setImmediate(resolve));
      try {
        this.staged(() => chunks.go(SLICE_MS));
      } catch (error) {
        this.abandon(error as Error);
      }
    }
    if (this.failure !== null) this.discard();
    this.stopIfOver();
  }

  /** Takes items in, in slices; no chunks come after them. */
  private async takeItems({ items, length }: Extract<Coming, { items: unknown }>): Promise<void> {
    const { rows, tier } = this;
    let set: WorkingSet | null = null;
    this.endChunks();
    rows.open(items, length);
    try {
      while (!rows.done) {
        await this.turn();
        try {
          this.staged(() => rows.take(set, SLICE_MS));
        } catch (error) {
          if (!(error instanceof RowFault)) throw error;
          set ??= tier.workingSet();
          await set.fetch();
        }
        this.stopIfOver();
      }
    } finally {
      set?.release();
    }
  }

  /** Until others have had their turn, and there is room. */
  private async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.stopIfOver();
    if (!this.isInEngine) return;
    if (this.copied) this.post('no copy');
    this.copied = false;
    while (this.pace.writerDelayMs() > WRITER_DELAY_MS) {
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
      this.stopIfOver();
    }
    await this.tier.evictor.relax();
    this.stopIfOver();
  }

  /** Does work whose dirty bytes are no reason for a checkpoint, as long as none has been begun. */
  private staged(work: () => void): void {
    const { tier } = this;
    const dirty = tier.arena.dirtyBytes;
    try {
      work();
    } finally {
      if (!this.isInEngine) tier.stagedDirtyBytes += tier.arena.dirtyBytes - dirty;
    }
  }

  /** Makes what was loaded a part of the databases, in one step. The log must then say so. */
  commit(): { counts: ImportCounts; merges: Merge[] } {
    const merges = this.tier.publish(this.id, this.source.mode, this.source.now);
    this.finish();
    this.endChunks();
    return { counts: { ...this.counts!, replaced: 0, skipped: 0 }, merges };
  }

  /** Gives it up: soon nothing of it is left in memory. */
  abandon(reason = new Error('given up')): void {
    if (this.over) return;
    this.failure = reason;
    this.finish();
    if (!this.chunks.busy) this.discard();
    this.wake();
  }

  private discard(): void {
    this.waiting.length = 0;
    this.rows.end();
    this.tier.unstage(this.id);
    this.endChunks();
  }

  private finish(): void {
    this.over = true;
    void this.worker.terminate();
  }

  /** No more chunks come. */
  private endChunks(): void {
    this.chunks.end();
    this.release?.();
    this.release = null;
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

  /** Resolves when nothing of what was imported has still to be merged with what was there. */
  merged(): Promise<void> {
    return this.tier.merger.idle();
  }

  /** Begins to load a file; nothing of it is seen before `commit`. */
  begin(source: ImportSource, checksum: boolean, pace: ImportPace): Import {
    if (!existsSync(this.directory)) {
      mkdirSync(this.directory, { recursive: true, mode: 0o750 });
      syncDirectory(path.dirname(this.directory));
    }
    const id = `${randomBytes(8).toString('hex')}${path.extname(source.path) === '.image' ? '.image' : '.rdb'}`;
    const thread = {
      copy: this.file(id),
      links: this.isOwn(source.path),
      spill: this.spill(id),
      checksum,
      limits: this.limits(),
    };
    return new Import(this.tier, id, source, thread, pace);
  }

  /** The log says that this was imported here: what the engine has of it is published, or the copy loaded again. */
  async replay(id: string, source: Omit<ImportSource, 'path'>): Promise<void> {
    if (this.tier.stagedAs(id) !== undefined) {
      this.tier.publish(id, source.mode, source.now);
      return;
    }
    const loading = new Import(
      this.tier,
      id,
      { ...source, path: this.file(id) },
      { copy: null, links: false, spill: this.spill(id), checksum: true, limits: this.limits() },
      UNPACED,
    );
    await loading.loaded;
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
    rmSync(temporaryName(this.file(id)), { force: true });
  }

  /** After a start: removes what no log entry has asked for. */
  clean(): void {
    this.tier.unstage();
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
