/** Streams: their entries. */
import { Slice } from '../../bytes/slice.ts';
import {
  compareIds,
  copyId,
  formatId,
  idHalf,
  incrementId,
  isZeroId,
  newStreamId,
  setIdTime,
} from '../../store/stream-id.ts';
import type { Stream } from '../../store/api.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { NO_SUCH_KEY, syntaxError, wrongArgumentCount } from '../errors.ts';
import { announceKey } from './announce.ts';
import { clampedInteger } from './arguments.ts';
import { keyAt, keysAfter } from './key-specs.ts';
import { readStream } from './lookups.ts';
import { parseTrim, rangeId, rangeOf, replyEntries, strictId, Trim, trimStream } from './stream-arguments.ts';
import { xread, xreadgroup } from './stream-reads.ts';

const LAST_SEQUENCE = '18446744073709551615';
const NOT_ABOVE_ZERO = 'ERR The ID specified in XADD must be greater than 0-0';
const NOT_ABOVE_LAST = 'ERR The ID specified in XADD is equal or smaller than the target stream top item';
/** Redis's words for a millisecond whose sequence numbers are used up. */
const NO_SEQUENCE_LEFT = 'ERR Elements are too large to be stored';
const EXHAUSTED = 'ERR The stream has exhausted the last possible ID, unable to add more items';

const trim = new Trim();
const id = newStreamId();
const otherId = newStreamId();
/** An id in decimal, at most twice 20 digits and a dash. */
const idText = Slice.from(Buffer.alloc(41));

/** Makes `id` the one of the entry that is added. */
function chooseId(stream: Stream, now: number, sequenceGiven: boolean, automatic: boolean): void {
  const { lastId } = stream;
  if (idHalf(lastId, 8) === LAST_SEQUENCE && idHalf(lastId, 0) === LAST_SEQUENCE)
    throw new CommandError(EXHAUSTED);
  if (automatic) setIdTime(id, now);
  // What is not given follows the last id within its millisecond; an id of now, also one of later.
  if (automatic ? compareIds(id, lastId) <= 0 : !sequenceGiven && idHalf(id, 0) === idHalf(lastId, 0)) {
    if (!automatic && idHalf(lastId, 8) === LAST_SEQUENCE) throw new CommandError(NO_SEQUENCE_LEFT);
    copyId(lastId, id);
    incrementId(id);
  }
  if (compareIds(id, lastId) <= 0) throw new CommandError(NOT_ABOVE_LAST);
}

function xadd(context: Context): void {
  const { args, argc, db, reply } = context;
  const at = parseTrim(context, trim, true);
  if (at >= argc) throw new CommandError(wrongArgumentCount('xadd'));
  const automatic = args[at].length === 1 && context.is(at, '*');
  const sequenceGiven = automatic ? false : strictId(context, at, id, 'automatic');
  const fields = argc - at - 1;
  if (fields < 2 || fields % 2 === 1) throw new CommandError(wrongArgumentCount('xadd'));
  if (sequenceGiven && isZeroId(id)) throw new CommandError(NOT_ABOVE_ZERO);

  const key = args[1];
  const found = db.stream(key);
  if (found === null && trim.noMakeStream) return reply.null();
  const stream = found ?? db.stream(key, true);
  chooseId(stream, context.now, sequenceGiven, automatic);
  stream.append(id, args, at + 1, argc);
  const text = formatId(id);
  idText.end = idText.u8.write(text, 0, 'latin1');
  reply.bulk(idText);
  if (found === null) announceKey(context, key);
  else context.ready(key);
  context.changed(key, 't', 'xadd');
  if (trimStream(context, stream, trim) > 0) context.event(key, 't', 'xtrim');
  if (trim.approximate) {
    context.effect('XADD', key, 'MAXLEN', '=', stream.length, text, ...args.slice(at + 1, argc));
  } else if (!sequenceGiven) {
    // Logged as it was sent, but with the id that it got.
    args[at].setSlice(idText);
    context.requestStart = -1;
  }
}

function xtrim(context: Context): void {
  const key = context.args[1];
  parseTrim(context, trim, false);
  const stream = context.db.stream(key);
  const trimmed = stream === null ? 0 : trimStream(context, stream, trim);
  if (trimmed > 0) {
    context.changed(key, 't', 'xtrim');
    if (trim.approximate) context.effect('XTRIM', key, 'MAXLEN', '=', stream!.length);
  }
  context.reply.integer(trimmed);
}

function xlen(context: Context): void {
  context.reply.integer(readStream(context, context.args[1])?.length ?? 0);
}

function range(context: Context, reverse: boolean): void {
  const { args, argc, reply } = context;
  rangeId(context, reverse ? 3 : 2, false, id);
  rangeId(context, reverse ? 2 : 3, true, otherId);
  let most = Infinity;
  for (let i = 4; i < argc; i += 2) {
    if (!context.is(i, 'count') || i + 1 === argc) throw syntaxError();
    most = Math.max(0, clampedInteger(context, i + 1));
  }
  const stream = readStream(context, args[1]);
  if (stream === null) return reply.array(0);
  if (most === 0) return reply.nullArray();
  const { rank, count } = rangeOf(stream, id, otherId);
  const shown = Math.max(0, Math.min(count, most));
  reply.array(shown);
  replyEntries(reply, stream, reverse ? rank + count - 1 : rank, reverse ? -1 : 1, shown);
}

function xdel(context: Context): void {
  const { args, argc } = context;
  const key = args[1];
  const stream = context.db.stream(key);
  if (stream === null) return context.reply.integer(0);
  for (let i = 2; i < argc; i++) strictId(context, i, id);
  let removed = 0;
  for (let i = 2; i < argc; i++) {
    strictId(context, i, id);
    if (stream.remove(id)) removed++;
  }
  if (removed > 0) context.changed(key, 't', 'xdel');
  context.reply.integer(removed);
}

