/** Small images of every kind of value, made as a server does, and their reading as the import does it. */
import { crc32 } from 'node:zlib';
import { Slice } from '../../src/bytes/slice.ts';
import { Type } from '../../src/store/api.ts';
import { SLAB_BYTES, SLAB_RUN } from '../../src/store/arena.ts';
import { ArenaSnapshot } from '../../src/store/arena-snapshot.ts';
import { ChunkInstaller } from '../../src/store/dump/chunk-installer.ts';
import { ChunkTarget } from '../../src/store/dump/chunk-target.ts';
import { newAnswer, type Borrower } from '../../src/store/dump/handover.ts';
import { ImageReader, type ImageSource } from '../../src/store/dump/image-reader.ts';
import { ImageWriter } from '../../src/store/dump/image-writer.ts';
import { ItemTarget } from '../../src/store/dump/item-target.ts';
import { PageSpill } from '../../src/store/dump/page-spill.ts';
import { RowInstaller } from '../../src/store/dump/row-installer.ts';
import { SlabImage } from '../../src/store/dump/slab-image.ts';
import { SlabReader, type SlabBatch } from '../../src/store/dump/slab-reader.ts';
import { newStreamId, setIdHalf } from '../../src/store/stream-id.ts';
import { Tier } from '../../src/store/tier.ts';
import type { Random } from './random.ts';

export const HASH_KEY = [3, 4] as const;
export const CHUNK_BYTES = 1024 * 1024;
/** Unix ms of all reading; some keys are due by then. */
export const NOW = 1_000_000;

/** What a tier is filled with: a type, and whether its values are large. */
export interface Shape {
  type: number;
  large: boolean;
}

export const SHAPES: readonly Shape[] = [1, 2, 3, 4, 5, 6].flatMap((type) =>
  [false, true].map((large) => ({ type, large })),
);

function text(random: Random, length: number): Slice {
  return Slice.from(random.bytes(length));
}

/** Adds an element to the value of a key; `i` counts them. */
function grow(tier: Tier, database: number, key: Slice, type: number, i: number, bytes: Slice): void {
  tier.beginCommand();
  const db = tier.database(database);
  switch (type) {
    case Type.String:
      db.string(key, true)!.write(0, bytes);
      break;
    case Type.List:
      db.list(key, true)!.pushRight(bytes);
      break;
    case Type.Set:
      db.set(key, true)!.add(bytes);
      break;
    case Type.Hash:
      db.hash(key, true)!.set(bytes, Slice.from(`value ${i}`));
      break;
    case Type.ZSet:
      db.zset(key, true)!.set(bytes, (i % 7) - 3);
      break;
    case Type.Stream: {
      const stream = db.stream(key, true)!;
      const id = newStreamId();
      setIdHalf(id, 0, 1000 + i);
      stream.append(id, [Slice.from('field'), bytes], 0, 2);
      break;
    }
  }
}

function groups(tier: Tier, database: number, key: Slice, random: Random): void {
  tier.beginCommand();
  const stream = tier.database(database).stream(key, true)!;
  const { groups } = stream;
  for (let g = 0; g < 3; g++) {
    const group = groups.create(Slice.from(`group ${g}`), stream.lastId, g === 1 ? -1 : g)!;
    for (let c = 0; c < 3; c++) {
      const consumer = groups.createConsumer(group, Slice.from(`consumer ${c}`), 1000 + c);
      for (let p = 0; p < 12; p++) {
        const id = newStreamId();
        setIdHalf(id, 0, 1000 + c * 20 + p);
        groups.setPending(group, id, {
          consumer: consumer.number,
          deliveredAt: 5000 + p,
          deliveries: 1 + random.below(5),
        });
      }
    }
  }
}

/** Fills a tier with some keys of one shape, in several databases. */
function fill(tier: Tier, { type, large }: Shape, random: Random): void {
  const keys = large ? 3 : 14;
  for (let k = 0; k < keys; k++) {
    const database = [0, 0, 1, 9][k % 4];
    const key = k === 1 ? text(random, 1500) : Slice.from(`key:${type}:${k}`);
    const count = type === Type.String ? 1 : large ? 150 + random.below(200) : 1 + random.below(12);
    for (let i = 0; i < count; i++) {
      const long =
        type === Type.String
          ? large
            ? 20_000 + random.below(20_000)
            : random.below(300)
          : 3 + random.below(14);
      // Some do not fit a page.
      const length = large && type !== Type.String && i % 90 === 45 ? 2500 : long;
      grow(tier, database, key, type, i, text(random, length));
    }
    if (large && type !== Type.String && type !== Type.Stream) shrink(tier, database, key, type);
    if (type === Type.Stream && k % 2 === 0) groups(tier, database, key, random);
    if (k % 3 === 0) tier.database(database).setExpiry(key, k % 2 === 0 ? 2 ** 42 + k : NOW - 1);
  }
}

/** So that there are free pages. */
function shrink(tier: Tier, database: number, key: Slice, type: number): void {
  tier.beginCommand();
  const db = tier.database(database);
  for (let i = 0; i < 40; i++) {
    if (type === Type.List) db.list(key)!.remove(3, 1);
    if (type === Type.Set) db.set(key)!.removeAt(3);
    if (type === Type.ZSet) db.zset(key)!.removeRange(3, 1);
  }
}

