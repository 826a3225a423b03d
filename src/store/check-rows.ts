/**
 * The engine's rows, for `ardent check`: each against its checksum, all of them put together and compared
 * with what the meta row counts, every tree walked. The repair drops the keys whose values are damaged
 * and what belongs to nobody; it goes to the engine as a checkpoint does, through a redo file.
 */
import type { Slice } from '../bytes/slice.ts';
import type { Engine } from '../engines/engine.ts';
import { DamagedValueError, Type } from './api.ts';
import type { CheckOptions, CheckReport } from './check.ts';
import type { DataDirectory } from './data-directory.ts';
import type { TierDatabase } from './database.ts';
import type { Disk } from './disk.ts';
import { encodeMeta, writeMeta, type Meta } from './meta-row.ts';
import { RedoWriter } from './redo.ts';
import { RowError } from './row-source.ts';
import { RowWalk } from './row-walk.ts';
import { databasesOfMeta } from './tier-meta.ts';
import { Tier } from './tier.ts';

const SCAN_CHUNK_BYTES = 1024 * 1024;
const FIRST_KEY = Uint8Array.of(0);
/** What is damaged is all counted, and so much named. */
const NAMED_MAX = 20;
const KEYS_A_STEP = 1000;
const SLICE_MS = 50;
const SLICE_BYTES_MAX = 1024 * 1024;

export interface RowCheck {
  engine: Engine;
  meta: Meta | null;
  /** What is wrong with one of the two rows that tell it. */
  metaDamage: readonly string[];
  directory: DataDirectory;
  disk: Disk;
  report: CheckReport;
  options: CheckOptions;
  /** A checkpoint is half applied: rows are only read, not put together. */
  readOnly: boolean;
}

/** A key whose value cannot be served. */
interface DamagedKey {
  db: TierDatabase;
  key: Slice;
}

/** Reads every row; with a meta row that they all belong to, puts them together and compares the counts. */
export async function checkRows(check: RowCheck): Promise<void> {
  const { meta, report, options } = check;
  const path = check.directory.engineDirectory;
  try {
    let tier: Tier | null = null;
    if (meta !== null && !check.readOnly) {
      tier = new Tier({ databases: databasesOfMeta(meta.tier).length });
      tier.restoreMeta(meta.tier);
    }
    const problems = new Problems(report, path);
    for (const message of check.metaDamage) problems.add(message);
    const strays = await readRows(check, tier, problems);
    if (tier !== null && meta !== null) {
      try {
        tier.recovered();
      } catch (error) {
        if (!(error instanceof RowError)) throw error;
        problems.add(error.message);
      }
      const keys = checkTrees(tier, report, problems);
      if (options.repair && problems.count > 0) await repairRows(check, tier, meta, keys, strays);
    }
    problems.finish();
    if (options.repair && tier !== null) problems.withdraw();
  } catch (error) {
    report.problems.push({
      part: 'engine',
      path,
      message: error instanceof Error ? error.message : String(error),
    });
  }
}

/** Problems of one directory's rows and trees; all are counted, the first ones kept. */
class Problems {
  count = 0;
  private readonly report: CheckReport;
  private readonly path: string;

  constructor(report: CheckReport, path: string) {
    this.report = report;
    this.path = path;
  }

  add(message: string, part: 'rows' | 'trees' = 'rows'): void {
    this.count++;
    if (this.count <= NAMED_MAX) this.report.problems.push({ part, path: this.path, message });
  }

  finish(): void {
    if (this.count > NAMED_MAX) {
      this.report.problems.push({
        part: 'rows',
        path: this.path,
        message: `${this.count} such findings in all`,
      });
    }
  }

  /** They have been mended. */
  withdraw(): void {
    this.report.problems = this.report.problems.filter(({ part }) => part !== 'rows' && part !== 'trees');
  }
}

