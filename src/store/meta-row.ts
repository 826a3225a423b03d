/**
 * The meta row: which log position the engine's rows stand for, and what the tier needs to know before
 * it takes them. It is written in one step with the last rows of each checkpoint, and once more at the
 * other end of the order of rows, for when it is damaged.
 *
 * Little endian: CRC-32 of all that follows, u32; version, u32; log position, u64; replication offset
 * of that position, u64; checkpoints so far, u64; Unix time of the cut in ms, u64; the tier's part.
 */
import { crc32 } from 'node:zlib';
import { DAMAGED_LENGTH, DELETE_LENGTH, type Engine } from '../engines/engine.ts';
import { viewOf } from '../bytes/slice.ts';
import { ByteSink } from '../bytes/sink.ts';
import { META_COPY_KEY, META_KEY } from './row-format.ts';

const META_VERSION = 1;
const HEADER_BYTES = 40;

export interface Meta {
  position: number;
  replicationOffset: number;
  checkpoints: number;
  cutAtMs: number;
  /** For `RowSource.restoreMeta`. */
  tier: Buffer;
}

export class MetaRowError extends Error {
  readonly code = 'META_DAMAGED';
}

export function encodeMeta(meta: Meta): Buffer {
  const sink = new ByteSink(HEADER_BYTES + meta.tier.length);
  sink.u32(0);
  sink.u32(META_VERSION);
  sink.u64(meta.position);
  sink.u64(meta.replicationOffset);
  sink.u64(meta.checkpoints);
  sink.u64(meta.cutAtMs);
  sink.copy(meta.tier, 0, meta.tier.length);
  sink.view.setUint32(0, crc32(sink.u8.subarray(4, sink.pos)), true);
  return sink.written();
}

/** Throws MetaRowError when the row is not as it was written. */
export function decodeMeta(bytes: Buffer, name = 'the meta row'): Meta {
  if (bytes.length < HEADER_BYTES) throw new MetaRowError(`${name} has ${bytes.length} bytes`);
  if (bytes.readUInt32LE(0) !== crc32(bytes.subarray(4))) {
    throw new MetaRowError(`the checksum of ${name} does not match`);
  }
  const version = bytes.readUInt32LE(4);
  if (version !== META_VERSION) {
    throw new MetaRowError(`meta row version ${version} is not known to this version of ardent`);
  }
  return {
    position: Number(bytes.readBigUInt64LE(8)),
    replicationOffset: Number(bytes.readBigUInt64LE(16)),
    checkpoints: Number(bytes.readBigUInt64LE(24)),
    cutAtMs: Number(bytes.readBigUInt64LE(32)),
    tier: Buffer.from(bytes.subarray(HEADER_BYTES)),
  };
}

/** Whether the value is a whole meta row. */
export function isMetaRow(value: Buffer): boolean {
  return value.length >= HEADER_BYTES && value.readUInt32LE(0) === crc32(value.subarray(4));
}

/** Adds the rows that a checkpoint ends with: the meta row must be the last one. */
export function writeMeta(writer: { row(key: Buffer, value: Buffer): void }, meta: Buffer): void {
  writer.row(META_COPY_KEY, meta);
  writer.row(META_KEY, meta);
}

/** The engine's meta row; null when it has none yet. Its copy when it is damaged; `onDamage` is told of either. */
export async function readMeta(
  engine: Pick<Engine, 'getMany'>,
  onDamage: (message: string) => void = () => {},
): Promise<Meta | null> {
  const keys = [META_KEY, META_COPY_KEY];
  const asked = new ByteSink(64);
  for (const key of keys) {
    asked.u32(key.length);
    asked.copy(key, 0, key.length);
  }
  const bytes = asked.u8.buffer as ArrayBuffer;
  const rows = await engine.getMany({ bytes, length: asked.pos, count: keys.length });
  const found = readRows(rows.bytes, keys);
  if (found[0] === null && found[1] === null) return null;
  const sound = found.find((meta) => meta !== null && !(meta instanceof MetaRowError));
  const damage = found.find((meta) => meta instanceof MetaRowError);
  if (sound === undefined) {
    throw new MetaRowError(
      `${(damage as MetaRowError).message}, and neither is its copy: without it no row can be understood`,
    );
  }
  if (damage !== undefined) onDamage(`${(damage as MetaRowError).message}; the other of the two is used`);
  return sound as Meta;
}

/** What stands in each row: null where there is none, an error where it is damaged. */
function readRows(bytes: ArrayBuffer, keys: readonly Buffer[]): (Meta | MetaRowError | null)[] {
  const view = viewOf(bytes);
  let at = 0;
  return keys.map((key) => {
    const valueLength = view.getUint32(at + 4, true);
    const start = at + 8 + key.length;
    at = start + (valueLength >= DAMAGED_LENGTH ? 0 : valueLength);
    if (valueLength === DELETE_LENGTH) return null;
    const name = key.equals(META_KEY) ? 'the meta row' : 'the copy of the meta row';
    if (valueLength === DAMAGED_LENGTH) return new MetaRowError(`${name} is not as it was written`);
    try {
      return decodeMeta(Buffer.from(bytes, start, valueLength), name);
    } catch (error) {
      if (error instanceof MetaRowError) return error;
      throw error;
    }
  });
}
