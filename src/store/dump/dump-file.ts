/**
 * A file that takes the place of another in one step: written under a temporary name, synced, renamed.
 * Whatever happens before the rename leaves the old file as it was.
 */
import {
  close,
  closeSync,
  constants,
  existsSync,
  fdatasync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  write,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/** Written bytes are sent to the disk in steps of this, so that the last sync finds little left. */
const SYNC_STEP_BYTES = 32 * 1024 * 1024;

const syncData = promisify(fdatasync);
const writeBytes = promisify(write);

/** The name that a file, or a directory, has until it is complete. */
export function temporaryName(file: string): string {
  return path.join(path.dirname(file), `temp-${process.pid}-${path.basename(file)}`);
}

/** Removes what processes that were killed have left in a directory; nobody may be writing there. */
export function removeTemporary(directory: string): void {
  if (!existsSync(directory)) return;
  for (const name of readdirSync(directory)) {
    if (/^temp-\d+-/.test(name)) rmSync(path.join(directory, name), { force: true, recursive: true });
  }
}

export class DumpFile {
  readonly temporary: string;
  /** Bytes written so far, or being written. */
  bytes = 0;
  private readonly final: string;
  private readonly fd: number;
  /** Writes off this thread that have not ended. */
  private readonly writing = new Set<Promise<void>>();
  private unsynced = 0;
  private syncing: Promise<void> | null = null;
  private failure: unknown = null;

  /** @param temporary in the directory of `final`; replaced when it exists */
  constructor(final: string, temporary: string) {
    this.final = final;
    this.temporary = temporary;
    rmSync(temporary, { force: true });
    this.fd = openSync(temporary, 'wx', 0o640);
  }

  /** Writes bytes, at the end unless it is said where. Throws the system's error. */
  write(bytes: Uint8Array, at = this.bytes): void {
    for (let done = 0; done < bytes.length;)
      done += writeSync(this.fd, bytes, done, bytes.length - done, at + done);
    this.bytes += bytes.length;
    this.written(bytes.length);
  }

  /** The same, off this thread. The bytes must not change until it resolves. */
  writeLater(bytes: Uint8Array, at = this.bytes): Promise<void> {
    this.bytes += bytes.length;
    const writing = this.writeAll(bytes, at).finally(() => this.writing.delete(writing));
    this.writing.add(writing);
    return writing;
  }

  private async writeAll(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length;)
      done += (await writeBytes(this.fd, bytes, done, bytes.length - done, at + done)).bytesWritten;
    this.written(bytes.length);
  }

  private written(bytes: number): void {
    this.unsynced += bytes;
    if (this.unsynced >= SYNC_STEP_BYTES && this.syncing === null) this.syncStep();
  }

  /** Replaces bytes that were written before. */
  patch(offset: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;) {
      done += writeSync(this.fd, bytes, done, bytes.length - done, offset + done);
    }
  }

  private syncStep(): void {
    this.unsynced = 0;
    this.syncing = syncData(this.fd)
      .catch((error: unknown) => {
        this.failure ??= error;
      })
      .then(() => {
        this.syncing = null;
      });
  }

  /** The file is complete: when this resolves it is on the disk under its name. */
  async commit(): Promise<void> {
    await Promise.all(this.writing);
    await this.syncing;
    if (this.failure !== null) throw this.failure as Error;
    fsyncSync(this.fd);
    closeSync(this.fd);
    const replaced = openedOrNull(this.final);
    try {
      renameSync(this.temporary, this.final);
      syncDirectory(path.dirname(this.final));
    } finally {
      if (replaced !== null) close(replaced);
    }
  }

  /** Gives the file up. */
  async abandon(): Promise<void> {
    await Promise.allSettled(this.writing);
    await this.syncing;
    try {
      closeSync(this.fd);
    } catch {
      // closed already by a commit that failed later
    }
    rmSync(this.temporary, { force: true });
  }
}

/**
 * Opens the file that is about to be replaced: as long as it is open its memory and its place on the disk are not
 * given back, which takes a quarter of a second for 800 MB, and nobody need wait for that. Null: there is none that can be opened.
 */
function openedOrNull(file: string): number | null {
  try {
    return openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
}

/** Makes the names in a directory survive a power loss. */
export function syncDirectory(directory: string): void {
  // Windows cannot open directories and needs no such sync.
  if (process.platform === 'win32') return;
  const fd = openSync(directory, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