/** Returns the keys of the rows that do not tell whose they are. */
async function readRows(check: RowCheck, tier: Tier | null, problems: Problems): Promise<Buffer[]> {
  const { engine, meta, report, options, readOnly } = check;
  const figures = report.engine;
  const strays: Buffer[] = [];
  for await (const chunk of engine.scan({
    start: FIRST_KEY,
    chunkBytes: SCAN_CHUNK_BYTES,
    salvage: true,
  })) {
    for (const gap of chunk.gaps ?? []) problems.add(`rows cannot be read: ${gap}`);
    const walk = new RowWalk(chunk);
    while (walk.next()) {
      const { bytes, keyStart, valueStart, end } = walk;
      figures.rows++;
      figures.bytes += end - keyStart;
      if (meta === null && !readOnly) {
        problems.add(`row ${walk.name}: there is no meta row that it could belong to`);
      }
      try {
        if (walk.damaged) throw new RowError('its checksum does not match');
        tier?.installRow(bytes, keyStart, valueStart, bytes, valueStart, end);
      } catch (error) {
        if (!(error instanceof RowError)) throw error;
        figures.damagedRows++;
        const known = tier === null || tier.damagedRow(bytes, keyStart, valueStart);
        if (!known) strays.push(Buffer.from(bytes.subarray(keyStart, valueStart)));
        problems.add(`row ${walk.name}: ${error.message}${known ? '' : '; it does not tell whose it is'}`);
      }
    }
    options.onProgress?.(`${figures.rows} rows`);
  }
  return strays;
}

/** Looks into the pages of every collection, long string and expiry index: order, counts, free pages. */
function checkTrees(tier: Tier, report: CheckReport, problems: Problems): DamagedKey[] {
  const damaged: DamagedKey[] = [];
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
        const wrong = checkValue(db, key, report);
        if (wrong === null) continue;
        damaged.push({ db, key });
        problems.add(`${nameOf(db, key)}: ${wrong}`, 'trees');
      }
    } while (cursor !== 0);
    const wrong = db.keyspace.expiry.check();
    if (wrong !== null) problems.add(`database ${index}, expiry index: ${wrong}`, 'trees');
  }
  report.engine.damagedKeys = damaged.length + nameless(tier);
  return damaged;
}

/** Keys whose rows do not tell their names. */
function nameless(tier: Tier): number {
  let count = 0;
  for (let index = 0; index < tier.databaseCount; index++) {
    const { keyspace } = tier.database(index);
    count += keyspace.size - keyspace.named;
  }
  return count;
}

function nameOf(db: TierDatabase, key: Slice): string {
  const name = key.latin1().replace(/[^ -~]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `database ${db.index}, key "${name}"`;
}

/** What is wrong with a key's value, or null. */
function checkValue(db: TierDatabase, key: Slice, report: CheckReport): string | null {
  try {
    if (db.type(key) !== Type.String) report.engine.collections++;
    return valueOf(db, key)?.check() ?? null;
  } catch (error) {
    if (error instanceof DamagedValueError) return 'its value is damaged';
    throw error;
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
    case Type.Stream:
      return db.stream(key);
    default:
      return null;
  }
}

/** Drops the damaged keys and the stray rows, makes the expiry indexes anew and counts what is there. */
async function repairRows(
  check: RowCheck,
  tier: Tier,
  meta: Meta,
  damaged: readonly DamagedKey[],
  strays: readonly Buffer[],
): Promise<void> {
  const { engine, directory, disk, report, options } = check;
  for (const { db, key } of damaged) {
    options.onLoss?.(`${nameOf(db, key)} will be dropped with its value`);
  }
  for (const row of strays) options.onLoss?.(`row ${row.toString('hex')} will be dropped, whosever it is`);
  if (damaged.length > 0) {
    options.onLoss?.(
      `what the log holds from position ${meta.position} on will find these keys absent, and begin them anew`,
    );
  }
  // First, since removing a key looks into its database's index.
  for (let index = 0; index < tier.databaseCount; index++) {
    const { keyspace } = tier.database(index);
    keyspace.orderDeadlines();
    keyspace.dropNameless();
  }
  for (const { db, key } of damaged) db.remove(key);

  const writer = new RedoWriter(disk, directory.redoDirectory, {
    position: meta.position,
    directoryId: directory.identity.id,
  });
  const tierMeta = tier.beginCut(writer.sink);
  while (!tier.copyCut(SLICE_MS, SLICE_BYTES_MAX)) {
    writer.drain();
    if (writer.full) await writer.room();
    tier.cutSink = writer.sink;
  }
  for (const row of strays) writer.row(row, null);
  writeMeta(writer, encodeMeta({ ...meta, tier: tierMeta }));
  const redo = await writer.commit();
  await engine.applyRows(redo.path, redo.rowsOffset, redo.rowBytes, { sync: true });
  disk.remove(redo.path);
  await disk.syncDirectory(directory.redoDirectory);
  report.repaired.push(
    `${directory.engineDirectory}: ${damaged.length} damaged keys and ${strays.length} rows without an owner ` +
      'have been dropped, expiry indexes made anew, keys counted',
  );
}
