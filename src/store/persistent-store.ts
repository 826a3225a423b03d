/**
 * The store with all that makes it durable: data directory, engine, command log, checkpoints.
 *
 * The server changes the tier through `store`, appends each turn's effects to `log` before that turn's
 * replies leave, and calls `flush` back when a checkpoint needs everything to be in the log.
 */
import { randomBytes } from 'node:crypto';
import type { Slice } from '../bytes/slice.ts';
import type { Engine, EngineName, EngineOptions } from '../engines/engine.ts';
import { BINDING_PACKAGES, packageVersion } from '../engines/identity.ts';
import { openEngine } from '../engines/open.ts';
import { CHECKPOINT_DEFAULTS, Checkpointer, type CheckpointOptions, type OnSlice } from './checkpoint.ts';
import { DataDirectory } from './data-directory.ts';
import { NodeDisk, type Disk } from './disk.ts';
import { faultPoint } from './fault-point.ts';
import { FilterFiles } from './filter-files.ts';
import { CommandLog, LogLostError, type SyncPolicy } from './log.ts';
import { recover, rowDamaged, type Recovered, type RecoveryProgress } from './recovery.ts';
import { hasRedo } from './redo-format.ts';
import type { EngineLink } from './residents.ts';
import type { RowSource } from './row-source.ts';

/** Of the ten seconds in which a server ends: what the last checkpoint may take. */
const CLOSE_BUDGET_MS = 7000;
const RETRY_MS = 1000;

export interface DurabilityOptions {
  appendfsync: SyncPolicy;
  checkpoint?: Partial<CheckpointOptions>;
  /** Bytes of a log segment. */
  segmentBytes?: number;
  /** Applies one payload of the log to the tier, which may have to wait for rows; see RecoveryOptions. */
  replay: (payload: Slice, following: Iterable<Slice>) => void | Promise<void>;
  /**
   * Data may exceed memory: rows leave and are fetched again, so that all work must be done in units that
   * can be rolled back (src/store/api.ts).
   */
  evicts?: boolean;
  /** See FilterFilesOptions; for tests. */
  filterKeysMin?: number;
  onProgress?: (progress: RecoveryProgress) => void;
  /** Something in the background has begun or ended. */
  onNotice?: (message: string) => void;
  /** Something went wrong that the store gets over by itself. */
  onWarning?: (message: string) => void;
  /**
   * The store cannot go on: the engine's thread is dead, acknowledged effects could not be brought
   * to the disk, or rows are missing that nobody can name. Writes must stop, and the process must end.
   */
  onFatal?: (error: Error) => void;
  /** Called after each piece of background work on this thread. */
  onSlice?: OnSlice;
}

/** What durability is made of; `openPersistentStore` makes it from a directory's path. */
export interface Parts<S extends RowSource> {
  directory: DataDirectory;
  disk: Disk;
  /** For the log: its syncs must not wait for anything else. */
  logDisk: Disk;
  engine: Engine;
  store: S;
}

export class PersistentStore<S extends RowSource = RowSource> {
  readonly store: S;
  readonly engine: Engine;
  readonly log: CommandLog;
  readonly checkpointer: Checkpointer;
  readonly directory: DataDirectory;
  readonly recovered: Recovered;
  /**
   * Set by the owner of the turn: brings all effects so far into the log; false when that failed.
   */
  flush: () => boolean = () => true;

  private readonly parts: Parts<S>;
  private readonly filters?: FilterFiles;
  private readonly options: DurabilityOptions;
  private readonly retryTimer: NodeJS.Timeout;
  private retrying = false;
  private fatal: Error | null = null;
  private closing: Promise<boolean> | null = null;

  /**
   * Recovers the state and begins a new log segment. The parts belong to the result, which closes them;
   * when this rejects they are still the caller's.
   */
  static async open<S extends RowSource>(
    parts: Parts<S>,
    options: DurabilityOptions,
  ): Promise<PersistentStore<S>> {
    const { directory, disk, logDisk, engine, store } = parts;
    const clean = directory.readCleanEnd();
    const { onNotice, onWarning, onSlice } = options;
    const link: EngineLink = { engine, checkpoint: null, onNotice, onWarning, onSlice };
    const filters =
      options.evicts === true && store.served !== undefined
        ? new FilterFiles({
            disk,
            directory: directory.filterDirectory,
            directoryId: directory.identity.id,
            keyspaces: () => store.served!(),
            keysMin: options.filterKeysMin,
            onNotice,
            onWarning,
          })
        : undefined;
    const recovered = await recover({
      directory,
      disk,
      engine,
      source: store,
      replay: options.replay,
      onProgress: options.onProgress,
      onWarning: options.onWarning,
      batchBytes: options.checkpoint?.batchBytes,
      link: options.evicts === true ? link : undefined,
      filters,
    });
    // Only a clean end proves that no other history can have gone on from what is here.
    const continues = clean !== null && clean.position === recovered.position;
    await directory.removeCleanEnd();
    const log = await CommandLog.open({
      disk: logDisk,
      directory: directory.logDirectory,
      directoryId: directory.identity.id,
      replicationId: continues ? clean.replicationId : randomBytes(20).toString('hex'),
      replicationOffset: continues ? clean.replicationOffset : recovered.replicationOffset,
      position: recovered.position,
      older: recovered.segments,
      policy: options.appendfsync,
      segmentBytes: options.segmentBytes,
      onSyncFailed: (error) => options.onWarning?.(error.message),
    });
    return new PersistentStore(parts, options, recovered, log, { link, filters });
  }

