/**
 * A disk in memory that tells apart what was written and what was synced.
 *
 * `afterPowerLoss` gives the disk as another machine start would find it: of each file's writes since
 * its last sync every 4 KB page has kept any number, independently, and so has its length; of the
 * changes to directories a prefix. Faults are injected through `fault`.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { Disk, DiskFile, OpenMode } from '../../src/store/disk.ts';

const PAGE_BYTES = 4096;

type Change = { kind: 'write'; offset: number; bytes: Buffer } | { kind: 'truncate'; length: number };

interface Inode {
  /** What a reader sees. */
  content: Buffer;
  size: number;
  /** What is on disk for sure, and the changes that are not. */
  durable: Buffer;
  unsynced: Change[];
}

type Entries = Map<string, Inode>;
type EntryChange = { path: string; inode: Inode | null }[];

export type Operation = 'write' | 'sync' | 'open' | 'rename' | 'remove' | 'truncate' | 'sync-directory';

export class DiskFault extends Error {
  readonly code: string;

  constructor(code: string) {
    super(`${code}: injected`);
    this.code = code;
  }
}

export class SimulatedDisk implements Disk {
  readonly bootId: string;
  /**
   * Asked before each operation: null lets it be, an error is thrown, a number lets a write take only
   * so many bytes.
   */
  fault: (operation: Operation, path: string, length: number) => Error | number | null = () => null;
  private readonly entries: Entries = new Map();
  private durableEntries: Entries = new Map();
  private entryChanges: EntryChange[] = [];

  constructor(bootId = 'boot-1') {
    this.bootId = bootId;
  }

  check(operation: Operation, path: string, length = 0): number {
    const verdict = this.fault(operation, path, length);
    if (verdict instanceof Error) throw verdict;
    return verdict ?? length;
  }

  private change(...changes: EntryChange): void {
    for (const { path, inode } of changes) {
      if (inode === null) this.entries.delete(path);
      else this.entries.set(path, inode);
    }
    this.entryChanges.push(changes);
  }

  open(path: string, mode: OpenMode): DiskFile {
    this.check('open', path);
    let inode = this.entries.get(path);
    if (mode === 'create') {
      if (inode !== undefined) throw new DiskFault('EEXIST');
      inode = { content: Buffer.alloc(0), size: 0, durable: Buffer.alloc(0), unsynced: [] };
      this.change({ path, inode });
    }
    if (inode === undefined) throw new DiskFault('ENOENT');
    return new SimulatedFile(this, path, inode);
  }

  list(directory: string): string[] {
    const prefix = `${directory}/`;
    const below = [...this.entries.keys()].filter((path) => path.startsWith(prefix));
    return [...new Set(below.map((path) => path.slice(prefix.length).split('/')[0]))].sort();
  }

  makeDirectory(): void {
    // directories are only prefixes here
  }

  rename(from: string, to: string): void {
    this.check('rename', from);
    const inode = this.entries.get(from);
    if (inode === undefined) throw new DiskFault('ENOENT');
    this.change({ path: from, inode: null }, { path: to, inode });
  }

  remove(path: string): void {
    this.check('remove', path);
    if (this.entries.has(path)) this.change({ path, inode: null });
  }

  async removeLater(path: string): Promise<void> {
    await turn();
    this.remove(path);
  }

  async syncDirectory(directory: string): Promise<void> {
    const count = this.entryChanges.length;
    await turn();
    this.check('sync-directory', directory);
    // One journal for the whole disk, as file systems have: a sync brings out all that went before.
    this.commitEntries(this.entryChanges.splice(0, count));
  }

  private commitEntries(changes: EntryChange[]): void {
    for (const step of changes) {
      for (const { path, inode } of step) {
        if (inode === null) this.durableEntries.delete(path);
        else this.durableEntries.set(path, inode);
      }
    }
  }

  async close(): Promise<void> {}

  /** The bytes of a file as a reader sees them; for tests that look or do damage. */
  read(path: string): Buffer {
    const inode = this.entries.get(path);
    if (inode === undefined) throw new DiskFault('ENOENT');
    return inode.content.subarray(0, inode.size);
  }

  /** Makes the file's content what is given, on disk too. */
  put(path: string, content: Uint8Array): void {
    const bytes = Buffer.from(content);
    const inode = { content: bytes, size: bytes.length, durable: Buffer.from(bytes), unsynced: [] };
    this.entries.set(path, inode);
    this.durableEntries.set(path, inode);
  }

