/**
 * Recovery: from what a data directory holds to the state that was acknowledged.
 *
 * 1. A complete redo file is verified and given to the engine; an incomplete one is removed.
 * 2. The engine's rows are loaded into the tier, or only those that must be in memory.
 * 3. The log is replayed from the meta row's position on; a torn tail is cut off.
 * 4. What the log holds is synced, so that nothing that has been replayed can be lost any more.
 *
 * Everything runs in slices, so that the event loop goes on and a server can answer -LOADING.
 */
import type { Slice } from '../bytes/slice.ts';
import type { Engine, Range } from '../engines/engine.ts';
import type { DataDirectory } from './data-directory.ts';
import type { Disk } from './disk.ts';
import type { FilterFiles } from './filter-files.ts';
import { LogDamagedError, LogReader } from './log-reader.ts';
import { cutLog } from './log-repair.ts';
import { segmentName } from './log-format.ts';
import { MetaRowError, readMeta, type Meta } from './meta-row.ts';
import { positionOfRedoName } from './redo-format.ts';
import { verifyRedo, type RedoFile } from './redo.ts';
import type { EngineLink } from './residents.ts';
import { DAMAGED_NAMED_MAX, damagedRowsMessage, NAMELESS, RowError, type RowSource } from './row-source.ts';
import { RowWalk } from './row-walk.ts';

/** CPU time between two turns of the event loop. */
const SLICE_MS = 5;
/** Rows between two looks at the clock. */
const ROWS_PER_LOOK = 128;
const SCAN_CHUNK_BYTES = 1024 * 1024;
/** Keys have at least one byte. */
const FIRST_KEY = Uint8Array.of(0);

export interface RecoveryProgress {
  step: 'redo' | 'load' | 'replay';
  done: number;
  /** In the unit of `done`: bytes of the redo file, rows (0: unknown), bytes of the log. */
  total: number;
}

export interface RecoveryOptions {
  directory: DataDirectory;
  disk: Disk;
  engine: Engine;
  source: RowSource;
  /**
   * Applies one log payload; the slice is valid until it returns or what it returns resolves. `following` are
   * payloads that probably come next, for reading ahead; valid one at a time, until it returns.
   */
  replay: (payload: Slice, following: Iterable<Slice>) => void | Promise<void>;
  onProgress?: (progress: RecoveryProgress) => void;
  onWarning?: (message: string) => void;
  batchBytes?: number;
  /** Not everything need be in memory: keys stay in the engine, and are fetched by this. */
  link?: EngineLink;
  filters?: FilterFiles;
}

export interface Recovered {
  /** Where the log goes on. */
  position: number;
  replicationOffset: number;
  /** First positions of the log segments on disk, oldest first. */
  segments: number[];
  /** What the engine's rows stand for; null when there was no checkpoint yet. */
  meta: Meta | null;
  rows: number;
  replayedBytes: number;
  replayedFrames: number;
  redoRows: number;
  loadMs: number;
  replayMs: number;
}

/** Rows of the engine are not what was written, and nobody can tell whose they are; the message names them and the next step. */
export class RowDamagedError extends Error {
  readonly code = 'ROW_DAMAGED';
}

/** The log's effects could not be applied to the state. */
export class ReplayError extends Error {
  readonly code = 'REPLAY_FAILED';
}

/** Throws what it finds damaged, without having changed anything but finished an unfinished checkpoint. */
export async function recover(options: RecoveryOptions): Promise<Recovered> {
  const slicer = new Slicer();
  let meta = await metaOf(options);
  const redo = await finishRedo(options, meta, slicer);
  if (redo !== null) meta = await metaOf(options);
  const loadStarted = performance.now();
  if (meta !== null) options.source.restoreMeta(meta.tier);
  let lost: string | null = null;
  if (options.link !== undefined) options.source.link?.({ ...options.link, onLost: (what) => (lost = what) });
  const rows = await loadRows(options, meta !== null, slicer);
  if (meta !== null && options.filters !== undefined) {
    const steps = options.filters.load(meta);
    while (steps.next().done !== true) if (slicer.used) await slicer.turn();
  }
  const loaded = performance.now();
  const replayed = await replayLog(options, meta, slicer, async (bytes) => {
    await options.source.beforeReplay?.(bytes);
    if (lost !== null) throw rowDamaged(options.directory, lost);
  });
  return {
    ...replayed,
    meta,
    rows,
    redoRows: redo?.rows ?? 0,
    loadMs: loaded - loadStarted,
    replayMs: performance.now() - loaded,
  };
}