function xsetid(context: Context): void {
  const { args, argc } = context;
  const key = args[1];
  let added = -1;
  otherId.u8.fill(0);
  strictId(context, 2, id);
  for (let i = 3; i < argc; i += 2) {
    if (i + 1 < argc && context.is(i, 'entriesadded')) {
      added = clampedInteger(context, i + 1);
      if (added < 0) throw new CommandError('ERR entries_added must be positive');
    } else if (i + 1 < argc && context.is(i, 'maxdeletedid')) {
      strictId(context, i + 1, otherId);
      if (compareIds(id, otherId) < 0) {
        throw new CommandError(
          'ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id',
        );
      }
    } else {
      throw syntaxError();
    }
  }
  const stream = context.db.stream(key);
  if (stream === null) throw new CommandError(NO_SUCH_KEY);
  const { length } = stream;
  if (length > 0) {
    const top = newStreamId();
    stream.idAt(length - 1, top);
    if (compareIds(id, top) < 0)
      throw new CommandError('ERR The ID specified in XSETID is smaller than the target stream top item');
    if (added !== -1 && length > added)
      throw new CommandError(
        'ERR The entries_added specified in XSETID is smaller than the target stream length',
      );
  }
  stream.lastId = id;
  if (added !== -1) stream.entriesAdded = added;
  if (!isZeroId(otherId)) stream.maxDeletedId = otherId;
  context.changed(key, 't', 'xsetid');
  context.reply.ok();
}

const common = { categories: ['stream'], group: 'stream', since: '5.0.0' } as const;
const TRIM = 'trim(strategy(MAXLEN|MINID) [operator(equal==|approximately=~)] threshold [LIMIT count])';

export const streamCommands: readonly Command[] = [
  {
    ...common,
    name: 'xadd',
    arity: -5,
    syntax: `key [NOMKSTREAM] [${TRIM}] id_or_auto(auto_id=*|id) field_value(field value)...`,
    flags: ['write', 'denyoom', 'fast'],
    keys: [keyAt(1, 'RW', 'update')],
    complexity: 'O(log(N)) for N entries, and O(M) for M entries that are trimmed',
    tips: ['nondeterministic_output'],
    summary: 'Adds an entry to a stream.',
    run: xadd,
  },
  {
    ...common,
    name: 'xtrim',
    arity: -4,
    syntax: `key ${TRIM}`,
    flags: ['write'],
    keys: [keyAt(1, 'RW', 'delete')],
    complexity: 'O(N), N being the number of entries that are trimmed',
    tips: ['nondeterministic_output'],
    summary: 'Removes the oldest entries of a stream.',
    run: xtrim,
  },
  {
    ...common,
    name: 'xdel',
    arity: -3,
    syntax: 'key id...',
    flags: ['write', 'fast'],
    keys: [keyAt(1, 'RW', 'delete')],
    complexity: 'O(log(N)) for each id, N being the number of entries',
    summary: 'Removes entries from a stream.',
    run: xdel,
  },
  {
    ...common,
    name: 'xlen',
    arity: 2,
    syntax: 'key',
    flags: ['readonly', 'fast'],
    keys: [keyAt(1, 'RO')],
    complexity: 'O(1)',
    summary: 'Tells how many entries a stream has.',
    run: xlen,
  },
  {
    ...common,
    name: 'xrange',
    arity: -4,
    syntax: 'key start:string end:string [COUNT count]',
    flags: ['readonly'],
    keys: [keyAt(1, 'RO', 'access')],
    complexity: 'O(log(N)+M) for N entries and M that are returned',
    summary: 'Gives the entries of a range of ids.',
    run: (context) => range(context, false),
  },
  {
    ...common,
    name: 'xrevrange',
    arity: -4,
    syntax: 'key end:string start:string [COUNT count]',
    flags: ['readonly'],
    keys: [keyAt(1, 'RO', 'access')],
    complexity: 'O(log(N)+M) for N entries and M that are returned',
    summary: 'Gives the entries of a range of ids, the last first.',
    run: (context) => range(context, true),
  },
  {
    ...common,
    name: 'xsetid',
    arity: -3,
    syntax: 'key last-id:string [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]',
    flags: ['write', 'denyoom', 'fast'],
    keys: [keyAt(1, 'RW', 'update')],
    complexity: 'O(1)',
    summary: 'Sets the last id of a stream; for replication.',
    run: xsetid,
  },
  {
    ...common,
    name: 'xread',
    arity: -4,
    syntax: '[COUNT count] [BLOCK milliseconds] STREAMS streams(key... id...)',
    flags: ['blocking', 'readonly', 'movablekeys'],
    keys: [keysAfter('STREAMS', 1, 'RO', 'access')],
    complexity: 'for each stream O(log(N)+M) for N entries and M that are returned',
    summary: 'Gives the entries of streams after an id, or waits for one.',
    run: xread,
  },
  {
    ...common,
    name: 'xreadgroup',
    arity: -7,
    syntax:
      'GROUP group_consumer(group consumer) [COUNT count] [BLOCK milliseconds] [NOACK] ' +
      'STREAMS streams(key... id...)',
    flags: ['blocking', 'write', 'movablekeys'],
    keys: [keysAfter('STREAMS', 4, 'RO', 'access')],
    complexity: 'for each stream O(M*log(N)) for N entries and M that are returned',
    summary: 'Hands entries that nobody in a group has had to a consumer, or waits for one.',
    run: xreadgroup,
  },
];
