/**
 * Redo files: the rows of one checkpoint's cut, on disk before the engine gets any of them.
 *
 * A redo file grows under a temporary name; when it is complete and synced it gets its own name, and
 * with the sync of the directory the checkpoint is committed. Until the engine has all rows, every
 * start applies the file again: rows are absolute, so that is harmless.
 */
import { crc32 } from 'node:zlib';
import { release } from '../bytes/release.ts';
import { ByteSink } from '../bytes/sink.ts';
import { DELETE_LENGTH } from '../engines/engine.ts';
import type { Disk, DiskFile } from './disk.ts';
import { faultPoint } from './fault-point.ts';
import {
  REDO_CHUNK_ENTRY_BYTES,
  REDO_FOOTER_BYTES,
  REDO_HEADER_BYTES,
  countPackedRows,
  decodeRedoFooter,
  decodeRedoHeader,
  decodeRedoTrailer,
  encodeRedoHeader,
  encodeRedoTrailer,
  redoName,
  type RedoHeader,
} from './redo-format.ts';

/** A chunk is handed to the disk when it has grown to this. */
const CHUNK_BYTES = 256 * 1024;
/** No more rows are taken while this much waits for the disk. */
const PENDING_BYTES_MAX = 8 * 1024 * 1024;
/** Sinks kept for the next chunks. */
const SPARE_SINKS_MAX = 8;

/** What a RedoWriter holds at most: see `bufferBytes`. A chunk in flight is in a sink of twice its size. */
export const REDO_BUFFER_BYTES_MAX = 2 * PENDING_BYTES_MAX + SPARE_SINKS_MAX * 2 * CHUNK_BYTES;

/** A complete redo file. */
export interface RedoFile {
  path: string;
  position: number;
  /** Where the packed rows stand: what `Engine.applyRows` takes. */
  rowsOffset: number;
  rowBytes: number;
  rows: number;
}

/**
 * Writes one redo file. Rows, packed as engines take them, are put into `sink`; after each slice of
 * them the caller calls `drain` and, while `full` is true, waits for `room`.
 */
export class RedoWriter {
  sink = new ByteSink(CHUNK_BYTES * 2);

  private readonly disk: Disk;
  private readonly directory: string;
  private readonly header: RedoHeader;
  private readonly temporary: string;
  private readonly file: DiskFile;
  private readonly chunks: { length: number; crc: number }[] = [];
  private readonly spare: ByteSink[] = [];
  private readonly writes = new Set<Promise<void>>();
  private pendingBytes = 0;
  private rowBytes = 0;
  private rows = 0;
  private failure: Error | null = null;

  /** Throws the system's error when the file cannot be made. */
  constructor(disk: Disk, directory: string, header: RedoHeader) {
    this.disk = disk;
    this.directory = directory;
    this.header = header;
    this.temporary = `${directory}/${redoName(header.position)}.tmp`;
    disk.makeDirectory(directory);
    disk.remove(this.temporary);
    this.file = disk.open(this.temporary, 'create');
    this.queue(encodeRedoHeader(header), 0, null);
  }

  /** Bytes of rows so far. */
  get bytes(): number {
    return this.rowBytes + this.sink.pos;
  }

  /** Bytes of memory that wait for the disk or for rows. */
  get bufferBytes(): number {
    let bytes = this.pendingBytes + this.sink.u8.length;
    for (const sink of this.spare) bytes += sink.u8.length;
    return bytes;
  }

  get position(): number {
    return this.header.position;
  }

  get full(): boolean {
    return this.pendingBytes >= PENDING_BYTES_MAX;
  }

  /** Adds one row; without a value, the row that deletes it. */
  row(key: Buffer, value: Buffer | null): void {
    const { sink } = this;
    sink.u32(key.length);
    sink.u32(value === null ? DELETE_LENGTH : value.length);
    sink.copy(key, 0, key.length);
    if (value !== null) sink.copy(value, 0, value.length);
  }

  /** Hands the rows in `sink` to the disk, if they are enough for a chunk. */
  drain(): void {
    if (this.sink.pos >= CHUNK_BYTES) this.seal();
  }

  /** Resolves when there is room for more rows; rejects when writing failed. */
  async room(): Promise<void> {
    while (this.full && this.failure === null) await Promise.race(this.writes);
    if (this.failure !== null) throw this.failure;
  }

  private seal(): void {
    const sink = this.sink;
    if (sink.pos === 0) return;
    const rows = countPackedRows(sink.view, 0, sink.pos);
    if (rows < 0) throw new Error('the rows of a checkpoint do not fill their chunk exactly');
    const bytes = sink.written();
    this.chunks.push({ length: bytes.length, crc: crc32(bytes) });
    faultPoint('redo-write');
    this.queue(bytes, REDO_HEADER_BYTES + this.rowBytes, sink);
    this.rowBytes += bytes.length;
    this.rows += rows;
    this.sink = this.spare.pop() ?? new ByteSink(CHUNK_BYTES * 2);
  }

