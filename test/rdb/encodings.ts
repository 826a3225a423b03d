/**
 * RDB files put together byte by byte from the description of the format (docs/rdb.md), with encodings
 * that no server at hand writes any more or yet. Nothing here uses the code under test but the checksum.
 */
import { viewOf } from '../../src/bytes/slice.ts';
import { Crc64 } from '../../src/rdb/crc64.ts';

type Bytes = Buffer | string;

const bytesOf = (value: Bytes): Buffer => (typeof value === 'string' ? Buffer.from(value, 'latin1') : value);

export function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16LE(value);
  return bytes;
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function i64(value: number | bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64LE(BigInt(value));
  return bytes;
}

/** A length in the shortest form, or in the one asked for. */
export function length(value: number | bigint, form: 6 | 14 | 32 | 64 | 'shortest' = 'shortest'): Buffer {
  const number = Number(value);
  if (form === 6 || (form === 'shortest' && number < 64)) return Buffer.from([number]);
  if (form === 14 || (form === 'shortest' && number < 16384))
    return Buffer.from([0x40 | (number >> 8), number & 255]);
  if (form === 32 || (form === 'shortest' && number < 2 ** 32)) {
    const bytes = Buffer.from([0x80, 0, 0, 0, 0]);
    bytes.writeUInt32BE(number, 1);
    return bytes;
  }
  const bytes = Buffer.from([0x81, 0, 0, 0, 0, 0, 0, 0, 0]);
  bytes.writeBigUInt64BE(BigInt(value), 1);
  return bytes;
}

export const string = (value: Bytes): Buffer =>
  Buffer.concat([length(bytesOf(value).length), bytesOf(value)]);

/** A string compressed by hand: all literals, then a copy of its last `repeat` bytes (3 to 8). */
export function lzfString(text: string, repeat: number): Buffer {
  const literals = Buffer.from(text);
  if (literals.length > 32) throw new RangeError('at most 32 literals');
  const compressed = Buffer.concat([
    Buffer.from([literals.length - 1]),
    literals,
    Buffer.from([(repeat - 2) << 5, repeat - 1]),
  ]);
  return Buffer.concat([
    Buffer.from([0xc3]),
    length(compressed.length),
    length(literals.length + repeat),
    compressed,
  ]);
}

/** An integer in the three forms that a string can have. */
export function integerString(value: number): Buffer {
  if (value >= -128 && value <= 127) return Buffer.from([0xc0, value & 255]);
  if (value >= -32768 && value <= 32767) return Buffer.from([0xc1, value & 255, (value >> 8) & 255]);
  return Buffer.concat([Buffer.from([0xc2]), i64(value).subarray(0, 4)]);
}

/** Entries that are numbers are written as integers, strings as strings. */
export type Entry = number | bigint | Bytes;

export function ziplist(entries: readonly Entry[], { told = entries.length } = {}): Buffer {
  const parts: Buffer[] = [];
  let previous = 0;
  let tail = 10;
  let at = 10;
  for (const entry of entries) {
    const before =
      previous < 254 ? Buffer.from([previous]) : Buffer.concat([Buffer.from([254]), u32(previous)]);
    const bytes = Buffer.concat([before, ziplistEntry(entry)]);
    parts.push(bytes);
    tail = at;
    at += bytes.length;
    previous = bytes.length;
  }
  return Buffer.concat([u32(at + 1), u32(tail), u16(told), ...parts, Buffer.from([255])]);
}

function ziplistEntry(entry: Entry): Buffer {
  if (typeof entry === 'object' || typeof entry === 'string') {
    const bytes = bytesOf(entry);
    if (bytes.length < 64) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
    if (bytes.length < 16384) {
      return Buffer.concat([Buffer.from([0x40 | (bytes.length >> 8), bytes.length & 255]), bytes]);
    }
    return Buffer.concat([Buffer.from([0x80]), length(bytes.length, 32).subarray(1), bytes]);
  }
  const value = Number(entry);
  if (value >= 0 && value <= 12) return Buffer.from([0xf1 + value]);
  if (value >= -128 && value <= 127) return Buffer.from([0xfe, value & 255]);
  if (value >= -32768 && value <= 32767)
    return Buffer.concat([Buffer.from([0xc0]), i64(entry).subarray(0, 2)]);
  if (value >= -8388608 && value <= 8388607)
    return Buffer.concat([Buffer.from([0xf0]), i64(entry).subarray(0, 3)]);
  if (value >= -2147483648 && value <= 2147483647) {
    return Buffer.concat([Buffer.from([0xd0]), i64(entry).subarray(0, 4)]);
  }
  return Buffer.concat([Buffer.from([0xe0]), i64(entry)]);
}

