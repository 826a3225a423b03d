/** XCLAIM and XAUTOCLAIM: pending entries change hands. Logged entry by entry, as in stream-delivery.ts. */
import type { Slice } from '../../bytes/slice.ts';
import type { PendingEntry, Stream, StreamConsumer, StreamGroup } from '../../store/api.ts';
import { cloneId, compareIds, copyId, formatId, incrementId, newStreamId } from '../../store/stream-id.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { clampedInteger, integerFrom } from './arguments.ts';
import {
  countFrom0,
  noKeyOrGroup,
  parseId,
  rangeId,
  replyEntry,
  replyId,
  strictId,
} from './stream-arguments.ts';
import { logPending, logPosition, seenConsumer } from './stream-delivery.ts';

const notNumber = (what: string): string => `ERR Invalid ${what} argument for XCLAIM`;
const NOT_MIN_IDLE = 'ERR Invalid min-idle-time argument for XAUTOCLAIM';
const COUNT_NOT_POSITIVE = 'ERR COUNT must be > 0';
const COUNT_DEFAULT = 100;
/** Entries that XAUTOCLAIM looks at for one that it may return. */
const ATTEMPTS = 10;
const COUNT_MAX = Math.floor(Number.MAX_SAFE_INTEGER / 16);

/** Who claims, for whom, of which group. */
class Claim {
  readonly context: Context;
  readonly key: Slice;
  readonly groupName: Slice;
  readonly consumerName: Slice;
  readonly stream: Stream;
  readonly group: StreamGroup;
  private consumer: StreamConsumer | null = null;

  /** Throws NOGROUP when there is no such key or group. */
  constructor(context: Context) {
    const [, key, groupName, consumerName] = context.args;
    const stream = context.db.stream(key);
    const group = stream?.groups.get(groupName) ?? null;
    if (stream === null || group === null) throw noKeyOrGroup(key, groupName);
    this.context = context;
    this.key = key;
    this.groupName = groupName;
    this.consumerName = consumerName;
    this.stream = stream;
    this.group = group;
  }

  /** The entry is no more: nobody can claim it. */
  forget(id: Slice): void {
    const { context, key, groupName } = this;
    this.stream.groups.removePending(this.group, id);
    context.dirtied();
    context.effect('XACK', key, groupName, formatId(id));
  }

  take(id: Slice, deliveredAt: number, deliveries: number): void {
    const { context, key, groupName, consumerName } = this;
    // While the log is replayed there is no other time than what it says.
    this.consumer ??= seenConsumer(this, context.now || deliveredAt);
    const entry = { consumer: this.consumer.number, deliveredAt, deliveries };
    this.stream.groups.setPending(this.group, id, entry);
    context.dirtied();
    logPending(context, key, groupName, consumerName, id, entry);
  }

  reply(id: Slice, justId: boolean): void {
    if (justId) replyId(this.context.reply, id);
    else replyEntry(this.context.reply, this.stream, id);
  }
}

interface ClaimOptions {
  force: boolean;
  justId: boolean;
  /** -1: not given. */
  deliveredAt: number;
  deliveries: number;
  lastId: Slice;
}

function claimOptions(context: Context, from: number): ClaimOptions {
  const { argc, args, now } = context;
  const options: ClaimOptions = {
    force: false,
    justId: false,
    deliveredAt: -1,
    deliveries: -1,
    lastId: newStreamId(),
  };
  for (let i = from; i < argc; i++) {
    const more = i + 1 < argc;
    if (context.is(i, 'force')) options.force = true;
    else if (context.is(i, 'justid')) options.justId = true;
    else if (more && context.is(i, 'idle'))
      options.deliveredAt = now - clampedInteger(context, ++i, notNumber('IDLE option'));
    else if (more && context.is(i, 'time'))
      options.deliveredAt = clampedInteger(context, ++i, notNumber('TIME option'));
    else if (more && context.is(i, 'retrycount'))
      options.deliveries = clampedInteger(context, ++i, notNumber('RETRYCOUNT option'));
    else if (more && context.is(i, 'lastid')) strictId(context, ++i, options.lastId);
    else throw new CommandError(`ERR Unrecognized XCLAIM option '${args[i].latin1()}'`);
  }
  return options;
}

