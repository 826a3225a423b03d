/** Strings as arrays of bits. Long ones are worked on piece by piece, never copied whole. */
import { sliceInteger } from '../../bytes/number.ts';
import { ByteSink } from '../../bytes/sink.ts';
import { Slice } from '../../bytes/slice.ts';
import type { StringValue } from '../../store/api.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { stringChangedInPlace } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { announceIfNew, lookedUp } from './announce.ts';
import { clampedInteger } from './arguments.ts';
import { countBits, findBit } from './bit-runs.ts';
import { bitfield, bitfieldKeys, bitOffset } from './bitfield.ts';
import { keyAt, keysFrom } from './key-specs.ts';

const NOT_BIT = 'ERR bit is not an integer or out of range';
const NOT_BIT_ARGUMENT = 'ERR The bit argument must be 1 or 0.';
const NOT_OF_ONE = 'ERR BITOP NOT must be called with a single source key.';

const oneByte = Slice.from(Buffer.alloc(1));

function setbit(context: Context): void {
  const { db } = context;
  const key = context.args[1];
  const offset = bitOffset(context, 2);
  const bit = sliceInteger(context.args[3]);
  if (bit !== 0 && bit !== 1) throw new CommandError(NOT_BIT);
  const at = Math.floor(offset / 8);
  announceIfNew(context, key);
  const value = db.string(key, true);
  const grows = at >= value.length;
  const old = grows ? 0 : value.byteAt(at);
  const mask = 0x80 >>> (offset & 7);
  const changed = bit === 1 ? old | mask : old & ~mask;
  if (grows || changed !== old) {
    oneByte.u8[oneByte.start] = changed;
    value.write(at, oneByte);
    context.changed(key, '$', 'setbit');
  }
  stringChangedInPlace(db, key);
  context.reply.integer((old & mask) === 0 ? 0 : 1);
}

/** The string at a key that is read. */
function open(context: Context, key: Slice): StringValue | null {
  const value = context.db.string(key);
  lookedUp(context, key, value !== null);
  return value;
}

function getbit(context: Context): void {
  const offset = bitOffset(context, 2);
  const at = Math.floor(offset / 8);
  const value = open(context, context.args[1]);
  const byte = value === null || at >= value.length ? 0 : value.byteAt(at);
  context.reply.integer((byte >>> (7 - (offset & 7))) & 1);
}

/** True for BIT at args[i], false for BYTE or when there is no such argument. */
function unitIsBit(context: Context, i: number): boolean {
  if (i >= context.argc) return false;
  if (context.is(i, 'bit')) return true;
  if (context.is(i, 'byte')) return false;
  throw syntaxError();
}

function bitcount(context: Context): void {
  const { argc, reply } = context;
  const value = open(context, context.args[1]);
  if (value === null) {
    reply.integer(0);
    return;
  }
  let start = 0;
  let end = value.length - 1;
  let unit = 8;
  if (argc > 2) {
    if (argc > 5 || argc === 3) throw syntaxError();
    start = clampedInteger(context, 2);
    end = clampedInteger(context, 3);
    if (start < 0 && end < 0 && start > end) {
      reply.integer(0);
      return;
    }
    if (unitIsBit(context, 4)) unit = 1;
    const total = (value.length * 8) / unit;
    start = fromEnd(start, total);
    end = Math.min(fromEnd(end, total), total - 1);
  }
  reply.integer(start > end ? 0 : countBits(value, start * unit, (end + 1) * unit - 1));
}

/** Negative positions count from the end. */
function fromEnd(position: number, total: number): number {
  return position < 0 ? Math.max(0, total + position) : position;
}

function bitpos(context: Context): void {
  const { argc, reply } = context;
  const bit = clampedInteger(context, 2);
  if (bit !== 0 && bit !== 1) throw new CommandError(NOT_BIT_ARGUMENT);
  const value = open(context, context.args[1]);
  if (value === null) {
    reply.integer(bit === 1 ? -1 : 0);
    return;
  }
  if (argc > 6) throw syntaxError();
  let start = argc > 3 ? clampedInteger(context, 3) : 0;
  const unit = unitIsBit(context, 5) ? 1 : 8;
  const total = (value.length * 8) / unit;
  let end = argc > 4 ? clampedInteger(context, 4) : total - 1;
  start = fromEnd(start, total);
  end = Math.min(fromEnd(end, total), total - 1);
  if (start > end) {
    reply.integer(-1);
    return;
  }
  let position = findBit(value, bit, start * unit, (end + 1) * unit - 1);
  // Without an explicit end the string is followed by zeros.
  if (position < 0 && bit === 0 && argc <= 4) position = value.length * 8;
  reply.integer(position);
}

type Operation = 'and' | 'or' | 'xor' | 'not';

function operationArgument(context: Context): Operation {
  const word = context.word(1);
  if (word === 'and' || word === 'or' || word === 'xor' || word === 'not') return word;
  throw syntaxError();
}

/** Bytes of the result that are computed at a time. */
const PIECE = 64 * 1024;
const result = new ByteSink(PIECE);
const operand = new ByteSink(PIECE);
const piece = new Slice();

/** Reads bytes [start, end) of a string into `into`, zeros where it is shorter. */
function readPiece(value: StringValue | null, start: number, end: number, into: ByteSink): void {
  into.clear();
  const stop = Math.min(end, value?.length ?? 0);
  if (start < stop) value!.read(start, stop, into);
  into.u8.fill(0, into.pos, end - start);
}

