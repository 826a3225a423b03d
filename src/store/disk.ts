/**
 * The few file operations that durability rests on, behind an interface, so that tests can put a disk
 * in its place that fills up, fails, or forgets what was not synced.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  ftruncateSync,
  fdatasync,
  fsync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  write,
  writeSync,
  writevSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Worker } from 'node:worker_threads';

/** An open file. All offsets and sizes are bytes; nothing is appended implicitly. */
export interface DiskFile {
  readonly path: string;
  /** Writes at `offset` and returns how many bytes were taken, which may be fewer than given. */
  write(bytes: Uint8Array, offset: number): number;
  /** The same for several runs of bytes that follow each other in the file. */
  writev(parts: Uint8Array[], offset: number): number;
  /** Writes all of it off the caller's thread; `bytes` must not change until then. */
  writeLater(bytes: Uint8Array, offset: number): Promise<void>;
  /** Reads at `offset`; fewer bytes than asked for only at the end of the file. */
  read(into: Uint8Array, offset: number): number;
  size(): number;
  truncate(length: number): void;
  /** Resolves when what was written before the call survives a power loss. Off the caller's thread. */
  sync(): Promise<void>;
  close(): void;
}

/** `create` fails when the file exists; `write` opens an existing file for reading and writing. */
export type OpenMode = 'create' | 'write' | 'read';

export interface Disk {
  /**
   * Identifies the time since the machine was started; empty when the system does not tell. As long
   * as it is the same, all that was ever written is there, synced or not.
   */
  readonly bootId: string;
  open(path: string, mode: OpenMode): DiskFile;
  /** Names in a directory, sorted; none when it does not exist. */
  list(directory: string): string[];
  makeDirectory(directory: string): void;
  rename(from: string, to: string): void;
  /** Removes a file; it is no error when there is none. */
  remove(path: string): void;
  /** The same off the caller's thread: freeing the space of a large file takes milliseconds. */
  removeLater(path: string): Promise<void>;
  /** Makes creations, renames and removals in the directory survive a power loss. */
  syncDirectory(directory: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Makes a directory with those above it; it may be there already. Throws the system's error. (Node's own
 * recursive mkdir tries without end where the system refuses new names, as under /proc.)
 */
export function makeDirectories(directory: string, mode: number): void {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const above = dirname(directory);
  if (above !== directory) makeDirectories(above, mode);
  try {
    mkdirSync(directory, { mode });
  } catch (error) {
    // Another process may have been quicker.
    if (statSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
  }
}

const FLAGS = { create: 'wx+', write: 'r+', read: 'r' } as const;

/** Something that syncs file descriptors off this thread. */
type Syncer = (fd: number, wholeFile: boolean) => Promise<void>;

/**
 * The machine's own disk.
 *
 * With `ownSyncThread` syncs run one after the other in a thread that does nothing else, so that they
 * never wait for a free thread of Node's pool, which an engine may keep busy for seconds.
 */
export class NodeDisk implements Disk {
  readonly bootId = readBootId();
  private readonly thread: SyncThread | null;
  private readonly syncer: Syncer;

  constructor(options: { ownSyncThread?: boolean } = {}) {
    const thread = options.ownSyncThread === true ? new SyncThread() : null;
    this.thread = thread;
    this.syncer = thread === null ? syncInPool : (fd, wholeFile) => thread.sync(fd, wholeFile);
  }

  open(path: string, mode: OpenMode): DiskFile {
    return new NodeFile(path, openSync(path, FLAGS[mode], 0o640), this.syncer);
  }

  list(directory: string): string[] {
    return existsSync(directory) ? readdirSync(directory).sort() : [];
  }

  makeDirectory(directory: string): void {
    makeDirectories(directory, 0o750);
  }

  rename(from: string, to: string): void {
    renameSync(from, to);
  }

  remove(path: string): void {
    rmSync(path, { force: true });
  }

  removeLater(path: string): Promise<void> {
    return rm(path, { force: true });
  }

  async syncDirectory(directory: string): Promise<void> {
    // Windows cannot open directories and needs no such sync.
    if (process.platform === 'win32') return;
    const fd = openSync(directory, 'r');
    try {
      await this.syncer(fd, true);
    } finally {
      closeSync(fd);
    }
  }

  async close(): Promise<void> {
    await this.thread?.close();
  }
}

class NodeFile implements DiskFile {
  readonly path: string;
  private readonly fd: number;
  private readonly syncer: Syncer;

  constructor(path: string, fd: number, syncer: Syncer) {
    this.path = path;
    this.fd = fd;
    this.syncer = syncer;
  }

  write(bytes: Uint8Array, offset: number): number {
    return writeSync(this.fd, bytes, 0, bytes.length, offset);
  }

  writev(parts: Uint8Array[], offset: number): number {
    return writevSync(this.fd, parts, offset);
  }

  async writeLater(bytes: Uint8Array, offset: number): Promise<void> {
    let done = 0;
    while (done < bytes.length) {
      done += await new Promise<number>((resolve, reject) => {
        write(this.fd, bytes, done, bytes.length - done, offset + done, (error, written) => {
          if (error === null) resolve(written);
          else reject(error);
        });
      });
    }
  }

  read(into: Uint8Array, offset: number): number {
    let done = 0;
    while (done < into.length) {
      const got = readSync(this.fd, into, done, into.length - done, offset + done);
      if (got === 0) break;
      done += got;
    }
    return done;
  }

  size(): number {
    return fstatSync(this.fd).size;
  }

  truncate(length: number): void {
    ftruncateSync(this.fd, length);
  }

  sync(): Promise<void> {
    return this.syncer(this.fd, false);
  }

  close(): void {
    closeSync(this.fd);
  }
}

function syncInPool(fd: number, wholeFile: boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    (wholeFile ? fsync : fdatasync)(fd, (error) => (error === null ? resolve() : reject(error)));
  });
}

