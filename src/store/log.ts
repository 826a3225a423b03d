/**
 * The command log, written: frames appended to segments, synced by policy, deleted when a checkpoint
 * covers them. Recovery reads it (log-reader.ts); docs/log-format.md describes the bytes.
 *
 * Invariants
 * - `append` returns only when the whole frame has been given to the operating system; when it throws,
 *   the log is as if it had not been called, and the caller still has the bytes.
 * - `syncedPosition` grows only after every byte before it, and the directory entry of the segment that holds
 *   it, are on disk.
 * - Segments follow each other without a gap: each begins at the position where the one before ends.
 */
import { viewOf } from '../bytes/slice.ts';
import { writeFully, type Disk, type DiskFile } from './disk.ts';
import { faultPoint } from './fault-point.ts';
import {
  FRAME_HEADER_BYTES,
  FRAME_PAYLOAD_BYTES_MAX,
  SEGMENT_HEADER_BYTES,
  encodeFrameHeader,
  encodeSegmentHeader,
  frameIsSound,
  frameLength,
  segmentName,
} from './log-format.ts';

/** When appended bytes are forced to the disk: Redis's `appendfsync`. */
export type SyncPolicy = 'always' | 'everysec' | 'no';

const SEGMENT_BYTES = 64 * 1024 * 1024;
const SYNC_INTERVAL_MS = 1000;
/** Payloads up to this length are copied behind their header, so that a frame is one plain write. */
const GATHERED_BYTES_MAX = 64 * 1024;
const REWRITE_BYTES = 1024 * 1024;

export interface LogOptions {
  disk: Disk;
  /** Holds nothing but segments. */
  directory: string;
  directoryId: string;
  /** 40 hex digits; of the history that this process writes. */
  replicationId: string;
  /** Where the first frame goes. Segments that end there may exist; one that begins there must be empty. */
  position: number;
  /** Segments that exist already, oldest first: their first positions. */
  older?: readonly number[];
  /** Replication offset of `position`. */
  replicationOffset?: number;
  policy: SyncPolicy;
  /** A segment that has grown to this size is followed by another; default 64 MB. */
  segmentBytes?: number;
  /** Called when a sync fails, which no caller of `append` would see. */
  onSyncFailed?: (error: LogWriteError) => void;
}

/** The log could not be written; `cause` is the system's error. The log is unchanged. */
export class LogWriteError extends Error {
  readonly code = 'LOG_WRITE';

