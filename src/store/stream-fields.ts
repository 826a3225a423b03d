/** The fields of a stream entry as they are stored: names and values by turns, each a varint of its length and its bytes. */
import type { ByteSink } from '../bytes/sink.ts';
import { Slice } from '../bytes/slice.ts';

/** Slices that stay allocated between entries. */
const KEPT = 64;

/** Appends `fields[from, to)`. */
export function writeFields(fields: readonly Slice[], from: number, to: number, out: ByteSink): void {
  for (let i = from; i < to; i++) {
    const field = fields[i];
    let length = field.end - field.start;
    for (; length > 127; length = Math.floor(length / 128)) out.byte(128 | (length & 127));
    out.byte(length);
    out.slice(field);
  }
}

/** Null, or what is wrong with stored bytes. */
export function checkFields({ u8, start, end }: Slice): string | null {
  let count = 0;
  let at = start;
  for (; at < end; count++) {
    let length = 0;
    let unit = 1;
    for (; at < end && u8[at] > 127 && unit < end; at++, unit *= 128) length += (u8[at] & 127) * unit;
    if (at === end || u8[at] > 127) return 'a field is damaged';
    length += u8[at++] * unit;
    at += length;
  }
  return at === end && count > 0 && count % 2 === 0 ? null : 'the fields are damaged';
}

/** What was read last. */
export class FieldReader {
  readonly fields: Slice[] = [];
  count = 0;

  /** Points `fields[0, count)` into the stored bytes. */
  read(stored: Slice): void {
    const { u8, view, end } = stored;
    const { fields } = this;
    if (fields.length > KEPT) fields.length = KEPT;
    this.count = 0;
    for (let at = stored.start; at < end;) {
      let length = 0;
      let unit = 1;
      for (; u8[at] > 127; at++, unit *= 128) length += (u8[at] & 127) * unit;
      length += u8[at++] * unit;
      if (this.count === fields.length) fields.push(new Slice());
      fields[this.count++].set(u8, view, at, at + length);
      at += length;
    }
  }
}
