import { constants } from 'node:fs';
import { copyFile, link, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Bytes of all files of a directory; files that vanish meanwhile count nothing. */
export async function directoryBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const name of await readdir(directory)) bytes += await fileBytes(join(directory, name));
  return bytes;
}

async function fileBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (isMissing(error)) return 0;
    throw error;
  }
}

/** Waits until a file's bytes, or a directory's entries, are on disk. False: there is no such file. */
export async function syncPath(path: string): Promise<boolean> {
  let file;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  try {
    await file.sync();
  } finally {
    await file.close();
  }
  return true;
}

/**
 * Puts on disk what a log-structured engine has written so far: its logs, the older ones too (their
 * rows are in no table until the memory they belong to is flushed, and the engine's own sync covers
 * only the newest), and the directory that names them. A log that vanishes meanwhile has become a
 * table, which the engine synced before it removed the log.
 */
export async function syncLogs(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    if (name.endsWith('.log')) await syncPath(join(directory, name));
  }
  await syncPath(directory);
}

const IMMUTABLE = /\.(ldb|sst|blob)$/;
const NOT_STATE = /^(LOCK|LOG|LOG\.old.*|ENGINE.*)$/;
/** A table count that changes at every look would need a flush or compaction every few milliseconds. */
const LINK_ATTEMPTS = 100;

/**
 * Copies a log-structured engine's files while no write runs: tables by hard link (they never
 * change), the rest by copy. Background compaction may go on: it first logs in the manifest which
 * tables live and then removes the dead, so a copy is consistent if manifest and tables were the
 * same before and after it; otherwise it is made again.
 */
export async function linkTables(from: string, to: string): Promise<void> {
  const linked = new Set<string>();
  for (let attempt = 0; attempt < LINK_ATTEMPTS; attempt++) {
    const before = await inventory(from);
    let complete = true;
    for (const name of before.names) {
      if (NOT_STATE.test(name) || linked.has(name)) continue;
      try {
        await (IMMUTABLE.test(name) ? linkOrCopy(from, to, name) : copy(from, to, name));
        if (IMMUTABLE.test(name)) linked.add(name);
      } catch (error) {
        if (!isMissing(error)) throw error;
        complete = false;
      }
    }
    const after = await inventory(from);
    if (complete && before.fingerprint === after.fingerprint) {
      for (const name of await readdir(to)) {
        if (!IMMUTABLE.test(name)) await syncPath(join(to, name));
      }
      await syncPath(to);
      return;
    }
  }
  throw new Error(`the tables of ${from} changed during each of ${LINK_ATTEMPTS} attempts to copy them`);
}

async function inventory(directory: string): Promise<{ names: string[]; fingerprint: string }> {
  const names = (await readdir(directory)).filter((name) => !NOT_STATE.test(name)).sort();
  const parts: string[] = [];
  for (const name of names) {
    // A table under construction grows without being part of the state.
    parts.push(IMMUTABLE.test(name) ? name : `${name}:${await fileBytes(join(directory, name))}`);
  }
  return { names, fingerprint: parts.join('/') };
}

async function copy(from: string, to: string, name: string): Promise<void> {
  await copyFile(join(from, name), join(to, name), constants.COPYFILE_FICLONE);
}

async function linkOrCopy(from: string, to: string, name: string): Promise<void> {
  try {
    await link(join(from, name), join(to, name));
  } catch (error) {
    // Another file system, or one without hard links.
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EXDEV' && code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EMLINK') throw error;
    await copy(from, to, name);
    await syncPath(join(to, name));
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
