/** Stream ids and entries as commands read and write them. */
import type { Slice } from '../../bytes/slice.ts';
import type { EntryVisitor, Stream } from '../../store/api.ts';
import {
  compareIds,
  decrementId,
  formatId,
  incrementId,
  newStreamId,
  setIdHalf,
} from '../../store/stream-id.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { NOT_INTEGER, syntaxError } from '../errors.ts';
import type { Reply } from '../reply.ts';
import { clampedInteger } from './arguments.ts';

const INVALID_ID = 'ERR Invalid stream ID specified as stream command argument';
const HALF_MAX = 2n ** 64n - 1n;
/** Redis reads ids of up to so many bytes. */
const ID_TEXT_MAX = 127;
/** Digits that always make a safe integer. */
const SAFE_DIGITS = 15;

const PLUS = 43;
const MINUS = 45;
const STAR = 42;

/** What is meant by an id without a sequence number, and whether `<ms>-*` is one. */
export type Missing = 'first' | 'last' | 'automatic';

/** args[i] as an id, in `into`; false when the sequence number is to be chosen. Throws for `-` and `+`. */
export function strictId(context: Context, i: number, into: Slice, missing: Missing = 'first'): boolean {
  const given = parseId(context.args[i], into, missing);
  if (given === undefined) throw new CommandError(INVALID_ID);
  return given;
}

/** Undefined when the text is no id; otherwise whether the sequence number is given. */
export function parseId(text: Slice, into: Slice, missing: Missing = 'first'): boolean | undefined {
  const { u8, start, end } = text;
  if (end - start > ID_TEXT_MAX) return undefined;
  let dash = start;
  while (dash < end && u8[dash] !== MINUS) dash++;
  const ms = parseHalf(u8, start, dash);
  if (ms === undefined) return undefined;
  setIdHalf(into, 0, ms);
  if (dash === end) {
    setIdHalf(into, 8, missing === 'last' ? HALF_MAX : 0);
    return true;
  }
  if (missing === 'automatic' && end - dash === 2 && u8[dash + 1] === STAR) {
    setIdHalf(into, 8, 0);
    return false;
  }
  const sequence = parseHalf(u8, dash + 1, end);
  if (sequence === undefined) return undefined;
  setIdHalf(into, 8, sequence);
  return true;
}

/** An unsigned 64-bit number as C's strtoull reads it: leading zeros and a sign are allowed. */
function parseHalf(u8: Buffer, start: number, end: number): number | bigint | undefined {
  let value = 0;
  let at = start;
  for (; at < end && u8[at] >= 48 && u8[at] <= 57; at++) value = value * 10 + u8[at] - 48;
  if (at === end && at > start && end - start <= SAFE_DIGITS) return value;
  const text = u8.latin1Slice(start, end);
  const parts = /^([+-]?)(\d+)$/.exec(text);
  if (parts === null || /^-[1-9]/.test(text)) return undefined;
  const long = BigInt(parts[2]);
  if (long > HALF_MAX) return undefined;
  return parts[1] === '-' ? BigInt.asUintN(64, -long) : long;
}

/** args[i] as the begin or end of a range of ids: `-`, `+`, an id, or `(` and an id that is outside. */
export function rangeId(context: Context, i: number, end: boolean, into: Slice): void {
  const text = context.args[i];
  const { u8, start, length } = text;
  if (length === 1 && (u8[start] === MINUS || u8[start] === PLUS)) {
    into.u8.fill(u8[start] === PLUS ? 0xff : 0, into.start, into.end);
    return;
  }
  const exclusive = length > 1 && u8[start] === 40;
  if (exclusive) text.start++;
  const given = parseId(text, into, end ? 'last' : 'first');
  if (exclusive) text.start--;
  if (given === undefined) throw new CommandError(INVALID_ID);
  if (exclusive && !(end ? decrementId(into) : incrementId(into)))
    throw new CommandError(`ERR invalid ${end ? 'end' : 'start'} ID for the interval`);
}

/** The error of commands that need both. */
export function noKeyOrGroup(key: Slice, group: Slice): CommandError {
  return new CommandError(`NOGROUP No such key '${key.latin1()}' or consumer group '${group.latin1()}'`);
}

/** args[i] as a count; what is below 0 counts as 0. */
export function countFrom0(context: Context, i: number, message = NOT_INTEGER): number {
  return Math.max(0, clampedInteger(context, i, message));
}

export function replyId(reply: Reply, id: Slice): void {
  const text = formatId(id);
  reply.beginBulk(text.length);
  reply.ascii(text);
  reply.endBulk();
}

/** Visits entries with replying each. */
export function entryReplier(reply: Reply): EntryVisitor {
  return (id, fields, count) => {
    reply.array(2);
    replyId(reply, id);
    reply.array(count);
    for (let i = 0; i < count; i++) reply.bulk(fields[i]);
    return true;
  };
}

