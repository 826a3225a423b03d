/**
 * The command log, read: every frame from a position on, in order, and what is wrong with it when
 * something is.
 *
 * What ends a log. A frame that cannot be read is a **torn tail**, which an unclean end leaves behind
 * and which a start cuts off, in two cases:
 *
 * - it is incomplete and the last thing in the last segment: the process ended within a write;
 * - the machine was started anew since the segment was made, and nothing that follows says that the
 *   frame had been synced: a power loss keeps unsynced writes in any order, or not at all.
 *
 * Anything else is **damage**: what was on disk, or what the running system still held, is no longer
 * as it was written. Nothing is then guessed: the start stops with the place. Each frame carries the
 * position up to which the log was synced when it was written, which is how a later frame testifies.
 */
import { Slice, allocatePadded, viewOf } from '../bytes/slice.ts';
import type { Disk, DiskFile } from './disk.ts';
import {
  FRAME_HEADER_BYTES,
  FRAME_PAYLOAD_BYTES_MAX,
  SEGMENT_HEADER_BYTES,
  decodeSegmentHeader,
  frameIsSound,
  frameLength,
  framePosition,
  frameReplicationOffset,
  frameSynced,
  positionOfSegmentName,
  segmentName,
  type SegmentHeader,
} from './log-format.ts';

const READ_BYTES = 1024 * 1024;

/** Where and how a log stops being readable. */
export interface LogFault {
  kind: 'torn' | 'damage';
  path: string;
  /** Bytes from the start of the file, where the first bad frame begins. */
  offset: number;
  /** Log position of that frame: all before it is sound. */
  position: number;
  reason: string;
  /** Bytes from there to the end of the log. */
  bytesAfter: number;
  /** Sound frames that follow the bad one, in this segment or later ones. */
  framesAfter: number;
}

/** The log is damaged; the message names file, offset and what to do. */
export class LogDamagedError extends Error {
  readonly code = 'LOG_DAMAGED';
  readonly fault: LogFault;

  constructor(fault: LogFault, directory: string) {
    super(
      `${fault.path}: damaged at offset ${fault.offset} (log position ${fault.position}): ${fault.reason}. ` +
        `${fault.framesAfter} sound frames follow it. ` +
        `\`ardent check ${directory}\` shows the extent; ` +
        `\`ardent check ${directory} --repair\` keeps what stands before it and puts the rest aside.`,
    );
    this.name = 'LogDamagedError';
    this.fault = fault;
  }
}

/** One frame. The object and its payload are valid until the next frame is asked for. */
export interface LogFrame {
  position: number;
  replicationOffset: number;
  payload: Slice;
  path: string;
  /** Bytes from the start of the file to the frame's header. */
  offset: number;
}

export interface LogReaderOptions {
  disk: Disk;
  directory: string;
  /** Segments of another data directory are refused. */
  directoryId: string;
  /** Frames before this position are not needed: a checkpoint covers them. */
  from: number;
}

interface SegmentFile {
  path: string;
  first: number;
}

/**
 * Reads the log frame by frame: `next` until it returns null, then `fault` tells how it ended. Reading
 * changes nothing on disk.
 */
export class LogReader {
  /** Set when `next` has returned null; null then means that the log ends cleanly. */
  fault: LogFault | null = null;
  /** End of the last sound frame. */
  position: number;
  replicationOffset: number;
  /** Bytes of log read so far and in all, for progress. */
  bytesRead = 0;
  readonly bytesTotal: number;
  /** First positions of the segments on disk that `from` does not make superfluous. */
  readonly segments: readonly number[];
  /** First positions of the segments that `from` makes superfluous. */
  readonly superfluous: readonly number[];
  /** Header of the segment that was read last. */
  header: SegmentHeader | null = null;

  private readonly options: LogReaderOptions;
  private readonly files: SegmentFile[];
  private index = -1;
  private reader: SegmentReader | null = null;
  private readonly frame: LogFrame;
  private ended = false;

