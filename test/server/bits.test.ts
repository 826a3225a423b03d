import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { startPair, type CommandLine, type Pair } from './harness.ts';
import { Tier } from '../../src/store/tier.ts';
import { bytesOf, compareRandomly, pick, seeded } from './random-commands.ts';

let pair: Pair;
beforeAll(async () => {
  pair = await startPair({ store: new Tier() });
});
afterAll(() => pair.stop());
beforeEach(() => pair.flush());

test('SETBIT and GETBIT', () =>
  pair.compare([
    'SETBIT k 7 1',
    'SETBIT k 7 0',
    'SETBIT k 7 0',
    'GET k',
    'SETBIT k 100 1',
    'STRLEN k',
    'GETBIT k 100',
    'GETBIT k 101',
    'GETBIT k 100000',
    'GETBIT absent 0',
    'SETBIT zero 3 0',
    'GET zero',
    'OBJECT ENCODING zero',
    'SET n 5',
    'GETBIT n 2',
    'OBJECT ENCODING n',
    'SETBIT n 7 0',
    'GET n',
    'OBJECT ENCODING n',
    'SETBIT k 0 2',
    'SETBIT k 0 -1',
    'SETBIT k 0 a',
    'SETBIT k -1 1',
    'SETBIT k a 1',
    'SETBIT k 4294967296 1',
    'GETBIT k 4294967296',
    'GETBIT k 4294967295',
    'GETBIT k -1',
    'GETBIT k #1',
    'RPUSH l a',
    'SETBIT l 0 1',
    'GETBIT l 0',
  ]));

test('BITCOUNT', () =>
  pair.compare([
    'BITCOUNT absent',
    'BITCOUNT absent 0',
    'SET k foobar',
    'BITCOUNT k',
    'BITCOUNT k 0 0',
    'BITCOUNT k 1 1',
    'BITCOUNT k 0 -2',
    'BITCOUNT k -2 -1',
    'BITCOUNT k -1 -2',
    'BITCOUNT k 5 100',
    'BITCOUNT k 6 100',
    'BITCOUNT k 5 30 BIT',
    'BITCOUNT k 0 -1 BIT',
    'BITCOUNT k 3 3 bit',
    'BITCOUNT k -1 -100 bit',
    'BITCOUNT k 40 1000 bit',
    'BITCOUNT k 1 1 BYTE',
    'BITCOUNT k 0 1 BITS',
    'BITCOUNT k 0',
    'BITCOUNT k 0 1 BIT x',
    'BITCOUNT k a 1',
    'BITCOUNT k 0 b',
    'BITCOUNT k -9223372036854775808 9223372036854775807',
    ['SET', 'e', ''],
    'BITCOUNT e',
    'BITCOUNT e 0 -1',
    'RPUSH l a',
    'BITCOUNT l',
    'BITCOUNT l a b',
  ]));

test('BITPOS', async () => {
  await pair.compare([
    'BITPOS absent 0',
    'BITPOS absent 1',
    'BITPOS absent 2',
    'BITPOS absent 1 a',
    ['SET', 'k', bytesOf(0xff, 0xf0, 0x00)],
    'BITPOS k 0',
    'BITPOS k 1',
    'BITPOS k 1 2',
    'BITPOS k 1 7 15 BIT',
    'BITPOS k 0 5 9 BIT',
    'BITPOS k 0 5 14 BIT',
    'BITPOS k 0 -1 -2',
    ['SET', 'ones', bytesOf(0xff, 0xff, 0xff)],
    'BITPOS ones 0',
    'BITPOS ones 0 1',
    'BITPOS ones 0 3',
    'BITPOS ones 0 0 -1',
    'BITPOS ones 0 0 100',
    'BITPOS ones 0 0 10 BIT',
    'BITPOS ones 0 0 -1 BIT',
    'BITPOS ones 1 9 9 BIT',
    ['SET', 'zeros', bytesOf(0, 0, 0)],
    'BITPOS zeros 1',
    'BITPOS zeros 1 0 -1 BIT',
    ['SET', 'e', ''],
    'BITPOS e 0',
    'BITPOS e 1',
    'BITPOS e 0 0',
    'BITPOS k a',
    'BITPOS k 0 a',
    'BITPOS k 0 0 b',
    'BITPOS k 0 0 1 BITS',
    'BITPOS k 0 0 1 BIT x',
    'RPUSH l a',
    'BITPOS l 0',
    'BITPOS l 2',
  ]);
});

