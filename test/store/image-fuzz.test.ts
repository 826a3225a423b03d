/**
 * Damaged images: whatever the bytes, also where their checksums are right, an image is refused with its place and the
 * reason, and leaves the store as it was, or what comes of it is a sound store that can be worked on.
 *
 * `npm run fuzz:image` reads half a million; ARDENT_FUZZ_FILES says how many, SEED repeats or varies a run.
 */
import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { RdbError } from '../../src/rdb/error.ts';
import { OutOfTierError, Type } from '../../src/store/api.ts';
import { classUnits, SLAB_BYTES } from '../../src/store/arena.ts';
import { TwinKeyError } from '../../src/store/dump/row-installer.ts';
import type { Keyspace } from '../../src/store/keyspace.ts';
import { Tier } from '../../src/store/tier.ts';
import {
  CHUNK_BYTES,
  HASH_KEY,
  makeImage,
  NOW,
  putTogether,
  readerBytes,
  readImage,
  SHAPES,
  takeApart,
  type ImageParts,
} from './image-files.ts';
import { Random } from './random.ts';

const ROUNDS = Number(process.env.ARDENT_FUZZ_FILES ?? 600);
const SEED = Number(process.env.SEED ?? 1);
/** Memory that reading all those small files may take beyond what there was before. */
const MEMORY_MAX = 600 * 1024 * 1024;
const DATABASES = 16;

const WORDS = [
  0,
  1,
  2,
  -1,
  0x7fffffff,
  -0x80000000,
  0xffff,
  0x10000,
  0x7ff,
  1 << 24,
  1 << 26,
  1 << 27,
  1984,
  12,
];
const BYTES = [0, 1, 0x21, 0x24, 0x7f, 0x80, 0x81, 0xff];

function changeWord(body: Buffer, at: number, random: Random): void {
  if (at + 4 > body.length) return;
  const old = body.readInt32LE(at);
  switch (random.below(6)) {
    case 0:
      body.writeInt32LE((old + random.pick([-16, -1, 1, 16])) | 0, at);
      break;
    case 1:
      body.writeInt32LE(old ^ (1 << random.below(32)), at);
      break;
    case 2:
      body.writeInt32LE(random.word(), at);
      break;
    case 3:
      body.writeInt32LE(body.readInt32LE(random.below(body.length >>> 2) & ~3), at);
      break;
    default:
      body.writeInt32LE(random.pick(WORDS), at);
  }
}

/** Offset of a block of one of the slabs, which is in use if that is found soon; and its bytes. */
function someBlock(body: Buffer, random: Random): [number, number] {
  const slabs = body.readUInt32LE(0);
  const from = 4 + 4 * slabs;
  for (let tries = 0; ; tries++) {
    const slab = random.below(slabs);
    const bytes = classUnits(body.readUInt32LE(4 + 4 * slab)) * 16 || SLAB_BYTES;
    const block = Math.floor((random.real() ** 3 * SLAB_BYTES) / bytes);
    const at = from + slab * SLAB_BYTES + Math.min(block, Math.floor(SLAB_BYTES / bytes) - 1) * bytes;
    if (body.readInt32LE(at) !== 0 || tries === 10) return [at, bytes];
  }
}

function changeSlabs(body: Buffer, random: Random): void {
  const [at, bytes] = someBlock(body, random);
  switch (random.below(8)) {
    case 0: {
      // What leads to one leads to another, or to both.
      const [other, length] = someBlock(body, random);
      const copy = Buffer.from(body.subarray(at, at + bytes));
      body.copy(body, at, other, other + Math.min(bytes, length));
      if (random.below(2) === 0) copy.copy(body, other, 0, Math.min(bytes, length));
      break;
    }
    case 1:
      changeWord(body, 4 + 4 * random.below(body.readUInt32LE(0)), random);
      break;
    case 2:
      body[at + random.below(Math.min(bytes, 300))] = random.pick(BYTES);
      break;
    case 3:
      changeWord(body, at + bytes - 4 * (1 + random.below(bytes >>> 2)), random);
      break;
    default:
      changeWord(body, at + 4 * random.below(Math.min(bytes >>> 2, 24)), random);
  }
}

function changeRows(body: Buffer, random: Random): void {
  const at = random.below(body.length) & ~3;
  if (random.below(3) === 0) body[random.below(body.length)] = random.pick(BYTES);
  else changeWord(body, at, random);
}

