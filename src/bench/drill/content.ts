/**
 * Known content of every type, made from a seed, and what a server says of it, both in one form: a digest
 * for each key. So what a server holds is compared with what was meant, not with what another server says.
 */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { Random } from '../../workloads/random.ts';

/** Keys of the content begin so; others belong to the load beside it. */
const CONTENT_PREFIX = 'drill:';
/** Databases that the content is spread over. */
const DATABASES = 3;
const CHUNK = 500;
/** Every so-many-th key is large: elements in pages, a string in pieces. */
const LARGE_EVERY = 400;
const EXPIRING_SHARE = 0.15;
const DAY_MS = 86_400_000;

/** Where a key stands: `<database>/<key>`. */
type Place = string;
export type Digests = Map<Place, string>;

interface KnownKey {
  database: number;
  key: Buffer;
  commands: Buffer[][];
  /** As `canonical` of the reads would say. */
  digest: string;
}

/** One form for a value with its deadline: type, deadline, and the items, each with its length. */
function canonical(type: string, deadline: number, items: readonly (Buffer | string)[]): string {
  const hash = createHash('sha1').update(`${type} ${deadline}\n`);
  for (const item of items) {
    const bytes = typeof item === 'string' ? Buffer.from(item) : item;
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest('base64');
}

function sortedPairs(flat: readonly Buffer[], size: number): Buffer[] {
  const groups = Array.from({ length: flat.length / size }, (_, i) => flat.slice(i * size, (i + 1) * size));
  return groups.sort((a, b) => Buffer.compare(a[0], b[0])).flat();
}

class Maker {
  private readonly random: Random;

  constructor(seed: number, index: number) {
    this.random = new Random(seed, index);
  }

  below(n: number): number {
    return Math.floor((this.random.next() / 2 ** 32) * n);
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let i = 0; i < length; i++) bytes[i] = this.random.next() & 0xff;
    return bytes;
  }

  /** Text, numbers, and bytes of any kind, of lengths that are encoded differently. */
  value(): Buffer {
    switch (this.below(6)) {
      case 0:
        return Buffer.from(String(this.below(2 ** 31) - 2 ** 30));
      case 1:
        return Buffer.from('abc'.repeat(1 + this.below(60)));
      case 2:
        return Buffer.alloc(0);
      default:
        return this.bytes(1 + this.below(this.below(10) === 0 ? 300 : 40));
    }
  }

  distinct(count: number): Buffer[] {
    const members = new Map<string, Buffer>();
    while (members.size < count) {
      const value =
        this.below(3) === 0 ? Buffer.from(String(this.below(1e6))) : this.bytes(1 + this.below(30));
      members.set(value.toString('latin1'), value);
    }
    return [...members.values()];
  }
}

function batches(name: string, key: Buffer, items: readonly Buffer[], each: number): Buffer[][] {
  const commands: Buffer[][] = [];
  for (let i = 0; i < items.length; i += 100 * each) {
    commands.push([Buffer.from(name), key, ...items.slice(i, i + 100 * each)]);
  }
  return commands;
}

const TYPES = ['string', 'list', 'set', 'hash', 'zset'] as const;

/** The `index`-th key; `now` is what deadlines count from. */
function knownKey(seed: number, index: number, now: number): KnownKey {
  const make = new Maker(seed, index);
  const large = index % LARGE_EVERY === LARGE_EVERY - 1;
  const type = TYPES[make.below(TYPES.length)];
  const key = Buffer.concat([Buffer.from(`${CONTENT_PREFIX}${index}:`), make.bytes(make.below(8))]);
  const count = large ? 2_000 + make.below(3_000) : 1 + make.below(make.below(8) === 0 ? 200 : 12);
  const deadline = make.below(100) < EXPIRING_SHARE * 100 ? now + DAY_MS + make.below(DAY_MS * 30) : -1;
  const commands: Buffer[][] = [];
  let items: Buffer[];
  switch (type) {
    case 'string':
      items = [large ? make.bytes(20_000 + make.below(200_000)) : make.value()];
      commands.push([Buffer.from('SET'), key, items[0]]);
      break;
    case 'list':
      items = Array.from({ length: count }, () => make.value());
      commands.push(...batches('RPUSH', key, items, 1));
      break;
    case 'set':
      items = make.distinct(count);
      commands.push(...batches('SADD', key, items, 1));
      items.sort((a, b) => Buffer.compare(a, b));
      break;
    case 'hash':
      items = make.distinct(count).flatMap((field) => [field, make.value()]);
      commands.push(...batches('HSET', key, items, 2));
      items = sortedPairs(items, 2);
      break;
    case 'zset': {
      const members = make
        .distinct(count)
        .map((member) => ({ member, score: (make.below(2_000) - 1_000) / 8 }));
      commands.push(
        ...batches(
          'ZADD',
          key,
          members.flatMap(({ member, score }) => [Buffer.from(String(score)), member]),
          2,
        ),
      );
      members.sort((a, b) => a.score - b.score || Buffer.compare(a.member, b.member));
      items = members.flatMap(({ member, score }) => [member, Buffer.from(String(score))]);
      break;
    }
  }
  if (deadline > 0) commands.push([Buffer.from('PEXPIREAT'), key, Buffer.from(String(deadline))]);
  return { database: index % DATABASES, key, commands, digest: canonical(type, deadline, items) };
}