  private queue(bytes: Buffer, offset: number, sink: ByteSink | null): void {
    this.pendingBytes += bytes.length;
    const write = this.file.writeLater(bytes, offset).then(
      () => undefined,
      (error: unknown) => {
        this.failure ??= error instanceof Error ? error : new Error(String(error));
      },
    );
    const settled = write.then(() => {
      this.pendingBytes -= bytes.length;
      this.writes.delete(settled);
      if (sink === null) return;
      if (this.spare.length >= SPARE_SINKS_MAX) return releaseSinks([sink]);
      sink.clear();
      this.spare.push(sink);
    });
    this.writes.add(settled);
  }

  /**
   * Commits: when this resolves the file is complete, named and on disk. When it rejects it is not, and
   * `abandon` removes what there is.
   */
  async commit(): Promise<RedoFile> {
    this.seal();
    this.queue(encodeRedoTrailer(this.chunks, this.rows), REDO_HEADER_BYTES + this.rowBytes, null);
    while (this.writes.size > 0) await Promise.all(this.writes);
    if (this.failure !== null) throw this.failure;
    releaseSinks([this.sink, ...this.spare.splice(0)]);
    faultPoint('redo-fsync');
    await this.file.sync();
    this.file.close();
    faultPoint('redo-rename');
    const path = `${this.directory}/${redoName(this.header.position)}`;
    this.disk.rename(this.temporary, path);
    await this.disk.syncDirectory(this.directory);
    faultPoint('redo-committed');
    return {
      path,
      position: this.header.position,
      rowsOffset: REDO_HEADER_BYTES,
      rowBytes: this.rowBytes,
      rows: this.rows,
    };
  }

  /**
   * Gives up: waits for writes under way and removes the file, under either name. If it was named but
   * its name not synced, a crash may still find it or not; both are right, since the log that it would
   * replace is there.
   */
  async abandon(): Promise<void> {
    while (this.writes.size > 0) await Promise.all(this.writes);
    try {
      this.file.close();
    } catch {
      // closed already by a commit that failed later
    }
    this.disk.remove(this.temporary);
    this.disk.remove(`${this.directory}/${redoName(this.header.position)}`);
  }
}

function releaseSinks(sinks: readonly ByteSink[]): void {
  release(sinks.map(({ u8 }) => u8.buffer as ArrayBuffer));
}

/** A redo file that was committed is not as it was written. */
export class RedoDamagedError extends Error {
  readonly code = 'REDO_DAMAGED';

  constructor(path: string, offset: number, reason: string) {
    super(
      `${path}: damaged at offset ${offset}: ${reason}. The checkpoint that it holds is partly in the engine, ` +
        `so the data directory cannot be opened without it; restore the file, or the directory from a backup, ` +
        'or let `ardent check --repair` save what is sound in it and drop what is not',
    );
    this.name = 'RedoDamagedError';
  }
}

/**
 * Reads a whole redo file against its checksums. Throws RedoDamagedError: a file under its own name was
 * complete once. Yields the bytes read so far, so that the caller can pause.
 */
export function* verifyRedo(disk: Disk, path: string, directoryId: string): Generator<number, RedoFile> {
  const file = disk.open(path, 'read');
  try {
    const size = file.size();
    const headerBytes = Buffer.alloc(Math.min(size, REDO_HEADER_BYTES));
    file.read(headerBytes, 0);
    const header = decodeRedoHeader(headerBytes);
    if (typeof header === 'string') throw new RedoDamagedError(path, 0, header);
    if (header.directoryId !== directoryId) {
      throw new RedoDamagedError(
        path,
        0,
        `it belongs to data directory ${header.directoryId}, not ${directoryId}`,
      );
    }
    const footerAt = Math.max(size - REDO_FOOTER_BYTES, REDO_HEADER_BYTES);
    const footerBytes = Buffer.alloc(Math.min(size - footerAt, REDO_FOOTER_BYTES));
    file.read(footerBytes, footerAt);
    const footer = decodeRedoFooter(footerBytes);
    if (typeof footer === 'string') throw new RedoDamagedError(path, footerAt, footer);
    const trailerAt = REDO_HEADER_BYTES + footer.rowBytes;
    const trailerBytes = footer.chunks * REDO_CHUNK_ENTRY_BYTES + REDO_FOOTER_BYTES;
    if (trailerAt + trailerBytes !== size) {
      throw new RedoDamagedError(path, footerAt, `the footer tells another length than ${size} bytes`);
    }
    const trailer = Buffer.alloc(trailerBytes);
    file.read(trailer, trailerAt);
    const chunks = decodeRedoTrailer(trailer);
    if (typeof chunks === 'string') throw new RedoDamagedError(path, trailerAt, chunks);
    let at = REDO_HEADER_BYTES;
    let bytes = Buffer.alloc(CHUNK_BYTES);
    for (const chunk of chunks) {
      if (chunk.length > bytes.length) bytes = Buffer.alloc(chunk.length);
      const got = file.read(bytes.subarray(0, chunk.length), at);
      if (got !== chunk.length || crc32(bytes.subarray(0, chunk.length)) !== chunk.crc) {
        throw new RedoDamagedError(path, at, `the checksum of ${chunk.length} bytes of rows does not match`);
      }
      at += chunk.length;
      yield at;
    }
    return {
      path,
      position: header.position,
      rowsOffset: REDO_HEADER_BYTES,
      rowBytes: footer.rowBytes,
      rows: footer.rows,
    };
  } finally {
    file.close();
  }
}