export function listpack(entries: readonly Entry[], { told = entries.length } = {}): Buffer {
  const parts = entries.map((entry) => {
    const bytes = listpackEntry(entry);
    const back: number[] = [];
    for (let rest = bytes.length; back.length === 0 || rest > 0; rest >>= 7) back.unshift(rest & 127);
    for (let i = 1; i < back.length; i++) back[i] |= 128;
    return Buffer.concat([bytes, Buffer.from(back)]);
  });
  const body = Buffer.concat(parts);
  return Buffer.concat([u32(body.length + 7), u16(told), body, Buffer.from([255])]);
}

function listpackEntry(entry: Entry): Buffer {
  if (typeof entry === 'object' || typeof entry === 'string') {
    const bytes = bytesOf(entry);
    if (bytes.length < 64) return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
    if (bytes.length < 4096) {
      return Buffer.concat([Buffer.from([0xe0 | (bytes.length >> 8), bytes.length & 255]), bytes]);
    }
    return Buffer.concat([Buffer.from([0xf0]), u32(bytes.length), bytes]);
  }
  const value = Number(entry);
  if (value >= 0 && value <= 127) return Buffer.from([value]);
  if (value >= -4096 && value <= 4095) return Buffer.from([0xc0 | ((value >> 8) & 31), value & 255]);
  if (value >= -32768 && value <= 32767)
    return Buffer.concat([Buffer.from([0xf1]), i64(entry).subarray(0, 2)]);
  if (value >= -8388608 && value <= 8388607)
    return Buffer.concat([Buffer.from([0xf2]), i64(entry).subarray(0, 3)]);
  if (value >= -2147483648 && value <= 2147483647) {
    return Buffer.concat([Buffer.from([0xf3]), i64(entry).subarray(0, 4)]);
  }
  return Buffer.concat([Buffer.from([0xf4]), i64(entry)]);
}

export function intset(width: 2 | 4 | 8, members: readonly (number | bigint)[]): Buffer {
  return Buffer.concat([
    u32(width),
    u32(members.length),
    ...members.map((member) => i64(member).subarray(0, width)),
  ]);
}

/** `unused`: bytes left unused behind each value. */
export function zipmap(pairs: readonly (readonly [Bytes, Bytes])[], { unused = 0 } = {}): Buffer {
  const size = (bytes: Buffer): Buffer =>
    bytes.length < 254 ? Buffer.from([bytes.length]) : Buffer.concat([Buffer.from([254]), u32(bytes.length)]);
  const parts = pairs.flatMap(([field, value]) => {
    const [f, v] = [bytesOf(field), bytesOf(value)];
    return [size(f), f, size(v), Buffer.from([unused]), v, Buffer.alloc(unused, 'x')];
  });
  return Buffer.concat([Buffer.from([Math.min(pairs.length, 254)]), ...parts, Buffer.from([255])]);
}

export function streamId(ms: number | bigint, sequence: number | bigint): Buffer {
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64BE(BigInt(ms), 0);
  bytes.writeBigUInt64BE(BigInt(sequence), 8);
  return bytes;
}

/** The id that a module's nine characters and a version make. */
export function moduleId(name: string, version: number): Buffer {
  const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  let id = 0n;
  for (const character of name) id = (id << 6n) | BigInt(characters.indexOf(character));
  return length((id << 10n) | BigInt(version), 64);
}

/** A key of that type byte. */
export const key = (type: number, name: Bytes, ...value: Buffer[]): Buffer =>
  Buffer.concat([Buffer.from([type]), string(name), ...value]);

/** A file of these records, with end mark and (from version 5 on) checksum. */
export function file(version: number, ...records: Buffer[]): Buffer {
  const body = Buffer.concat([
    Buffer.from(`REDIS${String(version).padStart(4, '0')}`),
    ...records,
    Buffer.from([255]),
  ]);
  if (version < 5) return body;
  return Buffer.concat([body, checksum(body)]);
}

export function checksum(body: Uint8Array): Buffer {
  const memory = Buffer.from(new ArrayBuffer(body.length));
  memory.set(body);
  const crc = new Crc64();
  crc.update(memory, viewOf(memory.buffer), 0, memory.length);
  return Buffer.concat([i64(crc.low).subarray(0, 4), i64(crc.high).subarray(0, 4)]);
}

