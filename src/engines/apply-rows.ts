/**
 * Rows of a file on their way to an engine, in the order of their keys.
 *
 * What is larger than a window of memory is read once for each window that it fills: first a sample of
 * the keys is taken and cut into ranges of about a window each, then the rows of one range after the
 * other are collected, ordered and written. Reading again from the system's page cache is cheap beside
 * what an engine pays for rows in random order.
 */
import { open } from 'node:fs/promises';
import { release } from '../bytes/release.ts';
import { viewOf } from '../bytes/slice.ts';
import { DELETE_LENGTH, EngineError, type PackedBatch } from './engine.ts';
import { KEY_BYTES_MAX, KEY_BYTES_MIN, ROW_HEADER } from './packed.ts';
import { sealRowsAt } from './row-checksum.ts';
import { PREFIX_WORDS, prefixWord, rowOrder } from './row-order.ts';

/** Bytes read from the file at a time: a slice's worth. */
const READ_BYTES = 1024 * 1024;
/** A longer file is done in sections of so many windows, so that a byte is read so often at most, and once more. */
const RANGES_MAX = 16;
/** One row in so many is a sample. */
const SAMPLE_EVERY = 32;
/**
 * glibc's malloc gives blocks above this back to the system at once; the larger one below it that is freed, the more it
 * keeps to itself from then on. Memory that is not written to is none.
 */
const MALLOC_KEEPS_BYTES = 32 * 1024 * 1024;
/** Ranges are cut to fill this part of a window: samples tell their size only about. */
const RANGE_FILL = 0.85;

type File = Awaited<ReturnType<typeof open>>;

export interface RowFile {
  file: File;
  path: string;
  /** Region that packed rows fill exactly. */
  offset: number;
  length: number;
}

/** Whole rows; the first is at offset `at` of the file. */
interface Piece {
  memory: ArrayBuffer;
  bytes: number;
  at: number;
}

export interface ApplyLimits {
  windowBytes: number;
  batchBytes: number;
}

/** Resolves to the number of rows. The last row is written last. A batch's memory is taken back when it is written. */
export async function applyRowFile(
  source: RowFile,
  limits: ApplyLimits,
  write: (batch: PackedBatch) => Promise<void>,
): Promise<number> {
  const needed = source.length < READ_BYTES ? source.length : Math.max(source.length, MALLOC_KEEPS_BYTES + 1);
  const window = new Window(Math.min(limits.windowBytes, needed), limits.batchBytes, write);
  try {
    return await applyThrough(window, source, limits.windowBytes);
  } finally {
    window.release();
  }
}

async function applyThrough(window: Window, source: RowFile, windowBytes: number): Promise<number> {
  const end = source.offset + source.length;
  let last: ArrayBuffer | null = null;
  for (let start = source.offset; start < end;) {
    const { samples, sectionEnd } = await sample(source, start, end, RANGES_MAX * windowBytes);
    const ranges = Math.ceil((sectionEnd - start) / windowBytes);
    const bounds =
      ranges === 1 ? [] : rangeBounds(samples, (sectionEnd - start) / (windowBytes * RANGE_FILL));
    for (let range = 0; range <= bounds.length; range++) {
      const from = range === 0 ? null : bounds[range - 1];
      const to = range === bounds.length ? null : bounds[range];
      for await (const { memory, bytes, at } of pieces(source, start, sectionEnd, end)) {
        const view = viewOf(memory);
        for (let row = 0; row < bytes;) {
          const rowEnd = row + rowBytes(view, row);
          if (at + rowEnd === end) {
            last ??= memory.slice(row, rowEnd);
          } else if (within(view, row, from, to)) {
            if (!window.fits(rowEnd - row)) await window.flush();
            window.add(memory, row, rowEnd);
          }
          row = rowEnd;
        }
      }
      await window.flush();
    }
    start = sectionEnd;
  }
  if (last !== null) {
    window.add(last, 0, last.byteLength);
    await window.flush();
  }
  return window.rowsWritten;
}

/** Rows that are collected, then written in order. */
class Window {
  rowsWritten = 0;
  private memory: ArrayBuffer;
  private filled = 0;
  private rows = 0;
  private readonly batchBytes: number;
  private readonly write: (batch: PackedBatch) => Promise<void>;

  constructor(bytes: number, batchBytes: number, write: (batch: PackedBatch) => Promise<void>) {
    this.memory = new ArrayBuffer(bytes);
    this.batchBytes = batchBytes;
    this.write = write;
  }

  fits(bytes: number): boolean {
    return this.rows === 0 || this.filled + bytes <= this.memory.byteLength;
  }

  /** Takes the row at bytes [start, end) of `from`. */
  add(from: ArrayBuffer, start: number, end: number): void {
    const bytes = end - start;
    if (bytes > this.memory.byteLength - this.filled) {
      release([this.memory]);
      this.memory = new ArrayBuffer(bytes);
    }
    new Uint8Array(this.memory).set(new Uint8Array(from, start, bytes), this.filled);
    this.filled += bytes;
    this.rows++;
  }

  async flush(): Promise<void> {
    const { memory, filled, rows } = this;
    if (rows === 0) return;
    const order = await rowOrder(memory, filled, rows);
    for (let done = 0; done < rows;) {
      const batch = sealRowsAt(memory, order, done, this.batchBytes);
      done += batch.rows;
      await this.write(batch);
      release([batch.bytes]);
    }
    release([order.buffer]);
    this.filled = 0;
    this.rows = 0;
    this.rowsWritten += rows;
  }