/** Leaves bytes [start, end) of the result in `result`. */
function computePiece(
  operation: Operation,
  values: readonly (StringValue | null)[],
  start: number,
  end: number,
): void {
  readPiece(values[0], start, end, result);
  const words = wordsOf(result, end - start);
  if (operation === 'not') {
    for (let i = 0; i < words.length; i++) words[i] = ~words[i];
    return;
  }
  for (let k = 1; k < values.length; k++) {
    readPiece(values[k], start, end, operand);
    const others = wordsOf(operand, end - start);
    if (operation === 'and') for (let i = 0; i < words.length; i++) words[i] &= others[i];
    else if (operation === 'or') for (let i = 0; i < words.length; i++) words[i] |= others[i];
    else for (let i = 0; i < words.length; i++) words[i] ^= others[i];
  }
}

/** The first `length` bytes of a sink in words; the last may reach into its padding. */
function wordsOf(sink: ByteSink, length: number): Int32Array {
  return new Int32Array(sink.u8.buffer, 0, (length + 3) >> 2);
}

function bitop(context: Context): void {
  const { args, argc, db, reply } = context;
  const operation = operationArgument(context);
  const target = args[2];
  if (operation === 'not' && argc !== 4) throw new CommandError(NOT_OF_ONE);
  const values: (StringValue | null)[] = [];
  let length = 0;
  let targetValue: StringValue | null = null;
  for (let i = 3; i < argc; i++) {
    // The target may be among the sources, and is changed through the one handle that is read.
    const isTarget = args[i].equals(target);
    const value: StringValue | null = isTarget && targetValue !== null ? targetValue : open(context, args[i]);
    if (isTarget) targetValue = value;
    values.push(value);
    length = Math.max(length, value?.length ?? 0);
  }
  if (length === 0) {
    if (db.remove(target)) context.changed(target, 'g', 'del');
    reply.integer(0);
    return;
  }
  announceIfNew(context, target);
  for (let start = 0; start < length; start += PIECE) {
    const end = Math.min(length, start + PIECE);
    computePiece(operation, values, start, end);
    piece.set(result.u8, result.view, 0, end - start);
    if (targetValue === null) {
      db.setString(target, piece);
      if (end < length) targetValue = db.string(target);
    } else {
      targetValue.write(start, piece);
    }
  }
  db.setExpiry(target, 0);
  stringChangedInPlace(db, target);
  context.changed(target, '$', 'set');
  reply.integer(length);
}

export const bitCommands: readonly Command[] = [
  {
    name: 'setbit',
    arity: 4,
    syntax: 'key offset value:integer',
    flags: ['write', 'denyoom'],
    categories: ['bitmap'],
    keys: [keyAt(1, 'RW', 'access', 'update')],
    group: 'bitmap',
    since: '2.2.0',
    complexity: 'O(1)',
    summary: 'Sets or clears a bit of a string and returns what it was.',
    run: setbit,
  },
  {
    name: 'getbit',
    arity: 3,
    syntax: 'key offset',
    flags: ['readonly', 'fast'],
    categories: ['bitmap'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'bitmap',
    since: '2.2.0',
    complexity: 'O(1)',
    summary: 'Returns a bit of a string.',
    run: getbit,
  },
  {
    name: 'bitcount',
    arity: -2,
    syntax: 'key [index(start end [index_unit(BYTE|BIT)])]',
    flags: ['readonly'],
    categories: ['bitmap'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'bitmap',
    since: '2.6.0',
    complexity: 'O(N), N being the length of the range',
    summary: 'Counts the set bits of a string or of a range of it.',
    run: bitcount,
  },
  {
    name: 'bitpos',
    arity: -3,
    syntax: 'key bit [index(start [end_index(end [index_unit(BYTE|BIT)])])]',
    flags: ['readonly'],
    categories: ['bitmap'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'bitmap',
    since: '2.8.7',
    complexity: 'O(N), N being the length of the range',
    summary: 'Finds the first set or clear bit of a string or of a range of it.',
    run: bitpos,
  },
  {
    name: 'bitop',
    arity: -4,
    syntax: 'operation destkey key...',
    flags: ['write', 'denyoom'],
    categories: ['bitmap'],
    keys: [keyAt(2, 'OW', 'update'), keysFrom(3, -1, 'RO', 'access')],
    group: 'bitmap',
    since: '2.6.0',
    complexity: 'O(N), N being the length of the longest string',
    summary: 'Combines strings bit by bit and stores the result.',
    run: bitop,
  },
  {
    name: 'bitfield',
    arity: -2,
    syntax:
      'key [operation(GET encoding_offset(encoding offset)|write([OVERFLOW wrap_sat_fail(WRAP|SAT|FAIL)] write_operation(SET encoding_offset_value(encoding offset value:integer)|INCRBY encoding_offset_increment(encoding offset increment))))...]',
    flags: ['write', 'denyoom'],
    categories: ['bitmap'],
    keys: [keyAt(1, 'RW', 'access', 'update', 'variable_flags')],
    getKeys: bitfieldKeys,
    group: 'bitmap',
    since: '3.2.0',
    complexity: 'O(1) for each operation',
    summary: 'Reads, sets and increments integers of any width in a string.',
    run: (context) => bitfield(context, false),
  },
  {
    name: 'bitfield_ro',
    arity: -2,
    syntax: 'key [GET encoding_offset(encoding offset)]...',
    flags: ['readonly', 'fast'],
    categories: ['bitmap'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'bitmap',
    since: '6.0.0',
    complexity: 'O(1) for each operation',
    summary: 'Reads integers of any width in a string.',
    run: (context) => bitfield(context, true),
  },
];
