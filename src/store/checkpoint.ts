/**
 * Checkpoints: when one begins, how its rows get from the tier to the engine, and how writers are
 * slowed when it cannot keep up.
 *
 * One checkpoint after the other goes through these steps; a crash within any of them loses nothing:
 *
 * 1. **Cut.** The turn's effects are in the log; the log begins a new segment; the tier takes a cut.
 * 2. **Copy.** The tier copies the cut's rows out in slices; chunks of them go to the redo file.
 * 3. **Commit.** The redo file gets the meta row, is synced and named. Older log segments go.
 * 4. **Apply.** The engine's thread writes the rows in batches and syncs; the redo file goes.
 * 5. **Purge.** What the engine still holds of dropped databases and collections is deleted.
 *
 * An error before the commit gives the checkpoint up, and its rows are dirty again; an error after it
 * leaves the redo file, and applying is tried again. Either is kept in `info().last_error`.
 */
import type { Engine } from '../engines/engine.ts';
import type { Disk } from './disk.ts';
import { faultPoint } from './fault-point.ts';
import type { FilterFiles } from './filter-files.ts';
import type { CommandLog } from './log.ts';
import { LoopLoad, rest } from './loop-load.ts';
import { encodeMeta, writeMeta } from './meta-row.ts';
import { Purger } from './purger.ts';
import { REDO_BUFFER_BYTES_MAX, RedoWriter, type RedoFile } from './redo.ts';
import type { RowSource } from './row-source.ts';
import { SliceClock } from './slice-clock.ts';

const MB = 1024 * 1024;

/** What a user may set; changeable while running. Sizes in bytes. */
export interface CheckpointOptions {
  /** A checkpoint begins when so much has changed since the last one. */
  dirtyBytes: number;
  /** Writers are slowed from `dirtyBytes` on, the more the nearer to this. */
  dirtyBytesMax: number;
  /** A checkpoint begins when so much log must be replayed after a crash. */
  logBytes: number;
  /** Writers are slowed from `logBytes` on, the more the nearer to this: it bounds the time of a replay. */
  logBytesMax: number;
  /** A checkpoint begins when something has been dirty for so long. */
  ageMs: number;
  /** Bytes of rows that the engine's thread holds and puts in the order of their keys at a time. */
  batchBytes: number;
}

/** Late: what changes again before a checkpoint begins is written once, and what is dropped before is not written at all. */
export const CHECKPOINT_DEFAULTS: Readonly<CheckpointOptions> = {
  dirtyBytes: 512 * MB,
  dirtyBytesMax: 1024 * MB,
  logBytes: 1024 * MB,
  logBytesMax: 2048 * MB,
  ageMs: 60_000,
  batchBytes: 64 * MB,
};

/** What applying holds, in batches: rows as read and their order, rows on their way to the engine, and its pages of them. */
const BATCH_COPIES = 4;

/** Bytes of memory that a checkpoint may take at most: rows on their way to the redo file and to the engine. */
export function checkpointMemory(limits: CheckpointOptions): number {
  return REDO_BUFFER_BYTES_MAX + BATCH_COPIES * limits.batchBytes;
}

/** CPU time of one slice of copying: what a request waits for it at most. */
const SLICE_MS = 1;
const SLICE_BYTES_MAX = 1 * MB;
const TICK_MS = 100;
const RETRY_MS_MIN = 1000;
const RETRY_MS_MAX = 30_000;
/** What a writer is held up for at a ceiling. */
const WRITER_DELAY_MS_MAX = 100;

/** `ms` by the clock, `workMs` on a processor at most; see SliceClock. */
export type OnSlice = (
  kind: 'checkpoint-cut' | 'checkpoint-copy' | 'checkpoint-end' | 'warm-up',
  ms: number,
  workMs: number,
) => void;

export interface CheckpointerOptions {
  source: RowSource;
  engine: Engine;
  log: CommandLog;
  disk: Disk;
  redoDirectory: string;
  directoryId: string;
  limits: CheckpointOptions;
  /** Checkpoints that went before, from the meta row. */
  checkpoints: number;
  /** Log position of the last one. */
  position: number;
  /**
   * Brings everything that has changed the tier into the log. False when that is not possible now; then
   * no cut is taken, since a row must never be newer than its log position.
   */
  flush: () => boolean;
  /** A checkpoint failed, or purging did; it will be tried again. */
  onError: (error: Error, step: string) => void;
  /** Called after each piece of work on the caller's thread; see SliceClock. */
  onSlice?: OnSlice;
  filters?: FilterFiles;
}

