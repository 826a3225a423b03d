/** XREAD and XREADGROUP: what comes after an id, for which they may wait. */
import { Slice } from '../../bytes/slice.ts';
import { Type, type Stream } from '../../store/api.ts';
import { cloneId, compareIds, copyId, formatId, incrementId, newStreamId } from '../../store/stream-id.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { TIMEOUT_NEGATIVE, syntaxError } from '../errors.ts';
import { clampedInteger, keyArguments } from './arguments.ts';
import { readStream } from './lookups.ts';
import { countFrom0, replyEntries, strictId } from './stream-arguments.ts';
import { deliverHistory, deliverNew, type Delivery } from './stream-delivery.ts';
import { nullArray } from './waiting.ts';

const TIMEOUT_NOT_INTEGER = 'ERR timeout is not an integer or out of range';
const UNBALANCED =
  "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.";
const GROUP_ONLY = 'ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.';
const NOACK_ONLY = 'ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.';
const NO_GROUP_OPTION = 'ERR Missing GROUP option for XREADGROUP';
const DOLLAR_IN_GROUP =
  'ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer ' +
  'by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.';
const NEW_WITHOUT_GROUP =
  'ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.';
const GROUP_GONE = 'NOGROUP the consumer group this client was blocked on no longer exists';
const STREAM_GONE = 'UNBLOCKED the stream key no longer exists';

/** Entries of one stream that a client which has waited is given, unless it says otherwise. */
const WAITED_COUNT = 1000;

const start = newStreamId();

interface Options {
  /** 0: all. */
  count: number;
  /** -1: does not wait. */
  timeoutMs: number;
  /** Index of the first key; 0: STREAMS is missing. */
  firstKey: number;
  keys: number;
  /** Index of the group's name, before the consumer's; 0: none. */
  group: number;
  noAck: boolean;
}

function readOptions(context: Context, inGroup: boolean): Options {
  const { argc } = context;
  const options: Options = { count: 0, timeoutMs: -1, firstKey: 0, keys: 0, group: 0, noAck: false };
  for (let i = 1; i < argc && options.firstKey === 0; i++) {
    const more = argc - i - 1;
    if (more > 0 && context.is(i, 'block')) {
      options.timeoutMs = clampedInteger(context, ++i, TIMEOUT_NOT_INTEGER);
      if (options.timeoutMs < 0) throw new CommandError(TIMEOUT_NEGATIVE);
    } else if (more > 0 && context.is(i, 'count')) {
      options.count = countFrom0(context, ++i);
    } else if (more > 0 && context.is(i, 'streams')) {
      if (more % 2 !== 0) throw new CommandError(UNBALANCED);
      options.firstKey = i + 1;
      options.keys = more / 2;
    } else if (more >= 2 && context.is(i, 'group')) {
      if (!inGroup) throw new CommandError(GROUP_ONLY);
      options.group = i + 1;
      i += 2;
    } else if (context.is(i, 'noack')) {
      if (!inGroup) throw new CommandError(NOACK_ONLY);
      options.noAck = true;
    } else {
      throw syntaxError();
    }
  }
  if (options.firstKey === 0) throw syntaxError();
  if (inGroup && options.group === 0) throw new CommandError(NO_GROUP_OPTION);
  return options;
}

/** The stream of a key. A client that has waited passes over what has become something else. */
function streamOf(context: Context, key: Slice): Stream | null {
  if (context.readyKey === null) return readStream(context, key);
  return context.db.type(key) === Type.Stream ? context.db.stream(key) : null;
}

/** A client that has waited gets what it waited for from one stream, the one that is ready. */
function passesOver({ readyKey }: Context, key: Slice, served: number): boolean {
  return readyKey !== null && (served > 0 || !key.equals(readyKey));
}

function isSign(text: Slice, sign: string): boolean {
  return text.length === 1 && text.u8[text.start] === sign.charCodeAt(0);
}

/** Begins the reply of the `served`th stream that has something. */
function beginStream(context: Context, key: Slice): void {
  if (context.reply.protocol === 2) context.reply.array(2);
  context.reply.bulk(key);
}

function endStreams(context: Context, mark: number, served: number): void {
  context.reply.endDeferred(mark, context.reply.protocol === 2 ? 'array' : 'map', served);
}

