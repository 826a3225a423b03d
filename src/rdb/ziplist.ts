/** The packed forms of Redis before 7.0 (ziplist), before 2.6 (zipmap), and the intset. */
import type { Slice } from '../bytes/slice.ts';
import { Damage } from './error.ts';
import type { PackedWalker } from './listpack.ts';
import type { Text } from './text.ts';

/**
 * Ziplist: header of u32 total bytes, u32 offset of the last entry, u16 entry count (65,535: more, count
 * them); entries; 0xff. An entry is the length of the entry before it (one byte, or 0xfe and u32), its
 * encoding and its bytes.
 */
export class ZiplistWalker implements PackedWalker {
  private u8!: Slice['u8'];
  private view!: DataView;
  private pos = 0;

  open(bytes: Slice): number {
    const { u8, view, start, end } = bytes;
    const header = 10;
    if (end - start < header + 1) throw new Damage('a ziplist is shorter than its header');
    if (view.getUint32(start, true) !== end - start) {
      throw new Damage(`a ziplist of ${end - start} bytes says that it has ${view.getUint32(start, true)}`);
    }
    const last = end - 1;
    if (u8[last] !== 0xff) throw new Damage('a ziplist does not end with its end mark');
    const told = view.getUint16(start + 8, true);
    let pos = start + header;
    let count = 0;
    let previous = 0;
    let tail = pos;
    while (pos < last) {
      const long = u8[pos] === 0xfe;
      if (u8[pos] === 0xff) throw new Damage(`a ziplist ends early, at byte ${pos - start}`);
      const told = long ? view.getUint32(pos + 1, true) : u8[pos];
      if (told !== previous) {
        throw new Damage(`entry ${count} of a ziplist, at byte ${pos - start}, has a wrong length before it`);
      }
      const at = pos + (long ? 5 : 1);
      const size = at < last ? ziplistEntrySize(view, at, u8[at]) : 0;
      if (size === 0 || at + size > last) {
        throw new Damage(`entry ${count} of a ziplist, at byte ${pos - start}, does not fit`);
      }
      tail = pos;
      previous = at + size - pos;
      pos = at + size;
      count++;
    }
    if (told !== 0xffff && told !== count) {
      throw new Damage(`a ziplist of ${count} entries says that it has ${told}`);
    }
    if (view.getUint32(start + 4, true) !== tail - start) {
      throw new Damage('a ziplist tells a wrong place of its last entry');
    }
    this.u8 = u8;
    this.view = view;
    this.pos = start + header;
    return count;
  }

  next(into: Text): void {
    const { u8, view } = this;
    const at = this.pos + (u8[this.pos] === 0xfe ? 5 : 1);
    const first = u8[at];
    const size = ziplistEntrySize(view, at, first);
    this.pos = at + size;
    if (first < 0x40) into.show(u8, view, at + 1, at + size);
    else if (first < 0x80) into.show(u8, view, at + 2, at + size);
    else if (first < 0xc0) into.show(u8, view, at + 5, at + size);
    else if (first === 0xc0) into.setInteger(view.getInt16(at + 1, true));
    else if (first === 0xd0) into.setInteger(view.getInt32(at + 1, true));
    else if (first === 0xe0) into.setInt64(view.getBigInt64(at + 1, true));
    else if (first === 0xf0) into.setInteger(((view.getUint16(at + 1, true) | (u8[at + 3] << 16)) << 8) >> 8);
    else if (first === 0xfe) into.setInteger(view.getInt8(at + 1));
    else into.setInteger((first & 0x0f) - 1);
  }
}

/** Bytes of encoding and content at `at`; 0 when there is no such encoding. */
function ziplistEntrySize(view: DataView, at: number, first: number): number {
  if (first < 0x40) return 1 + first;
  if (first < 0x80) return 2 + (((first & 0x3f) << 8) | view.getUint8(at + 1));
  if (first === 0x80) return 5 + view.getUint32(at + 1, false);
  switch (first) {
    case 0xc0:
      return 3;
    case 0xd0:
      return 5;
    case 0xe0:
      return 9;
    case 0xf0:
      return 4;
    case 0xfe:
      return 2;
    default:
      return first > 0xf0 && first < 0xfe ? 1 : 0;
  }
}

