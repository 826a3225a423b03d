/**
 * Image files: the rows of a tier at one moment, as they lie in memory. docs/backup.md has the layout.
 *
 * Header, little endian: 8 bytes magic, u32 layout version, u32 bytes of the header, u32 CRC-32 of the header
 * with 0 in this place, u32 bytes of a page, u32 and u32 hash key, u32 databases that have keys, and for
 * each u32 index, u64 keys, u64 of them with a deadline.
 *
 * Chunks follow: u32 kind, u32 bytes of the body, u32 CRC-32 of both and the body, the body. Rows: a run of
 * items as in row-items.ts, whose hashes are 0; no item is in two chunks, but a tree's pages may be. Slabs: u32
 * how many, for each u32 its size class, or 254 for the first of a run and 255 for a further one, then the slabs.
 * A block in them is a record, whose keyspace is the index of its database, or a page, or begins with a word of
 * zero and is free. The last chunk is the end, u64 keys, and nothing follows it.
 */
import { crc32 } from 'node:zlib';
import { Damage } from '../../rdb/error.ts';
import { PAGE_BYTES } from '../arena.ts';

export const IMAGE_MAGIC = Buffer.from('ARDIMAGE', 'latin1');
/** To be raised when records, pages, packed values or tree descriptors change, or this format. */
export const IMAGE_VERSION = 2;

export const CHUNK_HEADER_BYTES = 12;
/** After which a chunk ends. */
export const CHUNK_BYTES = 512 * 1024;
/** No chunk is longer: an item more, with the longest key and payload. */
export const CHUNK_BYTES_MAX = CHUNK_BYTES + 256 * 1024;
export const Chunk = { Rows: 1, End: 2, Slabs: 3 } as const;
/** Slabs of one chunk at most. */
export const SLABS_MAX = 32;
export const END_BYTES = 8;

const FIXED_BYTES = 36;
const DATABASE_BYTES = 20;
const CRC_AT = 16;
/** A header up to the word that tells its length. */
export const HEADER_START_BYTES = 16;
const HEADER_BYTES_MAX = 1 << 20;

export interface ImageDatabase {
  index: number;
  keys: number;
  expiring: number;
}

export interface ImageHeader {
  hashKey: readonly [number, number];
  databases: readonly ImageDatabase[];
}

export function encodeHeader({ hashKey, databases }: ImageHeader): Buffer {
  const filled = databases.filter(({ keys }) => keys > 0);
  const header = Buffer.alloc(FIXED_BYTES + DATABASE_BYTES * filled.length);
  IMAGE_MAGIC.copy(header);
  header.writeUInt32LE(IMAGE_VERSION, 8);
  header.writeUInt32LE(header.length, 12);
  header.writeUInt32LE(PAGE_BYTES, 20);
  header.writeInt32LE(hashKey[0], 24);
  header.writeInt32LE(hashKey[1], 28);
  header.writeUInt32LE(filled.length, 32);
  filled.forEach(({ index, keys, expiring }, i) => {
    const at = FIXED_BYTES + DATABASE_BYTES * i;
    header.writeUInt32LE(index, at);
    header.writeBigUInt64LE(BigInt(keys), at + 4);
    header.writeBigUInt64LE(BigInt(expiring), at + 12);
  });
  header.writeUInt32LE(crc32(header), CRC_AT);
  return header;
}

/** Bytes of the header, which begins with these. Throws Damage. */
export function headerBytes(start: Buffer): number {
  const length = start.length < HEADER_START_BYTES ? 0 : start.readUInt32LE(12);
  if (length < FIXED_BYTES || length > HEADER_BYTES_MAX) throw new Damage('the header is damaged');
  return length;
}

/** Reads a header of `headerBytes`. Throws Damage. */
export function decodeHeader(header: Buffer): ImageHeader {
  const sum = header.readUInt32LE(CRC_AT);
  const copy = Buffer.from(header);
  copy.writeUInt32LE(0, CRC_AT);
  if (crc32(copy) !== sum) throw new Damage('the header is damaged');
  const version = header.readUInt32LE(8);
  const pageBytes = header.readUInt32LE(20);
  if (version !== IMAGE_VERSION || pageBytes !== PAGE_BYTES)
    throw new Damage(
      `an image of layout ${version} with pages of ${pageBytes} bytes, and this is layout ${IMAGE_VERSION} with ` +
        `${PAGE_BYTES}: have the server that wrote it write an RDB file, with SAVE`,
    );
  const count = header.readUInt32LE(32);
  if (header.length !== FIXED_BYTES + DATABASE_BYTES * count) throw new Damage('the header is damaged');
  return {
    hashKey: [header.readInt32LE(24), header.readInt32LE(28)],
    databases: Array.from({ length: count }, (_, i) => {
      const at = FIXED_BYTES + DATABASE_BYTES * i;
      return {
        index: header.readUInt32LE(at),
        keys: Number(header.readBigUInt64LE(at + 4)),
        expiring: Number(header.readBigUInt64LE(at + 12)),
      };
    }),
  };
}

/** The header of a chunk with `body`. */
export function chunkHeader(kind: number, body: Buffer): Buffer {
  const header = Buffer.alloc(CHUNK_HEADER_BYTES);
  header.writeUInt32LE(kind, 0);
  header.writeUInt32LE(body.length, 4);
  header.writeUInt32LE(chunkSum(header, body), 8);
  return header;
}

/** What a chunk's checksum has to be. */
export function chunkSum(header: Buffer, body: Buffer): number {
  return crc32(body, crc32(header.subarray(0, 8)));
}
