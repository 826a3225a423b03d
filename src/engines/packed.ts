import { viewOf } from '../bytes/slice.ts';
import {
  DAMAGED_LENGTH,
  DELETE_LENGTH,
  EngineError,
  type PackedBatch,
  type PackedKeys,
  type Range,
} from './engine.ts';

/** Bytes before a packed row's key: key length and value length. */
export const ROW_HEADER = 8;

/** Bounds of a key, in bytes: LMDB has no empty keys, and 1,978 fit its 4 KB pages. */
export const KEY_BYTES_MIN = 1;
export const KEY_BYTES_MAX = 1978;

const NOTHING = new ArrayBuffer(0);

/** As the value of a row that cannot be read: shorter than a checksum, so that the row counts as damaged. */
export const UNREADABLE = new Uint8Array(0);

/** Packs rows one after the other into memory that is then handed over, to be transferred. */
export class RowPacker {
  private memory = NOTHING;
  private bytes = new Uint8Array(NOTHING);
  private view: DataView = new DataView(NOTHING);
  private capacity: number;
  length = 0;
  rows = 0;

  /** @param capacity bytes allocated for the first batch, when it has a row; doubled when more is needed */
  constructor(capacity = 4096) {
    this.capacity = capacity;
  }

  /** Appends a row; without a value, a deletion (in a batch) or an absent row (in a result). */
  row(key: Uint8Array, value: Uint8Array | undefined): void {
    const valueLength = value === undefined ? 0 : value.length;
    const start = this.length;
    const end = start + ROW_HEADER + key.length + valueLength;
    if (end > this.bytes.length) this.grow(end);
    this.view.setUint32(start, key.length, true);
    this.view.setUint32(start + 4, value === undefined ? DELETE_LENGTH : valueLength, true);
    this.bytes.set(key, start + ROW_HEADER);
    if (value !== undefined) this.bytes.set(value, start + ROW_HEADER + key.length);
    this.length = end;
    this.rows++;
  }

  /** Appends rows that are packed. */
  append({ bytes, length, rows }: PackedBatch): void {
    const start = this.length;
    if (start + length > this.bytes.length) this.grow(start + length);
    this.bytes.set(new Uint8Array(bytes, 0, length), start);
    this.length += length;
    this.rows += rows;
  }

  private grow(needed: number): void {
    const memory = new ArrayBuffer(Math.max(needed, this.capacity, this.bytes.length * 2));
    const grown = new Uint8Array(memory);
    grown.set(this.bytes.subarray(0, this.length));
    this.memory = memory;
    this.bytes = grown;
    this.view = viewOf(memory);
  }

  /** The rows packed so far; the packer goes on empty, in new memory, as large as this one. */
  take(): PackedBatch {
    // What is handed over may be transferred: NOTHING stays.
    const bytes = this.memory === NOTHING ? new ArrayBuffer(0) : this.memory;
    const batch: PackedBatch = { bytes, length: this.length, rows: this.rows };
    this.capacity = Math.max(this.capacity, this.memory.byteLength);
    this.memory = NOTHING;
    this.bytes = new Uint8Array(NOTHING);
    this.view = new DataView(NOTHING);
    this.length = 0;
    this.rows = 0;
    return batch;
  }
}

/** Walks over packed rows in place, without an object for a row. */
export class RowCursor {
  /** The rows' memory, from its offset 0. */
  readonly memory: Buffer;
  /** Where in it the current row's key and value are: [keyStart, keyEnd), [keyEnd, valueEnd). */
  keyStart = 0;
  keyEnd = 0;
  valueEnd = 0;
  /** The current row is a deletion or an absent row. */
  deleted = false;
  private readonly view: DataView;
  private readonly end: number;

  constructor(packed: PackedBatch) {
    this.memory = Buffer.from(packed.bytes, 0, packed.length);
    this.view = viewOf(packed.bytes);
    this.end = packed.length;
  }

