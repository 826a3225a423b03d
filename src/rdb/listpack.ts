/**
 * Listpack: header of u32 total bytes and u16 entry count (65,535: more, count them), entries, 0xff. An
 * entry is its encoding, its bytes, and the length of both, seven bits a byte, readable backwards.
 */
import type { Slice } from '../bytes/slice.ts';
import { Damage } from './error.ts';
import type { Text } from './text.ts';

export const LISTPACK_HEADER = 6;
export const LISTPACK_END = 0xff;
const COUNT_UNKNOWN = 0xffff;

/** Bytes of the length that stands behind an entry of `bytes` bytes. */
export function backLengthBytes(bytes: number): number {
  return bytes <= 127 ? 1 : bytes < 16383 ? 2 : bytes < 2097151 ? 3 : bytes < 268435455 ? 4 : 5;
}

/** Something packed in one string, gone through entry by entry. */
export interface PackedWalker {
  /** Checks all of it and stands before the first entry. Returns how many there are; throws Damage. */
  open(bytes: Slice): number;
  /** The next entry; not called more often than there are entries. */
  next(into: Text): void;
}

export class ListpackWalker implements PackedWalker {
  private u8!: Slice['u8'];
  private view!: DataView;
  private pos = 0;

  open(bytes: Slice): number {
    const { u8, view, start, end } = bytes;
    if (end - start < LISTPACK_HEADER + 1) throw new Damage('a listpack is shorter than its header');
    if (view.getUint32(start, true) !== end - start) {
      throw new Damage(`a listpack of ${end - start} bytes says that it has ${view.getUint32(start, true)}`);
    }
    const last = end - 1;
    if (u8[last] !== LISTPACK_END) throw new Damage('a listpack does not end with its end mark');
    const told = view.getUint16(start + 4, true);
    let pos = start + LISTPACK_HEADER;
    let count = 0;
    while (pos < last) {
      const first = u8[pos];
      if (first === LISTPACK_END) throw new Damage(`a listpack ends early, at byte ${pos - start}`);
      const size = entrySize(view, pos, first);
      const after = pos + size;
      const backBytes = backLengthBytes(size);
      if (size === 0 || after + backBytes > last) {
        throw new Damage(`entry ${count} of a listpack, at byte ${pos - start}, does not fit`);
      }
      if (backBytes === 1 ? u8[after] !== size : !backLengthIs(u8, after, backBytes, size)) {
        throw new Damage(
          `entry ${count} of a listpack, at byte ${pos - start}, has a wrong length behind it`,
        );
      }
      pos = after + backBytes;
      count++;
    }
    if (told !== COUNT_UNKNOWN && told !== count) {
      throw new Damage(`a listpack of ${count} entries says that it has ${told}`);
    }
    this.u8 = u8;
    this.view = view;
    this.pos = start + LISTPACK_HEADER;
    return count;
  }

  next(into: Text): void {
    const { u8, view, pos } = this;
    const first = u8[pos];
    let size: number;
    if (first < 0x80) {
      into.setInteger(first);
      this.pos = pos + 2;
      return;
    } else if (first < 0xc0) {
      size = 1 + (first & 0x3f);
      into.show(u8, view, pos + 1, pos + size);
    } else if (first < 0xe0) {
      into.setInteger((((first << 8) | u8[pos + 1]) << 19) >> 19);
      size = 2;
    } else if (first < 0xf0) {
      size = 2 + (((first & 0x0f) << 8) | u8[pos + 1]);
      into.show(u8, view, pos + 2, pos + size);
    } else if (first === 0xf0) {
      size = 5 + view.getUint32(pos + 1, true);
      into.show(u8, view, pos + 5, pos + size);
    } else if (first === 0xf1) {
      into.setInteger(view.getInt16(pos + 1, true));
      size = 3;
    } else if (first === 0xf2) {
      into.setInteger(((view.getUint16(pos + 1, true) | (u8[pos + 3] << 16)) << 8) >> 8);
      size = 4;
    } else if (first === 0xf3) {
      into.setInteger(view.getInt32(pos + 1, true));
      size = 5;
    } else {
      into.setInt64(view.getBigInt64(pos + 1, true));
      size = 9;
    }
    this.pos = pos + size + backLengthBytes(size);
  }
}

/** Bytes of encoding and content of the entry at `pos`; 0 when there is no such encoding. */
function entrySize(view: DataView, pos: number, first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc0) return 1 + (first & 0x3f);
  if (first < 0xe0) return 2;
  // Bytes after the end exist (SLICE_PADDING); a length made of them does not fit.
  if (first < 0xf0) return 2 + (((first & 0x0f) << 8) | view.getUint8(pos + 1));
  switch (first) {
    case 0xf0:
      return 5 + view.getUint32(pos + 1, true);
    case 0xf1:
      return 3;
    case 0xf2:
      return 4;
    case 0xf3:
      return 5;
    case 0xf4:
      return 9;
    default:
      return 0;
  }
}

function backLengthIs(u8: Uint8Array, at: number, bytes: number, size: number): boolean {
  for (let i = bytes - 1; i >= 0; i--) {
    const continues = i > 0 ? 0x80 : 0;
    if (u8[at + i] !== ((size % 128) | continues)) return false;
    size = Math.floor(size / 128);
  }
  return true;
}