interface SyncResult {
  id: number;
  error: Error | null;
}

/**
 * File descriptors belong to the process, so a thread can sync what another one opened. The thread's
 * program is text because a worker's file would have to be JavaScript, and tests run the sources.
 */
const SYNC_THREAD_PROGRAM = `
const { parentPort } = require('node:worker_threads');
const { fsyncSync, fdatasyncSync } = require('node:fs');
parentPort.on('message', ({ id, fd, wholeFile }) => {
  let error = null;
  try {
    (wholeFile ? fsyncSync : fdatasyncSync)(fd);
  } catch (cause) {
    error = cause;
  }
  parentPort.postMessage({ id, error });
});`;

class SyncThread {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, (error: Error | null) => void>();
  private nextId = 1;
  private dead: Error | null = null;

  constructor() {
    this.worker = new Worker(SYNC_THREAD_PROGRAM, { eval: true, name: 'ardent-log-sync' });
    this.worker.on('message', ({ id, error }: SyncResult) => {
      const done = this.waiting.get(id);
      this.waiting.delete(id);
      if (this.waiting.size === 0) this.worker.unref();
      done?.(error);
    });
    this.worker.on('error', (error: Error) => this.end(error));
    this.worker.on('exit', () => this.end(new Error('the sync thread has ended')));
    this.worker.unref();
  }

  private end(error: Error): void {
    this.dead ??= error;
    for (const done of this.waiting.values()) done(this.dead);
    this.waiting.clear();
  }

  sync(fd: number, wholeFile: boolean): Promise<void> {
    if (this.dead !== null) return Promise.reject(this.dead);
    return new Promise((resolve, reject) => {
      const id = this.nextId++;
      this.waiting.set(id, (error) => (error === null ? resolve() : reject(error)));
      this.worker.ref();
      this.worker.postMessage({ id, fd, wholeFile });
    });
  }

  async close(): Promise<void> {
    await this.worker.terminate();
  }
}

function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    // Not Linux: unknown, so every start counts as one after a possible power loss.
    return '';
  }
}

/** Writes all of `bytes`; a write that takes nothing is an error, since it would never end. */
export function writeFully(file: DiskFile, bytes: Uint8Array, offset: number): void {
  let done = 0;
  while (done < bytes.length) {
    const written = file.write(done === 0 ? bytes : bytes.subarray(done), offset + done);
    if (written === 0) throw new Error(`${file.path}: nothing could be written at ${offset + done}`);
    done += written;
  }
}

/** Replaces the file's content in one step that a crash leaves done or undone. */
export async function replaceFile(
  disk: Disk,
  directory: string,
  name: string,
  content: Uint8Array,
): Promise<void> {
  const temporary = `${directory}/${name}.tmp`;
  disk.remove(temporary);
  const file = disk.open(temporary, 'create');
  try {
    writeFully(file, content, 0);
    await file.sync();
  } finally {
    file.close();
  }
  disk.rename(temporary, `${directory}/${name}`);
  await disk.syncDirectory(directory);
}
