/**
 * Verifies a data directory that no server has open: identity, log frames, redo file, the engine's rows
 * and what they say of each other. With `repair` what can be mended is mended, as docs/durability.md says,
 * each loss told before it happens; without it nothing is changed.
 */
import { randomBytes } from 'node:crypto';
import { EngineError, type Engine } from '../engines/engine.ts';
import { copyFiles } from '../engines/identity.ts';
import { openEngine } from '../engines/open.ts';
import { checkRows } from './check-rows.ts';
import { copyReadable } from './copy-readable.ts';
import { DataDirectory, type Identity } from './data-directory.ts';
import { NodeDisk, type Disk } from './disk.ts';
import { LogReader, type LogFault } from './log-reader.ts';
import { cutLog } from './log-repair.ts';
import { CommandLog } from './log.ts';
import { readMeta, type Meta } from './meta-row.ts';
import { hasRedo, positionOfRedoName } from './redo-format.ts';
import { saveRedo } from './redo-repair.ts';
import { RedoDamagedError, verifyRedo } from './redo.ts';

export interface Problem {
  part: 'log' | 'redo' | 'engine' | 'rows' | 'trees';
  /** File, or the engine's directory. */
  path: string;
  /** Bytes from the start of the file; absent for rows. */
  offset?: number;
  message: string;
}

export interface CheckReport {
  directory: string;
  identity: Identity;
  ok: boolean;
  problems: Problem[];
  /** What a crash leaves and the next start mends by itself. */
  notices: string[];
  repaired: string[];
  log: { segments: number; frames: number; payloadBytes: number; from: number; to: number };
  redo: { files: number; rows: number; rowBytes: number };
  engine: {
    rows: number;
    bytes: number;
    damagedRows: number;
    /** Lists, sets, hashes and sorted sets whose pages were looked into. */
    collections: number;
    /** Keys that the start will answer with an error, or that are dropped by the repair. */
    damagedKeys: number;
    checkpoint: number;
    position: number;
  };
}

export interface CheckOptions {
  repair: boolean;
  onProgress?: (message: string) => void;
  /** Before something is repaired: what will be lost by it. */
  onLoss?: (message: string) => void;
}

/** Rejects with DataDirectoryError when there is no data directory, or another process has it open. */
export async function checkDirectory(path: string, options: CheckOptions): Promise<CheckReport> {
  const disk = new NodeDisk();
  const directory = await DataDirectory.openExisting(path, disk);
  const report: CheckReport = {
    directory: directory.path,
    identity: directory.identity,
    ok: true,
    problems: [],
    notices: [],
    repaired: [],
    log: { segments: 0, frames: 0, payloadBytes: 0, from: 0, to: 0 },
    redo: { files: 0, rows: 0, rowBytes: 0 },
    engine: { rows: 0, bytes: 0, damagedRows: 0, collections: 0, damagedKeys: 0, checkpoint: 0, position: 0 },
  };
  let engine: Engine | null = null;
  try {
    engine = await openForCheck(directory, disk, report, options);
    if (engine !== null && options.repair)
      engine = await copyReadable(engine, directory, disk, report, options);
    const damage: string[] = [];
    let meta = engine === null ? null : await checkMeta(engine, directory, report, damage);
    const unfinished = await checkRedo(engine, meta, directory, disk, report, options);
    if (unfinished === 'finished' && engine !== null) {
      damage.length = 0;
      meta = await checkMeta(engine, directory, report, damage);
    }
    if (engine !== null) {
      const readOnly = unfinished === 'pending';
      await checkRows({ engine, meta, metaDamage: damage, directory, disk, report, options, readOnly });
    }
    const from = Math.max(
      meta?.position ?? 0,
      unfinished === 'pending' ? pendingPosition(directory, disk) : 0,
    );
    // Without the position that the engine's rows stand for nobody can say which part of the log is needed.
    if (engine === null || (meta === null && report.engine.rows > 0)) {
      report.notices.push(
        `${directory.logDirectory}: not looked at, since the engine does not tell where it begins`,
      );
    } else {
      await checkLog(from, directory, disk, report, options);
    }
    report.ok = report.problems.length === 0;
    return report;
  } finally {
    await engine?.close();
    directory.close();
  }
}

