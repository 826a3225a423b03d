import { ByteSink } from '../bytes/sink.ts';
import { Slice } from '../bytes/slice.ts';

/** Memory kept for the next text, bytes. */
const KEPT_MAX = 1 << 20;
const INITIAL = 32;

/** One string of a file: shown where it lies, or, if it is encoded there, in memory of its own. */
export class Text {
  readonly slice = new Slice();
  /** The number that stands in the file; NaN when bytes do. Rounded if it is not a safe integer. */
  integer = NaN;
  private memory = new ByteSink(INITIAL);

  /** Bytes that lie in a padded memory. */
  show(u8: Buffer, view: DataView, start: number, end: number): void {
    this.integer = NaN;
    this.slice.set(u8, view, start, end);
  }

  /** A number, which the slice then shows in decimal. */
  setInteger(value: number): void {
    const memory = this.own();
    memory.decimal(value);
    this.slice.set(memory.u8, memory.view, 0, memory.pos);
    this.integer = value;
  }

  setInt64(value: bigint): void {
    if (value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER) {
      this.setInteger(Number(value));
      return;
    }
    const memory = this.own();
    memory.ascii(value.toString());
    this.slice.set(memory.u8, memory.view, 0, memory.pos);
    this.integer = Number(value);
  }

  /** Memory of `length` bytes that the caller fills; the slice shows it. */
  make(length: number): Buffer {
    const memory = this.own();
    memory.ensure(length);
    this.show(memory.u8, memory.view, 0, length);
    return memory.u8;
  }

  /** A copy that stays when the file's memory moves on. */
  keep(from: Slice): void {
    const memory = this.own();
    memory.copy(from.u8, from.start, from.end);
    this.show(memory.u8, memory.view, 0, memory.pos);
  }

  private own(): ByteSink {
    if (this.memory.u8.length > KEPT_MAX) this.memory = new ByteSink(INITIAL);
    else this.memory.clear();
    return this.memory;
  }
}

/** An integer of a file, exact: what `text` was written as, or spells. Undefined when it is none. */
export function exactInteger(text: Text): bigint | undefined {
  if (Number.isSafeInteger(text.integer)) return BigInt(text.integer);
  const digits = text.slice.length > 20 ? '' : text.slice.latin1();
  return /^(0|-?[1-9]\d*)$/.test(digits) ? BigInt(digits) : undefined;
}