async function metaOf({ engine, directory, onWarning }: RecoveryOptions): Promise<Meta | null> {
  const { engineDirectory } = directory;
  try {
    return await readMeta(engine, (message) => onWarning?.(`${engineDirectory}: ${message}`));
  } catch (error) {
    if (!(error instanceof MetaRowError)) throw error;
    throw new RowDamagedError(`${engineDirectory}: ${error.message}; restore the directory from a backup`);
  }
}

/** Lets the event loop turn when a slice's time is used up. */
class Slicer {
  private until = performance.now() + SLICE_MS;

  /** True when the caller should await `turn`. */
  get used(): boolean {
    return performance.now() >= this.until;
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.until = performance.now() + SLICE_MS;
  }
}

/**
 * Gives a committed redo file to the engine. Also one whose meta row the engine has already: it may not
 * have been synced, and applying it again is harmless.
 */
async function finishRedo(
  options: RecoveryOptions,
  meta: Meta | null,
  slicer: Slicer,
): Promise<RedoFile | null> {
  const { directory, disk, engine, onProgress } = options;
  const { redoDirectory } = directory;
  let finished: RedoFile | null = null;
  disk.makeDirectory(redoDirectory);
  for (const name of disk.list(redoDirectory)) {
    const path = `${redoDirectory}/${name}`;
    const position = positionOfRedoName(name);
    if (position < 0 || (meta !== null && position < meta.position)) {
      disk.remove(path);
      continue;
    }
    const steps = verifyRedo(disk, path, directory.identity.id);
    for (;;) {
      const step = steps.next();
      if (step.done === true) {
        finished = step.value;
        break;
      }
      if (slicer.used) {
        onProgress?.({ step: 'redo', done: step.value, total: 0 });
        await slicer.turn();
      }
    }
    await engine.applyRows(path, finished.rowsOffset, finished.rowBytes, {
      batchBytes: options.batchBytes,
      sync: true,
    });
    disk.remove(path);
  }
  await disk.syncDirectory(redoDirectory);
  return finished;
}

/** The error with the next step. */
export function rowDamaged(directory: DataDirectory, what: string): RowDamagedError {
  return new RowDamagedError(
    `${directory.engineDirectory}: ${what}. \`ardent check ${directory.path}\` lists all damage; ` +
      'restore the directory from a backup, or let `--repair` drop what is damaged',
  );
}

/**
 * Loads rows; with a meta row only those that must be, if others can be fetched. Damaged rows make their keys' values
 * damaged ones; a key of which there is no trace stops the start.
 */
async function loadRows(options: RecoveryOptions, hasMeta: boolean, slicer: Slicer): Promise<number> {
  const { source, directory } = options;
  const loaded = { rows: 0, damaged: 0 };
  try {
    if (hasMeta && options.link !== undefined && source.leaveKeys !== undefined) {
      const cold = source.leaveKeys();
      for (let range = cold.next(); range !== null; range = cold.next())
        await loadRange(options, slicer, range, (walk) => cold.take(walk), loaded);
    } else {
      const take = (walk: RowWalk): void => {
        if (walk.damaged) throw new RowError('its checksum does not match');
        source.installRow(walk.bytes, walk.keyStart, walk.valueStart, walk.bytes, walk.valueStart, walk.end);
      };
      await loadRange(options, slicer, { start: FIRST_KEY }, take, loaded);
    }
    source.recovered();
  } catch (error) {
    if (!(error instanceof RowError)) throw error;
    throw rowDamaged(directory, error.message);
  }
  options.onProgress?.({ step: 'load', done: loaded.rows, total: loaded.rows });
  if (loaded.damaged > 0) {
    options.onWarning?.(
      `${damagedRowsMessage(loaded.damaged)}; \`ardent check ${directory.path}\` names all`,
    );
  }
  return loaded.rows;
}