  constructor(path: string, offset: number, cause: unknown) {
    super(`${path}: not written at ${offset}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    });
    this.name = 'LogWriteError';
  }
}

interface Segment {
  path: string;
  file: DiskFile;
  /** End of the last whole frame. */
  bytes: number;
  /** End of what a sync has covered. */
  syncedBytes: number;
}

export interface LogStats {
  appends: number;
  appendedBytes: number;
  syncs: number;
  syncFailures: number;
  lastSyncMs: number;
  longestSyncMs: number;
}

export class CommandLog {
  policy: SyncPolicy;
  /** What stands in the way of writing or syncing; null while all is well. */
  error: LogWriteError | null = null;
  /** Called after each sync that moved `syncedPosition`. */
  onSynced: () => void = () => {};
  readonly stats: LogStats = {
    appends: 0,
    appendedBytes: 0,
    syncs: 0,
    syncFailures: 0,
    lastSyncMs: 0,
    longestSyncMs: 0,
  };

  private readonly options: LogOptions;
  private readonly disk: Disk;
  private readonly segmentBytes: number;
  /** Replication offset minus log position. */
  private readonly replicationBase: number;
  private end: number;
  private syncedEnd: number;
  /** First positions of the segments on disk, oldest first; the last one is being written. */
  private readonly firsts: number[];
  private current: Segment;
  /** Segments that are complete but not yet synced, oldest first. */
  private retired: Segment[] = [];
  /** A segment was made that the directory on disk may not name yet. */
  private directoryUnsynced = true;
  /** Bytes of a frame that was cut short stand behind the last whole frame. */
  private truncationDue = false;
  /** A sync failed: what it should have covered may be gone from memory as well as from disk. */
  private rewriteDue = false;
  private syncing: Promise<void> | null = null;
  private timer: NodeJS.Timeout | null = null;
  private readonly gathered = Buffer.from(new ArrayBuffer(FRAME_HEADER_BYTES + GATHERED_BYTES_MAX));
  private readonly gatheredView = viewOf(this.gathered.buffer);
  private readonly frame = { length: 0, position: 0, replicationOffset: 0, synced: 0 };
  private closed = false;

  /**
   * Begins a new segment at `options.position` and syncs it. All that stands before it must be on disk.
   */
  static async open(options: LogOptions): Promise<CommandLog> {
    options.disk.makeDirectory(options.directory);
    const log = new CommandLog(options);
    await log.sync();
    log.startTimer();
    return log;
  }

  private constructor(options: LogOptions) {
    this.options = options;
    this.disk = options.disk;
    this.policy = options.policy;
    this.segmentBytes = options.segmentBytes ?? SEGMENT_BYTES;
    this.end = this.syncedEnd = options.position;
    this.replicationBase = (options.replicationOffset ?? options.position) - options.position;
    this.firsts = (options.older ?? []).filter((first) => first < options.position);
    this.current = this.createSegment();
    this.firsts.push(options.position);
  }

  /** Where the next frame begins. */
  get position(): number {
    return this.end;
  }

  /** Everything before this position is on disk. */
  get syncedPosition(): number {
    return this.syncedEnd;
  }

  /** `error` in words. */
  get failure(): string | null {
    return this.error === null ? null : this.error.message;
  }

  /** A sync failed, and only `retry` can mend that. */
  get needsRetry(): boolean {
    return this.rewriteDue;
  }

  get replicationId(): string {
    return this.options.replicationId;
  }

  get replicationOffset(): number {
    return this.end + this.replicationBase;
  }

  /** First position of the oldest segment on disk. */
  get oldest(): number {
    return this.firsts[0];
  }

  /** Segments on disk. */
  get segments(): number {
    return this.firsts.length;
  }

  /**
   * Appends one frame and returns the position of its end. Throws LogWriteError, with nothing written,
   * when the disk does not take it, or while a sync has failed.
   */
  append(payload: Uint8Array): number {
    if (payload.length > FRAME_PAYLOAD_BYTES_MAX) {
      throw new RangeError(`a log frame holds at most ${FRAME_PAYLOAD_BYTES_MAX} bytes`);
    }
    if (this.rewriteDue && this.error !== null) throw this.error;
    faultPoint('log-append');
    let segment = this.current;
    try {
      if (this.truncationDue) this.truncate();
      if (segment.bytes >= this.segmentBytes) this.roll();
      segment = this.current;
      this.writeFrame(segment, payload);
    } catch (error) {
      const failure = new LogWriteError(segment.path, segment.bytes, error);
      this.error = failure;
      throw failure;
    }
    this.error = null;
    segment.bytes += FRAME_HEADER_BYTES + payload.length;
    this.end += payload.length;
    this.stats.appends++;
    this.stats.appendedBytes += payload.length;
    faultPoint('log-appended');
    if (this.policy === 'always' && this.syncing === null) this.startSync();
    return this.end;
  }

  private writeFrame(segment: Segment, payload: Uint8Array): void {
    const frame = this.frame;
    frame.length = payload.length;
    frame.position = this.end;
    frame.replicationOffset = this.end + this.replicationBase;
    frame.synced = this.syncedEnd;
    const gathered = this.gathered;
    const total = FRAME_HEADER_BYTES + payload.length;
    let written: number;
    if (payload.length <= GATHERED_BYTES_MAX) {
      gathered.set(payload, FRAME_HEADER_BYTES);
      encodeFrameHeader(gathered, this.gatheredView, 0, frame);
      written = segment.file.write(gathered.subarray(0, total), segment.bytes);
    } else {
      encodeFrameHeader(gathered, this.gatheredView, 0, frame, payload);
      written = segment.file.writev([gathered.subarray(0, FRAME_HEADER_BYTES), payload], segment.bytes);
    }
    if (written === total) return;
    // The disk took a part, as it does when it becomes full; the next write tells why.
    this.truncationDue = true; // until all of it is written
    if (written < FRAME_HEADER_BYTES) {
      writeFully(segment.file, gathered.subarray(written, FRAME_HEADER_BYTES), segment.bytes + written);
      written = FRAME_HEADER_BYTES;
    }
    writeFully(segment.file, payload.subarray(written - FRAME_HEADER_BYTES), segment.bytes + written);
    this.truncationDue = false;
  }

  private truncate(): void {
    this.current.file.truncate(this.current.bytes);
    this.truncationDue = false;
  }

  /**
   * Tries whether a log that failed can be written again; true when it can, and then the caller appends
   * what it kept. After a failed sync the frames that it should have covered are written once more
   * from what the system still holds, since Linux drops such pages without a second report; when they
   * cannot be read back whole, this rejects, and the process must end: what it acknowledged is lost.
   */
  async retry(): Promise<boolean> {
    if (this.error === null) return true;
    try {
      if (this.truncationDue) this.truncate();
    } catch {
      return false; // still the error that is kept
    }
    if (!this.rewriteDue) return true;
    await this.syncing;
    for (const segment of [...this.retired, this.current]) {
      try {
        rewriteUnsynced(segment);
      } catch (error) {
        if (error instanceof LogLostError) throw error;
        return false;
      }
    }
    this.rewriteDue = false;
    await this.sync().catch(() => {
      // `error` and `rewriteDue` say so again
    });
    if (this.rewriteDue) return false;
    this.error = null;
    return true;
  }

  /** Paths of the segments that nothing is appended to any more, oldest first. */
  closedSegments(): string[] {
    return this.firsts.slice(0, -1).map((first) => `${this.options.directory}/${segmentName(first)}`);
  }

  /** Ends the current segment, if it has frames, and begins the next. Throws the system's error and stays with the current one. */
  roll(): void {
    if (this.current.bytes === SEGMENT_HEADER_BYTES) return;
    if (this.truncationDue) this.truncate();
    faultPoint('log-roll');
    const next = this.createSegment();
    this.retired.push(this.current);
    this.current = next;
    this.firsts.push(this.end);
    this.directoryUnsynced = true;
  }

  private createSegment(): Segment {
    const { disk, options } = this;
    const path = `${options.directory}/${segmentName(this.end)}`;
    const temporary = `${path}.tmp`;
    disk.remove(temporary);
    const file = disk.open(temporary, 'create');
    try {
      const header = encodeSegmentHeader({
        firstPosition: this.end,
        synced: this.syncedEnd,
        directoryId: options.directoryId,
        replicationId: options.replicationId,
        bootId: disk.bootId,
      });
      const written = file.write(header, 0);
      if (written !== header.length) throw new Error('the disk took a part of the segment header');
      disk.rename(temporary, path);
    } catch (error) {
      file.close();
      disk.remove(temporary);
      throw error;
    }
    return { path, file, bytes: SEGMENT_HEADER_BYTES, syncedBytes: 0 };
  }

  private startSync(): void {
    this.sync().catch(() => {
      // reported through onSyncFailed
    });
  }

  /** Resolves when all that was appended before the call is on disk; rejects with LogWriteError. */
  async sync(): Promise<void> {
    const wanted = this.end;
    while (this.syncing !== null) {
      await this.syncing;
      if (this.error !== null && this.rewriteDue) throw this.error;
    }
    if (this.syncedEnd >= wanted && !this.directoryUnsynced) return;
    await this.beginSync();
    if (this.error !== null && this.rewriteDue) throw this.error;
  }

  /** One sync; afterwards, under `always`, the next one when more was appended meanwhile. Never rejects. */
  private beginSync(): Promise<void> {
    const running = this.syncNow().then((synced) => {
      this.syncing = null;
      if (synced > this.syncedEnd) {
        this.syncedEnd = synced;
        this.onSynced();
      }
      if (synced >= 0 && this.policy === 'always' && this.end > this.syncedEnd && !this.closed) {
        this.startSync();
      }
    });
    this.syncing = running;
    return running;
  }

  /** The position up to which all is on disk; -1 when that failed. */
  private async syncNow(): Promise<number> {
    const end = this.end;
    const retired = this.retired.slice();
    const current = this.current;
    const currentBytes = current.bytes;
    const directory = this.directoryUnsynced;
    this.directoryUnsynced = false;
    let path = current.path;
    const started = performance.now();
    try {
      faultPoint('log-sync');
      for (const segment of retired) {
        path = segment.path;
        await segment.file.sync();
        segment.syncedBytes = segment.bytes;
      }
      path = current.path;
      await current.file.sync();
      current.syncedBytes = currentBytes;
      path = this.options.directory;
      if (directory) await this.disk.syncDirectory(this.options.directory);
    } catch (error) {
      this.directoryUnsynced ||= directory;
      this.rewriteDue = true;
      this.stats.syncFailures++;
      this.error = new LogWriteError(path, this.syncedEnd, error);
      this.options.onSyncFailed?.(this.error);
      return -1;
    }
    this.retired.splice(0, retired.length);
    for (const segment of retired) segment.file.close();
    const elapsed = performance.now() - started;
    this.stats.syncs++;
    this.stats.lastSyncMs = elapsed;
    this.stats.longestSyncMs = Math.max(this.stats.longestSyncMs, elapsed);
    return end;
  }

  private startTimer(): void {
    this.timer = setInterval(() => {
      if (this.policy === 'no' || this.syncing !== null || this.rewriteDue) return;
      if (this.end > this.syncedEnd || this.directoryUnsynced) this.startSync();
    }, SYNC_INTERVAL_MS);
    this.timer.unref();
  }

  /** Deletes the segments whose frames all stand before `position`; the one being written stays. */
  async deleteBefore(position: number): Promise<void> {
    let deleted = 0;
    while (this.firsts.length > 1 && this.firsts[1] <= position) {
      faultPoint('log-delete');
      const first = this.firsts[0];
      this.firsts.shift();
      await this.disk.removeLater(`${this.options.directory}/${segmentName(first)}`);
      deleted++;
    }
    if (deleted > 0) await this.disk.syncDirectory(this.options.directory);
  }

  /** Syncs, whatever the policy, and closes the files. Rejects when the sync fails; the files are closed all the same. */
  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    if (this.timer !== null) clearInterval(this.timer);
    try {
      await this.sync();
    } finally {
      for (const segment of this.retired) segment.file.close();
      this.current.file.close();
    }
  }
}

/** Frames that were acknowledged could neither be written to disk nor be read back. */
export class LogLostError extends Error {
  readonly code = 'LOG_LOST';
}

function rewriteUnsynced(segment: Segment): void {
  let offset = segment.syncedBytes;
  if (offset < SEGMENT_HEADER_BYTES) {
    const header = Buffer.alloc(SEGMENT_HEADER_BYTES);
    segment.file.read(header, 0);
    writeFully(segment.file, header, 0);
    offset = SEGMENT_HEADER_BYTES;
  }
  let bytes = Buffer.from(new ArrayBuffer(REWRITE_BYTES));
  while (offset < segment.bytes) {
    const view = viewOf(bytes.buffer);
    const got = segment.file.read(bytes.subarray(0, Math.min(bytes.length, segment.bytes - offset)), offset);
    let whole = 0;
    while (whole + FRAME_HEADER_BYTES <= got) {
      const next = whole + FRAME_HEADER_BYTES + frameLength(view, whole);
      if (next > got) break;
      if (!frameIsSound(bytes, view, whole)) {
        throw new LogLostError(`${segment.path}: unsynced frame at ${offset + whole} cannot be read back`);
      }
      whole = next;
    }
    if (whole === 0) {
      const needed = got < FRAME_HEADER_BYTES ? 0 : FRAME_HEADER_BYTES + frameLength(view, 0);
      if (needed <= bytes.length || needed > segment.bytes - offset) {
        throw new LogLostError(`${segment.path}: unsynced frame at ${offset} cannot be read back`);
      }
      bytes = Buffer.from(new ArrayBuffer(needed));
      continue;
    }
    writeFully(segment.file, bytes.subarray(0, whole), offset);
    offset += whole;
  }
}