const ENTRIES: Entry[] = [
  0,
  12,
  13,
  -1,
  127,
  128,
  -128,
  -129,
  4095,
  4096,
  -4097,
  32767,
  32768,
  8388607,
  8388608,
  -8388609,
  2147483647,
  2147483648n,
  -2147483649n,
  9007199254740993n,
  -9223372036854775808n,
  '',
  'text',
  'a'.repeat(63),
  'b'.repeat(64),
  'c'.repeat(300),
  'd'.repeat(5000),
  'e'.repeat(20_000),
  Buffer.from([0, 255]),
];
const PAIRS: [string, string][] = [
  ['field', 'value'],
  ['empty', ''],
  ['long', 'v'.repeat(300)],
  ['f'.repeat(254), 'x'],
];
const STREAM_NODE = [
  string(streamId(1_700_000_000_000, 0)),
  string(
    listpack([
      ...[3, 1, 2, 'name', 'age', 0],
      ...[2, 0, 0, 'ann', 30, 5],
      ...[0, 5, 1, 1, 'other', 'value', 6],
      ...[3, 6, 0, 'deleted', 1, 5],
      ...[2, 7, 0, 'bob', -5, 5],
    ]),
  ),
];
const STREAM_STATE = [length(3), length(1_700_000_000_007n, 64), length(0)];
const STREAM_STATE_2 = [
  length(1_700_000_000_000n, 64),
  length(0),
  length(1_700_000_000_006n, 64),
  length(0),
  length(4),
];

function streamGroups(encoding: number): Buffer[] {
  const group = [string('group'), length(1_700_000_000_005n, 64), length(1)];
  if (encoding >= 19) group.push(length(2n ** 64n - 1n, 64));
  const pending = [length(2)];
  const ids = [streamId(1_700_000_000_000, 0), streamId(1_700_000_000_005, 1)];
  for (const id of ids) pending.push(id, i64(1_700_000_001_000), length(3));
  const consumer = (name: string, owned: Buffer[]): Buffer[] => [
    string(name),
    i64(1_700_000_002_000),
    ...(encoding >= 21 ? [i64(1_700_000_001_500)] : []),
    length(owned.length),
    ...owned,
  ];
  return [length(1), ...group, ...pending, length(2), ...consumer('alice', ids), ...consumer('bob', [])];
}

const MODULE_DATA = [
  ...[length(2), length(2n ** 63n, 64)],
  ...[length(1), length(5)],
  ...[length(3), Buffer.alloc(4)],
  ...[length(4), Buffer.alloc(8)],
  ...[length(5), string('module string')],
  length(0),
];

const score = (value: string): Buffer => string(value);
const double = (value: number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return bytes;
};