/** Opens the engine; one that does not open is, by a repair, made of what can be read of its files. */
async function openForCheck(
  directory: DataDirectory,
  disk: Disk,
  report: CheckReport,
  options: CheckOptions,
): Promise<Engine | null> {
  const { identity, engineDirectory, redoDirectory } = directory;
  try {
    return await openEngine(
      identity.engine,
      engineDirectory,
      {},
      { redone: hasRedo(disk, redoDirectory) },
    ).catch((error: unknown) => {
      const damaged = error instanceof EngineError && error.code === 'ENGINE_DAMAGED';
      if (!damaged || !options.repair || identity.engine === 'lmdb') throw error;
      return makeEngineAnew(directory, error, report, options);
    });
  } catch (error) {
    report.problems.push(problem('engine', engineDirectory, error));
    return null;
  }
}

/** Keeps the files of an engine that does not open, and opens what can be read of them. */
async function makeEngineAnew(
  { identity, engineDirectory, path }: DataDirectory,
  { message }: EngineError,
  report: CheckReport,
  { onLoss }: CheckOptions,
): Promise<Engine> {
  const aside = `${path}/engine-damaged-${Date.now()}`;
  onLoss?.(
    `${message}; the engine is made anew of what can be read of its files: rows may be missing, and older ones come back`,
  );
  await copyFiles(identity.engine, engineDirectory, aside);
  const engine = await openEngine(identity.engine, engineDirectory, {}, { salvage: true });
  report.repaired.push(
    `${engineDirectory}: made anew of what can be read of its files; as it was it is in ${aside}`,
  );
  return engine;
}

function problem(part: Problem['part'], path: string, error: unknown, offset?: number): Problem {
  return { part, path, offset, message: error instanceof Error ? error.message : String(error) };
}

async function checkMeta(
  engine: Engine,
  directory: DataDirectory,
  report: CheckReport,
  damage: string[],
): Promise<Meta | null> {
  try {
    const meta = await readMeta(engine, (message) => damage.push(message));
    report.engine.checkpoint = meta?.checkpoints ?? 0;
    report.engine.position = meta?.position ?? 0;
    return meta;
  } catch (error) {
    report.problems.push(problem('engine', directory.engineDirectory, error));
    return null;
  }
}

function pendingPosition(directory: DataDirectory, disk: Disk): number {
  return Math.max(0, ...disk.list(directory.redoDirectory).map(positionOfRedoName));
}

/** Whether a committed checkpoint waits to be applied, or has been by this repair. */
async function checkRedo(
  engine: Engine | null,
  meta: Meta | null,
  directory: DataDirectory,
  disk: Disk,
  report: CheckReport,
  options: CheckOptions,
): Promise<'none' | 'pending' | 'finished'> {
  let state: 'none' | 'pending' | 'finished' = 'none';
  for (const name of disk.list(directory.redoDirectory)) {
    const path = `${directory.redoDirectory}/${name}`;
    const position = positionOfRedoName(name);
    if (position < 0) {
      report.notices.push(`${path}: a checkpoint that was not committed; the next start removes it`);
      continue;
    }
    report.redo.files++;
    try {
      const steps = verifyRedo(disk, path, directory.identity.id);
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      const redo = step.value;
      report.redo.rows += redo.rows;
      report.redo.rowBytes += redo.rowBytes;
      if (meta !== null && position < meta.position) {
        report.notices.push(`${path}: a checkpoint that the engine has; the next start removes it`);
      } else if (options.repair && engine !== null) {
        await engine.applyRows(path, redo.rowsOffset, redo.rowBytes, { sync: true });
        disk.remove(path);
        await disk.syncDirectory(directory.redoDirectory);
        report.repaired.push(`${path}: its ${redo.rows} rows were given to the engine`);
        state = 'finished';
      } else {
        report.notices.push(
          `${path}: a committed checkpoint of ${redo.rows} rows; the next start gives them to the engine. ` +
            'Until then the engine may hold a part of them, so its rows are only read, not compared',
        );
        state = 'pending';
      }
    } catch (error) {
      if (!(error instanceof RedoDamagedError) || !options.repair || engine === null) {
        report.problems.push(problem('redo', path, error));
      } else if (await repairRedo(path, position, engine, meta, directory, disk, report, options)) {
        state = 'finished';
      } else {
        report.problems.push(problem('redo', path, error));
      }
    }
  }
  return state;
}

