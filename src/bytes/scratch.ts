import { ByteSink } from './sink.ts';
import { Slice } from './slice.ts';

/** Bytes kept for the next use; a larger run's memory is let go. */
const KEPT_MAX = 1 << 20;
const INITIAL = 512;

/**
 * Room for one run of bytes that has to outlive a change of the store, or that is made on the way.
 * The slice each method returns is the same object; it is valid until the next call.
 */
export class Scratch {
  private sink = new ByteSink(INITIAL);
  private readonly slice = new Slice();

  /** A copy of the bytes. */
  keep(bytes: Slice): Slice {
    this.begin();
    this.sink.slice(bytes);
    return this.expose();
  }

  /** An integer in decimal. */
  integer(value: number | bigint): Slice {
    this.begin();
    if (typeof value === 'number') this.sink.decimal(value);
    else this.sink.ascii(value.toString());
    return this.expose();
  }

  /** ASCII text. */
  ascii(text: string): Slice {
    this.begin();
    this.sink.ascii(text);
    return this.expose();
  }

  private begin(): void {
    if (this.sink.u8.length > KEPT_MAX) this.sink = new ByteSink(INITIAL);
    else this.sink.clear();
  }

  private expose(): Slice {
    this.slice.set(this.sink.u8, this.sink.view, 0, this.sink.pos);
    return this.slice;
  }
}