export function xclaim(context: Context): void {
  const { args, argc, now, reply } = context;
  const claim = new Claim(context);
  const { stream, group } = claim;
  const least = countFrom0(context, 4, notNumber('min-idle-time'));
  const ids: Slice[] = [];
  for (let i = 5; i < argc; i++) {
    const id = newStreamId();
    if (parseId(args[i], id) === undefined) break;
    ids.push(id);
  }
  const options = claimOptions(context, 5 + ids.length);
  if (compareIds(options.lastId, group.lastId) > 0) {
    group.lastId = options.lastId;
    stream.groups.update(claim.groupName, group);
    context.dirtied();
    logPosition(context, claim.key, claim.groupName, group);
  }
  // While the log is replayed time stands still, and what it says of times holds.
  const replayed = now === 0;
  const given = options.deliveredAt;
  const deliveredAt = given === -1 || (!replayed && (given < 0 || given > now)) ? now : given;
  const mark = reply.beginDeferred();
  let claimed = 0;
  for (const id of ids) {
    const entry = stream.groups.pending(group, id);
    if (!stream.has(id)) {
      if (entry !== null) claim.forget(id);
      continue;
    }
    if (entry === null && !options.force) continue;
    if (entry !== null && least > 0 && now - entry.deliveredAt < least) continue;
    claim.take(id, deliveredAt, deliveriesOf(entry, options));
    claim.reply(id, options.justId);
    claimed++;
  }
  reply.endDeferred(mark, 'array', claimed);
}

function deliveriesOf(entry: PendingEntry | null, { deliveries, justId }: ClaimOptions): number {
  if (deliveries >= 0) return deliveries;
  // One that is made by FORCE counts as delivered once before.
  return (entry?.deliveries ?? 1) + (justId ? 0 : 1);
}

export function xautoclaim(context: Context): void {
  const { argc, now, reply } = context;
  const least = countFrom0(context, 4, NOT_MIN_IDLE);
  const from = newStreamId();
  rangeId(context, 5, false, from);
  let count = COUNT_DEFAULT;
  let justId = false;
  for (let i = 6; i < argc; i++) {
    if (context.is(i, 'count') && i + 1 < argc) {
      count = integerFrom(context, ++i, 1, COUNT_NOT_POSITIVE);
      if (count > COUNT_MAX) throw new CommandError(COUNT_NOT_POSITIVE);
    } else if (context.is(i, 'justid')) {
      justId = true;
    } else {
      throw syntaxError();
    }
  }
  const claim = new Claim(context);
  const { stream } = claim;
  const taken: Slice[] = [];
  const gone: Slice[] = [];
  let ended = false;
  for (let attempts = count * ATTEMPTS; attempts > 0 && taken.length + gone.length < count; attempts--) {
    const next = firstPending(claim, from);
    if (next === null) break;
    const { id, entry } = next;
    copyId(id, from);
    ended = !incrementId(from);
    if (!stream.has(id)) {
      claim.forget(id);
      gone.push(id);
    } else if (least === 0 || now - entry.deliveredAt >= least) {
      claim.take(id, now, entry.deliveries + (justId ? 0 : 1));
      taken.push(id);
    }
    if (ended) break;
  }
  reply.array(3);
  replyId(reply, (ended ? null : firstPending(claim, from)?.id) ?? newStreamId());
  reply.array(taken.length);
  for (const id of taken) claim.reply(id, justId);
  reply.array(gone.length);
  for (const id of gone) replyId(reply, id);
}

/** The first pending entry from an id on. */
function firstPending({ stream, group }: Claim, from: Slice): { id: Slice; entry: PendingEntry } | null {
  let first: { id: Slice; entry: PendingEntry } | null = null;
  stream.groups.forEachPending(group, from, (id, entry) => {
    first = { id: cloneId(id), entry };
    return false;
  });
  return first;
}
