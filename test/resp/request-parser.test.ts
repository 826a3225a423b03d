import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allocatePadded, Slice, viewOf } from '../../src/bytes/slice.ts';
import {
  parseRequest,
  ProtocolError,
  RequestReader,
  splitWords,
  type RequestTarget,
} from '../../src/resp/request-parser.ts';
import { SEED } from '../seed.ts';

function target(): RequestTarget {
  return {
    args: Array.from({ length: 4 }, () => new Slice()),
    argc: 0,
    requestMemory: Buffer.alloc(0),
    requestStart: -1,
    requestEnd: -1,
  };
}

const words = (request: RequestTarget): string[] =>
  request.args.slice(0, request.argc).map((argument) => argument.latin1());

function encode(request: readonly string[]): Buffer {
  const parts = request.map((word) => `$${word.length}\r\n${word}\r\n`);
  return Buffer.from(`*${request.length}\r\n${parts.join('')}`, 'latin1');
}

/** What a connection's reader makes of bytes that come in the given pieces: requests, then perhaps an error. */
function read(pieces: readonly Buffer[], authenticated = true): string[][] {
  const reader = new RequestReader({ bulkLengthMax: 1024 * 1024 });
  reader.authenticated = authenticated;
  const request = target();
  const found: string[][] = [];
  try {
    for (const piece of pieces) {
      reader.push(piece, 0, piece.length);
      while (true) {
        if (reader.between) {
          const next = parseRequest(request, reader.memory, reader.view, reader.at, reader.end);
          if (next >= 0 && authenticated) {
            reader.at = next;
            found.push(words(request));
            continue;
          }
        }
        if (!reader.next(request)) break;
        if (request.argc > 0) found.push(words(request));
      }
      reader.release();
    }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    found.push(['!', error.message]);
  }
  return found;
}

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  const edges = [0, ...sorted, bytes.length];
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
}

const word = fc.oneof(
  fc.string({ maxLength: 12 }),
  fc.constantFrom('', '\r\n', '$3\r\n', '*1\r\n', ' ', '"', "'"),
  fc.integer({ min: 0, max: 70_000 }).map((length) => 'x'.repeat(length)),
);
const latin1 = (text: string): string => Buffer.from(text).latin1Slice();
const request = fc.array(word.map(latin1), { minLength: 1, maxLength: 8 });

