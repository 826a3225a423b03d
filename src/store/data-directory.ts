/**
 * The data directory: who it belongs to, and that only one process uses it at a time.
 *
 *     ardent.json   identity: format, engine, binding; made once, never changed
 *     ardent.pid    process that has it open, for people to read; the lock itself is the kernel's
 *     clean.json    there after a clean end: where the history stood
 *     log/ redo/ filters/ engine/
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { resolve } from 'node:path';
import type { EngineName } from '../engines/engine.ts';
import { replaceFile, type Disk } from './disk.ts';

/** Of the data directory as a whole: rows, log, redo file. */
const DATA_FORMAT_VERSION = 1;

const IDENTITY_FILE = 'ardent.json';
const PID_FILE = 'ardent.pid';
const CLEAN_FILE = 'clean.json';

export interface Identity {
  format: number;
  /** 32 hex digits, random; log segments and redo files carry it too. */
  id: string;
  engine: EngineName;
  /** Package and version that bound the engine when the directory was made. */
  binding: string;
  /** ISO 8601. */
  created: string;
}

/** Where the history stood at a clean end. */
export interface CleanEnd {
  position: number;
  replicationId: string;
  replicationOffset: number;
}

/** Why a data directory cannot be used; `message` names the path and the next step. */
export class DataDirectoryError extends Error {
  readonly code:
    | 'DIRECTORY_LOCKED'
    | 'DIRECTORY_FORMAT'
    | 'DIRECTORY_MISMATCH'
    | 'DIRECTORY_DAMAGED'
    | 'DIRECTORY_ABSENT'
    | 'DIRECTORY_UNUSABLE';

  constructor(code: DataDirectoryError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'DataDirectoryError';
    this.code = code;
  }
}

/** The system's refusals, by its codes, with what to do about them. */
const REFUSALS: Record<string, string> = {
  EEXIST: 'a file is in the way; name another directory with --dir',
  ENOTDIR: 'a part of the path is a file; name another directory with --dir',
  ENOENT: 'the system allows no directory there; name another one with --dir',
  EACCES:
    'this user may not write there; change its owner or its permissions, or name another directory with --dir',
  EPERM:
    'this user may not write there; change its owner or its permissions, or name another directory with --dir',
  EROFS: 'the file system is read-only; mount it for writing, or name another directory with --dir',
  ENOSPC: 'the disk is full; free some space, or name a directory on another disk with --dir',
};

/** The error with a next step, if it is the system's refusal to make or open something. */
function unusable(directory: string, error: unknown): unknown {
  const { code, path } = error as NodeJS.ErrnoException;
  const step = REFUSALS[code ?? ''];
  if (error instanceof DataDirectoryError || step === undefined) return error;
  const at = path === undefined || path === directory ? '' : ` (at ${path})`;
  return new DataDirectoryError(
    'DIRECTORY_UNUSABLE',
    `${directory} cannot be the data directory${at}: ${step}`,
    error,
  );
}

export class DataDirectory {
  readonly path: string;
  readonly identity: Identity;
  private readonly disk: Disk;
  private readonly lock: net.Server | null;

  /**
   * Locks the directory and reads its identity, making both the directory and the identity if there is
   * none yet. Throws DataDirectoryError when another process has it, another engine or version wrote it,
   * or the identity cannot be read.
   */
  static async open(path: string, disk: Disk, engine: EngineName, binding: string): Promise<DataDirectory> {
    const directory = resolve(path);
    let lock: net.Server | null = null;
    try {
      disk.makeDirectory(directory);
      lock = await lockDirectory(directory);
      let identity = readIdentity(directory, disk);
      if (identity === null) {
        const strangers = disk.list(directory).filter((name) => ['engine', 'log', 'redo'].includes(name));
        if (strangers.length > 0) {
          throw new DataDirectoryError(
            'DIRECTORY_DAMAGED',
            `${directory} holds ${strangers.join(', ')} but no ${IDENTITY_FILE}; restore that file, or the directory from a backup, or name an empty directory`,
          );
        }
        identity = newIdentity(engine, binding);
        await replaceFile(
          disk,
          directory,
          IDENTITY_FILE,
          Buffer.from(`${JSON.stringify(identity, null, 2)}\n`),
        );
      }
      if (identity.engine !== engine) {
        throw new DataDirectoryError(
          'DIRECTORY_MISMATCH',
          `${directory} was made with engine ${identity.engine}, not ${engine}; open it with --engine ${identity.engine}, or give ${engine} another directory`,
        );
      }
      const opened = new DataDirectory(directory, disk, identity, lock);
      if (lock !== null) writeFileSync(`${directory}/${PID_FILE}`, `${process.pid}\n`);
      return opened;
    } catch (error) {
      lock?.close();
      throw unusable(directory, error);
    }
  }

  /** The same for a directory that must exist, whatever its engine is. */
  static async openExisting(path: string, disk: Disk): Promise<DataDirectory> {
    const directory = resolve(path);
    const identity = readIdentity(directory, disk);
    if (identity === null) {
      throw new DataDirectoryError(
        'DIRECTORY_ABSENT',
        `${directory} has no ${IDENTITY_FILE}: it is not a data directory of ardent`,
      );
    }
    return DataDirectory.open(directory, disk, identity.engine, identity.binding);
  }