  constructor(options: LogReaderOptions) {
    this.options = options;
    const { disk, directory, from } = options;
    const firsts = disk
      .list(directory)
      .map(positionOfSegmentName)
      .filter((first) => first >= 0);
    // A segment is superfluous when the next one begins at or before `from`.
    let needed = 0;
    while (needed + 1 < firsts.length && firsts[needed + 1] <= from) needed++;
    this.superfluous = firsts.slice(0, needed);
    this.segments = firsts.slice(needed);
    this.files = this.segments.map((first) => ({ path: `${directory}/${segmentName(first)}`, first }));
    this.position = this.replicationOffset = from;
    this.frame = { position: 0, replicationOffset: 0, payload: new Slice(), path: '', offset: 0 };
    let total = 0;
    for (const { path } of this.files) total += sizeOf(disk, path);
    this.bytesTotal = total;
  }

  /** The next frame at or after `from`, or null at the end. A frame that `from` splits is damage. */
  next(): LogFrame | null {
    while (!this.ended) {
      if (this.reader === null && !this.openNext()) break;
      const reader = this.reader!;
      const at = reader.next();
      if (at < 0) {
        this.bytesRead += reader.offset;
        if (reader.bad === null) this.closeReader();
        else this.stop(reader, reader.bad);
        continue;
      }
      const position = framePosition(reader.view, at);
      const length = frameLength(reader.view, at);
      if (position !== reader.position) {
        this.stop(reader, `the frame belongs at position ${position}, not ${reader.position}`);
        break;
      }
      if (position < this.options.from && position + length > this.options.from) {
        this.stop(reader, `position ${this.options.from}, where the checkpoint ends, is within a frame`);
        break;
      }
      const offset = reader.offset;
      reader.pass(at);
      if (position < this.options.from) continue;
      const frame = this.frame;
      frame.position = position;
      frame.replicationOffset = frameReplicationOffset(reader.view, at);
      const start = at + FRAME_HEADER_BYTES;
      frame.payload.set(reader.bytes, reader.view, start, start + length);
      frame.path = reader.path;
      frame.offset = offset;
      this.position = position + length;
      this.replicationOffset = frame.replicationOffset + length;
      return frame;
    }
    return null;
  }

  /** What follows the last frame, as far as it has been read from the disk already, unchecked: for guesses. */
  *following(): Generator<Slice> {
    const { reader } = this;
    if (reader !== null) yield* reader.following();
  }

  /** Releases the file that is being read. */
  close(): void {
    this.closeReader();
    this.ended = true;
  }

  private closeReader(): void {
    this.reader?.close();
    this.reader = null;
  }

  /** False at the end of the log. */
  private openNext(): boolean {
    const { disk, from } = this.options;
    const previousEnd = this.position;
    if (this.index + 1 >= this.files.length) {
      if (this.files.length === 0 && from > 0) {
        this.fault = {
          kind: 'damage',
          path: this.options.directory,
          offset: 0,
          position: from,
          reason: `no log segment is there, and the checkpoint ends at position ${from}`,
          bytesAfter: 0,
          framesAfter: 0,
        };
      }
      this.ended = true;
      return false;
    }
    this.index++;
    const { path, first } = this.files[this.index];
    const reader = new SegmentReader(disk, path, first);
    this.reader = reader;
    if (this.index === 0 ? first > from : first !== previousEnd) {
      this.stop(reader, `the log is missing from position ${previousEnd} to ${first}`, previousEnd);
      return false;
    }
    const header = reader.header;
    if (typeof header === 'string') {
      this.stop(
        reader,
        header === 'short' ? 'the segment header is incomplete' : `segment header: ${header}`,
      );
      return false;
    }
    if ('version' in header) {
      this.stop(reader, `log format ${header.version} is not known to this version`);
      return false;
    }
    if (header.directoryId !== this.options.directoryId) {
      this.stop(
        reader,
        `the segment belongs to data directory ${header.directoryId}, not ${this.options.directoryId}`,
      );
      return false;
    }
    if (header.firstPosition !== first) {
      this.stop(reader, `the segment begins at position ${header.firstPosition}, not where its name says`);
      return false;
    }
    this.header = header;
    return true;
  }