  /**
   * Moves to the next row.
   * @throws EngineError ENGINE_IO for rows that do not fill the batch exactly, ENGINE_DAMAGED for a row
   * that was read damaged
   */
  advance(): boolean {
    const start = this.valueEnd;
    if (start === this.end) return false;
    const keyStart = start + ROW_HEADER;
    if (keyStart > this.end) throw tornRow(start);
    const keyLength = this.view.getUint32(start, true);
    const valueLength = this.view.getUint32(start + 4, true);
    const keyEnd = keyStart + keyLength;
    if (valueLength === DAMAGED_LENGTH && keyEnd <= this.end) {
      throw new EngineError(
        'ENGINE_DAMAGED',
        `row ${this.memory.toString('hex', keyStart, keyEnd)} is not as it was written; restore it from a backup`,
      );
    }
    const deleted = valueLength === DELETE_LENGTH;
    const valueEnd = deleted ? keyEnd : keyEnd + valueLength;
    if (valueEnd > this.end || keyLength < KEY_BYTES_MIN || keyLength > KEY_BYTES_MAX) {
      throw tornRow(start);
    }
    this.keyStart = keyStart;
    this.keyEnd = keyEnd;
    this.valueEnd = valueEnd;
    this.deleted = deleted;
    return true;
  }

  /** A view of the current row's key. */
  get key(): Buffer {
    return this.memory.subarray(this.keyStart, this.keyEnd);
  }

  /** A view of its value; undefined is a deletion or an absent row. */
  get value(): Buffer | undefined {
    return this.deleted ? undefined : this.memory.subarray(this.keyEnd, this.valueEnd);
  }
}

function tornRow(offset: number): EngineError {
  return new EngineError(
    'ENGINE_IO',
    `the packed row at offset ${offset} does not end within the batch, or its key is not of ` +
      `${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes; nothing of the batch was written`,
  );
}

/** All keys that begin with `prefix`. */
export function prefixRange(prefix: Uint8Array): Range {
  let length = prefix.length;
  while (length > 0 && prefix[length - 1] === 0xff) length--;
  if (length === 0) return { start: prefix };
  const end = Uint8Array.from(prefix.subarray(0, length));
  end[length - 1]++;
  return { start: prefix, end };
}

/** Keys packed for getMany. */
export function packKeys(keys: readonly Uint8Array[]): PackedKeys {
  let length = 0;
  for (const key of keys) length += 4 + key.length;
  const bytes = new ArrayBuffer(length);
  const target = new Uint8Array(bytes);
  const view = viewOf(bytes);
  let pos = 0;
  for (const key of keys) {
    view.setUint32(pos, key.length, true);
    target.set(key, pos + 4);
    pos += 4 + key.length;
  }
  return { bytes, length, count: keys.length };
}

/** The keys of a getMany, as views into its memory. @throws EngineError ENGINE_IO */
export function unpackKeys(packed: PackedKeys): Buffer[] {
  const memory = Buffer.from(packed.bytes, 0, packed.length);
  const view = viewOf(packed.bytes);
  const keys = new Array<Buffer>(packed.count);
  let pos = 0;
  for (let i = 0; i < packed.count; i++) {
    const start = pos + 4;
    const end = start > packed.length ? Infinity : start + view.getUint32(pos, true);
    if (end > packed.length || end - start < KEY_BYTES_MIN || end - start > KEY_BYTES_MAX) {
      throw new EngineError(
        'ENGINE_IO',
        `key ${i} of getMany does not end within its memory, or is not of ` +
          `${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes`,
      );
    }
    keys[i] = memory.subarray(start, end);
    pos = end;
  }
  return keys;
}

/** A row as two arrays: for tests and slow paths. */
export interface Row {
  key: Uint8Array;
  value: Uint8Array | undefined;
}

export function packRows(rows: Iterable<Row>): PackedBatch {
  const packer = new RowPacker();
  for (const { key, value } of rows) packer.row(key, value);
  return packer.take();
}

/** The rows, as views into the packed memory. */
export function unpackRows(packed: PackedBatch): Row[] {
  const rows: Row[] = [];
  const cursor = new RowCursor(packed);
  while (cursor.advance()) rows.push({ key: cursor.key, value: cursor.value });
  return rows;
}
