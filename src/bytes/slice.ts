declare global {
  /** Present in Node.js, absent from its type declarations. */
  interface Buffer {
    latin1Slice(start?: number, end?: number): string;
    utf8Slice(start?: number, end?: number): string;
  }
}

/** Bytes that must be readable after the end of every slice, so that words can be loaded without a bounds test. */
export const SLICE_PADDING = 8;

const views = new WeakMap<ArrayBufferLike, DataView>();

/** One DataView over a whole ArrayBuffer, made once: offsets in it equal offsets in a Buffer over the same memory. */
export function viewOf(memory: ArrayBufferLike): DataView {
  let view = views.get(memory);
  if (view === undefined) views.set(memory, (view = new DataView(memory)));
  return view;
}

/** A Buffer of `length` zero bytes that starts at offset 0 of a memory of its own, padding included. */
export function allocatePadded(length: number): Buffer {
  return Buffer.from(new ArrayBuffer(length + SLICE_PADDING), 0, length);
}

/**
 * A run of bytes in somebody else's memory: an argument of a request, a key, a member, a stored value.
 *
 * A flyweight: the request parser and the store point the same Slice objects at new places again and
 * again, so that the hot path makes no object per item. What a slice shows is valid until its owner
 * goes on (an argument: until the command returns; stored bytes: until the next write to the store).
 *
 * Invariants: `u8` and `view` cover the same memory from its offset 0 (`u8.byteOffset === 0`), and at
 * least SLICE_PADDING bytes after `end` exist in `view`; their content is undefined.
 */
export class Slice {
  u8: Buffer;
  view: DataView;
  start: number;
  end: number;

  constructor() {
    this.u8 = EMPTY_MEMORY;
    this.view = viewOf(EMPTY_MEMORY.buffer);
    this.start = 0;
    this.end = 0;
  }

  get length(): number {
    return this.end - this.start;
  }

  set(u8: Buffer, view: DataView, start: number, end: number): void {
    this.u8 = u8;
    this.view = view;
    this.start = start;
    this.end = end;
  }

  setSlice(other: Slice): void {
    this.set(other.u8, other.view, other.start, other.end);
  }

  /** A slice over a padded copy of `bytes` (a string is taken as UTF-8). For slow paths and tests. */
  static from(bytes: string | Uint8Array): Slice {
    const source = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
    const copy = allocatePadded(source.length);
    copy.set(source);
    const slice = new Slice();
    slice.set(copy, viewOf(copy.buffer), 0, source.length);
    return slice;
  }

  /** A slice of its own over a padded copy of the same bytes, to keep beyond this one's validity. */
  clone(): Slice {
    return Slice.from(this.u8.subarray(this.start, this.end));
  }

  /** A copy of the bytes. */
  toBuffer(): Buffer {
    return Buffer.from(this.u8.subarray(this.start, this.end));
  }

  /** The bytes, one character each. */
  latin1(): string {
    return this.u8.latin1Slice(this.start, this.end);
  }

  utf8(): string {
    return this.u8.utf8Slice(this.start, this.end);
  }

  equals(other: Slice): boolean {
    const length = this.end - this.start;
    if (length !== other.end - other.start) return false;
    for (let i = 0; i < length; i++) {
      if (this.u8[this.start + i] !== other.u8[other.start + i]) return false;
    }
    return true;
  }

  /** Byte order, as memcmp and then by length: negative, zero or positive. */
  compare(other: Slice): number {
    const shorter = Math.min(this.length, other.length);
    for (let i = 0; i < shorter; i++) {
      const difference = this.u8[this.start + i] - other.u8[other.start + i];
      if (difference !== 0) return difference;
    }
    return this.length - other.length;
  }
}

const EMPTY_MEMORY = Buffer.from(new ArrayBuffer(SLICE_PADDING), 0, 0);