  private constructor(
    parts: Parts<S>,
    options: DurabilityOptions,
    recovered: Recovered,
    log: CommandLog,
    { link, filters }: { link: EngineLink; filters?: FilterFiles },
  ) {
    this.filters = filters;
    this.parts = parts;
    this.options = options;
    this.store = parts.store;
    this.engine = parts.engine;
    this.directory = parts.directory;
    this.recovered = recovered;
    this.log = log;
    this.checkpointer = new Checkpointer({
      source: parts.store,
      engine: parts.engine,
      log,
      disk: parts.disk,
      redoDirectory: parts.directory.redoDirectory,
      directoryId: parts.directory.identity.id,
      limits: { ...CHECKPOINT_DEFAULTS, ...options.checkpoint },
      checkpoints: recovered.meta?.checkpoints ?? 0,
      position: recovered.meta?.position ?? 0,
      flush: () => this.flush(),
      onError: (error, step) => this.checkpointFailed(error, step),
      onSlice: options.onSlice,
      filters,
    });
    if (options.evicts === true) {
      parts.store.link?.({
        ...link,
        checkpoint: () => this.checkpointer.checkpoint(),
        onNotice: (message) => {
          if (this.closing === null) options.onNotice?.(message);
        },
        onLost: (what) => this.die(rowDamaged(parts.directory, what)),
      });
    }
    this.checkpointer.start();
    this.retryTimer = setInterval(() => this.retryLog(), RETRY_MS);
    this.retryTimer.unref();
  }

  private checkpointFailed(error: Error, step: string): void {
    // While closing, a checkpoint that is given up is no failure: the redo file or the log has all of it.
    if (this.closing !== null) return;
    if ((error as { code?: string }).code === 'ENGINE_DEAD') this.die(error);
    else this.options.onWarning?.(`checkpoint: ${step}: ${error.message}; it will be tried again`);
  }

  private die(error: Error): void {
    if (this.fatal !== null) return;
    this.fatal = error;
    this.options.onFatal?.(error);
  }

  /** A failed sync is mended here; a failed append by the next one. */
  private retryLog(): void {
    if (!this.log.needsRetry || this.retrying) return;
    this.retrying = true;
    this.log
      .retry()
      .catch((error: unknown) => {
        if (error instanceof LogLostError) this.die(error);
        else this.options.onWarning?.(String(error));
      })
      .finally(() => {
        this.retrying = false;
      });
  }

  /**
   * Ends within about `budgetMs` and a second: takes a last checkpoint if there is time, syncs the log
   * in any case. Resolves to whether all is on disk; if not, or if this rejects, the next start counts
   * as one after an unclean end.
   */
  close(budgetMs = CLOSE_BUDGET_MS): Promise<boolean> {
    this.closing ??= this.closeAll(budgetMs);
    return this.closing;
  }

  private async closeAll(budgetMs: number): Promise<boolean> {
    const { directory, disk, logDisk, engine } = this.parts;
    faultPoint('close');
    clearInterval(this.retryTimer);
    try {
      const logged = this.flush();
      const complete = this.fatal === null && (await this.checkpointer.close(budgetMs));
      await this.filters?.close();
      await this.log.close();
      if (logged && this.fatal === null) {
        const { position, replicationId, replicationOffset } = this.log;
        await directory.writeCleanEnd({ position, replicationId, replicationOffset });
      }
      // An engine still busy with a checkpoint gives it up: the redo file stays for the next start.
      await engine.close({ abandon: !complete });
      return logged && this.fatal === null;
    } finally {
      await logDisk.close();
      await disk.close();
      directory.close();
    }
  }
}

export interface PersistentStoreOptions extends DurabilityOptions {
  /** Path of the data directory; made when there is none. */
  path: string;
  engine: EngineName;
  engineOptions?: EngineOptions;
}

/**
 * Opens the data directory at `path` and brings `store`, which must be new, to the state that it holds.
 * Rejects with DataDirectoryError, EngineError, LogDamagedError, RedoDamagedError, RowDamagedError,
 * MetaRowError or ReplayError, whose messages name the place and the next step; nothing is then open.
 */
export async function openPersistentStore<S extends RowSource>(
  store: S,
  options: PersistentStoreOptions,
): Promise<PersistentStore<S>> {
  const disk = new NodeDisk();
  const binding = BINDING_PACKAGES[options.engine];
  const directory = await DataDirectory.open(
    options.path,
    disk,
    options.engine,
    `${binding} ${packageVersion(binding)}`,
  );
  const logDisk = new NodeDisk({ ownSyncThread: true });
  let engine: Engine | null = null;
  try {
    disk.makeDirectory(directory.redoDirectory);
    const redone = hasRedo(disk, directory.redoDirectory);
    engine = await openEngine(options.engine, directory.engineDirectory, options.engineOptions, { redone });
    return await PersistentStore.open({ directory, disk, logDisk, engine, store }, options);
  } catch (error) {
    await engine?.close();
    await logDisk.close();
    directory.close();
    throw error;
  }
}