/**
 * Zipmap: a count of pairs (254 and above: count them), then field and value by turns, 0xff. Each is
 * a length (one byte, or 0xfe and u32) and its bytes; a value has a byte that counts unused bytes behind
 * it between its length and its bytes.
 */
export class ZipmapWalker implements PackedWalker {
  private u8!: Slice['u8'];
  private view!: DataView;
  private pos = 0;
  private isValue = false;

  open(bytes: Slice): number {
    const { u8, view, start, end } = bytes;
    if (end - start < 2) throw new Damage('a zipmap is shorter than its header');
    const last = end - 1;
    if (u8[last] !== 0xff) throw new Damage('a zipmap does not end with its end mark');
    let pos = start + 1;
    let count = 0;
    for (; pos < last; count++) {
      const long = u8[pos] === 0xfe;
      if (u8[pos] === 0xff) throw new Damage(`a zipmap ends early, at byte ${pos - start}`);
      const at = pos;
      pos += long ? 5 + view.getUint32(pos + 1, true) : 1 + u8[pos];
      if ((count & 1) === 1) pos += 1 + u8[at + (long ? 5 : 1)];
      if (pos > last) throw new Damage(`entry ${count} of a zipmap, at byte ${at - start}, does not fit`);
    }
    if ((count & 1) === 1) throw new Damage('the last field of a zipmap has no value');
    if (u8[start] < 254 && u8[start] !== count / 2) {
      throw new Damage(`a zipmap of ${count / 2} fields says that it has ${u8[start]}`);
    }
    this.u8 = u8;
    this.view = view;
    this.pos = start + 1;
    this.isValue = false;
    return count;
  }

  next(into: Text): void {
    const { u8, view, pos } = this;
    const long = u8[pos] === 0xfe;
    const length = long ? view.getUint32(pos + 1, true) : u8[pos];
    let at = pos + (long ? 5 : 1);
    const unused = this.isValue ? u8[at++] : 0;
    into.show(u8, view, at, at + length);
    this.pos = at + length + unused;
    this.isValue = !this.isValue;
  }
}

/** Intset: u32 bytes of a member (2, 4 or 8), u32 count, members in ascending order, little endian. */
export class IntsetWalker implements PackedWalker {
  private view!: DataView;
  private width = 0;
  private pos = 0;

  open(bytes: Slice): number {
    const { view, start, end } = bytes;
    const header = 8;
    if (end - start < header) throw new Damage('an intset is shorter than its header');
    const width = view.getUint32(start, true);
    const count = view.getUint32(start + 4, true);
    if (width !== 2 && width !== 4 && width !== 8) {
      throw new Damage(`an intset has members of ${width} bytes`);
    }
    if (end - start !== header + width * count) {
      throw new Damage(`an intset of ${end - start} bytes says that it has ${count} members of ${width}`);
    }
    for (let i = 1; i < count; i++) {
      const at = start + header + i * width;
      const ascending =
        width === 8
          ? view.getBigInt64(at - 8, true) < view.getBigInt64(at, true)
          : width === 4
            ? view.getInt32(at - 4, true) < view.getInt32(at, true)
            : view.getInt16(at - 2, true) < view.getInt16(at, true);
      if (!ascending) throw new Damage(`member ${i} of an intset is not above the one before it`);
    }
    this.view = view;
    this.width = width;
    this.pos = start + header;
    return count;
  }

  next(into: Text): void {
    const { view, width, pos } = this;
    if (width === 2) into.setInteger(view.getInt16(pos, true));
    else if (width === 4) into.setInteger(view.getInt32(pos, true));
    else into.setInt64(view.getBigInt64(pos, true));
    this.pos = pos + width;
  }
}