describe('requests in any pieces', () => {
  test('give the same arguments', () => {
    fc.assert(
      fc.property(
        fc.array(request, { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(200_000), { maxLength: 12 }),
        (requests, places) => {
          const bytes = Buffer.concat(requests.map(encode));
          expect(read(cut(bytes, places))).toEqual(requests);
        },
      ),
      { numRuns: 150, seed: SEED },
    );
  });

  test('one byte at a time', () => {
    const requests = [
      ['SET', 'key', 'value'],
      ['PING'],
      ['GET', ''],
      Array.from({ length: 30 }, (_, i) => `a${i}`),
    ];
    const bytes = Buffer.concat(requests.map(encode));
    expect(read([...bytes].map((byte) => Buffer.of(byte)))).toEqual(requests);
  });

  test('arbitrary bytes give the same requests and error as in one piece', () => {
    const fragment = fc.constantFrom(
      '*',
      '$',
      '\r\n',
      '1',
      '2',
      '-1',
      '0',
      'a',
      ' ',
      '"',
      '\\x41',
      "'",
      '\n',
      '*1\r\n$1\r\nx\r\n',
    );
    fc.assert(
      fc.property(
        fc.array(fragment, { minLength: 1, maxLength: 30 }),
        fc.array(fc.nat(60), { maxLength: 8 }),
        (fragments, places) => {
          const bytes = Buffer.from(fragments.join(''), 'latin1');
          expect(read(cut(bytes, places))).toEqual(read([bytes]));
        },
      ),
      { numRuns: 500, seed: SEED },
    );
  });

  test('a long argument is received into memory of its own size', () => {
    const reader = new RequestReader({ bulkLengthMax: 512 * 1024 * 1024 });
    const length = 8 * 1024 * 1024;
    const head = Buffer.from(`*2\r\n$3\r\nSET\r\n$${length}\r\n`);
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const parsed = target();
    reader.push(head, 0, head.length);
    expect(reader.next(parsed)).toBe(false);
    const capacity = reader.capacity;
    expect(capacity).toBeGreaterThanOrEqual(length);
    for (let sent = 0; sent < length; sent += chunk.length) {
      expect(reader.next(parsed)).toBe(false);
      reader.push(chunk, 0, chunk.length);
    }
    reader.push(Buffer.from('\r\n'), 0, 2);
    expect(reader.next(parsed)).toBe(true);
    expect(parsed.args[1].length).toBe(length);
    expect(reader.capacity).toBe(capacity);
    reader.release();
    expect(reader.capacity).toBe(0);
  });
});

describe('errors', () => {
  test.each([
    ['*x\r\n', 'invalid multibulk length'],
    ['*2147483648\r\n', 'invalid multibulk length'],
    ['*01\r\n', 'invalid multibulk length'],
    ['*1\r\nx\r\n', "expected '$', got 'x'"],
    ['*1\r\n$x\r\n', 'invalid bulk length'],
    ['*1\r\n$-1\r\n', 'invalid bulk length'],
    ['*1\r\n$04\r\nPING\r\n', 'invalid bulk length'],
    ['*1\r\n$00\r\n\r\n', 'invalid bulk length'],
    ['*1\r\n$1048577\r\n', 'invalid bulk length'],
    ['SET "x\r\n', 'unbalanced quotes in request'],
    [`*${'1'.repeat(70_000)}`, 'too big mbulk count string'],
    [`*1\r\n$${'1'.repeat(70_000)}`, 'too big bulk count string'],
    ['x'.repeat(70_000), 'too big inline request'],
  ])('%#: %j', (bytes, message) => {
    expect(read([Buffer.from(bytes)]).at(-1)).toEqual(['!', message]);
  });

  test('before authentication only small requests are taken', () => {
    expect(read([encode(Array.from({ length: 11 }, () => 'x'))], false)).toEqual([
      ['!', 'unauthenticated multibulk length'],
    ]);
    expect(read([encode(['AUTH', 'x'.repeat(16 * 1024 + 1)])], false)).toEqual([
      ['!', 'unauthenticated bulk length'],
    ]);
    expect(read([encode(['AUTH', 'secret'])], false)).toEqual([['AUTH', 'secret']]);
  });
});

describe('inline requests', () => {
  test('quotes and escapes', () => {
    expect(
      read([Buffer.from('SET "a b" \'c d\' "\\x41\\n\\"" \'\\\'\'\r\nPING\n\r\n  \r\nECHO x\n')]),
    ).toEqual([['SET', 'a b', 'c d', 'A\n"', "'"], ['PING'], ['ECHO', 'x']]);
  });

  test('words as redis.conf has them', () => {
    expect(splitWords('save 900 1')).toEqual(['save', '900', '1']);
    expect(splitWords('requirepass ""')).toEqual(['requirepass', '']);
    expect(splitWords('a "b"c')).toBeUndefined();
    expect(splitWords('a "b')).toBeUndefined();
  });
});

test('empty and negative multibulks are skipped', () => {
  expect(read([Buffer.from('*0\r\n*-5\r\n*1\r\n$4\r\nPING\r\n')])).toEqual([['PING']]);
});

test('parseRequest consumes nothing of what is incomplete or not plain', () => {
  const parsed = target();
  const whole = encode(['SET', 'k', 'v']);
  const memory = allocatePadded(whole.length);
  whole.copy(memory);
  for (let end = 0; end < whole.length; end++)
    expect(parseRequest(parsed, memory, viewOf(memory.buffer), 0, end)).toBe(-1);
  expect(parseRequest(parsed, memory, viewOf(memory.buffer), 0, whole.length)).toBe(whole.length);
});
