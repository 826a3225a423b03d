/**
 * The bytes of a filter file; docs/filter-format.md is their description. Nothing of a file counts after the
 * first record that is not as it was written.
 */
import { crc32 } from 'node:zlib';
import { ByteSink } from '../bytes/sink.ts';
import type { FilterPart } from './key-filter.ts';

const MAGIC = 0x46445241; // 'ARDF', little endian
const VERSION = 1;
export const FILTER_HEADER_BYTES = 32;
export const RECORD_HEADER_BYTES = 12;
/** A record's payload has at most so many bytes. */
export const RECORD_BYTES_MAX = 1024 * 1024;

export const FilterRecord = {
  /** A part begins: hashes that it is to take and has taken, blocks, u32 each. */
  Part: 1,
  /** The next words of the part. */
  Words: 2,
  /** Hashes of keys that came after the parts were written. */
  Hashes: 3,
  /** All keys are in what stands before that the engine has after this checkpoint. */
  Checkpoint: 4,
} as const;

/** Names a checkpoint: its log position, and which one it is of all. */
export interface CheckpointMark {
  position: number;
  checkpoints: number;
}

/** u32 magic, u32 version, u32 id of the keyspace, u32 CRC-32 of all but itself, 16 bytes id of the data directory. */
export function filterHeader(keyspaceId: number, directoryId: string): Buffer {
  const header = Buffer.alloc(FILTER_HEADER_BYTES);
  header.writeUInt32LE(MAGIC, 0);
  header.writeUInt32LE(VERSION, 4);
  header.writeUInt32LE(keyspaceId, 8);
  header.write(directoryId, 16, 16, 'hex');
  header.writeUInt32LE(crc32(header), 12);
  return header;
}

/** u32 length of the payload, u32 CRC-32 of kind and payload, u32 kind, payload. */
export function writeRecord(sink: ByteSink, kind: number, payload: Uint8Array): void {
  const head = Buffer.alloc(RECORD_HEADER_BYTES);
  head.writeUInt32LE(payload.length, 0);
  head.writeUInt32LE(kind, 8);
  head.writeUInt32LE(crc32(payload, crc32(head.subarray(8))), 4);
  sink.copy(head, 0, head.length);
  sink.copy(Buffer.from(payload.buffer, payload.byteOffset, payload.length), 0, payload.length);
}

export function partPayload({ keys, taken, blocks }: FilterPart): Buffer {
  const payload = Buffer.alloc(12);
  payload.writeUInt32LE(keys, 0);
  payload.writeUInt32LE(taken, 4);
  payload.writeUInt32LE(blocks, 8);
  return payload;
}

export function checkpointPayload({ position, checkpoints }: CheckpointMark): Buffer {
  const sink = new ByteSink(16);
  sink.u64(position);
  sink.u64(checkpoints);
  return Buffer.from(sink.written());
}
