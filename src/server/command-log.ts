/**
 * The write-ahead log as the server sees it, and the buffer in which a turn's effects are collected:
 * requests in RESP, so that replay is dispatch.
 */
import { ByteSink } from '../bytes/sink.ts';
import type { Slice } from '../bytes/slice.ts';
import type { EffectPart } from './context.ts';

export type SyncPolicy = 'always' | 'everysec' | 'no';

export interface CommandLog {
  /**
   * Appends `payload` as one frame and returns the log position after it. Synchronous; the bytes are
   * in the file when it returns. Throws when they are not; then nothing of the frame counts and the
   * same payload may be appended again.
   */
  append(payload: Buffer): number;
  /** End of the last frame. */
  readonly position: number;
  /** Frames up to here are on the disk. */
  readonly syncedPosition: number;
  policy: SyncPolicy;
  /** Called when `syncedPosition` has moved on. */
  onSynced: () => void;
  /** Why the log cannot be written or synced at present; null while all is well. */
  readonly failure: string | null;
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
  return true;
}

const NOTHING = Buffer.alloc(0);

/**
 * Effects of one turn. Each payload stands alone: it begins in database 0.
 *
 * Requests that follow each other in one memory, as pipelined ones do, are noted first and copied in
 * one piece: whoever lends that memory calls `settle` before it changes.
 */
export class EffectBuffer {
  /** Database that the commands written so far leave selected. */
  db = 0;
  private readonly sink = new ByteSink();
  /** Requests noted but not copied yet: bytes [lentStart, lentEnd) of `lent`. */
  private lent: Buffer = NOTHING;
  private lentStart = 0;
  private lentEnd = 0;

  /** Bytes of effects. */
  get length(): number {
    return this.sink.pos + this.lentEnd - this.lentStart;
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.sink.u8.length;
  }

  /** Takes back what has been written since the buffer was `length` long, when `db` was selected. */
  truncate(length: number, db: number): void {
    const { sink } = this;
    if (length >= sink.pos) this.lentEnd = this.lentStart + length - sink.pos;
    else {
      this.lentEnd = this.lentStart;
      sink.pos = length;
    }
    this.db = db;
  }

  /** Copies what is noted. */
  settle(): void {
    if (this.lentEnd === this.lentStart) return;
    this.sink.copy(this.lent, this.lentStart, this.lentEnd);
    this.lent = NOTHING;
    this.lentStart = this.lentEnd = 0;
  }

  /** The bytes of all effects, not copied: valid until the next write. */
  written(): Buffer {
    this.settle();
    return this.sink.written();
  }

  reset(): void {
    this.truncate(0, 0);
    this.lent = NOTHING;
    this.lentStart = this.lentEnd = 0;
  }

  select(db: number): void {
    if (db === this.db) return;
    this.db = db;
    this.parts(['SELECT', db]);
  }

  /** A request as it was received; its memory is lent until `settle`. */
  request(memory: Buffer, start: number, end: number): void {
    if (start !== this.lentEnd || memory !== this.lent) {
      this.settle();
      this.lent = memory;
      this.lentStart = start;
    }
    this.lentEnd = end;
  }

  arguments(args: readonly Slice[], count: number): void {
    this.settle();
    this.header(42, count);
    for (let i = 0; i < count; i++) this.slice(args[i]);
  }

  parts(parts: readonly EffectPart[]): void {
    this.settle();
    this.header(42, parts.length);
    for (const part of parts) {
      if (typeof part === 'number') this.text(String(part));
      else if (typeof part === 'string') this.text(part);
      else if (Buffer.isBuffer(part)) this.bulk(part, 0, part.length);
      else this.slice(part);
    }
  }

  private header(type: number, value: number): void {
    const { sink } = this;
    sink.byte(type);
    sink.decimal(value);
    sink.ascii('\r\n');
  }

  private slice(slice: Slice): void {
    this.header(36, slice.end - slice.start);
    this.sink.slice(slice);
    this.sink.ascii('\r\n');
  }

  private bulk(bytes: Buffer, start: number, end: number): void {
    this.header(36, end - start);
    this.sink.copy(bytes, start, end);
    this.sink.ascii('\r\n');
  }

  private text(text: string): void {
    // Names of commands and numbers; the Buffer that other text needs costs more than all the rest.
    if (isAscii(text)) {
      this.header(36, text.length);
      this.sink.ascii(text);
      this.sink.ascii('\r\n');
      return;
    }
    const bytes = Buffer.from(text);
    this.bulk(bytes, 0, bytes.length);
  }
}
