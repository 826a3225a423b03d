/**
 * Filters of absent keys on disk, a file for each large database, so that new keys can be written right after a
 * start without asking the engine.
 *
 * A file begins with a filter of all keys that the engine had when it was written; to it every checkpoint
 * adds the hashes of the keys that are new, and its own mark. What has no mark of the checkpoint that the engine
 * stands at is not trusted. A file is written anew, in the background, when these hashes outweigh the filter.
 * Nothing is ever waited for or synced: what is lost or late is a missing mark, and the filter is then made
 * from the engine's rows.
 */
import { ByteSink } from '../bytes/sink.ts';
import type { AwayKeys } from './away-keys.ts';
import type { Disk, DiskFile } from './disk.ts';
import {
  checkpointPayload,
  filterHeader,
  FilterRecord,
  FILTER_HEADER_BYTES,
  partPayload,
  writeRecord,
  type CheckpointMark,
} from './filter-format.ts';
import { FilterReader } from './filter-reader.ts';
import type { KeyFilter } from './key-filter.ts';

/** A database with fewer keys is warm before a filter would be of use. */
const KEYS_MIN = 50_000;
/** A file with more bytes for each key of its database, and some more, is written anew; a filter alone takes 1.25. */
const BYTES_A_KEY = 3;
const BYTES_MORE = 64 * 1024;
/** Bytes of hashes or words that become one record. */
const PIECE_BYTES = 256 * 1024;

export interface FilteredKeys {
  readonly id: number;
  readonly size: number;
  readonly away: AwayKeys;
}

export interface FilterFilesOptions {
  disk: Disk;
  /** Where the files are. */
  directory: string;
  directoryId: string;
  /** The keyspaces of all databases, as they are now. */
  keyspaces: () => readonly FilteredKeys[];
  /** A database with fewer keys gets no file. */
  keysMin?: number;
  onNotice?: (message: string) => void;
  onWarning?: (message: string) => void;
}

interface OpenFile {
  away: AwayKeys;
  /** Null until it is written, and when it is given up. */
  file: DiskFile | null;
  bytes: number;
  /** Hashes that are not in it yet. */
  hashes: ByteSink;
  /** All writes, one after the other. */
  tail: Promise<void>;
}

export class FilterFiles {
  private readonly options: FilterFilesOptions;
  private readonly keysMin: number;
  private readonly files = new Map<number, OpenFile>();

  constructor(options: FilterFilesOptions) {
    this.options = options;
    this.keysMin = options.keysMin ?? KEYS_MIN;
  }

  private path(id: number): string {
    return `${this.options.directory}/${id}.filter`;
  }

  /** At a start: gives each keyspace the filter that belongs to the checkpoint, and removes all other files. A step is a record. */
  *load(mark: CheckpointMark): Generator<void> {
    const { disk, directory, keyspaces } = this.options;
    const names = new Set(disk.list(directory));
    for (const { id, size, away } of keyspaces()) {
      if (size < this.keysMin || !names.delete(`${id}.filter`)) continue;
      yield* this.open(id, away, mark);
    }
    for (const name of names) disk.remove(`${directory}/${name}`);
  }

  private *open(id: number, away: AwayKeys, mark: CheckpointMark): Generator<void> {
    const { disk, directoryId, onNotice, onWarning } = this.options;
    let file: DiskFile | null = null;
    try {
      file = disk.open(this.path(id), 'write');
      const reader = new FilterReader(file, mark, away.filterBytesMax);
      yield* reader.read(id, directoryId);
      if (reader.end > 0 && reader.filter !== null) {
        file.truncate(reader.end);
        away.restore(reader.filter);
        const hashes = new ByteSink(PIECE_BYTES);
        away.newKeys = hashes;
        this.files.set(id, { away, file, bytes: reader.end, hashes, tail: Promise.resolve() });
        return;
      }
      onNotice?.(`${this.path(id)} is not of checkpoint ${mark.checkpoints}, or damaged: not used`);
    } catch (error) {
      onWarning?.(`${(error as Error).message}; the filter is not used`);
    }
    file?.close();
    this.remove(id);
  }

  /** After a slice of a checkpoint: writes hashes that have come together. */
  drain(): void {
    for (const [id, open] of this.files) if (open.hashes.pos >= PIECE_BYTES) this.append(id, open, null);
  }

  /** All rows of a checkpoint have been copied out. */
  mark(mark: CheckpointMark): void {
    for (const [id, open] of this.files) this.append(id, open, mark);
  }

