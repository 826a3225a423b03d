/** What the writer promises beside the encodings: patches, parts, unknown counts, order. */
import { describe, expect, test } from 'vitest';
import { Slice } from '../../src/bytes/slice.ts';
import { RdbKey, RdbValue } from '../../src/rdb/visitor.ts';
import { RdbWriter } from '../../src/rdb/writer.ts';
import { Random } from '../store/random.ts';
import { Events } from './events.ts';
import { Collected, readAll } from './files.ts';

/** A file of one key, which `tell` fills; what it says when it is read, and how it was written. */
function written(
  type: RdbValue,
  count: number,
  tell: (writer: RdbWriter) => void,
  { patching = true, compression = true } = {},
): { lines: string[]; bytes: Buffer; collected: Collected } {
  const collected = new Collected();
  const writer = new RdbWriter({
    compression,
    write: (bytes) => collected.write(bytes),
    ...(patching ? { patch: (offset: number, bytes: Buffer) => collected.patch(offset, bytes) } : {}),
  });
  const key = new RdbKey();
  key.key.setSlice(Slice.from('key'));
  key.type = type;
  key.count = count;
  writer.begin();
  writer.beginKey(key);
  tell(writer);
  writer.endKey();
  writer.end();
  const bytes = collected.bytes();
  expect(writer.offset).toBe(bytes.length);
  const events = new Events();
  readAll(bytes, events);
  return { lines: events.lines.slice(1, -1), bytes, collected };
}

describe('a count that is not known in time', () => {
  const random = new Random(1);
  const words = Array.from({ length: 60_000 }, (_, i) => Slice.from(`word ${i} ${random.word()}`));

  test('of list nodes: is patched, checksum included, or waits in memory', () => {
    const tell = (writer: RdbWriter): void => words.forEach((word) => writer.element(word));
    const patched = written(RdbValue.List, -1, tell);
    expect(patched.collected.patches).toBe(1);
    expect(patched.lines.slice(1, -1)).toEqual(words.map((word) => `+ ${word.latin1()}`));
    const waited = written(RdbValue.List, -1, tell, { patching: false });
    expect(waited.bytes.equals(patched.bytes)).toBe(true);
    expect(Math.max(...patched.collected.parts.map(({ length }) => length))).toBeLessThan(300 * 1024);
  });

  test('of members', () => {
    for (const count of [-1, words.length]) {
      const set = written(RdbValue.Set, count, (writer) => words.forEach((word) => writer.element(word)));
      expect(set.lines[0]).toBe(`set key ${words.length}`);
      expect(set.lines.length).toBe(words.length + 2);
      const hash = written(RdbValue.Hash, count, (writer) =>
        words.forEach((word) => writer.field(word, word, -1)),
      );
      expect(hash.lines[0]).toBe(`hash key ${words.length}`);
      const zset = written(RdbValue.ZSet, count, (writer) =>
        words.forEach((word, i) => writer.member(word, -i)),
      );
      expect(zset.lines[words.length]).toBe(`+ ${words[words.length - 1].latin1()} ${1 - words.length}`);
    }
  });

  test('a count that was wrong is a fault of the caller', () => {
    expect(() => written(RdbValue.Set, 200, (writer) => writer.element(words[0]))).toThrow(RangeError);
    expect(() => written(RdbValue.String, 5, (writer) => writer.stringPart(Slice.from('four')))).toThrow(
      RangeError,
    );
  });
});

describe('a string in parts', () => {
  const parts = (value: Buffer, size: number) => (writer: RdbWriter) => {
    for (let at = 0; at < value.length; at += size) {
      writer.stringPart(Slice.from(value.subarray(at, at + size)));
    }
  };
  const random = new Random(2);

  test.each([
    ['compressible', Buffer.alloc(2_000_000, 'a text that repeats itself; '), true],
    ['incompressible', random.bytes(500_000), false],
    [
      'incompressible after its first part',
      Buffer.concat([Buffer.alloc(100_000), random.bytes(500_000)]),
      false,
    ],
  ])('%s', (_name, value, shorter) => {
    const { lines, bytes } = written(RdbValue.String, value.length, parts(value, 50_000));
    const told: Buffer[] = [];
    readAll(
      bytes,
      new (class extends Events {
        override stringPart(part: Slice): void {
          told.push(part.toBuffer());
        }
      })(),
    );
    expect(Buffer.concat(told).equals(value)).toBe(true);
    expect(lines[0]).toBe(`string key ${value.length}`);
    if (shorter) expect(bytes.length).toBeLessThan(value.length / 20);
    else expect(bytes.length).toBeLessThan(value.length * 1.01);
  });
});

test('packed sorted sets are in order whatever the order of the calls', () => {
  const members: [string, number][] = [
    ['b', 1],
    ['a', 1],
    ['c', -Infinity],
    ['10', 1.5],
    ['9', 1.5],
    ['z', 0],
  ];
  const { lines } = written(RdbValue.ZSet, members.length, (writer) =>
    members.forEach(([member, score]) => writer.member(Slice.from(member), score)),
  );
  expect(lines.slice(1, -1)).toEqual(['+ c -Infinity', '+ z 0', '+ a 1', '+ b 1', '+ 10 1.5', '+ 9 1.5']);
});

test('integers beyond what a double holds stay what they are', () => {
  const members = ['1', '9007199254740993', '-9223372036854775808'];
  const { lines } = written(RdbValue.Set, 3, (writer) =>
    members.forEach((member) => writer.element(Slice.from(member))),
  );
  expect(lines.slice(1, -1).sort()).toEqual(members.map((member) => `+ ${member}`).sort());
});

test('a collection without elements is not written', () => {
  for (const type of [RdbValue.List, RdbValue.Set, RdbValue.Hash, RdbValue.ZSet]) {
    expect(written(type, 0, () => undefined).lines).toEqual([]);
  }
});