test('BITOP', () =>
  pair.compare([
    ['SET', 'a', bytesOf(0x0f, 0xaa, 0xff, 0x01, 0x02)],
    ['SET', 'b', bytesOf(0xf0, 0xab)],
    'BITOP AND r a b',
    'GET r',
    'BITOP OR r a b',
    'GET r',
    'BITOP XOR r a b absent',
    'GET r',
    'BITOP NOT r a',
    'GET r',
    'OBJECT ENCODING r',
    'BITOP NOT r a b',
    'BITOP AND r absent nothing',
    'EXISTS r',
    'BITOP AND r a',
    'GET r',
    'EXPIRE a 100',
    'BITOP XOR a a b',
    'GET a',
    'TTL a',
    'BITOP XOR a a a',
    'GET a',
    'BITOP bad r a',
    'RPUSH l x',
    'BITOP AND r a l',
    'BITOP OR l a b',
    'TYPE l',
    'SET n 12345',
    'BITOP NOT m n',
    'GET m',
    'OBJECT ENCODING m',
  ]));

test('BITFIELD', () =>
  pair.compare([
    'BITFIELD k SET i8 0 -100',
    'BITFIELD k GET i8 0 GET u8 0 GET u4 4',
    'BITFIELD k SET u8 #1 255 GET u8 #1 INCRBY u8 #1 1',
    'BITFIELD k OVERFLOW SAT INCRBY u8 #1 500 INCRBY u8 #1 1 OVERFLOW FAIL INCRBY u8 #1 1 GET u8 #1',
    'BITFIELD k OVERFLOW SAT SET i4 3 100 SET i4 3 -100 GET i4 3',
    'BITFIELD k OVERFLOW WRAP SET i4 3 100 GET i4 3',
    'BITFIELD k OVERFLOW FAIL SET u3 5 8 SET u3 5 7',
    'BITFIELD k SET i64 5 9223372036854775807 INCRBY i64 5 1 GET i64 5',
    'BITFIELD k OVERFLOW SAT INCRBY i64 5 -1 INCRBY i64 5 9223372036854775807 INCRBY i64 5 9223372036854775807',
    'BITFIELD k SET u63 3 -1 GET u63 3 INCRBY u63 3 1',
    'BITFIELD k OVERFLOW SAT SET u63 3 -1 SET u5 2 -1 GET u5 2',
    'BITFIELD k INCRBY u8 0 -1 INCRBY u8 0 -300 OVERFLOW SAT INCRBY u8 0 -1000',
    'GET k',
    'BITFIELD absent GET u8 0 GET i64 1000',
    'EXISTS absent',
    'BITFIELD absent',
    'BITFIELD grown SET u1 100 0',
    'GET grown',
    'BITFIELD k GET u64 0',
    'BITFIELD k GET i65 0',
    'BITFIELD k GET u0 0',
    'BITFIELD k GET x8 0',
    'BITFIELD k GET u 0',
    'BITFIELD k GET I8 0',
    'BITFIELD k GET u08 0',
    'BITFIELD k GET u8 -1',
    'BITFIELD k GET u8 #a',
    'BITFIELD k GET u8 #-1',
    'BITFIELD k GET u8 4294967296',
    'BITFIELD k GET u8 #536870912',
    'BITFIELD k GET u8',
    'BITFIELD k SET u8 0',
    'BITFIELD k SET u8 0 a',
    'BITFIELD k OVERFLOW bad',
    'BITFIELD k OVERFLOW',
    'BITFIELD k NOSUCH u8 0',
    'RPUSH l a',
    'BITFIELD l GET u8 0',
    'BITFIELD l SET u8 0 1',
    'BITFIELD_RO k GET u8 0',
    'BITFIELD_RO k SET u8 0 1',
    'BITFIELD_RO l SET u8 0 1',
    'BITFIELD_RO l GET u8 0',
    'BITFIELD_RO absent GET u8 0',
    'SET n 7',
    'BITFIELD n INCRBY u8 0 0',
    'OBJECT ENCODING n',
  ]));