  /** Finds out what the frame at the reader's place is, and ends. */
  private stop(reader: SegmentReader, reason: string, position = reader.position): void {
    const { disk } = this.options;
    const last = this.index === this.files.length - 1;
    const bytesAfter =
      reader.size -
      reader.offset +
      this.files.slice(this.index + 1).reduce((sum, f) => sum + sizeOf(disk, f.path), 0);
    const evidence = { frames: 0, synced: -1 };
    reader.searchAfter(evidence);
    for (const { path, first } of this.files.slice(this.index + 1)) {
      const later = new SegmentReader(disk, path, first);
      if (isHeader(later.header)) {
        evidence.synced = Math.max(evidence.synced, later.header.synced);
      }
      later.searchAfter(evidence);
      later.close();
    }
    const bootId = this.bootIdOf(reader);
    const machineRestarted = bootId === '' || bootId !== disk.bootId;
    const cutShort = reader.incomplete && last && evidence.frames === 0;
    const notSynced = machineRestarted && evidence.synced <= position;
    this.fault = {
      kind: this.refusable(reader) && (cutShort || notSynced) ? 'torn' : 'damage',
      path: reader.path,
      offset: reader.offset,
      position,
      reason,
      bytesAfter,
      framesAfter: evidence.frames,
    };
    this.closeReader();
    this.ended = true;
  }

  /** A sound header that names another directory or version is never what a crash leaves. */
  private refusable(reader: SegmentReader): boolean {
    const { header } = reader;
    if (typeof header === 'string') return true;
    return isHeader(header) && header.directoryId === this.options.directoryId;
  }

  /**
   * Which start of the machine the segment was made in; by the next older segment that tells, if its own
   * header does not. The oldest segment's header is always synced before those before it are deleted, so that a bad
   * one is no power loss.
   */
  private bootIdOf(reader: SegmentReader): string {
    const { disk, directory } = this.options;
    if (isHeader(reader.header)) return reader.header.bootId;
    if (this.header !== null) return this.header.bootId;
    for (const older of this.superfluous.toReversed()) {
      const before = new SegmentReader(disk, `${directory}/${segmentName(older)}`, older);
      before.close();
      if (isHeader(before.header)) return before.header.bootId;
    }
    return disk.bootId;
  }
}

function isHeader(header: ReturnType<typeof decodeSegmentHeader>): header is SegmentHeader {
  return typeof header !== 'string' && 'bootId' in header;
}

/** One segment's frames, through a buffer that grows to the largest of them. */
class SegmentReader {
  readonly path: string;
  readonly header: ReturnType<typeof decodeSegmentHeader>;
  readonly size: number;
  /** File offset of the next frame. */
  offset = 0;
  /** Log position of the next frame. */
  position: number;
  bytes: Buffer;
  view: DataView;
  /** Why `next` ended before the end of the file. */
  bad: string | null = null;
  /** The file ends before the bad frame does. */
  incomplete = false;

  private readonly file: DiskFile;
  /** The file's bytes from `start` on stand in the buffer, `filled` of them. */
  private start = 0;
  private filled = 0;

  constructor(disk: Disk, path: string, first: number) {
    this.path = path;
    this.file = disk.open(path, 'read');
    this.size = this.file.size();
    this.position = first;
    this.bytes = allocatePadded(Math.min(this.size, READ_BYTES));
    this.view = viewOf(this.bytes.buffer);
    const headerBytes = Buffer.alloc(Math.min(SEGMENT_HEADER_BYTES, this.size));
    this.file.read(headerBytes, 0);
    this.header = decodeSegmentHeader(headerBytes);
    this.incomplete = this.header === 'short';
    if (isHeader(this.header)) this.offset = SEGMENT_HEADER_BYTES;
  }

