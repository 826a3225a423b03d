import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import {
  Push,
  ReplyError,
  ReplyFormatError,
  ReplyParser,
  Status,
  Verbatim,
  type ReplyValue,
} from '../../src/resp/reply-parser.ts';
import { RespWriter } from '../../src/resp/writer.ts';
import { SEED } from '../seed.ts';

const text = (value: string): Buffer => Buffer.from(value);

test('every type', () => {
  const bytes =
    '+OK\r\n-ERR no\r\n:12\r\n:-9223372036854775808\r\n$3\r\na\r\n\r\n$-1\r\n*-1\r\n*2\r\n:1\r\n*0\r\n' +
    '_\r\n#t\r\n#f\r\n,3.5\r\n,inf\r\n,-inf\r\n(12345678901234567890\r\n!5\r\nERR x\r\n=7\r\ntxt:abc\r\n' +
    '~1\r\n:1\r\n%1\r\n+k\r\n:2\r\n>2\r\n+a\r\n:3\r\n|1\r\n+ttl\r\n:9\r\n:4\r\n';
  expect(new ReplyParser().push(text(bytes))).toEqual([
    new Status('OK'),
    new ReplyError('ERR no'),
    12,
    -9223372036854775808n,
    text('a\r\n'),
    null,
    null,
    [1, []],
    null,
    true,
    false,
    3.5,
    Infinity,
    -Infinity,
    12345678901234567890n,
    new ReplyError('ERR x'),
    new Verbatim('txt', text('abc')),
    new Set([1]),
    new Map([[new Status('k'), 2]]),
    new Push([new Status('a'), 3]),
    4,
  ]);
});

test('an error has its code word', () => {
  const [error] = new ReplyParser().push(text('-WRONGTYPE Operation\r\n'));
  expect((error as ReplyError).code).toBe('WRONGTYPE');
});

test('what is no RESP is refused', () => {
  expect(() => new ReplyParser().push(text('HTTP/1.1 200 OK\r\n'))).toThrow(ReplyFormatError);
  expect(() => new ReplyParser().push(text('*x\r\n'))).toThrow(ReplyFormatError);
});

/** A reply that the writer can write, and the value it must be read as in RESP3. */
interface Sample {
  write: (writer: RespWriter) => void;
  value: ReplyValue;
}

const leaf: fc.Arbitrary<Sample> = fc.oneof(
  fc.maxSafeInteger().map((value) => ({ write: (writer: RespWriter) => writer.integer(value), value })),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => ({
    write: (writer: RespWriter) => writer.bulk(Slice.from(bytes)),
    value: Buffer.from(bytes),
  })),
  fc.constant({ write: (writer: RespWriter) => writer.null(), value: null }),
  fc.boolean().map((value) => ({ write: (writer: RespWriter) => writer.boolean(value), value })),
  fc.constant({ write: (writer: RespWriter) => writer.ok(), value: new Status('OK') }),
  fc.constant({ write: (writer: RespWriter) => writer.error('ERR x'), value: new ReplyError('ERR x') }),
  fc.constant({ write: (writer: RespWriter) => writer.double('2.5'), value: 2.5 }),
);
const { reply } = fc.letrec<{ reply: Sample }>((tie) => ({
  reply: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    leaf,
    fc.array(tie('reply'), { maxLength: 4 }).map((samples) => ({
      write: (writer: RespWriter) => {
        writer.array(samples.length);
        for (const sample of samples) sample.write(writer);
      },
      value: samples.map((sample) => sample.value),
    })),
    fc.array(tie('reply'), { maxLength: 4 }).map((samples) => ({
      write: (writer: RespWriter) => {
        const mark = writer.beginDeferred();
        for (const sample of samples) sample.write(writer);
        writer.endDeferred(mark, 'array', samples.length);
      },
      value: samples.map((sample) => sample.value),
    })),
  ),
}));

test('what the writer writes is read back, cut anywhere', () => {
  fc.assert(
    fc.property(
      fc.array(reply, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(500), { maxLength: 10 }),
      (samples, places) => {
        const writer = new RespWriter(16);
        writer.protocol = 3;
        for (const sample of samples) sample.write(writer);
        const bytes = Buffer.from(writer.written());
        const edges = [0, ...places.map((place) => place % bytes.length).sort((a, b) => a - b), bytes.length];
        const parser = new ReplyParser();
        const read = edges.slice(1).flatMap((edge, i) => parser.push(bytes.subarray(edges[i], edge)));
        expect(read).toEqual(samples.map((sample) => sample.value));
        expect(parser.pending).toBe(0);
      },
    ),
    { numRuns: 300, seed: SEED },
  );
});
