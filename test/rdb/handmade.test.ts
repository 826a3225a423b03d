/** Encodings of all versions, from files made by hand. */
import { describe, expect, test } from 'vitest';
import { RdbError } from '../../src/rdb/error.ts';
import {
  FILES,
  file,
  key,
  length,
  listpack,
  RECORDS,
  string,
  ziplist,
  intset,
  zipmap,
  lzfString,
  type Entry,
} from './encodings.ts';
import { Events } from './events.ts';
import { readAll, rewrite } from './files.ts';

function eventsOf(bytes: Buffer, pieceBytes?: number): string[] {
  const events = new Events();
  readAll(bytes, events, pieceBytes);
  return events.lines;
}

describe('every encoding is read', () => {
  test.each([...FILES.keys()])('%s', (name) => {
    const lines = eventsOf(FILES.get(name)!);
    expect(lines).toMatchSnapshot();
    expect(eventsOf(FILES.get(name)!, 1)).toEqual(lines);
  });

  test('all of them in one file, which keeps its meaning when we write it', () => {
    const all = file(12, ...Object.values(RECORDS));
    const meaning = (lines: string[]): string[] =>
      lines.map((line) => line.replace(/ until \d+$/, '').replace(/^((?:list|stream) .*) -?\d+$/, '$1'));
    const before = meaning(eventsOf(all));
    const after = meaning(eventsOf(rewrite(all)));
    // What version 10 has no place for, and what is not asked to stay in order.
    const gone = /^(version|module|of test__rdb|consumer )/;
    const kept = (lines: string[]): string[] => lines.filter((line) => !gone.test(line)).sort();
    const lost = before.indexOf('module module -1');
    before.splice(lost, 3);
    expect(kept(after)).toEqual(kept(before));
  });
});

describe('versions', () => {
  test('1 to 12, the checksum from 5 on', () => {
    for (let version = 1; version <= 12; version++) {
      expect(eventsOf(file(version, RECORDS.string))).toContain('= value');
    }
    expect(() => eventsOf(file(13, RECORDS.string))).toThrow('RDB version "0013" is not one of 1 to 12');
    expect(() => eventsOf(file(0, RECORDS.string))).toThrow('RDB version "0000"');
  });

  test('a checksum of zero is none', () => {
    const bytes = file(10, RECORDS.string);
    bytes.fill(0, bytes.length - 8);
    expect(eventsOf(bytes)).toContain('end');
  });
});

describe('damage is reported with its place', () => {
  const damaged = (record: Buffer): RdbError => {
    try {
      eventsOf(file(10, record));
    } catch (error) {
      if (error instanceof RdbError) return error;
      throw error;
    }
    throw new Error('it was read');
  };

  const change = (bytes: Buffer, at: number, value: number): Buffer => {
    const changed = Buffer.from(bytes);
    changed[at < 0 ? changed.length + at : at] = value;
    return changed;
  };

  test('offset, key and reason', () => {
    const error = damaged(key(16, 'my "key"\n', string(change(listpack(['f', 'v']), -1, 0))));
    expect(error.reason).toBe('a listpack does not end with its end mark');
    expect(error.key?.toString()).toBe('my "key"\n');
    expect(error.offset).toBe(34);
    expect(error.message).toBe(
      'offset 34, key "my \\"key\\"\\x0a" in database 0: a listpack does not end with its end mark',
    );
  });

  const entries: Entry[] = ['one', 2, 'three', 4];
  test.each<[string, number, Buffer]>([
    ['a listpack of 23 bytes says that it has 99', 16, string(change(listpack(entries), 0, 99))],
    ['a listpack of 4 entries says that it has 5', 16, string(listpack(entries, { told: 5 }))],
    [
      'entry 0 of a listpack, at byte 6, has a wrong length behind it',
      16,
      string(change(listpack(entries), 10, 9)),
    ],
    ['entry 0 of a listpack, at byte 6, does not fit', 16, string(change(listpack(entries), 6, 0xbf))],
    ['a listpack ends early, at byte 6', 16, string(change(listpack(entries), 6, 255))],
    ['3 packed entries are not a multiple of 2', 16, string(listpack(['a', 'b', 'c']))],
    ['a ziplist of 4 entries says that it has 5', 13, string(ziplist(entries, { told: 5 }))],
    ['a ziplist tells a wrong place of its last entry', 13, string(change(ziplist(entries), 4, 3))],
    [
      'entry 1 of a ziplist, at byte 15, has a wrong length before it',
      13,
      string(change(ziplist(entries), 15, 9)),
    ],
    ['member 1 of an intset is not above the one before it', 11, string(intset(2, [5, 5]))],
    ['an intset has members of 3 bytes', 11, string(change(intset(2, [5, 6]), 0, 3))],
    ['an intset of 12 bytes says that it has 9 members of 2', 11, string(change(intset(2, [5, 6]), 4, 9))],
    ['a zipmap of 1 fields says that it has 2', 9, string(change(zipmap([['a', 'b']]), 0, 2))],
    ['a score is not a number', 17, string(listpack(['a', 'much']))],
    ['a list has a node of kind 3', 18, Buffer.concat([length(1), length(3), string('x')])],
    [
      '1000 elements are announced, more than the file can hold',
      2,
      Buffer.concat([length(1000), string('x')]),
    ],
    ['unknown string encoding 5', 0, Buffer.from([0xc5, 0])],
    ['a compressed string is damaged', 0, change(lzfString('abcabc', 5), 3, 31)],
    [
      '1 compressed bytes cannot be a string of 5000',
      0,
      Buffer.concat([Buffer.from([0xc3]), length(1), length(5000), Buffer.alloc(1)]),
    ],
  ])('%s', (reason, type, value) => {
    expect(damaged(key(type, 'k', value)).reason).toBe(reason);
  });

  test('what no release reads is called by its name', () => {
    expect(damaged(Buffer.from([246])).reason).toMatch(/release candidates/);
    expect(damaged(key(6, 'k', RECORDS.module.subarray(8, 17))).reason).toMatch(/value of module test__rdb/);
    expect(damaged(key(8, 'k')).reason).toBe('8 is neither a type of value nor an opcode');
  });

  test('a file cut anywhere', () => {
    const all = file(12, ...Object.values(RECORDS));
    for (let end = 0; end < all.length; end += end < 3000 ? 1 : 997) {
      const cut = all.subarray(0, end);
      expect(() => readAll(cut, new Events())).toThrow(RdbError);
      expect(() => readAll(cut, new Events(), 1000, {})).toThrow(/the file/);
    }
  });

  test('a checksum that does not match', () => {
    const bytes = file(10, RECORDS.string);
    bytes[bytes.length - 1] ^= 1;
    expect(() => eventsOf(bytes)).toThrow(
      /^offset \d+: the checksum of the file is [0-9a-f]{16}, and it says /,
    );
  });
});
