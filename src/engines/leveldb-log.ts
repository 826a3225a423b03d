/**
 * LevelDB's own log, read before LevelDB reads it: what is damaged in it LevelDB leaves out without a word, and then
 * removes the file. Format: github.com/google/leveldb, doc/log_format.md.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { viewOf } from '../bytes/slice.ts';

const BLOCK_BYTES = 32 * 1024;
/** Masked CRC-32C, u32; length, u16; type, u8; little endian. */
const HEADER_BYTES = 7;
/** Types of records: whole, or the parts of one. Zero is a region that was never written. */
const FULL = 1;
const FIRST = 2;
const LAST = 4;
const MASK_DELTA = 0xa282ead8;

/** Where a log of the directory is damaged with sound records behind it; null: nowhere. A torn end is none. */
export function findLogDamage(directory: string): string | null {
  for (const name of readdirSync(directory)) {
    if (!name.endsWith('.log')) continue;
    const path = join(directory, name);
    const offset = damageIn(readFileSync(path));
    if (offset !== null) return `checksum mismatch in ${path} at offset ${offset}`;
  }
  return null;
}

/** Offset of the first record that is not as it was written and has a sound one behind it. */
function damageIn(bytes: Buffer): number | null {
  const view = viewOf(bytes.buffer);
  let bad: number | null = null;
  let within = false;
  for (let block = 0; block < bytes.length; block += BLOCK_BYTES) {
    const end = Math.min(block + BLOCK_BYTES, bytes.length);
    for (let at = block; at + HEADER_BYTES <= end;) {
      const header = bytes.byteOffset + at;
      const next = at + HEADER_BYTES + view.getUint16(header + 4, true);
      const type = bytes[at + 6];
      if (type === 0 && next === at + HEADER_BYTES) break;
      const sound = next <= end && view.getUint32(header, true) === masked(crc32c(bytes, at + 6, next));
      const begins = type === FULL || type === FIRST;
      // A part that is missing is damage too.
      if (!sound || begins === within) bad ??= at;
      else if (bad !== null) return bad;
      if (!sound) break;
      within = type === FIRST || (within && type !== LAST && !begins);
      at = next;
    }
  }
  return null;
}

/** As LevelDB stores checksums. */
function masked(crc: number): number {
  return (((crc >>> 15) | (crc << 17)) + MASK_DELTA) >>> 0;
}

const CASTAGNOLI = 0x82f63b78;
const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ CASTAGNOLI : crc >>> 1;
  return crc;
});

function crc32c(bytes: Buffer, from: number, to: number): number {
  let crc = -1;
  for (let i = from; i < to; i++) crc = TABLE[(crc ^ bytes[i]) & 0xff] ^ (crc >>> 8);
  return (crc ^ -1) >>> 0;
}