const place = (database: number, key: Buffer): Place => `${database}/${key.toString('latin1')}`;

/** Makes `count` keys and returns what they are. */
export async function fillContent(client: Redis, seed: number, count: number): Promise<Digests> {
  const digests: Digests = new Map();
  const now = Date.now();
  for (let database = 0; database < DATABASES; database++) {
    await client.select(database);
    let sent: Promise<unknown>[] = [];
    for (let index = database; index < count; index += DATABASES) {
      const known = knownKey(seed, index, now);
      digests.set(place(database, known.key), known.digest);
      for (const [name, ...args] of known.commands) sent.push(client.callBuffer(name.toString(), ...args));
      if (sent.length >= CHUNK) {
        await Promise.all(sent);
        sent = [];
      }
    }
    await Promise.all(sent);
  }
  await client.select(0);
  return digests;
}

async function digestOf(client: Redis, key: Buffer): Promise<string> {
  const [typeBytes, deadline] = await Promise.all([
    client.callBuffer('TYPE', key) as Promise<Buffer>,
    client.callBuffer('PEXPIRETIME', key) as Promise<number>,
  ]);
  const type = typeBytes.toString();
  // Members come with their scores side by side, or, in RESP3, in pairs.
  const read = async (name: string, ...args: string[]): Promise<Buffer[]> =>
    ((await client.callBuffer(name, key, ...args)) as (Buffer | Buffer[])[]).flat();
  switch (type) {
    case 'string':
      return canonical(type, deadline, [(await client.callBuffer('GET', key)) as Buffer]);
    case 'list':
      return canonical(type, deadline, await read('LRANGE', '0', '-1'));
    case 'set':
      return canonical(type, deadline, sortedPairs(await read('SMEMBERS'), 1));
    case 'hash':
      return canonical(type, deadline, sortedPairs(await read('HGETALL'), 2));
    case 'zset': {
      const items = await read('ZRANGE', '0', '-1', 'WITHSCORES');
      return canonical(
        type,
        deadline,
        items.map((item, i) => (i % 2 === 1 ? String(Number(item.toString())) : item)),
      );
    }
    default:
      return `a ${type}`;
  }
}

/** What the server holds of the content. */
export async function readContent(client: Redis): Promise<Digests> {
  const digests: Digests = new Map();
  for (let database = 0; database < DATABASES; database++) {
    await client.select(database);
    let cursor = '0';
    do {
      const [next, keys] = (await client.callBuffer(
        'SCAN',
        cursor,
        'MATCH',
        `${CONTENT_PREFIX}*`,
        'COUNT',
        String(CHUNK),
      )) as [Buffer, Buffer[]];
      cursor = next.toString();
      const found = await Promise.all(keys.map((key) => digestOf(client, key)));
      keys.forEach((key, i) => digests.set(place(database, key), found[i]));
    } while (cursor !== '0');
  }
  await client.select(0);
  return digests;
}

export interface Difference {
  keys: number;
  missing: number;
  different: number;
  /** Keys that nobody made. */
  foreign: number;
  example: string | null;
}

export function compareContent(expected: Digests, found: Digests): Difference {
  const result: Difference = { keys: expected.size, missing: 0, different: 0, foreign: 0, example: null };
  for (const [key, digest] of expected) {
    const there = found.get(key);
    if (there === digest) continue;
    if (there === undefined) result.missing++;
    else result.different++;
    result.example ??= `${JSON.stringify(key)} ${there === undefined ? 'is missing' : 'differs'}`;
  }
  for (const key of found.keys()) {
    if (expected.has(key)) continue;
    result.foreign++;
    result.example ??= `${JSON.stringify(key)} should not be there`;
  }
  return result;
}

export function describeDifference({
  keys,
  missing,
  different,
  foreign,
  example,
}: Difference): string | null {
  if (missing + different + foreign === 0) return null;
  return `of ${keys} keys ${missing} missing, ${different} different, ${foreign} foreign: ${example}`;
}
