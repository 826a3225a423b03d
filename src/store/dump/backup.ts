/**
 * BACKUP: a copy of the data directory that a server can open. The engine's files are those of the last
 * checkpoint, linked where they never change; the log's segments since then are linked too, and end at
 * one moment. Writers wait only while the last segment is closed and linked.
 */
import {
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  closeSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import path from 'node:path';
import type { PersistentStore } from '../persistent-store.ts';
import { syncDirectory, temporaryName } from './dump-file.ts';
import type { Imports } from './imports.ts';

const DIRECTORY_MODE = 0o750;
const IDENTITY_FILE = 'ardent.json';

export interface BackupResult {
  /** Milliseconds: of the whole, and of the moment for which nothing else was done. */
  elapsedMs: number;
  pauseMs: number;
  /** Log position up to which it goes. */
  position: number;
}

/** Rejects when the directory is there and not empty, or anything fails; then nothing is left of it. */
export async function backup(store: PersistentStore, imports: Imports, to: string): Promise<BackupResult> {
  if (existsSync(to) && readdirSync(to).length > 0)
    throw new Error(`${to} is not empty; give the backup a directory of its own`);
  const began = performance.now();
  const temporary = temporaryName(to);
  const { checkpointer, engine, log, directory } = store;
  // Without checkpoints the engine's rows stay those of one position, and the log from there on stays.
  await checkpointer.hold();
  try {
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(path.join(temporary, 'log'), { recursive: true, mode: DIRECTORY_MODE });
    mkdirSync(path.join(temporary, 'redo'), { mode: DIRECTORY_MODE });
    await engine.backup(path.join(temporary, 'engine'));
    const paused = performance.now();
    if (!store.flush()) throw new Error(`the log cannot be written: ${log.failure ?? ''}`);
    log.roll();
    const { position } = log;
    for (const segment of log.closedSegments()) take(segment, path.join(temporary, 'log'));
    for (const file of imports.files()) take(file, path.join(temporary, 'imports'));
    const pauseMs = performance.now() - paused;
    await log.sync();
    take(path.join(directory.path, IDENTITY_FILE), temporary, true);
    for (const name of ['log', 'redo', 'imports', '']) {
      const part = path.join(temporary, name);
      if (existsSync(part)) syncDirectory(part);
    }
    rmSync(to, { recursive: true, force: true });
    renameSync(temporary, to);
    syncDirectory(path.dirname(to));
    return { elapsedMs: performance.now() - began, pauseMs, position };
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  } finally {
    checkpointer.release();
  }
}

/** Links a file that will not change into a directory, or copies it where that is not possible. */
function take(file: string, directory: string, copy = false): void {
  mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
  const to = path.join(directory, path.basename(file));
  if (!copy) {
    try {
      linkSync(file, to);
      return;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // Another file system, or one without hard links.
      if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EMLINK') throw error;
    }
  }
  copyFileSync(file, to);
  const fd = openSync(to, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