type State = 'idle' | 'copying' | 'committing' | 'applying';

export interface CheckpointInfo {
  state: State;
  checkpoints: number;
  position: number;
  dirty_bytes: number;
  cut_bytes: number;
  log_bytes: number;
  pressure: number;
  last_rows: number;
  last_bytes: number;
  last_copy_ms: number;
  last_commit_ms: number;
  last_apply_ms: number;
  last_ok: boolean;
  last_error: string;
  last_time_ms: number;
  failures: number;
  longest_cut_ms: number;
  longest_copy_slice_ms: number;
  buffer_bytes: number;
  purging: boolean;
}

/** A checkpoint was given up because the store is being closed. */
class Abandoned extends Error {}

export class Checkpointer {
  readonly limits: CheckpointOptions;
  private readonly options: CheckpointerOptions;
  private readonly source: RowSource;
  private readonly clock = new SliceClock();
  private state: State = 'idle';
  private running: Promise<void> | null = null;
  private readonly purger: Purger;
  private timer: NodeJS.Timeout | null = null;
  private writer: RedoWriter | null = null;
  private position: number;
  private checkpoints: number;
  private dirtySince = 0;
  private notBefore = 0;
  private retryMs = RETRY_MS_MIN;
  private failures = 0;
  private lastError: Error | null = null;
  private lastTimeMs = 0;
  private lastRows = 0;
  private lastBytes = 0;
  private lastCopyMs = 0;
  private lastCommitMs = 0;
  private lastApplyMs = 0;
  private longestCutMs = 0;
  private longestCopyMs = 0;
  /** Set while closing: copying takes all the time there is, until then. */
  private deadline = 0;
  private stopped = false;
  /** How many want no checkpoint now, and who waits for them. */
  private held = 0;
  private readonly released: (() => void)[] = [];

  constructor(options: CheckpointerOptions) {
    this.options = options;
    this.source = options.source;
    this.limits = { ...options.limits };
    this.position = options.position;
    const { source, engine } = options;
    this.purger = new Purger({
      source,
      engine,
      stopped: () => this.stopped,
      onError: (error) => options.onError(error, 'purge'),
    });
    this.checkpoints = options.checkpoints;
  }

  /** Begins to watch the ceilings. */
  start(): void {
    this.timer = setInterval(() => this.tick(), TICK_MS);
    this.timer.unref();
    this.purger.wake();
  }

  private tick(): void {
    const now = Date.now();
    this.options.filters?.tend({ position: this.position, checkpoints: this.checkpoints });
    if (this.logBytes === 0) this.dirtySince = now;
    if (this.running !== null || this.held > 0 || this.stopped || now < this.notBefore) return;
    const { limits } = this;
    if (
      this.source.dirtyBytes >= Math.min(limits.dirtyBytes, this.source.dirtyShare ?? Infinity) ||
      this.logBytes >= limits.logBytes ||
      now - this.dirtySince >= limits.ageMs
    ) {
      this.run().catch(() => {
        // told through onError
      });
    }
  }

  /** Bytes of log that a start would replay now. */
  private get logBytes(): number {
    return this.options.log.position - this.position;
  }

  /** How near the nearest ceiling is: 0 below where a checkpoint begins, 1 at the ceiling. */
  get pressure(): number {
    const { limits, source } = this;
    const { dirtyShare = Infinity } = source;
    return Math.max(
      nearness(
        source.dirtyBytes + source.cutBytes,
        Math.min(limits.dirtyBytes, dirtyShare),
        Math.min(limits.dirtyBytesMax, 2 * dirtyShare),
      ),
      nearness(this.logBytes, limits.logBytes, limits.logBytesMax),
    );
  }

  /** Milliseconds by which the server should hold up a turn that writes; 0 without pressure. */
  get writerDelayMs(): number {
    return this.pressure ** 3 * WRITER_DELAY_MS_MAX;
  }

  /**
   * Takes a checkpoint of the state as it is now, after the one under way if there is one. Resolves when
   * the engine has it.
   */
  async checkpoint(): Promise<void> {
    await Promise.resolve(); // never within the command that asks for it
    while (this.running !== null || this.held > 0) {
      if (this.running !== null) await this.running.catch(() => undefined);
      else await new Promise<void>((resolve) => this.released.push(resolve));
    }
    if (this.stopped) throw new Error('the store takes no more checkpoints', { cause: this.lastError });
    await this.run();
  }

