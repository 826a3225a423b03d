/**
 * The bytes of the command log; docs/log-format.md is their description.
 *
 * A log position counts payload bytes since the data directory was made. It is not the replication
 * offset, which each frame names beside it.
 */
import { crc32 } from 'node:zlib';
import { viewOf } from '../bytes/slice.ts';

const LOG_FORMAT_VERSION = 1;
const SEGMENT_MAGIC = 0x474f4c41; // 'ALOG', little endian

export const SEGMENT_HEADER_BYTES = 128;
export const FRAME_HEADER_BYTES = 32;
/** A write of more than 2 GiB is cut short by Linux; one frame is one write. */
export const FRAME_PAYLOAD_BYTES_MAX = 0x7fff0000;

const POSITION_DIGITS = 16;
const TWO_32 = 0x1_0000_0000;

/** What every segment says of itself. Ids are lower-case hex or empty. */
export interface SegmentHeader {
  firstPosition: number;
  /** Up to here everything was on disk when the segment was made. */
  synced: number;
  /** 32 hex digits. */
  directoryId: string;
  /** 40 hex digits. */
  replicationId: string;
  /** Of the machine when the segment was made; up to 40 characters. */
  bootId: string;
}

export function segmentName(firstPosition: number): string {
  return `${String(firstPosition).padStart(POSITION_DIGITS, '0')}.log`;
}

/** The first position that a segment's name tells; -1 for other names. */
export function positionOfSegmentName(name: string): number {
  return /^\d{16}\.log$/.test(name) ? Number(name.slice(0, POSITION_DIGITS)) : -1;
}

function setU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % TWO_32, true);
  view.setUint32(at + 4, Math.floor(value / TWO_32), true);
}

function getU64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * TWO_32;
}

export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const bytes = Buffer.from(new ArrayBuffer(SEGMENT_HEADER_BYTES));
  const view = viewOf(bytes.buffer);
  view.setUint32(0, SEGMENT_MAGIC, true);
  view.setUint32(8, LOG_FORMAT_VERSION, true);
  setU64(view, 16, header.firstPosition);
  setU64(view, 24, header.synced);
  bytes.write(header.directoryId, 32, 16, 'hex');
  bytes.write(header.replicationId, 48, 20, 'hex');
  bytes.write(header.bootId, 68, 40, 'latin1');
  view.setUint32(4, crc32(bytes.subarray(8)), true);
  return bytes;
}

/** Why a segment's header cannot be used. */
export type HeaderFault = 'short' | 'not a log segment' | 'checksum' | { version: number };

export function decodeSegmentHeader(bytes: Buffer): SegmentHeader | HeaderFault {
  if (bytes.length < SEGMENT_HEADER_BYTES) return 'short';
  const view = new DataView(bytes.buffer, bytes.byteOffset, SEGMENT_HEADER_BYTES);
  if (view.getUint32(0, true) !== SEGMENT_MAGIC) return 'not a log segment';
  if (view.getUint32(4, true) !== crc32(bytes.subarray(8, SEGMENT_HEADER_BYTES))) return 'checksum';
  const version = view.getUint32(8, true);
  if (version !== LOG_FORMAT_VERSION) return { version };
  return {
    firstPosition: getU64(view, 16),
    synced: getU64(view, 24),
    directoryId: bytes.hexSlice(32, 48),
    replicationId: bytes.hexSlice(48, 68),
    bootId: bytes.latin1Slice(68, 108).replace(/\0+$/, ''),
  };
}

/**
 * Writes the header of a frame into the FRAME_HEADER_BYTES at `at`. The payload's bytes must follow
 * it in `bytes`, or be given apart.
 */
export function encodeFrameHeader(
  bytes: Buffer,
  view: DataView,
  at: number,
  frame: { length: number; position: number; replicationOffset: number; synced: number },
  payload?: Uint8Array,
): void {
  view.setUint32(at + 4, frame.length, true);
  setU64(view, at + 8, frame.position);
  setU64(view, at + 16, frame.replicationOffset);
  setU64(view, at + 24, frame.synced);
  const crc =
    payload === undefined
      ? crc32(bytes.subarray(at + 4, at + FRAME_HEADER_BYTES + frame.length))
      : crc32(payload, crc32(bytes.subarray(at + 4, at + FRAME_HEADER_BYTES)));
  view.setUint32(at, crc, true);
}

export const frameLength = (view: DataView, at: number): number => view.getUint32(at + 4, true);
export const framePosition = (view: DataView, at: number): number => getU64(view, at + 8);
export const frameReplicationOffset = (view: DataView, at: number): number => getU64(view, at + 16);
export const frameSynced = (view: DataView, at: number): number => getU64(view, at + 24);

/** Whether the frame at `at`, all of which is in `bytes`, is as it was written. */
export function frameIsSound(bytes: Buffer, view: DataView, at: number): boolean {
  const end = at + FRAME_HEADER_BYTES + frameLength(view, at);
  return view.getUint32(at, true) === crc32(bytes.subarray(at + 4, end));
}

declare global {
  /** Present in Node.js, absent from its type declarations. */
  interface Buffer {
    hexSlice(start?: number, end?: number): string;
  }
}
