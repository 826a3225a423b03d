/**
 * What can be saved of a redo file that is damaged. Its sound chunks are as good as ever. In the others each
 * row that can be led to a key is replaced by one that says so: the key's value is damaged. What names nobody
 * is lost. The result is a redo file under the same name; the damaged one is put aside before.
 */
import { crc32 } from 'node:zlib';
import { SLICE_PADDING, Slice, viewOf } from '../bytes/slice.ts';
import { DELETE_LENGTH } from '../engines/engine.ts';
import { Type } from './api.ts';
import type { DataDirectory } from './data-directory.ts';
import type { Disk } from './disk.ts';
import { Hasher } from './hash.ts';
import { copyAside } from './log-repair.ts';
import { decodeMeta, isMetaRow, writeMeta } from './meta-row.ts';
import {
  REDO_CHUNK_ENTRY_BYTES,
  REDO_FOOTER_BYTES,
  REDO_HEADER_BYTES,
  ROW_HEADER_BYTES,
  decodeRedoFooter,
  decodeRedoTrailer,
} from './redo-format.ts';
import { RedoWriter } from './redo.ts';
import {
  isMetaKey,
  KEY_ROW_PREFIX,
  MAX_ROW_KEY_BYTES,
  PAGE_ROW_BYTES,
  RowKind,
  VALUE_FLAG_DAMAGED,
  VALUE_FLAG_DEADLINE,
  VALUE_HEADER_BYTES,
} from './row-format.ts';
import { hashKeyOfMeta } from './tier-meta.ts';

/** What a repaired redo file holds, and what it does not. */
export interface SavedRedo {
  /** Rows as they were written. */
  soundRows: number;
  /** Rows that stand for damaged values now. */
  damagedRows: number;
  /** Bytes of which nobody knows whose rows they were. */
  lostBytes: number;
  /** Where the damaged file is. */
  aside: string;
}

/** Page rows have the page's number here too. */
const PAGE_NUMBER_AT = 8;
const PAGE_HEADER_BYTES = 16;

/**
 * Puts the damaged file aside and a sound one in its place. Null, with nothing changed, when the meta row that the checkpoint ends with cannot be found.
 */
export async function saveRedo(
  disk: Disk,
  directory: DataDirectory,
  path: string,
  position: number,
): Promise<SavedRedo | null> {
  const file = disk.open(path, 'read');
  const size = file.size();
  const memory = Buffer.from(new ArrayBuffer(size + SLICE_PADDING), 0, size);
  try {
    file.read(memory, 0);
  } finally {
    file.close();
  }
  const { redoDirectory, identity } = directory;
  const chunks = chunksOf(memory);
  const end = chunks.at(-1)!.end;
  const meta = findMeta(memory, end);
  if (meta === null) return null;
  const aside = `${directory.path}/redo-damaged-${position}-${Date.now()}`;
  disk.makeDirectory(aside);
  await copyAside(disk, path, 0, aside);
  await disk.syncDirectory(aside);
  await disk.syncDirectory(directory.path);

  const writer = new RedoWriter(disk, redoDirectory, { position, directoryId: identity.id });
  const saver = new RowSaver(memory, new Hasher(...hashKeyOfMeta(decodeMeta(meta).tier)), writer);
  for (const { start, end: chunkEnd, sound } of chunks) {
    saver.take(start, chunkEnd, sound);
    writer.drain();
    if (writer.full) await writer.room();
  }
  writeMeta(writer, meta);
  await writer.commit();
  const { soundRows, damagedRows, lostBytes } = saver;
  return { soundRows, damagedRows, lostBytes, aside };
}

/** The file's chunks, by its table; where that is damaged all rows are one chunk that is not sound. */
function chunksOf(file: Buffer): { start: number; end: number; sound: boolean }[] {
  const footer = decodeRedoFooter(file.subarray(Math.max(0, file.length - REDO_FOOTER_BYTES)));
  if (typeof footer !== 'string') {
    const trailerAt = REDO_HEADER_BYTES + footer.rowBytes;
    const tableBytes = footer.chunks * REDO_CHUNK_ENTRY_BYTES;
    const whole = trailerAt + tableBytes + REDO_FOOTER_BYTES === file.length;
    const chunks = whole ? decodeRedoTrailer(file.subarray(trailerAt)) : '';
    if (typeof chunks !== 'string' && chunks.length > 0) {
      let start = REDO_HEADER_BYTES;
      return chunks.map(({ length, crc }) => {
        const end = start + length;
        const chunk = { start, end, sound: crc32(file.subarray(start, end)) === crc };
        start = end;
        return chunk;
      });
    }
  }
  return [{ start: REDO_HEADER_BYTES, end: file.length, sound: false }];
}