test('random commands', () =>
  compareRandomly(pair, 'bits', 2500, (random) => {
    const key = (): string => pick(random, ['a', 'b', 'c']);
    const number = (max: number): string => String(Math.floor(random() * max));
    const position = (): string => pick(random, ['0', '1', '-1', '-9', '8', '31', '64', '1000', number(400)]);
    const unit = (): string[] => pick(random, [[], ['BIT'], ['BYTE']]);
    const type = (): string => pick(random, ['i', 'u']) + String(1 + Math.floor(random() * 63));
    const offset = (): string => pick(random, ['', '#']) + number(12);
    const operand = (): string =>
      pick(random, ['0', '1', '-1', '100', '-128', '9223372036854775807', '-9223372036854775808']);
    const overflow = (): string[] =>
      random() < 0.5 ? [] : ['OVERFLOW', pick(random, ['WRAP', 'SAT', 'FAIL'])];
    return pick<() => CommandLine>(random, [
      () => ['SETBIT', key(), number(300), pick(random, ['0', '1'])],
      () => ['GETBIT', key(), number(300)],
      () => ['BITCOUNT', key()],
      () => ['BITCOUNT', key(), position(), position(), ...unit()],
      () => ['BITPOS', key(), pick(random, ['0', '1'])],
      () => ['BITPOS', key(), pick(random, ['0', '1']), position()],
      () => ['BITPOS', key(), pick(random, ['0', '1']), position(), position(), ...unit()],
      () => ['BITOP', pick(random, ['AND', 'OR', 'XOR']), key(), key(), key(), key()],
      () => ['BITOP', 'NOT', key(), key()],
      () => ['BITFIELD', key(), ...overflow(), 'SET', type(), offset(), operand(), 'GET', type(), offset()],
      () => ['BITFIELD', key(), ...overflow(), 'INCRBY', type(), offset(), operand()],
      () => ['GET', key()],
      () => ['SETRANGE', key(), number(20), bytesOf(0xff, 0xff, 0xff)],
      () => ['DEL', key()],
    ])();
  }));

test('strings of several pieces', async () => {
  const random = seeded('long bit strings');
  const long = (length: number, byte: number): Buffer => Buffer.alloc(length, byte);
  const sparse = long(200_001, 0);
  for (let i = 0; i < 20; i++) sparse[Math.floor(random() * sparse.length)] = Math.floor(random() * 256);
  await pair.compare([
    ['SET', 'ones', long(150_000, 0xff)],
    ['SET', 'sparse', sparse],
    'BITCOUNT sparse',
    'BITCOUNT ones 3 1000003 BIT',
    'BITPOS sparse 1',
    'BITPOS sparse 1 100000',
    'BITPOS ones 0',
    'BITPOS ones 0 0 -1',
    'BITOP XOR r ones sparse',
    'BITCOUNT r',
    'BITOP AND sparse sparse r sparse',
    'BITCOUNT sparse',
    'BITOP NOT ones ones',
    'BITPOS ones 1',
    'STRLEN ones',
    'SETBIT ones 999999 1',
    'BITPOS ones 1',
  ]);
  expect(sparse.length % 4).toBe(1);
});