function* batches(tier: Tier): Generator<SlabBatch> {
  const snapshot = new ArenaSnapshot(tier.arena);
  const { classes, fresh } = snapshot.tables;
  for (let slab = snapshot.nextSlab; slab >= 0; slab = snapshot.nextSlab) {
    const length = snapshot.runLength(slab);
    const bytes = new ArrayBuffer(length * SLAB_BYTES + 8);
    snapshot.copy(slab, new Int32Array(bytes), 0);
    yield {
      bytes,
      slabs: Int32Array.of(slab, classes[slab], classes[slab] === SLAB_RUN ? length : fresh[slab]),
    };
  }
}

/** An image, as slabs or as rows. */
export function makeImage(shapes: readonly Shape[], as: 'slabs' | 'rows', random: Random): Buffer {
  const tier = new Tier({ hashKey: HASH_KEY, chunkBytes: CHUNK_BYTES });
  tier.now = 1;
  for (const shape of shapes) fill(tier, shape, random);
  const parts: Buffer[] = [];
  const write = (bytes: Uint8Array): number => parts.push(Buffer.from(bytes));
  const writer = new ImageWriter(write, async (bytes) => void write(bytes));
  const databases = tier.dumpedDatabases();
  writer.begin({ hashKey: HASH_KEY, databases });
  const sink =
    as === 'slabs'
      ? new SlabImage(writer, databases)
      : new SlabReader(writer, databases, new PageSpill('unused'));
  for (const batch of batches(tier)) void sink.take(batch);
  sink.finish();
  writer.end(sink.keys);
  return Buffer.concat(parts);
}

/** An image's header, and kinds and bodies of its chunks. */
export interface ImageParts {
  header: Buffer;
  chunks: { kind: number; body: Buffer }[];
}

export function takeApart(image: Buffer): ImageParts {
  const header = image.subarray(0, image.readUInt32LE(12));
  const chunks: ImageParts['chunks'] = [];
  for (let at = header.length; at < image.length;) {
    const length = image.readUInt32LE(at + 4);
    chunks.push({ kind: image.readUInt32LE(at), body: image.subarray(at + 12, at + 12 + length) });
    at += 12 + length;
  }
  return { header, chunks };
}

/** The file, with right lengths and checksums. */
export function putTogether({ header, chunks }: ImageParts): Buffer {
  const parts: Buffer[] = [];
  const start = Buffer.from(header);
  start.writeUInt32LE(0, 16);
  start.writeUInt32LE(crc32(start), 16);
  parts.push(start);
  for (const { kind, body } of chunks) {
    const head = Buffer.alloc(12);
    head.writeUInt32LE(kind, 0);
    head.writeUInt32LE(body.length, 4);
    head.writeUInt32LE(crc32(body, crc32(head.subarray(0, 8))), 8);
    parts.push(head, body);
  }
  return Buffer.concat(parts);
}

class MemorySource implements ImageSource {
  private readonly bytes: Buffer;
  private at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  read(into: Buffer): number {
    const from = Math.min(this.at, this.bytes.length);
    const got = this.bytes.copy(into, 0, from, from + into.length);
    this.at = from + got;
    return got;
  }

  async readLater(into: Buffer): Promise<number> {
    const from = this.at;
    this.at += into.length;
    return from >= this.bytes.length ? 0 : this.bytes.copy(into, 0, from, this.at);
  }
}

/** How an image is read: into chunks that change hands, the first so many of them, and then, or at once, row by row. */
export interface Reading {
  chunks: number;
  /** Another than that of the file. */
  foreign: boolean;
}

/** Memory that the thread would have taken, bytes. */
export let readerBytes = 0;

/** Reads an image into what is staged under `name`. Rejects as the import would. */
export async function readImage(
  tier: Tier,
  name: string,
  bytes: Buffer,
  { chunks }: Reading,
): Promise<number> {
  const staging = tier.stage(name);
  const stagedFor = (database: number) => tier.staged(staging, database);
  const installer = new ChunkInstaller(tier, stagedFor);
  const rows = new RowInstaller(tier, stagedFor);
  const hashKey = [tier.hasher.key0, tier.hasher.key1] as const;
  const memory = newAnswer();
  const answer = (want: Parameters<ChunkInstaller['lend']>[0]): Float64Array => {
    installer.lend(want, memory);
    return new Float64Array(memory, 8);
  };
  let lent = 0;
  const borrower = {
    get hasRoom() {
      return lent < chunks;
    },
    chunk: () => {
      lent++;
      return answer('chunk')[0];
    },
    collections: () => {
      const [slot, id, count] = answer('collections');
      return { slot, id, count };
    },
    keyspace: (database: number) => answer({ keyspace: database })[0],
  } as unknown as Borrower;
  const items = new ItemTarget({ hashKey, chunkBytes: CHUNK_BYTES }, (run, length) => {
    rows.open(run, length);
    while (!rows.done) rows.take(null, 1000);
  });
  const target = new ChunkTarget(
    { hashKey, chunkBytes: CHUNK_BYTES, now: NOW },
    borrower,
    (handover) => {
      installer.begin(handover);
      while (installer.busy) installer.go(1000);
    },
    () => items,
  );
  const limits = {
    ...{ hashMaxListpackEntries: 128, hashMaxListpackValue: 64, setMaxIntsetEntries: 512 },
    ...{ zsetMaxListpackEntries: 128, zsetMaxListpackValue: 64 },
  };
  const options = { limits, now: NOW, database: -1, databases: 16, size: bytes.length };
  try {
    const reader = new ImageReader(new MemorySource(bytes), options, chunks > 0 ? target : items, 'unused');
    await reader.run(() => Promise.resolve());
    reader.target.flush();
    return reader.counts.keys;
  } finally {
    readerBytes = target.tier.arena.slabBytes + items.tier.arena.slabBytes;
    rows.end();
    installer.end();
  }
}