/** Mends a damaged redo file and gives it to the engine; false when that is not possible. */
async function repairRedo(
  path: string,
  position: number,
  engine: Engine,
  meta: Meta | null,
  directory: DataDirectory,
  disk: Disk,
  report: CheckReport,
  options: CheckOptions,
): Promise<boolean> {
  const { redoDirectory } = directory;
  if (meta !== null && meta.position >= position) {
    disk.remove(path);
    await disk.syncDirectory(redoDirectory);
    report.repaired.push(`${path}: removed; the engine has its checkpoint`);
    return true;
  }
  const saved = await saveRedo(disk, directory, path, position);
  if (saved === null) return false;
  if (saved.damagedRows > 0)
    options.onLoss?.(`${path}: ${saved.damagedRows} rows are damaged; their keys will be dropped`);
  if (saved.lostBytes > 0) {
    options.onLoss?.(
      `${path}: ${saved.lostBytes} bytes of rows do not tell their keys; these keep the values of the checkpoint before, or are missing`,
    );
  }
  const steps = verifyRedo(disk, path, directory.identity.id);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  await engine.applyRows(path, step.value.rowsOffset, step.value.rowBytes, { sync: true });
  disk.remove(path);
  await disk.syncDirectory(redoDirectory);
  report.repaired.push(
    `${path}: its ${saved.soundRows} sound rows were given to the engine; the damaged file is in ${saved.aside}`,
  );
  return true;
}

async function checkLog(
  from: number,
  directory: DataDirectory,
  disk: Disk,
  report: CheckReport,
  options: CheckOptions,
): Promise<void> {
  const { logDirectory, identity } = directory;
  const reader = new LogReader({ disk, directory: logDirectory, directoryId: identity.id, from });
  const figures = report.log;
  for (let frame = reader.next(); frame !== null; frame = reader.next()) {
    figures.frames++;
    figures.payloadBytes += frame.payload.length;
    if (figures.frames % 1000 === 0) options.onProgress?.(`${figures.frames} log frames`);
  }
  reader.close();
  figures.segments = reader.segments.length;
  figures.from = from;
  figures.to = reader.position;
  const { fault } = reader;
  if (fault === null) return;
  const what = `log position ${fault.position}: ${fault.reason}; ${lossOf(fault)}`;
  if (fault.kind === 'torn' && !options.repair) {
    report.notices.push(
      `${fault.path}: torn tail at offset ${fault.offset}, ${what}; the next start cuts it off`,
    );
    return;
  }
  if (!options.repair) {
    report.problems.push({ part: 'log', path: fault.path, offset: fault.offset, message: what });
    return;
  }
  const aside = `${directory.path}/log-damaged-${fault.position}-${Date.now()}`;
  await cutLog(disk, logDirectory, fault, aside);
  if (disk.list(logDirectory).length === 0) await beginLog(fault.position, directory, disk);
  report.repaired.push(`${fault.path}: cut off at offset ${fault.offset}, ${what} put aside in ${aside}`);
}

function lossOf(fault: LogFault): string {
  return `${fault.bytesAfter} bytes with ${fault.framesAfter} sound frames behind the bad one`;
}

async function beginLog(position: number, directory: DataDirectory, disk: Disk): Promise<void> {
  const log = await CommandLog.open({
    disk,
    directory: directory.logDirectory,
    directoryId: directory.identity.id,
    replicationId: randomBytes(20).toString('hex'),
    position,
    policy: 'no',
  });
  await log.close();
}
