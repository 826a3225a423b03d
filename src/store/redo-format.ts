/** The bytes of a redo file; docs/redo-format.md is their description. */
import { crc32 } from 'node:zlib';
import { DELETE_LENGTH } from '../engines/engine.ts';
import { viewOf } from '../bytes/slice.ts';
import type { Disk } from './disk.ts';

const REDO_FORMAT_VERSION = 1;
const HEADER_MAGIC = 0x4f445241; // 'ARDO', little endian
const FOOTER_MAGIC = 0x45445241; // 'ARDE'

export const REDO_HEADER_BYTES = 64;
export const REDO_FOOTER_BYTES = 40;
export const REDO_CHUNK_ENTRY_BYTES = 8;
export const ROW_HEADER_BYTES = 8;

const TWO_32 = 0x1_0000_0000;

export interface RedoHeader {
  /** Log position of the cut: replay goes on from here. */
  position: number;
  /** 32 hex digits. */
  directoryId: string;
}

export interface RedoFooter {
  /** Bytes of packed rows, which begin right after the header. */
  rowBytes: number;
  rows: number;
  chunks: number;
}

export function redoName(position: number): string {
  return `${String(position).padStart(16, '0')}.redo`;
}

/** The position that a redo file's name tells; -1 for other names. */
export function positionOfRedoName(name: string): number {
  return /^\d{16}\.redo$/.test(name) ? Number(name.slice(0, 16)) : -1;
}

/** Whether a committed checkpoint is there that the engine may not have, or not on disk. */
export function hasRedo(disk: Disk, redoDirectory: string): boolean {
  return disk.list(redoDirectory).some((name) => positionOfRedoName(name) >= 0);
}

function setU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % TWO_32, true);
  view.setUint32(at + 4, Math.floor(value / TWO_32), true);
}

function getU64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * TWO_32;
}

export function encodeRedoHeader(header: RedoHeader): Buffer {
  const bytes = Buffer.from(new ArrayBuffer(REDO_HEADER_BYTES));
  const view = viewOf(bytes.buffer);
  view.setUint32(0, HEADER_MAGIC, true);
  view.setUint32(8, REDO_FORMAT_VERSION, true);
  setU64(view, 16, header.position);
  bytes.write(header.directoryId, 24, 16, 'hex');
  view.setUint32(4, crc32(bytes.subarray(8)), true);
  return bytes;
}

/** The header, or why it cannot be used. */
export function decodeRedoHeader(bytes: Buffer): RedoHeader | string {
  if (bytes.length < REDO_HEADER_BYTES) return 'the header is incomplete';
  const view = new DataView(bytes.buffer, bytes.byteOffset, REDO_HEADER_BYTES);
  if (view.getUint32(0, true) !== HEADER_MAGIC) return 'it is not a redo file';
  if (view.getUint32(4, true) !== crc32(bytes.subarray(8, REDO_HEADER_BYTES))) {
    return 'the checksum of the header does not match';
  }
  const version = view.getUint32(8, true);
  if (version !== REDO_FORMAT_VERSION) return `redo format ${version} is not known to this version`;
  return { position: getU64(view, 16), directoryId: bytes.hexSlice(24, 40) };
}

/** The table of chunks (length and CRC-32 of each) with the footer behind it. */
export function encodeRedoTrailer(chunks: readonly { length: number; crc: number }[], rows: number): Buffer {
  const tableBytes = chunks.length * REDO_CHUNK_ENTRY_BYTES;
  const bytes = Buffer.from(new ArrayBuffer(tableBytes + REDO_FOOTER_BYTES));
  const view = viewOf(bytes.buffer);
  let rowBytes = 0;
  chunks.forEach((chunk, i) => {
    view.setUint32(i * REDO_CHUNK_ENTRY_BYTES, chunk.length, true);
    view.setUint32(i * REDO_CHUNK_ENTRY_BYTES + 4, chunk.crc, true);
    rowBytes += chunk.length;
  });
  setU64(view, tableBytes, rowBytes);
  setU64(view, tableBytes + 8, rows);
  view.setUint32(tableBytes + 16, chunks.length, true);
  view.setUint32(tableBytes + 32, crc32(bytes.subarray(0, tableBytes + 32)), true);
  view.setUint32(tableBytes + 36, FOOTER_MAGIC, true);
  return bytes;
}

/** The footer, or why it cannot be used; its checksum, which covers the table too, is not looked at. */
export function decodeRedoFooter(bytes: Buffer): RedoFooter | string {
  if (bytes.length < REDO_FOOTER_BYTES) return 'the footer is incomplete';
  const view = new DataView(bytes.buffer, bytes.byteOffset, REDO_FOOTER_BYTES);
  if (view.getUint32(36, true) !== FOOTER_MAGIC) return 'it does not end with a footer';
  return { rowBytes: getU64(view, 0), rows: getU64(view, 8), chunks: view.getUint32(16, true) };
}

/** The chunks named by a trailer (table and footer), or why it cannot be used. */
export function decodeRedoTrailer(bytes: Buffer): { length: number; crc: number }[] | string {
  const tableBytes = bytes.length - REDO_FOOTER_BYTES;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (view.getUint32(tableBytes + 32, true) !== crc32(bytes.subarray(0, tableBytes + 32))) {
    return 'the checksum of the footer does not match';
  }
  const chunks = [];
  for (let at = 0; at < tableBytes; at += REDO_CHUNK_ENTRY_BYTES) {
    chunks.push({ length: view.getUint32(at, true), crc: view.getUint32(at + 4, true) });
  }
  return chunks;
}

/** How many rows stand in [start, end), packed as engines take them; -1 when they do not end exactly at `end`. */
export function countPackedRows(view: DataView, start: number, end: number): number {
  let rows = 0;
  let at = start;
  while (at + ROW_HEADER_BYTES <= end) {
    const keyLength = view.getUint32(at, true);
    const valueLength = view.getUint32(at + 4, true);
    at += ROW_HEADER_BYTES + keyLength + (valueLength === DELETE_LENGTH ? 0 : valueLength);
    rows++;
  }
  return at === end ? rows : -1;
}
