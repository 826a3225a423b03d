/** Goes over the rows of a chunk that an engine's scan has read, all but the meta row and its copy unless asked for. */
import { viewOf } from '../bytes/slice.ts';
import { DAMAGED_LENGTH, type PackedRows } from '../engines/engine.ts';
import { isMetaKey } from './row-format.ts';

export class RowWalk {
  readonly bytes: Buffer;
  /** The row's key is [keyStart, valueStart) of `bytes`, its value [valueStart, end). */
  keyStart = 0;
  valueStart = 0;
  end = 0;
  /** The row's checksum does not match: it has no value. */
  damaged = false;
  private readonly view: DataView;
  private readonly withMeta: boolean;

  constructor(chunk: PackedRows, withMeta = false) {
    this.withMeta = withMeta;
    this.bytes = Buffer.from(chunk.bytes, 0, chunk.length);
    this.view = viewOf(chunk.bytes);
  }

  /** There are bytes after the current row. */
  get left(): boolean {
    return this.end < this.bytes.length;
  }

  /** Steps to the next row; false when there is none. */
  next(): boolean {
    const { bytes, view } = this;
    while (this.end < bytes.length) {
      const valueLength = view.getUint32(this.end + 4, true);
      this.keyStart = this.end + 8;
      this.valueStart = this.keyStart + view.getUint32(this.end, true);
      this.damaged = valueLength === DAMAGED_LENGTH;
      this.end = this.valueStart + (this.damaged ? 0 : valueLength);
      if (this.withMeta || !isMetaKey(bytes, this.keyStart, this.valueStart)) return true;
    }
    return false;
  }

  /** The row's key, in hex. */
  get name(): string {
    return this.bytes.hexSlice(this.keyStart, this.valueStart);
  }
}