/** A change that checksums do not tell. */
function change(parts: ImageParts, random: Random): ImageParts {
  const header = Buffer.from(parts.header);
  const chunks = parts.chunks.map(({ kind, body }) => ({ kind, body }));
  for (let changes = 1 + random.below(3); changes > 0; changes--) {
    const index = random.below(chunks.length);
    const chunk = chunks[index];
    switch (random.below(20)) {
      case 0:
        changeWord(header, 20 + (random.below(header.length - 20) & ~3), random);
        break;
      case 1:
        chunks.splice(random.below(chunks.length), 0, ...chunks.splice(index, 1));
        break;
      case 2:
        chunks.splice(index, 0, chunk);
        break;
      case 3:
        if (chunks.length > 1) chunks.splice(index, 1);
        break;
      case 4:
        chunk.body = chunk.body.subarray(0, random.below(chunk.body.length));
        break;
      default:
        if (chunk.body.length === 0) break;
        chunk.body = Buffer.from(chunk.body);
        if (chunk.kind === 3 && chunk.body.length > SLAB_BYTES) changeSlabs(chunk.body, random);
        else changeRows(chunk.body, random);
    }
  }
  return { header, chunks };
}

/** A change of the file's bytes, whatever they are. */
function damage(image: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(image);
  const at = random.below(bytes.length);
  switch (random.below(5)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
      return Buffer.concat([bytes.subarray(0, at), random.bytes(1 + random.below(40)), bytes.subarray(at)]);
    case 2:
      return Buffer.concat([
        bytes.subarray(0, at),
        bytes.subarray(Math.min(bytes.length, at + 1 + random.below(4000))),
      ]);
    case 3:
      changeWord(bytes, random.below(200) & ~3, random);
      return bytes;
    default:
      bytes[at] ^= 1 << random.below(8);
      return bytes;
  }
}

/** Keys that are there whatever is imported; one has the name of one of the images'. */
const OWN = ['own:1', 'own:2', 'key:3:2'];

function addOwn(tier: Tier): void {
  for (const name of OWN) {
    tier.beginCommand();
    tier.database(0).setString(Slice.from(name), Slice.from(`value of ${name}`));
  }
}

function expectOwn(tier: Tier): void {
  const into = new Slice();
  for (const name of OWN) {
    tier.beginCommand();
    const there = tier.database(0).getString(Slice.from(name), into);
    if (!there || into.latin1() !== `value of ${name}`) throw new Error(`${name} is not what it was`);
  }
}

function valueOf(tier: Tier, database: number, key: Slice) {
  tier.beginCommand();
  const db = tier.database(database);
  const opened = [
    ...[null, () => db.string(key), () => db.list(key), () => db.set(key)],
    ...[() => db.hash(key), () => db.zset(key), () => db.stream(key)],
  ];
  return opened[db.type(key)]!() as { check(): string | null } | null;
}

/** Reads all of a value, and changes it a little. */
function use(tier: Tier, database: number, key: Slice, random: Random): void {
  tier.beginCommand();
  const db = tier.database(database);
  const some = Slice.from(`some ${random.below(50)}`);
  const found = new Slice();
  switch (db.type(key)) {
    case Type.String: {
      const string = db.string(key)!;
      string.forEachRun(0, string.length, () => undefined);
      string.write(random.below(string.length + 1), some);
      break;
    }
    case Type.List: {
      const list = db.list(key)!;
      list.forEachFrom(0, 1, () => true);
      list.forEachFrom(list.length - 1, -1, () => true);
      list.insert(random.below(list.length + 1), some);
      list.remove(random.below(list.length), 1 + random.below(30));
      break;
    }
    case Type.Set: {
      const set = db.set(key)!;
      set.at(random.below(set.size), found);
      expect(set.has(found.clone())).toBe(true);
      set.add(some);
      for (let i = 0; i < 20 && set.size > 1; i++) set.removeAt(random.below(set.size));
      break;
    }
    case Type.Hash: {
      const hash = db.hash(key)!;
      const value = new Slice();
      hash.at(random.below(hash.size), found, value);
      expect(hash.get(found.clone(), value)).toBe(true);
      hash.set(found.clone(), Slice.from(random.bytes(random.below(1500))));
      hash.set(some, some);
      break;
    }
    case Type.ZSet: {
      const zset = db.zset(key)!;
      const score = zset.at(random.below(zset.size), found);
      expect(zset.score(found.clone())).toBe(score);
      zset.set(found.clone(), score + 1);
      zset.set(some, 2);
      if (zset.size > 20) zset.removeRange(random.below(10), 10);
      break;
    }
    case Type.Stream: {
      const stream = db.stream(key)!;
      stream.forEachFrom(0, 1, () => true);
      for (const name of stream.groups.names()) {
        const group = stream.groups.get(name)!;
        for (const consumer of stream.groups.consumers(group)) stream.groups.removeConsumer(group, consumer);
      }
      stream.removeRange(random.below(stream.length + 1), 5);
      break;
    }
  }
}