/** The value of a meta row that stands in the file, by its own checksum; the last one. */
function findMeta(file: Buffer, end: number): Buffer | null {
  for (let at = end - ROW_HEADER_BYTES - 1; at >= REDO_HEADER_BYTES; at--) {
    const start = at + ROW_HEADER_BYTES + 1;
    if (!isMetaKey(file, start - 1, start) || file.readUInt32LE(at) !== 1) continue;
    const valueEnd = start + file.readUInt32LE(at + 4);
    if (valueEnd > end) continue;
    const value = file.subarray(start, valueEnd);
    if (isMetaRow(value)) return value;
  }
  return null;
}

/** Passes rows on, those of sound chunks as they are. */
class RowSaver {
  soundRows = 0;
  damagedRows = 0;
  lostBytes = 0;
  private readonly file: Buffer;
  private readonly view: DataView;
  private readonly hasher: Hasher;
  private readonly longHashers: readonly Hasher[];
  private readonly writer: RedoWriter;
  private readonly key = new Slice();

  constructor(file: Buffer, hasher: Hasher, writer: RedoWriter) {
    this.file = file;
    this.view = viewOf(file.buffer);
    this.hasher = hasher;
    this.longHashers = [hasher.derive(1), hasher.derive(2)];
    this.writer = writer;
  }

  take(start: number, end: number, sound: boolean): void {
    for (let at = start; at < end;) {
      const valueStart =
        at + ROW_HEADER_BYTES + (at + ROW_HEADER_BYTES > end ? 0 : this.view.getUint32(at, true));
      const valueLength = valueStart > end ? 0 : this.view.getUint32(at + 4, true);
      const deleted = valueLength === DELETE_LENGTH;
      const rowEnd = valueStart + (deleted ? 0 : valueLength);
      if (rowEnd > end || !this.row(at + ROW_HEADER_BYTES, valueStart, rowEnd, deleted, sound)) {
        // A damaged length leads anywhere: the next row is looked for from here on.
        this.lostBytes++;
        at++;
        continue;
      }
      at = rowEnd;
    }
  }

  /** False when it cannot be a row. */
  private row(start: number, valueStart: number, end: number, deleted: boolean, sound: boolean): boolean {
    const { file, writer } = this;
    const row = file.subarray(start, valueStart);
    if (isMetaKey(file, start, valueStart)) return true;
    if (sound) {
      this.soundRows++;
      writer.row(row, deleted ? null : file.subarray(valueStart, end));
      return true;
    }
    switch (row[0]) {
      case RowKind.Key:
      case RowKind.LongKey: {
        const key = this.nameOf(start, valueStart, end, deleted);
        if (key === null) return false;
        // That it is a row at all is known by the key's hash, and a deletion has nothing else.
        writer.row(row, deleted ? null : damagedValue(row[0], key));
        break;
      }
      case RowKind.Page:
        if (row.length !== PAGE_ROW_BYTES || !this.isPage(valueStart, end)) return false;
        // A collection that lacks a page is damaged.
        writer.row(row, null);
        break;
      default:
        return false;
    }
    this.damagedRows++;
    return true;
  }

  /** The key of a row, if the row's own key has its hashes; a deletion of a long key has the hashes alone. */
  private nameOf(start: number, valueStart: number, end: number, deleted: boolean): Buffer | null {
    const { file, view, key, hasher } = this;
    const long = file[start] === RowKind.LongKey;
    if (valueStart - start < KEY_ROW_PREFIX || (long && deleted)) return null;
    let from = start + KEY_ROW_PREFIX;
    let to = valueStart;
    if (long) {
      const deadline = (file[valueStart + 1] & VALUE_FLAG_DEADLINE) !== 0 ? 8 : 0;
      from = valueStart + VALUE_HEADER_BYTES + deadline + 4;
      if (from > end) return null;
      to = from + view.getUint32(from - 4, true);
      if (to > end || to - from <= MAX_ROW_KEY_BYTES) return null;
    }
    key.set(file, view, from, to);
    const named =
      hasher.hash32(key) === view.getInt32(start + 5) &&
      (!long || this.longHashers.every((other, i) => other.hash32(key) === view.getInt32(start + 9 + 4 * i)));
    return named ? file.subarray(from, to) : null;
  }

  private isPage(valueStart: number, end: number): boolean {
    return (
      end - valueStart >= PAGE_HEADER_BYTES &&
      this.view.getUint32(valueStart + PAGE_NUMBER_AT, true) === this.view.getUint32(valueStart - 4)
    );
  }
}

/** The value of a sound row that says that its key's value is damaged. */
function damagedValue(kind: number, key: Buffer): Buffer {
  const head = Buffer.from([Type.String, VALUE_FLAG_DAMAGED, 0, 0]);
  if (kind === RowKind.Key) return head;
  const length = Buffer.alloc(4);
  length.writeUInt32LE(key.length);
  return Buffer.concat([head, length, key]);
}
