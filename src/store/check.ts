/**
 * Verifies a data directory that no server has open: identity, log frames, redo file, the engine's rows
 * and what they say of each other. With `repair` the log is cut off before its first bad frame and an
 * unfinished checkpoint is finished; without it nothing is changed.
 */
import { randomBytes } from 'node:crypto';
import { viewOf, type Slice } from '../bytes/slice.ts';
import { DAMAGED_LENGTH, type Engine } from '../engines/engine.ts';
import { openEngine } from '../engines/open.ts';
import { Type } from './api.ts';
import type { TierDatabase } from './database.ts';
import { DataDirectory, type Identity } from './data-directory.ts';
import { NodeDisk, type Disk } from './disk.ts';
import { LogReader, type LogFault } from './log-reader.ts';
import { cutLog } from './log-repair.ts';
import { CommandLog } from './log.ts';
import { readMeta, type Meta } from './meta-row.ts';
import { positionOfRedoName } from './redo-format.ts';
import { verifyRedo } from './redo.ts';
import { META_KEY } from './row-format.ts';
import { RowError } from './row-source.ts';
import { Tier, databasesInMeta } from './tier.ts';

const SCAN_CHUNK_BYTES = 1024 * 1024;
const FIRST_KEY = Uint8Array.of(0);
/** Damaged rows are all counted, and so many named. */
const ROWS_NAMED_MAX = 20;
const KEYS_A_STEP = 1000;

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
    checkpoint: number;
    position: number;
  };
}

export interface CheckOptions {
  repair: boolean;
  onProgress?: (message: string) => void;
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
    engine: { rows: 0, bytes: 0, damagedRows: 0, collections: 0, checkpoint: 0, position: 0 },
  };
  let engine: Engine | null = null;
  try {
    try {
      engine = await openEngine(directory.identity.engine, directory.engineDirectory);
    } catch (error) {
      report.problems.push(problem('engine', directory.engineDirectory, error));
    }
    let meta = engine === null ? null : await checkMeta(engine, directory, report);
    const unfinished = await checkRedo(engine, meta, directory, disk, report, options);
    if (unfinished === 'finished' && engine !== null) meta = await checkMeta(engine, directory, report);
    if (engine !== null) await checkRows(engine, meta, directory, report, unfinished === 'pending', options);
    const from = Math.max(
      meta?.position ?? 0,
      unfinished === 'pending' ? pendingPosition(directory, disk) : 0,
    );
    await checkLog(from, directory, disk, report, options);
    report.ok = report.problems.length === 0;
    return report;
  } finally {
    await engine?.close();
    directory.close();
  }
}

function problem(part: Problem['part'], path: string, error: unknown, offset?: number): Problem {
  return { part, path, offset, message: error instanceof Error ? error.message : String(error) };
}

async function checkMeta(
  engine: Engine,
  directory: DataDirectory,
  report: CheckReport,
): Promise<Meta | null> {
  try {
    const meta = await readMeta(engine);
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
      report.problems.push(problem('redo', path, error));
    }
  }
  return state;
}

/** Reads every row; with a meta row that they all belong to, puts them together and compares the counts. */
async function checkRows(
  engine: Engine,
  meta: Meta | null,
  directory: DataDirectory,
  report: CheckReport,
  readOnly: boolean,
  options: CheckOptions,
): Promise<void> {
  const path = directory.engineDirectory;
  const figures = report.engine;
  let tier: Tier | null = null;
  if (meta !== null && !readOnly) {
    tier = new Tier({ databases: databasesInMeta(meta.tier) });
    tier.restoreMeta(meta.tier);
  }
  const damaged = (key: string, message: string): void => {
    figures.damagedRows++;
    if (figures.damagedRows <= ROWS_NAMED_MAX) {
      report.problems.push({ part: 'rows', path, message: `row ${key}: ${message}` });
    }
  };
  try {
    for await (const chunk of engine.scan({ start: FIRST_KEY, chunkBytes: SCAN_CHUNK_BYTES })) {
      const bytes = Buffer.from(chunk.bytes, 0, chunk.length);
      const view = viewOf(chunk.bytes);
      let at = 0;
      while (at < chunk.length) {
        const keyLength = view.getUint32(at, true);
        const valueLength = view.getUint32(at + 4, true);
        const keyStart = at + 8;
        const valueStart = keyStart + keyLength;
        at = valueStart + (valueLength === DAMAGED_LENGTH ? 0 : valueLength);
        if (keyLength === META_KEY.length && bytes[keyStart] === META_KEY[0]) continue;
        figures.rows++;
        figures.bytes += at - keyStart;
        if (meta === null && !readOnly) {
          damaged(bytes.hexSlice(keyStart, valueStart), 'there is no meta row that it could belong to');
        }
        try {
          if (valueLength === DAMAGED_LENGTH) throw new RowError('its checksum does not match');
          tier?.installRow(bytes, keyStart, valueStart, bytes, valueStart, at);
        } catch (error) {
          if (!(error instanceof RowError)) throw error;
          damaged(bytes.hexSlice(keyStart, valueStart), error.message);
        }
      }
      options.onProgress?.(`${figures.rows} rows`);
    }
    if (tier !== null && figures.damagedRows === 0) {
      tier.recovered();
      checkTrees(tier, path, report);
    }
  } catch (error) {
    report.problems.push(problem('engine', path, error));
  }
  if (figures.damagedRows > ROWS_NAMED_MAX) {
    report.problems.push({ part: 'rows', path, message: `${figures.damagedRows} rows in all are damaged` });
  }
}

/** Looks into the pages of every collection, long string and expiry index: order, counts, free pages. */
function checkTrees(tier: Tier, path: string, report: CheckReport): void {
  for (let index = 0; index < tier.databaseCount; index++) {
    const db = tier.database(index);
    const keys: Slice[] = [];
    let cursor = 0;
    do {
      keys.length = 0;
      cursor = db.scan(cursor, KEYS_A_STEP, (key) => {
        keys.push(key.clone());
      });
      for (const key of keys) {
        tier.beginCommand();
        if (db.type(key) !== Type.String) report.engine.collections++;
        const wrong = valueOf(db, key)?.check() ?? null;
        if (wrong === null) continue;
        const name = key
          .latin1()
          .replace(/[^ -~]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
        report.problems.push({ part: 'trees', path, message: `database ${index}, key "${name}": ${wrong}` });
      }
    } while (cursor !== 0);
    const wrong = db.keyspace.expiry.check();
    if (wrong !== null) {
      report.problems.push({ part: 'trees', path, message: `database ${index}, expiry index: ${wrong}` });
    }
  }
}

function valueOf(db: TierDatabase, key: Slice): { check(): string | null } | null {
  switch (db.type(key)) {
    case Type.String:
      return db.string(key);
    case Type.List:
      return db.list(key);
    case Type.Set:
      return db.set(key);
    case Type.Hash:
      return db.hash(key);
    case Type.ZSet:
      return db.zset(key);
    default:
      return null;
  }
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