/** Goes over all keys as `ardent check` does. Throws what is wrong. */
function check(tier: Tier, visit: (database: number, key: Slice) => void = () => undefined): void {
  for (let index = 0; index < DATABASES; index++) {
    const db = tier.database(index);
    const { keyspace } = db;
    if (keyspace.size === 0) continue;
    const keys: Slice[] = [];
    let cursor = 0;
    do cursor = db.scan(cursor, 1000, (key) => void keys.push(key.clone()));
    while (cursor !== 0);
    if (keys.length !== keyspace.size) throw new Error(`${keys.length} keys of ${keyspace.size}`);
    const order = keyspace.expiry.check();
    if (order !== null) throw new Error(`expiry index: ${order}`);
    if (keyspace.expiry.size !== keyspace.expiring) throw new Error('not all deadlines are in order');
    for (const key of keys) {
      const wrong = valueOf(tier, index, key)?.check() ?? null;
      if (wrong !== null) throw new Error(`database ${index}, key ${key.latin1()}: ${wrong}`);
      visit(index, key);
    }
  }
}

/** What a server does after a flush, between the turns of its event loop, so that chunks that came go back to the system. */
async function empty(tier: Tier): Promise<void> {
  for (let index = 0; index < DATABASES; index++) tier.flush(index);
  while (tier.backgroundSlice(1000) || tier.arena.spare.release());
  await new Promise(setImmediate);
}

/** Publishes what was staged, and merges it with what there is. */
function publish(tier: Tier, random: Random): void {
  const merges = tier.publish('file', random.pick(['replace', 'skip'] as const), NOW);
  for (const merge of merges) {
    while (merge.from.size > 0) {
      tier.begin();
      merge.passed = merge.step();
      tier.commit();
    }
    (merge.into as Keyspace).merge = null;
    tier.discard(merge.from);
  }
}

describe('damaged images', () => {
  test(`${ROUNDS} of seed ${SEED}`, { timeout: 120_000 + ROUNDS * 100 }, async () => {
    const random = new Random(SEED);
    const images = SHAPES.flatMap((shape, i) => [
      makeImage([shape], 'slabs', random),
      makeImage([shape], 'rows', random),
      makeImage([shape, SHAPES[(i + 5) % SHAPES.length]], 'rows', random),
    ]).map((bytes) => ({ bytes, parts: takeApart(bytes) }));
    // Of the same hash key, and of another.
    const tiers = [HASH_KEY, [5, 6] as const].map(
      (hashKey) => new Tier({ hashKey, chunkBytes: CHUNK_BYTES, databases: DATABASES }),
    );
    for (const tier of tiers) tier.now = NOW;
    const before = process.memoryUsage().rss;
    let refused = 0;
    let read = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const { bytes, parts } = random.pick(images);
      const seen = random.below(4) > 0;
      const file =
        round < images.length
          ? images[round].bytes
          : seen
            ? putTogether(change(parts, random))
            : damage(bytes, random);
      const tier = tiers[random.below(8) === 0 ? 1 : 0];
      const chunks = random.pick([0, 0, 1, 100]);
      addOwn(tier);
      try {
        await readImage(tier, 'file', file, { chunks, foreign: tier !== tiers[0] });
        publish(tier, random);
        check(tier);
        if (random.below(3) === 0) {
          check(tier, (database, key) => use(tier, database, key, random));
          check(tier);
        }
        read++;
      } catch (error) {
        // Runs of slabs that a chunk of usual size would hold.
        const known = [RdbError, TwinKeyError, OutOfTierError].some((kind) => error instanceof kind);
        if (round < images.length || !known)
          throw new Error(`round ${round} of seed ${SEED}, ${chunks} chunks: ${(error as Error).stack}`, {
            cause: error,
          });
        tier.unstage('file');
        expectOwn(tier);
        refused++;
      }
      expect(readerBytes).toBeLessThan(4 * CHUNK_BYTES + 6 * file.length);
      await empty(tier);
      const left = [tier.arena.slabBytes, tier.arena.dirtyBytes, tier.collections.size];
      if (left.some((bytes) => bytes !== 0)) throw new Error(`round ${round}: ${left.join(', ')} are left`);
      if (round % 1000 === 0) expect(process.memoryUsage().rss - before).toBeLessThan(MEMORY_MAX);
    }
    expect(refused + read).toBe(ROUNDS);
    expect(refused).toBeGreaterThan(ROUNDS / 4);
    expect(read).toBeGreaterThan(images.length);
    if (ROUNDS > 10_000) console.log(`${refused} refused, ${read} read`);
  });
});
