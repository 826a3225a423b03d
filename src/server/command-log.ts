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

/** Effects of one turn. Each payload stands alone: it begins in database 0. */
export class EffectBuffer extends ByteSink {
  /** Database that the commands written so far leave selected. */
  db = 0;

  reset(): void {
    this.clear();
    this.db = 0;
  }

  select(db: number): void {
    if (db === this.db) return;
    this.db = db;
    this.parts(['SELECT', db]);
  }

  /** A request as it was received. */
  request(memory: Buffer, start: number, end: number): void {
    this.copy(memory, start, end);
  }

  arguments(args: readonly Slice[], count: number): void {
    this.header(42, count);
    for (let i = 0; i < count; i++) this.bulk(args[i].u8, args[i].start, args[i].end);
  }

  parts(parts: readonly EffectPart[]): void {
    this.header(42, parts.length);
    for (const part of parts) {
      if (typeof part === 'number') this.text(String(part));
      else if (typeof part === 'string') this.text(part);
      else if (Buffer.isBuffer(part)) this.bulk(part, 0, part.length);
      else this.bulk(part.u8, part.start, part.end);
    }
  }

  private header(type: number, value: number): void {
    this.byte(type);
    this.decimal(value);
    this.ascii('\r\n');
  }

  private bulk(bytes: Buffer, start: number, end: number): void {
    this.header(36, end - start);
    this.copy(bytes, start, end);
    this.ascii('\r\n');
  }

  private text(text: string): void {
    const bytes = Buffer.from(text);
    this.bulk(bytes, 0, bytes.length);
  }
}