/** One record or key for each encoding: the seeds of the fuzz test, and the answers in handmade.test.ts. */
export const RECORDS: Readonly<Record<string, Buffer>> = {
  string: key(0, 'string', string('value')),
  integers: Buffer.concat(
    [-128, 127, 128, -32768, 32768, -2147483648, 2147483647].map((value) =>
      key(0, `i${value}`, integerString(value)),
    ),
  ),
  lzf: key(0, 'lzf', lzfString('abcabcd', 7)),
  lengths: Buffer.concat(
    ([6, 14, 32, 64] as const).map((form) => key(0, `form ${form}`, length(3, form), Buffer.from('abc'))),
  ),
  list: key(1, 'list', length(3), string('a'), integerString(12), string('')),
  set: key(2, 'set', length(2), string('a'), integerString(-5)),
  zset: key(
    3,
    'zset',
    length(5),
    string('a'),
    score('1.5'),
    string('b'),
    Buffer.from([254]),
    string('c'),
    Buffer.from([255]),
    string('d'),
    score('-3'),
    string('e'),
    score('17179869184.5'),
  ),
  hash: key(4, 'hash', length(2), string('f'), string('v'), integerString(7), string('seven')),
  zset2: key(
    5,
    'zset2',
    length(3),
    string('a'),
    double(1.5),
    string('b'),
    double(Infinity),
    string('c'),
    double(-0.25),
  ),
  module: key(7, 'module', moduleId('test__rdb', 1), ...MODULE_DATA),
  moduleAux: Buffer.concat([
    Buffer.from([247]),
    moduleId('graphdata', 3),
    length(2),
    length(1),
    ...MODULE_DATA,
  ]),
  zipmap: key(9, 'zipmap', string(zipmap(PAIRS, { unused: 3 }))),
  'list ziplist': key(10, 'list ziplist', string(ziplist(ENTRIES))),
  intset16: key(11, 'intset16', string(intset(2, [-32768, -1, 0, 5, 32767]))),
  intset32: key(11, 'intset32', string(intset(4, [-2147483648, 0, 2147483647]))),
  intset64: key(
    11,
    'intset64',
    string(intset(8, [-9223372036854775808n, 0, 9007199254740993n, 9223372036854775807n])),
  ),
  'zset ziplist': key(
    12,
    'zset ziplist',
    string(ziplist(['a', -2, 'b', '1.5', 'c', 'inf', 7, 9007199254740993n])),
  ),
  'hash ziplist': key(13, 'hash ziplist', string(ziplist(PAIRS.flat()))),
  quicklist: key(
    14,
    'quicklist',
    length(3),
    string(ziplist([1, 'two'])),
    string(ziplist([])),
    string(ziplist(['three', 4444])),
  ),
  stream: key(15, 'stream', length(1), ...STREAM_NODE, ...STREAM_STATE, ...streamGroups(15)),
  'hash listpack': key(16, 'hash listpack', string(listpack(PAIRS.flat()))),
  'zset listpack': key(
    17,
    'zset listpack',
    string(listpack(['a', -2, 'b', '1.5', 'c', 'inf', 7, 9007199254740993n])),
  ),
  quicklist2: key(
    18,
    'quicklist2',
    length(2),
    length(2),
    string(listpack(ENTRIES)),
    length(1),
    string('a long one'),
  ),
  stream2: key(
    19,
    'stream2',
    length(1),
    ...STREAM_NODE,
    ...STREAM_STATE,
    ...STREAM_STATE_2,
    ...streamGroups(19),
  ),
  'set listpack': key(20, 'set listpack', string(listpack(['a', 1, -70_000, 'b'.repeat(70)]))),
  stream3: key(
    21,
    'stream3',
    length(1),
    ...STREAM_NODE,
    ...STREAM_STATE,
    ...STREAM_STATE_2,
    ...streamGroups(21),
  ),
  'hash metadata before release': key(
    22,
    'hm0',
    length(2),
    length(4_000_000_000_000n, 64),
    string('f'),
    string('v'),
    length(0),
    string('g'),
    string('w'),
  ),
  'hash listpack ex before release': key(
    23,
    'hl0',
    string(listpack(['f', 'v', 4_000_000_000_000n, 'g', 'w', 0])),
  ),
  'hash metadata': key(
    24,
    'hm',
    i64(4_000_000_000_000),
    length(3),
    length(1),
    string('f'),
    string('v'),
    length(0),
    string('g'),
    string('w'),
    length(1001),
    string('h'),
    string('x'),
  ),
  'hash listpack ex': key(
    25,
    'hl',
    i64(4_000_000_000_000),
    string(listpack(['f', 'v', 4_000_000_000_000n, 'g', 'w', 0])),
  ),
  'slot info': Buffer.concat([Buffer.from([244]), length(100), length(5), length(0)]),
  function: Buffer.concat([
    Buffer.from([245]),
    string("#!lua name=l\nredis.register_function('f', function() end)"),
  ]),
  aux: Buffer.concat([
    Buffer.from([250]),
    string('redis-ver'),
    string('7.0.15'),
    Buffer.from([250]),
    string('redis-bits'),
    integerString(64),
  ]),
  'expiry in ms': Buffer.concat([
    Buffer.from([252]),
    i64(4_000_000_000_123),
    key(0, 'expires', string('ms')),
  ]),
  'expiry in s': Buffer.concat([Buffer.from([253]), u32(2_000_000_000), key(0, 'expires', string('s'))]),
  idle: Buffer.concat([Buffer.from([248]), length(100), key(0, 'idle', string('x'))]),
  frequency: Buffer.concat([Buffer.from([249, 200]), key(0, 'freq', string('x'))]),
  database: Buffer.concat([
    Buffer.from([254]),
    length(3),
    Buffer.from([251]),
    length(1),
    length(0),
    key(0, 'in 3', string('x')),
  ]),
  'empty collections': Buffer.concat([
    key(2, 'no members', length(0)),
    key(13, 'no fields', string(ziplist([]))),
  ]),
};

/** A file for each record. */
export const FILES: ReadonlyMap<string, Buffer> = new Map(
  Object.entries(RECORDS).map(([name, record]) => [name, file(12, record)]),
);