async function loadRange(
  options: RecoveryOptions,
  slicer: Slicer,
  range: Range,
  take: (walk: RowWalk) => void,
  loaded: { rows: number; damaged: number },
): Promise<void> {
  const { engine, source, onProgress } = options;
  for await (const chunk of engine.scan({ ...range, chunkBytes: SCAN_CHUNK_BYTES })) {
    const walk = new RowWalk(chunk);
    while (walk.next()) {
      try {
        take(walk);
      } catch (error) {
        if (!(error instanceof RowError)) throw error;
        const known = source.damagedRow(walk.bytes, walk.keyStart, walk.valueStart);
        if (++loaded.damaged <= DAMAGED_NAMED_MAX) {
          options.onWarning?.(
            `${options.directory.engineDirectory}: row ${walk.name} is damaged: ${error.message}` +
              (known ? '' : NAMELESS),
          );
        }
      }
      if (++loaded.rows % ROWS_PER_LOOK === 0 && slicer.used) {
        onProgress?.({ step: 'load', done: loaded.rows, total: 0 });
        await slicer.turn();
      }
    }
  }
}

async function replayLog(
  options: RecoveryOptions,
  meta: Meta | null,
  slicer: Slicer,
  before: (bytes: number) => Promise<void>,
): Promise<
  Pick<Recovered, 'position' | 'replicationOffset' | 'segments' | 'replayedBytes' | 'replayedFrames'>
> {
  const { directory, disk, replay, onProgress, onWarning } = options;
  const from = meta?.position ?? 0;
  const { logDirectory } = directory;
  const reader = new LogReader({ disk, directory: logDirectory, directoryId: directory.identity.id, from });
  let frames = 0;
  try {
    await before(reader.bytesTotal);
    for (let frame = reader.next(); frame !== null; frame = reader.next()) {
      const { path, offset, position } = frame;
      try {
        const waits = replay(frame.payload, reader.following());
        if (waits !== undefined) await waits;
      } catch (error) {
        throw new ReplayError(
          `${path}: the frame at offset ${offset} (log position ${position}) cannot be replayed: ` +
            `${error instanceof Error ? error.message : String(error)}`,
          { cause: error },
        );
      }
      frames++;
      if (slicer.used) {
        onProgress?.({ step: 'replay', done: reader.bytesRead, total: reader.bytesTotal });
        await slicer.turn();
      }
    }
  } finally {
    reader.close();
  }
  const { fault, position } = reader;
  if (fault?.kind === 'damage') throw new LogDamagedError(fault, directory.path);
  if (fault !== null) {
    onWarning?.(
      `${fault.path}: torn tail at offset ${fault.offset} (log position ${fault.position}): ${fault.reason}; ` +
        `${fault.bytesAfter} bytes that were never synced are cut off`,
    );
    await cutLog(disk, logDirectory, fault);
  }
  const names = new Set(disk.list(logDirectory));
  const there = (first: number): boolean => names.has(segmentName(first));
  const needed = reader.segments.filter(there);
  await syncSegments(disk, logDirectory, needed);
  onProgress?.({ step: 'replay', done: reader.bytesTotal, total: reader.bytesTotal });
  return {
    position,
    replicationOffset: frames > 0 ? reader.replicationOffset : (meta?.replicationOffset ?? position),
    segments: [...reader.superfluous.filter(there), ...needed],
    replayedBytes: position - from,
    replayedFrames: frames,
  };
}

async function syncSegments(disk: Disk, directory: string, segments: readonly number[]): Promise<void> {
  for (const first of segments) {
    const file = disk.open(`${directory}/${segmentName(first)}`, 'write');
    try {
      await file.sync();
    } finally {
      file.close();
    }
  }
  if (segments.length > 0) await disk.syncDirectory(directory);
}