  release(): void {
    release([this.memory]);
  }
}

/** Walks over the rows of a section of at most about `bytesMax`: where it ends, and some of its keys' prefixes, packed as rows. */
async function sample(
  source: RowFile,
  start: number,
  end: number,
  bytesMax: number,
): Promise<{ samples: Uint32Array[]; sectionEnd: number }> {
  const samples: Uint32Array[] = [];
  let sectionEnd = start;
  let rows = 0;
  for await (const { memory, bytes, at } of pieces(source, start, end, end)) {
    const view = viewOf(memory);
    for (let row = 0; row < bytes; row += rowBytes(view, row)) {
      if (rows++ % SAMPLE_EVERY === 0) samples.push(prefixOf(view, row));
    }
    sectionEnd = at + bytes;
    if (sectionEnd - start >= bytesMax) break;
  }
  return { samples, sectionEnd };
}

/** Prefixes at which the next range begins; at most `ranges` - 1 of them, rounded up, in order, no two the same. */
function rangeBounds(samples: Uint32Array[], ranges: number): Uint32Array[] {
  samples.sort(comparePrefixes);
  const bounds: Uint32Array[] = [];
  const count = Math.ceil(ranges);
  for (let i = 1; i < count; i++) {
    const bound = samples[Math.floor((i * samples.length) / count)];
    if (bounds.length === 0 || comparePrefixes(bounds[bounds.length - 1], bound) < 0) bounds.push(bound);
  }
  return bounds;
}

function prefixOf(view: DataView, row: number): Uint32Array {
  const prefix = new Uint32Array(PREFIX_WORDS);
  for (let word = 0; word < PREFIX_WORDS; word++) prefix[word] = prefixWord(view, row, word);
  return prefix;
}

function comparePrefixes(a: Uint32Array, b: Uint32Array): number {
  for (let word = 0; word < PREFIX_WORDS; word++) if (a[word] !== b[word]) return a[word] - b[word];
  return 0;
}

/** The row's key is in [from, to); null is no bound. */
function within(view: DataView, row: number, from: Uint32Array | null, to: Uint32Array | null): boolean {
  return (from === null || !below(view, row, from)) && (to === null || below(view, row, to));
}

function below(view: DataView, row: number, bound: Uint32Array): boolean {
  for (let word = 0; word < PREFIX_WORDS; word++) {
    const own = prefixWord(view, row, word);
    if (own !== bound[word]) return own < bound[word];
  }
  return false;
}

function rowBytes(view: DataView, at: number): number {
  const valueLength = view.getUint32(at + 4, true);
  return ROW_HEADER + view.getUint32(at, true) + (valueLength === DELETE_LENGTH ? 0 : valueLength);
}

/** The rows of [start, stop) in pieces of whole rows; `end` is where the region ends. */
async function* pieces(source: RowFile, start: number, stop: number, end: number): AsyncGenerator<Piece> {
  let memory = new ArrayBuffer(Math.min(READ_BYTES, stop - start));
  let filled = 0;
  for (let at = start; at < stop;) {
    // `at` is the file offset of the first row in memory; fill the memory, take the whole rows.
    filled = await fill(source, memory, filled, at, stop);
    const { bytes, needed } = wholeRows(memory, filled, source.path, at, end);
    if (bytes === 0) {
      const larger = new ArrayBuffer(needed);
      new Uint8Array(larger).set(new Uint8Array(memory, 0, filled));
      release([memory]);
      memory = larger;
      continue;
    }
    yield { memory, bytes, at };
    new Uint8Array(memory).copyWithin(0, bytes, filled);
    filled -= bytes;
    at += bytes;
  }
  release([memory]);
}

async function fill(
  { file, path }: RowFile,
  memory: ArrayBuffer,
  filled: number,
  at: number,
  end: number,
): Promise<number> {
  const target = new Uint8Array(memory);
  const wanted = Math.min(memory.byteLength, end - at);
  while (filled < wanted) {
    const { bytesRead } = await file.read(target, filled, wanted - filled, at + filled);
    if (bytesRead === 0) {
      throw new EngineError(
        'ENGINE_IO',
        `${path} ends at ${at + filled}, before its rows do (at ${end}); the file is cut short`,
      );
    }
    filled += bytesRead;
  }
  return filled;
}

/**
 * The whole rows at the start of `memory`, whose first byte is at file offset `at`. With none,
 * `needed` is the size of the first row.
 */
function wholeRows(
  memory: ArrayBuffer,
  filled: number,
  path: string,
  at: number,
  end: number,
): { bytes: number; needed: number } {
  const view = viewOf(memory);
  let pos = 0;
  for (;;) {
    if (pos === filled) return { bytes: pos, needed: ROW_HEADER };
    let next = pos + ROW_HEADER;
    if (next <= filled) {
      const keyLength = view.getUint32(pos, true);
      const valueLength = view.getUint32(pos + 4, true);
      next += keyLength + (valueLength === DELETE_LENGTH ? 0 : valueLength);
      if (keyLength < KEY_BYTES_MIN || keyLength > KEY_BYTES_MAX) next = Infinity;
    }
    if (at + next > end) {
      throw new EngineError(
        'ENGINE_IO',
        `${path}: the row at offset ${at + pos} does not end before ${end}, or its key is not of ` +
          `${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} bytes; the file is damaged from there`,
      );
    }
    if (next > filled) return { bytes: pos, needed: next - pos };
    pos = next;
  }
}
