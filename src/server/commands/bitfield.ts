/** BITFIELD: integers of any width at any bit of a string. */
import { INT64_MAX, INT64_MIN, sliceInteger } from '../../bytes/number.ts';
import { Slice } from '../../bytes/slice.ts';
import type { StringValue } from '../../store/api.ts';
import { CommandError, type KeyPosition } from '../command.ts';
import type { Context } from '../context.ts';
import { stringChangedInPlace } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { announceIfNew, lookedUp } from './announce.ts';

const NOT_BIT_OFFSET = 'ERR bit offset is not an integer or out of range';
const INVALID_TYPE =
  'ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.';
const INVALID_OVERFLOW = 'ERR Invalid OVERFLOW type specified';
const GET_ONLY = 'ERR BITFIELD_RO only supports the GET subcommand';

const SIGNED = 105; // i
const UNSIGNED = 117; // u
const NUMBER_SIGN = 35; // #

type Overflow = 'wrap' | 'sat' | 'fail';

interface Operation {
  kind: 'get' | 'set' | 'incrby';
  signed: boolean;
  bits: number;
  /** Position of the field's first bit. */
  offset: number;
  /** What is set or added. */
  operand: bigint;
  overflow: Overflow;
}

const part = new Slice();

/**
 * args[i] as the position of a bit. With `bits`, the width of a field, it may be written `#n` and then
 * counts fields.
 */
export function bitOffset(context: Context, i: number, bits = 0): number {
  part.setSlice(context.args[i]);
  const counted = bits > 0 && part.length > 0 && part.u8[part.start] === NUMBER_SIGN;
  if (counted) part.start++;
  const offset = sliceInteger(part) * (counted ? bits : 1);
  if (!(offset >= 0 && offset < context.server.requestLimits.bulkLengthMax * 8)) {
    throw new CommandError(NOT_BIT_OFFSET);
  }
  return offset;
}

/** args[i] as `i` or `u` with a number of bits: negative for unsigned fields. */
function fieldType(context: Context, i: number): { signed: boolean; bits: number } {
  part.setSlice(context.args[i]);
  const letter = part.length > 0 ? part.u8[part.start++] : 0;
  const signed = letter === SIGNED;
  const bits = sliceInteger(part);
  if ((!signed && letter !== UNSIGNED) || !(bits >= 1 && bits <= (signed ? 64 : 63))) {
    throw new CommandError(INVALID_TYPE);
  }
  return { signed, bits };
}

function overflowType(context: Context, i: number): Overflow {
  if (context.is(i, 'wrap')) return 'wrap';
  if (context.is(i, 'sat')) return 'sat';
  if (context.is(i, 'fail')) return 'fail';
  throw new CommandError(INVALID_OVERFLOW);
}

function parseOperations(context: Context): Operation[] {
  const operations: Operation[] = [];
  let overflow: Overflow = 'wrap';
  for (let i = 2; i < context.argc;) {
    const left = context.argc - i - 1;
    let kind: Operation['kind'];
    if (context.is(i, 'get') && left >= 2) {
      kind = 'get';
    } else if (context.is(i, 'set') && left >= 3) {
      kind = 'set';
    } else if (context.is(i, 'incrby') && left >= 3) {
      kind = 'incrby';
    } else if (context.is(i, 'overflow') && left >= 1) {
      overflow = overflowType(context, i + 1);
      i += 2;
      continue;
    } else {
      throw syntaxError();
    }
    const { signed, bits } = fieldType(context, i + 1);
    const offset = bitOffset(context, i + 2, bits);
    const operand = kind === 'get' ? 0n : context.bigInteger(i + 3);
    operations.push({ kind, signed, bits, offset, operand, overflow });
    i += kind === 'get' ? 3 : 4;
  }
  return operations;
}

/** BITFIELD writes unless all its operations are GETs. */
export function bitfieldKeys(args: readonly Slice[], argc: number): KeyPosition[] {
  let readOnly = true;
  for (let i = 2; i < argc && readOnly;) {
    const word = args[i].latin1().toLowerCase();
    const length = word === 'get' ? 3 : word === 'overflow' ? 2 : Infinity;
    readOnly = i + length <= argc;
    i += length;
  }
  return [{ index: 1, access: readOnly ? ['RO', 'access'] : ['RW', 'access', 'update'] }];
}