  close(): void {
    this.file.close();
  }

  /** Makes `length` bytes at file offset `offset` present; returns where in the buffer, or -1 past the end of the file. */
  private load(offset: number, length: number): number {
    if (offset + length > this.size) return -1;
    if (offset < this.start || offset + length > this.start + this.filled) {
      if (length > this.bytes.length) {
        this.bytes = allocatePadded(length);
        this.view = viewOf(this.bytes.buffer);
      }
      this.start = offset;
      this.filled = this.file.read(this.bytes, offset);
      if (this.filled < length) return -1;
    }
    return offset - this.start;
  }

  /** The buffer offset of the frame at `offset`, checked; -1 at the end or, with `bad` set, at a bad frame. */
  next(): number {
    if (this.offset === this.size) return -1;
    let at = this.load(this.offset, FRAME_HEADER_BYTES);
    if (at < 0) {
      this.incomplete = true;
      this.bad = `a frame header is incomplete: ${this.size - this.offset} bytes`;
      return -1;
    }
    const length = frameLength(this.view, at);
    at = this.load(this.offset, FRAME_HEADER_BYTES + length);
    if (at < 0) {
      this.incomplete = true;
      this.bad = `a frame of ${length} bytes is incomplete: the file ends after ${this.size - this.offset - FRAME_HEADER_BYTES}`;
      return -1;
    }
    if (!frameIsSound(this.bytes, this.view, at)) {
      this.bad = 'the checksum of a frame does not match';
      return -1;
    }
    return at;
  }

  /** Payloads of the next frames in the buffer. */
  *following(): Generator<Slice> {
    const payload = new Slice();
    const { bytes, view, filled } = this;
    for (let at = this.offset - this.start; at + FRAME_HEADER_BYTES <= filled;) {
      const start = at + FRAME_HEADER_BYTES;
      at = start + frameLength(view, at);
      if (at > filled) return;
      payload.set(bytes, view, start, at);
      yield payload;
    }
  }

  /** Goes past the frame at buffer offset `at`. */
  pass(at: number): void {
    const length = frameLength(this.view, at);
    this.offset += FRAME_HEADER_BYTES + length;
    this.position += length;
  }

  /**
   * Looks for sound frames from `offset` on, at every byte, since the bad frame's length cannot be
   * trusted. A place is worth a checksum only if its header is plausible: within the file, at a later
   * position, synced no further than that.
   */
  searchAfter(evidence: { frames: number; synced: number }): void {
    const from = this.position;
    let offset = Math.max(this.offset, SEGMENT_HEADER_BYTES);
    while (offset + FRAME_HEADER_BYTES <= this.size) {
      const at = this.load(offset, FRAME_HEADER_BYTES);
      if (at < 0) return;
      const end = Math.min(this.filled - FRAME_HEADER_BYTES, this.size - this.start - FRAME_HEADER_BYTES);
      let found = false;
      for (let i = at; i <= end; i++) {
        const position = framePosition(this.view, i);
        if (position < from || position > from + this.size) continue;
        const synced = frameSynced(this.view, i);
        const length = frameLength(this.view, i);
        if (synced > position || length > FRAME_PAYLOAD_BYTES_MAX) continue;
        const fileOffset = this.start + i;
        const whole = this.load(fileOffset, FRAME_HEADER_BYTES + length);
        if (whole >= 0 && frameIsSound(this.bytes, this.view, whole)) {
          evidence.frames++;
          evidence.synced = Math.max(evidence.synced, synced);
          offset = fileOffset + FRAME_HEADER_BYTES + length;
        } else {
          offset = fileOffset + 1;
        }
        found = true;
        break;
      }
      if (!found) offset = this.start + end + 1;
    }
  }
}

function sizeOf(disk: Disk, path: string): number {
  const file = disk.open(path, 'read');
  try {
    return file.size();
  } finally {
    file.close();
  }
}
