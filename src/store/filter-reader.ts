/** Reads a filter file, as far as it belongs to a checkpoint. */
import { crc32 } from 'node:zlib';
import type { DiskFile } from './disk.ts';
import {
  checkpointPayload,
  filterHeader,
  FilterRecord,
  FILTER_HEADER_BYTES,
  RECORD_BYTES_MAX,
  RECORD_HEADER_BYTES,
  type CheckpointMark,
} from './filter-format.ts';
import { BITS_A_KEY, KeyFilter, newPart, type FilterPart } from './key-filter.ts';

export class FilterReader {
  /** What belongs to the checkpoint ends here; 0: nothing does. */
  end = 0;
  /** Null when it would be larger than it may be. */
  filter: KeyFilter | null = null;

  private readonly file: DiskFile;
  private readonly mark: Buffer;
  private readonly maxBytes: number;
  private readonly parts: FilterPart[] = [];
  private filled = 0;
  private bytes = 0;

  constructor(file: DiskFile, mark: CheckpointMark, maxBytes: number) {
    this.file = file;
    this.mark = checkpointPayload(mark);
    this.maxBytes = maxBytes;
  }

  /** Reads all; a step is a record. */
  *read(keyspaceId: number, directoryId: string): Generator<void> {
    const { file } = this;
    const header = Buffer.alloc(FILTER_HEADER_BYTES);
    file.read(header, 0);
    if (!header.equals(filterHeader(keyspaceId, directoryId))) return;
    const head = Buffer.alloc(RECORD_HEADER_BYTES);
    const memory = Buffer.alloc(RECORD_BYTES_MAX);
    for (let at = FILTER_HEADER_BYTES; file.read(head, at) === head.length;) {
      const length = head.readUInt32LE(0);
      if (length > RECORD_BYTES_MAX) return;
      const payload = memory.subarray(0, length);
      if (file.read(payload, at + head.length) !== length) return;
      if (crc32(payload, crc32(head.subarray(8))) !== head.readUInt32LE(4)) return;
      if (!this.take(head.readUInt32LE(8), payload)) return;
      at += head.length + length;
      if (head.readUInt32LE(8) === FilterRecord.Checkpoint && payload.equals(this.mark)) this.end = at;
      yield;
    }
  }

  /** The last part has all its words. */
  private get whole(): boolean {
    const last = this.parts.at(-1);
    return last !== undefined && this.filled === last.words.byteLength;
  }

  /** False when the record makes no sense, or the filter is too large. */
  private take(kind: number, payload: Buffer): boolean {
    if (kind === FilterRecord.Part) return this.begin(payload);
    if (kind === FilterRecord.Words) return this.fill(payload);
    if (!this.whole) return false;
    this.filter ??= new KeyFilter(this.parts, this.maxBytes);
    if (kind === FilterRecord.Hashes) {
      for (let at = 0; at < payload.length; at += 4)
        if (!this.filter.add(payload.readInt32LE(at))) return false;
      return true;
    }
    return kind === FilterRecord.Checkpoint;
  }

  private begin(payload: Buffer): boolean {
    const { parts } = this;
    if (this.filter !== null || (parts.length > 0 && !this.whole)) return false;
    const keys = payload.readUInt32LE(0);
    this.bytes += (keys * BITS_A_KEY) / 8;
    if (parts.length > 0 && this.bytes > this.maxBytes) return false;
    const part = newPart(keys);
    part.taken = payload.readUInt32LE(4);
    parts.push(part);
    this.filled = 0;
    return part.blocks === payload.readUInt32LE(8);
  }

  private fill(payload: Buffer): boolean {
    const last = this.parts.at(-1);
    if (last === undefined || this.filled + payload.length > last.words.byteLength) return false;
    Buffer.from(last.words.buffer).set(payload, this.filled);
    this.filled += payload.length;
    return true;
  }
}