/** Bytes in which a field lies. */
const covering = new Slice();
covering.setSlice(Slice.from(Buffer.alloc(9)));

/** Loads the bytes in which the field lies into `covering`, zero beyond the end; returns them as one number. */
function load(value: StringValue | null, { offset, bits }: Operation): bigint {
  const start = Math.floor(offset / 8);
  const count = Math.ceil(((offset & 7) + bits) / 8);
  const length = value?.length ?? 0;
  let bytes = 0n;
  for (let at = start; at < start + count; at++) {
    bytes = (bytes << 8n) | BigInt(at < length ? value!.byteAt(at) : 0);
  }
  covering.end = covering.start + count;
  return bytes;
}

/** Bits of the covering bytes behind the field. */
function behind({ offset, bits }: Operation): bigint {
  return BigInt(7 - ((offset + bits - 1) & 7));
}

function field(bytes: bigint, operation: Operation): bigint {
  const raw = BigInt.asUintN(operation.bits, bytes >> behind(operation));
  return operation.signed ? BigInt.asIntN(operation.bits, raw) : raw;
}

function store(value: StringValue, operation: Operation, bytes: bigint, number: bigint): void {
  const shift = behind(operation);
  const mask = ((1n << BigInt(operation.bits)) - 1n) << shift;
  let rest = (bytes & ~mask) | (BigInt.asUintN(operation.bits, number) << shift);
  for (let at = covering.end - 1; at >= covering.start; at--) {
    covering.u8[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  value.write(Math.floor(operation.offset / 8), covering);
}

/** The number brought into the field's range; undefined when that must not be. */
function fit(number: bigint, { kind, signed, bits, overflow }: Operation): bigint | undefined {
  const width = BigInt(bits);
  const max = signed ? INT64_MAX >> (64n - width) : (1n << width) - 1n;
  const min = signed ? -max - 1n : 0n;
  if (number >= min && number <= max) return number;
  if (overflow === 'fail') return undefined;
  if (overflow === 'wrap') return signed ? BigInt.asIntN(bits, number) : BigInt.asUintN(bits, number);
  // Redis's own test overflows for the lowest numbers, so that it saturates them upwards.
  const high = number > max || (kind === 'set' && bits < 64 && number <= INT64_MIN + max);
  return high ? max : min;
}

export function bitfield(context: Context, readOnly: boolean): void {
  const { db, reply } = context;
  const key = context.args[1];
  const operations = parseOperations(context);
  const writes = operations.filter((operation) => operation.kind !== 'get');
  if (readOnly && writes.length > 0) throw new CommandError(GET_ONLY);
  let value = db.string(key);
  let changed = false;
  if (writes.length === 0) {
    lookedUp(context, key, value !== null);
  } else {
    // The string reaches as far as the farthest field before the first is written.
    const last = writes.reduce((end, { offset, bits }) => Math.max(end, offset + bits - 1), 0);
    const length = Math.floor(last / 8) + 1;
    announceIfNew(context, key);
    value ??= db.string(key, true);
    if (value.length < length) {
      changed = true;
      value.write(length - 1, ZERO_BYTE);
    }
    stringChangedInPlace(db, key);
  }
  reply.array(operations.length);
  for (const operation of operations) {
    const bytes = load(value, operation);
    const old = field(bytes, operation);
    if (operation.kind === 'get') {
      reply.integer(old);
      continue;
    }
    const { kind, signed, operand } = operation;
    const wanted = kind === 'incrby' ? old + operand : signed ? operand : BigInt.asUintN(64, operand);
    const number = fit(wanted, operation);
    if (number === undefined) {
      reply.null();
      continue;
    }
    reply.integer(kind === 'incrby' ? number : old);
    store(value!, operation, bytes, number);
    if (number !== old) changed = true;
  }
  if (changed) context.changed(key, '$', 'setbit');
}

const ZERO_BYTE = Slice.from(Buffer.alloc(1));
