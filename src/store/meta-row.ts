/**
 * The meta row: which log position the engine's rows stand for, and what the tier needs to know before
 * it takes them. It is written in one step with the last rows of each checkpoint.
 *
 * Little endian: CRC-32 of all that follows, u32; version, u32; log position, u64; replication offset
 * of that position, u64; checkpoints so far, u64; Unix time of the cut in ms, u64; the tier's part.
 */
import { crc32 } from 'node:zlib';
import { DAMAGED_LENGTH, DELETE_LENGTH, type Engine } from '../engines/engine.ts';
import { viewOf } from '../bytes/slice.ts';
import { ByteSink } from '../bytes/sink.ts';
import { META_KEY } from './row-format.ts';

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
function decodeMeta(bytes: Buffer): Meta {
  if (bytes.length < HEADER_BYTES) throw new MetaRowError(`the meta row has ${bytes.length} bytes`);
  if (bytes.readUInt32LE(0) !== crc32(bytes.subarray(4))) {
    throw new MetaRowError('the checksum of the meta row does not match');
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

/** The engine's meta row; null when it has none yet. */
export async function readMeta(engine: Pick<Engine, 'getMany'>): Promise<Meta | null> {
  const memory = new ArrayBuffer(4 + META_KEY.length);
  viewOf(memory).setUint32(0, META_KEY.length, true);
  Buffer.from(memory).set(META_KEY, 4);
  const rows = await engine.getMany({ bytes: memory, length: memory.byteLength, count: 1 });
  const valueLength = viewOf(rows.bytes).getUint32(4, true);
  if (valueLength === DELETE_LENGTH) return null;
  if (valueLength === DAMAGED_LENGTH) throw new MetaRowError('the meta row is not as it was written');
  const start = 8 + META_KEY.length;
  return decodeMeta(Buffer.from(rows.bytes, start, valueLength));
}