  /**
   * Keeps checkpoints from beginning until `release`; resolves when none is under way: the engine's rows
   * then stay those of `info().position`.
   */
  async hold(): Promise<void> {
    this.held++;
    while (this.running !== null) await this.running.catch(() => undefined);
  }

  release(): void {
    this.held--;
    if (this.held > 0) return;
    for (const resolve of this.released.splice(0)) resolve();
  }

  private run(): Promise<void> {
    const running = this.runOnce().finally(() => {
      this.running = null;
      this.state = 'idle';
    });
    this.running = running;
    return running;
  }

  private async runOnce(): Promise<void> {
    let step = 'cut';
    try {
      const cut = this.cut();
      step = 'redo file';
      let redo: RedoFile;
      try {
        await this.copy(cut.writer);
        const { position } = cut.writer;
        this.options.filters?.mark({ position, checkpoints: this.checkpoints + 1 });
        redo = await this.commit(cut.writer, cut.meta);
      } catch (error) {
        this.source.endCut(false);
        this.writer = null;
        await cut.writer.abandon();
        throw error;
      }
      this.writer = null;
      this.position = redo.position;
      this.checkpoints++;
      step = 'log';
      await this.trimLog(redo.position);
      step = 'engine';
      try {
        await this.apply(redo);
      } catch (error) {
        this.stopped = true; // the cut cannot be ended, so no other can begin
        throw error;
      }
      this.lastError = null;
      this.retryMs = RETRY_MS_MIN;
      this.lastTimeMs = Date.now();
      this.purger.wake();
    } catch (error) {
      if (error instanceof Abandoned) throw error;
      this.failed(error, step);
      throw error;
    }
  }

  private failed(error: unknown, step: string): void {
    this.lastError = error instanceof Error ? error : new Error(String(error));
    this.failures++;
    this.notBefore = Date.now() + this.retryMs;
    this.retryMs = Math.min(this.retryMs * 2, RETRY_MS_MAX);
    this.options.onError(this.lastError, step);
  }

  /** Everything in here happens in one turn. */
  private cut(): { writer: RedoWriter; meta: Buffer } {
    const { log, disk, flush } = this.options;
    if (!flush()) throw new Error(`no cut while the log cannot be written: ${log.failure ?? ''}`);
    const { clock } = this;
    clock.start();
    log.roll();
    const position = log.position;
    const writer = new RedoWriter(disk, this.options.redoDirectory, {
      position,
      directoryId: this.options.directoryId,
    });
    this.dirtySince = Date.now();
    const tier = this.source.beginCut(writer.sink);
    const meta = encodeMeta({
      position,
      replicationOffset: log.replicationOffset,
      checkpoints: this.checkpoints + 1,
      cutAtMs: this.dirtySince,
      tier,
    });
    this.writer = writer;
    this.state = 'copying';
    faultPoint('cut');
    clock.stop();
    this.longestCutMs = Math.max(this.longestCutMs, clock.elapsedMs);
    this.options.onSlice?.('checkpoint-cut', clock.elapsedMs, clock.workMs);
    return { writer, meta };
  }

  private async copy(writer: RedoWriter): Promise<void> {
    const started = performance.now();
    const load = new LoopLoad();
    const { clock } = this;
    for (;;) {
      clock.start();
      const complete = this.source.copyCut(SLICE_MS, SLICE_BYTES_MAX);
      writer.drain();
      this.source.cutSink = writer.sink;
      this.options.filters?.drain();
      clock.stop();
      const elapsed = clock.elapsedMs;
      this.longestCopyMs = Math.max(this.longestCopyMs, elapsed);
      this.options.onSlice?.('checkpoint-copy', elapsed, clock.workMs);
      if (complete) break;
      if (writer.full) await writer.room();
      await this.pause(load, elapsed);
      if (this.deadline !== 0 && performance.now() > this.deadline) throw new Abandoned();
    }
    this.lastCopyMs = performance.now() - started;
  }

  /** Lets the server work between two slices, longer when it is busy, less when writers are being held up. */
  private async pause(load: LoopLoad, sliceMs: number): Promise<void> {
    await rest(this.deadline === 0 ? load.restAfter(sliceMs) * (1 - this.pressure) : 0);
  }