  private constructor(path: string, disk: Disk, identity: Identity, lock: net.Server | null) {
    this.path = path;
    this.disk = disk;
    this.identity = identity;
    this.lock = lock;
  }

  get logDirectory(): string {
    return `${this.path}/log`;
  }

  get redoDirectory(): string {
    return `${this.path}/redo`;
  }

  get filterDirectory(): string {
    return `${this.path}/filters`;
  }

  get engineDirectory(): string {
    return `${this.path}/engine`;
  }

  /** How the process before ended cleanly; null when it did not. */
  readCleanEnd(): CleanEnd | null {
    const text = readText(this.disk, `${this.path}/${CLEAN_FILE}`);
    if (text === null) return null;
    try {
      const { position, replicationId, replicationOffset } = JSON.parse(text) as Partial<CleanEnd>;
      if (typeof position !== 'number' || typeof replicationOffset !== 'number') return null;
      if (typeof replicationId !== 'string' || !/^[0-9a-f]{40}$/.test(replicationId)) return null;
      return { position, replicationId, replicationOffset };
    } catch {
      return null; // an end that cannot be read is not a clean one
    }
  }

  async writeCleanEnd(end: CleanEnd): Promise<void> {
    await replaceFile(this.disk, this.path, CLEAN_FILE, Buffer.from(`${JSON.stringify(end)}\n`));
  }

  /** From now on the directory counts as in use: an end without `writeCleanEnd` is not clean. */
  async removeCleanEnd(): Promise<void> {
    this.disk.remove(`${this.path}/${CLEAN_FILE}`);
    await this.disk.syncDirectory(this.path);
  }

  /** Unlocks. */
  close(): void {
    if (this.lock === null) return;
    rmSync(`${this.path}/${PID_FILE}`, { force: true });
    this.lock.close();
  }
}

function newIdentity(engine: EngineName, binding: string): Identity {
  return {
    format: DATA_FORMAT_VERSION,
    id: randomBytes(16).toString('hex'),
    engine,
    binding,
    created: new Date().toISOString(),
  };
}

function readIdentity(directory: string, disk: Disk): Identity | null {
  const path = `${directory}/${IDENTITY_FILE}`;
  const text = readText(disk, path);
  if (text === null) return null;
  let identity: Partial<Identity>;
  try {
    identity = JSON.parse(text) as Partial<Identity>;
  } catch (cause) {
    throw new DataDirectoryError(
      'DIRECTORY_DAMAGED',
      `${path} is not JSON; restore it, or the directory from a backup`,
      cause,
    );
  }
  if (typeof identity.format === 'number' && identity.format !== DATA_FORMAT_VERSION) {
    throw new DataDirectoryError(
      'DIRECTORY_FORMAT',
      `${directory} has data format ${identity.format}, this version of ardent reads format ${DATA_FORMAT_VERSION}; use the version that wrote it, or import from a dump`,
    );
  }
  const { format, id, engine, binding, created } = identity;
  if (
    typeof format !== 'number' ||
    !/^[0-9a-f]{32}$/.test(id ?? '') ||
    typeof engine !== 'string' ||
    typeof binding !== 'string' ||
    typeof created !== 'string'
  ) {
    throw new DataDirectoryError(
      'DIRECTORY_DAMAGED',
      `${path} does not tell format, id and engine; restore it, or the directory from a backup`,
    );
  }
  return { format, id: id!, engine, binding, created };
}

function readText(disk: Disk, path: string): string | null {
  let file;
  try {
    file = disk.open(path, 'read');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  try {
    const bytes = Buffer.alloc(file.size());
    file.read(bytes, 0);
    return bytes.toString('utf8');
  } finally {
    file.close();
  }
}

/**
 * Keeps other processes out for as long as this one lives, without a trace that a kill could leave: on
 * Linux an abstract socket whose name is the directory's device and inode. Elsewhere, and for
 * processes that do not share this one's network namespace, the engine's own lock decides.
 * Null for a directory that is not the machine's (tests).
 */
async function lockDirectory(directory: string): Promise<net.Server | null> {
  const stat = statSync(directory, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined || process.platform !== 'linux') return null;
  const server = net.createServer((socket) => socket.destroy());
  const locked = new Promise<void>((settled, reject) => {
    server.once('error', reject);
    server.listen({ path: `\0ardent-${stat.dev}-${stat.ino}` }, settled);
  });
  try {
    await locked;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause;
    let holder = 'another process';
    try {
      holder = `process ${readFileSync(`${directory}/${PID_FILE}`, 'latin1').trim()}`;
    } catch {
      // the holder has not written it yet
    }
    throw new DataDirectoryError(
      'DIRECTORY_LOCKED',
      `${directory} is in use by ${holder}; stop that one, or name another directory with --dir`,
      cause,
    );
  }
  server.unref();
  return server;
}