/** Waits for one of the streams, if that is asked for; otherwise there is nothing. */
function waitForStream(context: Context, options: Options): void {
  const { firstKey, keys, timeoutMs, group } = options;
  if (timeoutMs < 0) return context.reply.nullArray();
  context.block({
    keys: keyArguments(context, firstKey, keys),
    timeoutMs,
    onTimeout: nullArray,
    withoutKey: group !== 0,
  });
}

export function xread(context: Context): void {
  const { args, reply } = context;
  const options = readOptions(context, false);
  const { firstKey, keys } = options;
  const ids: Slice[] = [];
  for (let i = 0; i < keys; i++) {
    const text = args[firstKey + keys + i];
    const stream = streamOf(context, args[firstKey + i]);
    const id = newStreamId();
    if (isSign(text, '>')) throw new CommandError(NEW_WITHOUT_GROUP);
    if (!isSign(text, '$')) strictId(context, firstKey + keys + i, id);
    else if (stream !== null) copyId(stream.lastId, id);
    ids.push(id);
  }
  const most = options.count || (context.readyKey === null ? Infinity : WAITED_COUNT);
  const mark = reply.beginDeferred();
  let served = 0;
  for (let i = 0; i < keys; i++) {
    const key = args[firstKey + i];
    if (passesOver(context, key, served)) continue;
    const stream = context.db.type(key) === Type.Stream ? context.db.stream(key)! : null;
    const rank = stream === null ? 0 : stream.countBelow(ids[i], true);
    if (stream === null || rank === stream.length) continue;
    served++;
    beginStream(context, key);
    const count = Math.min(stream.length - rank, most);
    reply.array(count);
    replyEntries(reply, stream, rank, 1, count);
  }
  if (served > 0) return endStreams(context, mark, served);
  if (options.timeoutMs >= 0 && context.mayBlock) {
    // What is new is new from now on.
    for (let i = 0; i < keys; i++) args[firstKey + keys + i].setSlice(Slice.from(formatId(ids[i])));
    context.requestStart = -1;
  }
  waitForStream(context, options);
}

export function xreadgroup(context: Context): void {
  const { args, reply } = context;
  const options = readOptions(context, true);
  const { firstKey, keys, group: groupAt } = options;
  const groupName = args[groupAt];
  const ids: (Slice | null)[] = [];
  for (let i = 0; i < keys; i++) {
    const at = firstKey + keys + i;
    const key = args[firstKey + i];
    if (passesOver(context, key, 0)) {
      ids.push(null);
      continue;
    }
    const stream = streamOf(context, key);
    const waited = context.readyKey !== null;
    if (stream === null && waited) throw new CommandError(STREAM_GONE);
    if (stream === null || stream.groups.get(groupName) === null) {
      if (waited) throw new CommandError(GROUP_GONE);
      throw new CommandError(
        `NOGROUP No such key '${key.latin1()}' or consumer group '${groupName.latin1()}' in XREADGROUP with GROUP option`,
      );
    }
    if (isSign(args[at], '$')) throw new CommandError(DOLLAR_IN_GROUP);
    const id = isSign(args[at], '>') ? null : newStreamId();
    if (id !== null) strictId(context, at, id);
    ids.push(id);
  }
  const mark = reply.beginDeferred();
  let served = 0;
  for (let i = 0; i < keys; i++) {
    const key = args[firstKey + i];
    if (passesOver(context, key, served)) continue;
    const stream = context.db.stream(key)!;
    const group = stream.groups.get(groupName)!;
    const id = ids[i];
    if (id === null) {
      const top = newStreamId();
      if (!stream.idAt(stream.length - 1, top) || compareIds(top, group.lastId) <= 0) continue;
    }
    served++;
    beginStream(context, key);
    const delivery: Delivery = {
      context,
      key,
      stream,
      groupName,
      group,
      consumerName: args[groupAt + 1],
      noAck: options.noAck,
      most: options.count || (context.readyKey === null ? Infinity : WAITED_COUNT),
    };
    copyId(id ?? cloneId(group.lastId), start);
    incrementId(start);
    if (id === null) deliverNew(delivery, start);
    else deliverHistory(delivery, start);
  }
  if (served > 0) endStreams(context, mark, served);
  else waitForStream(context, options);
}