  private async commit(writer: RedoWriter, meta: Buffer): Promise<RedoFile> {
    this.state = 'committing';
    const started = performance.now();
    writeMeta(writer, meta);
    this.lastBytes = writer.bytes;
    const redo = await writer.commit();
    this.lastRows = redo.rows;
    this.lastCommitMs = performance.now() - started;
    return redo;
  }

  /**
   * Deletes the segments that the committed redo file replaces. First the log is synced, so that the
   * oldest segment that stays is certainly there.
   */
  private async trimLog(position: number): Promise<void> {
    const { log } = this.options;
    try {
      await log.sync();
      await log.deleteBefore(position);
    } catch (error) {
      // The next checkpoint deletes them; a log that fails has told so itself.
      this.options.onError(error instanceof Error ? error : new Error(String(error)), 'log');
    }
  }

  private async apply(redo: RedoFile): Promise<void> {
    this.state = 'applying';
    const { engine, disk, redoDirectory } = this.options;
    const started = performance.now();
    for (;;) {
      try {
        faultPoint('redo-apply');
        await engine.applyRows(redo.path, redo.rowsOffset, redo.rowBytes, {
          batchBytes: this.limits.batchBytes,
          sync: true,
        });
        break;
      } catch (error) {
        if (this.stopped || (error as { code?: string }).code === 'ENGINE_DEAD') throw error;
        this.failed(error, 'engine');
        await new Promise((resolve) => setTimeout(resolve, this.notBefore - Date.now()).unref());
        if (this.stopped) throw error;
      }
    }
    faultPoint('redo-applied');
    await this.endCut();
    faultPoint('redo-delete');
    await disk.removeLater(redo.path);
    await disk.syncDirectory(redoDirectory);
    this.lastApplyMs = performance.now() - started;
  }

  /** Ends the cut, in slices: all memory that it was in is gone through. */
  private async endCut(): Promise<void> {
    const load = new LoopLoad();
    const { clock } = this;
    for (let complete = false; !complete;) {
      clock.start();
      complete = this.source.endCut(true, SLICE_MS);
      clock.stop();
      const { elapsedMs } = clock;
      this.options.onSlice?.('checkpoint-end', elapsedMs, clock.workMs);
      if (!complete) await this.pause(load, elapsedMs);
    }
  }

  /**
   * Ends the watching and, if there is something to write, takes a last checkpoint. What is not in the
   * engine after `budgetMs` stays in the log or in the redo file, where the next start finds it.
   * Resolves to whether the engine has everything.
   */
  async close(budgetMs: number): Promise<boolean> {
    if (this.timer !== null) clearInterval(this.timer);
    this.stopped ||= budgetMs <= 0;
    this.deadline = performance.now() + budgetMs;
    const timeUp = new Promise<false>((resolve) => {
      setTimeout(() => {
        this.stopped = true;
        resolve(false);
      }, budgetMs).unref();
    });
    const last = this.lastCheckpoint().catch(() => false);
    const complete = await Promise.race([last, timeUp]);
    this.stopped = true;
    return complete;
  }

  private async lastCheckpoint(): Promise<boolean> {
    while (this.running !== null) await this.running.catch(() => undefined);
    if (this.logBytes === 0) return true;
    if (performance.now() >= this.deadline) return false;
    await this.run();
    return this.logBytes === 0;
  }

  info(): CheckpointInfo {
    return {
      state: this.state,
      checkpoints: this.checkpoints,
      position: this.position,
      dirty_bytes: this.source.dirtyBytes,
      cut_bytes: this.source.cutBytes,
      log_bytes: this.logBytes,
      pressure: this.pressure,
      last_rows: this.lastRows,
      last_bytes: this.lastBytes,
      last_copy_ms: this.lastCopyMs,
      last_commit_ms: this.lastCommitMs,
      last_apply_ms: this.lastApplyMs,
      last_ok: this.lastError === null,
      last_error: this.lastError?.message ?? '',
      last_time_ms: this.lastTimeMs,
      failures: this.failures,
      longest_cut_ms: this.longestCutMs,
      longest_copy_slice_ms: this.longestCopyMs,
      buffer_bytes: this.writer?.bufferBytes ?? 0,
      purging: this.purger.busy,
    };
  }
}

function nearness(value: number, from: number, to: number): number {
  if (value <= from) return 0;
  if (value >= to) return 1;
  return (value - from) / (to - from);
}