  private append(id: number, open: OpenFile, mark: CheckpointMark | null): void {
    const { hashes } = open;
    const sink = new ByteSink(hashes.pos + 64);
    for (let at = 0; at < hashes.pos; at += PIECE_BYTES)
      writeRecord(sink, FilterRecord.Hashes, hashes.u8.subarray(at, Math.min(hashes.pos, at + PIECE_BYTES)));
    hashes.clear();
    if (mark !== null) writeRecord(sink, FilterRecord.Checkpoint, checkpointPayload(mark));
    this.then(id, open, () => this.write(open, sink));
  }

  private async write(open: OpenFile, sink: ByteSink): Promise<void> {
    if (open.file === null) return;
    const at = open.bytes;
    open.bytes += sink.pos;
    await open.file.writeLater(sink.written(), at);
  }

  /** Does something with a file after all that has been begun; a file with which that fails is given up. */
  private then(id: number, open: OpenFile, work: () => Promise<void>): void {
    open.tail = open.tail.then(work).catch((error: Error) => {
      this.options.onWarning?.(`${this.path(id)}: ${error.message}; the filter is not kept`);
      this.giveUp(id, open);
      this.remove(id);
    });
  }

  /** A file that cannot be removed has no mark of what comes. */
  private remove(id: number): void {
    try {
      this.options.disk.remove(this.path(id));
    } catch (error) {
      this.options.onWarning?.((error as Error).message);
    }
  }

  private giveUp(id: number, open: OpenFile): void {
    if (open.away.newKeys === open.hashes) open.away.newKeys = null;
    open.file?.close();
    open.file = null;
    if (this.files.get(id) === open) this.files.delete(id);
  }

  /** Between checkpoints, of which `last` is in the engine or on its way: asks for filters that are due and writes what has been made. */
  tend(last: CheckpointMark): void {
    const keyspaces = this.options.keyspaces();
    for (const [id, open] of this.files) {
      if (keyspaces.some((keyspace) => keyspace.id === id)) continue;
      this.giveUp(id, open);
      this.remove(id);
    }
    if (last.checkpoints === 0) return;
    for (const { id, size, away } of keyspaces) {
      const bytes = this.files.get(id)?.bytes ?? Infinity;
      away.filesWant = size >= this.keysMin && bytes > BYTES_A_KEY * size + BYTES_MORE;
      if (away.whole !== null) this.begin(id, away, away.whole, last);
    }
  }

  private begin(id: number, away: AwayKeys, filter: KeyFilter, mark: CheckpointMark): void {
    const before = this.files.get(id);
    const hashes = new ByteSink(PIECE_BYTES);
    const open: OpenFile = { away, file: null, bytes: 0, hashes, tail: before?.tail ?? Promise.resolve() };
    if (before !== undefined) this.then(id, before, () => Promise.resolve(this.giveUp(id, before)));
    away.whole = null;
    away.filesWant = false;
    // What comes from now on is not in the filter that is written.
    away.newKeys = hashes;
    this.files.set(id, open);
    this.then(id, open, () => this.writeFilter(id, open, filter, mark));
  }

  private async writeFilter(
    id: number,
    open: OpenFile,
    filter: KeyFilter,
    mark: CheckpointMark,
  ): Promise<void> {
    const { disk, directory, directoryId } = this.options;
    const temporary = `${this.path(id)}.tmp`;
    disk.makeDirectory(directory);
    disk.remove(temporary);
    open.file = disk.open(temporary, 'create');
    await open.file.writeLater(filterHeader(id, directoryId), 0);
    open.bytes = FILTER_HEADER_BYTES;
    for (const part of filter.parts) {
      const head = new ByteSink(64);
      writeRecord(head, FilterRecord.Part, partPayload(part));
      await this.write(open, head);
      const words = Buffer.from(part.words.buffer);
      for (let at = 0; at < words.length; at += PIECE_BYTES) {
        // Copied: hashes may be added to a filter that is in use.
        const piece = new ByteSink(PIECE_BYTES + 64);
        writeRecord(piece, FilterRecord.Words, Buffer.from(words.subarray(at, at + PIECE_BYTES)));
        await this.write(open, piece);
      }
    }
    const end = new ByteSink(64);
    writeRecord(end, FilterRecord.Checkpoint, checkpointPayload(mark));
    await this.write(open, end);
    if (open.file !== null) disk.rename(temporary, this.path(id));
  }

  /** Resolves when what has been begun is written. */
  async close(): Promise<void> {
    const files = [...this.files.values()];
    await Promise.all(files.map(({ tail }) => tail));
    for (const { file } of files) file?.close();
    this.files.clear();
  }
}