/** Replies with `count` entries from a rank on, without an array around them. */
export function replyEntries(reply: Reply, stream: Stream, rank: number, step: 1 | -1, count: number): void {
  if (count <= 0) return;
  const one = entryReplier(reply);
  let left = count;
  stream.forEachFrom(rank, step, (id, fields, length) => {
    one(id, fields, length);
    return --left > 0;
  });
}

/** The entry of that id; false when there is none. */
export function replyEntry(reply: Reply, stream: Stream, id: Slice): boolean {
  if (!stream.has(id)) return false;
  replyEntries(reply, stream, stream.countBelow(id, false), 1, 1);
  return true;
}

const TWO_STRATEGIES = 'ERR syntax error, MAXLEN and MINID options at the same time are not compatible';
const NODES_TRIMMED = 100;
const LIMIT_MAX = 1_000_000;

const checkedId = newStreamId();

/** The options of XADD and XTRIM, filled anew by `parseTrim`. */
export class Trim {
  strategy: '' | 'MAXLEN' | 'MINID' = '';
  maxLength = 0;
  readonly minId = newStreamId();
  approximate = false;
  /** Most entries to trim; 0: no limit. */
  limit = 0;
  noMakeStream = false;
}

/** Reads options from args[2] on, up to what is none; for XADD that is the id. Returns where it stands. */
export function parseTrim(context: Context, trim: Trim, adding: boolean): number {
  const { argc, args } = context;
  trim.strategy = '';
  trim.approximate = trim.noMakeStream = false;
  let limit = -1;
  let at = 2;
  for (; at < argc; at++) {
    const { u8, start } = args[at];
    if (adding && u8[start] < 65) break;
    const more = at + 1 < argc;
    const maxLength = more && context.is(at, 'maxlen');
    if (maxLength || (more && context.is(at, 'minid'))) {
      if (trim.strategy !== '') throw new CommandError(TWO_STRATEGIES);
      trim.approximate = false;
      if (at + 2 < argc && (context.is(at + 1, '~') || context.is(at + 1, '='))) {
        trim.approximate = context.is(at + 1, '~');
        at++;
      }
      at++;
      trim.strategy = maxLength ? 'MAXLEN' : 'MINID';
      if (maxLength) {
        trim.maxLength = clampedInteger(context, at);
        if (trim.maxLength < 0) throw new CommandError('ERR The MAXLEN argument must be >= 0.');
      } else {
        strictId(context, at, trim.minId);
      }
    } else if (more && context.is(at, 'limit')) {
      limit = clampedInteger(context, ++at);
      if (limit < 0) throw new CommandError('ERR The LIMIT argument must be >= 0.');
    } else if (adding && context.is(at, 'nomkstream')) {
      trim.noMakeStream = true;
    } else if (adding) {
      break;
    } else {
      throw syntaxError();
    }
  }
  // As Redis does, which reads the id among the options.
  if (adding && at < argc && !context.is(at, '*')) strictId(context, at, checkedId, 'automatic');
  if (limit > 0 && trim.strategy === '') {
    throw new CommandError('ERR syntax error, LIMIT cannot be used without specifying a trimming strategy');
  }
  if (!adding && trim.strategy === '')
    throw new CommandError('ERR syntax error, XTRIM must be called with a trimming strategy');
  if (limit >= 0 && !trim.approximate)
    throw new CommandError('ERR syntax error, LIMIT cannot be used without the special ~ option');
  trim.limit = limit >= 0 ? limit : trim.approximate ? defaultLimit(context) : 0;
  return at;
}

function defaultLimit(context: Context): number {
  const limit = NODES_TRIMMED * context.server.config.number('stream-node-max-entries');
  return limit <= 0 ? 10_000 : Math.min(limit, LIMIT_MAX);
}

/**
 * Trims from the first entry on; returns how many entries are gone. An approximate trim takes only as
 * many at a time as Redis has in a node, where nothing was deleted within the stream.
 */
export function trimStream(context: Context, stream: Stream, trim: Trim): number {
  const { length } = stream;
  const surplus =
    trim.strategy === ''
      ? 0
      : trim.strategy === 'MAXLEN'
        ? length - trim.maxLength
        : stream.countBelow(trim.minId, false);
  if (surplus <= 0) return 0;
  let count = surplus;
  if (trim.approximate) {
    const node = context.server.config.number('stream-node-max-entries') || length;
    const most = trim.limit === 0 ? surplus : Math.min(surplus, trim.limit);
    // The first node has been trimmed, the last one is not full.
    const gone = Math.max(0, stream.entriesAdded - length) % node;
    count = Math.max(0, Math.floor((most + gone) / node) * node - gone);
    if (most === length) count = length;
  }
  stream.removeRange(0, count);
  return count;
}

/** Entries of a range of ids: rank of its first, and how many. */
export function rangeOf(stream: Stream, first: Slice, last: Slice): { rank: number; count: number } {
  const rank = stream.countBelow(first, false);
  return { rank, count: compareIds(first, last) > 0 ? 0 : stream.countBelow(last, true) - rank };
}