  /** Another disk with the same content, all of it synced, as after the process was killed. */
  afterKill(): SimulatedDisk {
    const disk = new SimulatedDisk(this.bootId);
    for (const [path, inode] of this.entries) disk.put(path, inode.content.subarray(0, inode.size));
    return disk;
  }

  /** What a power loss leaves. `random` is uniform in [0, 1). */
  afterPowerLoss(random: () => number): SimulatedDisk {
    const disk = new SimulatedDisk(`boot-after-${this.bootId}`);
    const entries = new Map(this.durableEntries);
    const kept = Math.floor(random() * (this.entryChanges.length + 1));
    for (const step of this.entryChanges.slice(0, kept)) {
      for (const { path, inode } of step) {
        if (inode === null) entries.delete(path);
        else entries.set(path, inode);
      }
    }
    for (const [path, inode] of entries) disk.put(path, survivor(inode, random));
    return disk;
  }
}

/** Applies the changes of which `counts` tells, for each page, how many it has kept. */
function survivor(inode: Inode, random: () => number): Buffer {
  const changes = inode.unsynced;
  const some = () => Math.floor(random() * (changes.length + 1));
  let longest = Math.max(inode.size, inode.durable.length);
  for (const change of changes) {
    longest = Math.max(
      longest,
      change.kind === 'write' ? change.offset + change.bytes.length : change.length,
    );
  }
  const bytes = Buffer.alloc(longest);
  inode.durable.copy(bytes);
  const sizeKept = some();
  let size = inode.durable.length;
  changes.slice(0, sizeKept).forEach((change) => {
    size = change.kind === 'write' ? Math.max(size, change.offset + change.bytes.length) : change.length;
  });
  for (let page = 0; page < longest; page += PAGE_BYTES) {
    const end = Math.min(page + PAGE_BYTES, longest);
    for (const change of changes.slice(0, some())) {
      if (change.kind === 'truncate') {
        if (change.length < end) bytes.fill(0, Math.max(page, change.length), end);
        continue;
      }
      const from = Math.max(page, change.offset);
      const to = Math.min(end, change.offset + change.bytes.length);
      if (from < to) change.bytes.copy(bytes, from, from - change.offset, to - change.offset);
    }
  }
  return bytes.subarray(0, size);
}

class SimulatedFile implements DiskFile {
  readonly path: string;
  private readonly disk: SimulatedDisk;
  private readonly inode: Inode;

  constructor(disk: SimulatedDisk, path: string, inode: Inode) {
    this.disk = disk;
    this.path = path;
    this.inode = inode;
  }

  write(bytes: Uint8Array, offset: number): number {
    const length = this.disk.check('write', this.path, bytes.length);
    const inode = this.inode;
    const end = offset + length;
    if (end > inode.content.length) {
      const grown = Buffer.alloc(Math.max(end, inode.content.length * 2));
      inode.content.copy(grown, 0, 0, inode.size);
      inode.content = grown;
    }
    const copy = Buffer.from(bytes.subarray(0, length));
    copy.copy(inode.content, offset);
    inode.size = Math.max(inode.size, end);
    inode.unsynced.push({ kind: 'write', offset, bytes: copy });
    return length;
  }

  writev(parts: Uint8Array[], offset: number): number {
    return this.write(Buffer.concat(parts), offset);
  }

  async writeLater(bytes: Uint8Array, offset: number): Promise<void> {
    await turn();
    let done = 0;
    while (done < bytes.length) done += this.write(bytes.subarray(done), offset + done);
  }

  read(into: Uint8Array, offset: number): number {
    const length = Math.max(0, Math.min(into.length, this.inode.size - offset));
    into.set(this.inode.content.subarray(offset, offset + length));
    return length;
  }

  size(): number {
    return this.inode.size;
  }

  truncate(length: number): void {
    this.disk.check('truncate', this.path, length);
    this.inode.content.fill(0, length);
    this.inode.size = length;
    this.inode.unsynced.push({ kind: 'truncate', length });
  }

  async sync(): Promise<void> {
    const inode = this.inode;
    const count = inode.unsynced.length;
    const state = Buffer.from(inode.content.subarray(0, inode.size));
    await turn();
    this.disk.check('sync', this.path);
    inode.durable = state;
    inode.unsynced.splice(0, count);
  }

  close(): void {
    // nothing is held
  }
}
