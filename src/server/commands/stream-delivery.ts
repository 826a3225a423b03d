/**
 * Entries handed to the consumers of a group. All of it is logged as what it comes to: for each entry
 * an XCLAIM with its consumer, time and count, then the group's position as an XGROUP SETID.
 */
import type { Slice } from '../../bytes/slice.ts';
import type { PendingEntry, Stream, StreamConsumer, StreamGroup } from '../../store/api.ts';
import { cloneId, compareIds, formatId, isZeroId, newStreamId } from '../../store/stream-id.ts';
import type { Context } from '../context.ts';
import { entryReplier, replyEntry, replyId } from './stream-arguments.ts';

export interface Delivery {
  context: Context;
  key: Slice;
  stream: Stream;
  groupName: Slice;
  group: StreamGroup;
  consumerName: Slice;
  noAck: boolean;
  /** Entries at most. */
  most: number;
}

const NOT_KNOWN = -1;

/** The consumer, which comes to be if need be, as seen at that time. */
export function seenConsumer(
  delivery: Omit<Delivery, 'noAck' | 'most'>,
  seenAt = delivery.context.now,
): StreamConsumer {
  const { context, key, stream, groupName, group, consumerName } = delivery;
  const found = stream.groups.consumer(group, consumerName);
  if (found !== null) {
    stream.groups.setSeen(group, found, seenAt);
    return found;
  }
  const consumer = stream.groups.createConsumer(group, consumerName, seenAt);
  context.dirtied();
  context.event(key, 't', 'xgroup-createconsumer');
  context.effect('XGROUP', 'CREATECONSUMER', key, groupName, consumerName);
  return consumer;
}

/** Logs that an entry is pending as told. */
export function logPending(
  context: Context,
  key: Slice,
  groupName: Slice,
  consumerName: Slice,
  id: Slice,
  { deliveredAt, deliveries }: PendingEntry,
): void {
  context.effect(
    ...['XCLAIM', key, groupName, consumerName, 0, formatId(id)],
    ...['TIME', deliveredAt, 'RETRYCOUNT', deliveries, 'FORCE', 'JUSTID'],
  );
}

export function logPosition(context: Context, key: Slice, groupName: Slice, group: StreamGroup): void {
  const { lastId, entriesRead } = group;
  context.effect('XGROUP', 'SETID', key, groupName, formatId(lastId), 'ENTRIESREAD', entriesRead);
}

/** Replies with entries that the group has not had, from `from` on, and makes them the consumer's. */
export function deliverNew(delivery: Delivery, from: Slice): void {
  const { context, key, stream, groupName, group, noAck, most } = delivery;
  const { reply } = context;
  const consumer = seenConsumer(delivery);
  const rank = stream.countBelow(from, false);
  const count = Math.max(0, Math.min(stream.length - rank, most));
  reply.array(count);
  if (count === 0) return;
  const ids: Slice[] = [];
  const replyOne = entryReplier(reply);
  stream.forEachFrom(rank, 1, (id, fields, length) => {
    replyOne(id, fields, length);
    ids.push(cloneId(id));
    return ids.length < count;
  });
  advance(stream, group, ids);
  stream.groups.update(groupName, group);
  context.dirtied();
  if (!noAck) {
    for (const id of ids) {
      const entry = { consumer: consumer.number, deliveredAt: context.now, deliveries: 1 };
      stream.groups.setPending(group, id, entry);
      logPending(context, key, groupName, consumer.name, id, entry);
    }
  }
  logPosition(context, key, groupName, group);
}

/** The group has had the entries. */
function advance(stream: Stream, group: StreamGroup, ids: readonly Slice[]): void {
  const gap = lastGap(stream);
  for (const id of ids) {
    if (compareIds(id, group.lastId) <= 0) continue;
    if (group.entriesRead !== NOT_KNOWN && (gap === null || compareIds(id, gap) > 0)) group.entriesRead++;
    else if (stream.entriesAdded > 0) group.entriesRead = entriesUpTo(stream, id);
    group.lastId = id;
  }
}

/** Replies with entries that the consumer has had and not acknowledged, from `from` on. */
export function deliverHistory(delivery: Delivery, from: Slice): void {
  const { context, key, stream, groupName, group, most } = delivery;
  const { reply } = context;
  const consumer = seenConsumer(delivery);
  const owned: { id: Slice; entry: PendingEntry }[] = [];
  stream.groups.forEachOwned(group, consumer, from, (id, entry) => {
    owned.push({ id: cloneId(id), entry });
    return owned.length < most;
  });
  reply.array(owned.length);
  for (const { id, entry } of owned) {
    if (!replyEntry(reply, stream, id)) {
      reply.array(2);
      replyId(reply, id);
      reply.nullArray();
      continue;
    }
    const again = { ...entry, deliveredAt: context.now, deliveries: entry.deliveries + 1 };
    stream.groups.setPending(group, id, again);
    context.dirtied();
    logPending(context, key, groupName, consumer.name, id, again);
  }
}

/** The id up to which entries have been deleted from among those that are left; null when there is no gap. */
export function lastGap(stream: Stream): Slice | null {
  const deleted = cloneId(stream.maxDeletedId);
  const gap = stream.length > 0 && !isZeroId(deleted) && compareIds(firstIdOf(stream), deleted) <= 0;
  return gap ? deleted : null;
}

/** Id of the first entry, 0-0 when there is none. */
export function firstIdOf(stream: Stream): Slice {
  const id = newStreamId();
  stream.idAt(0, id);
  return id;
}

/** How many entries were ever added up to an id; -1 when that cannot be known. */
export function entriesUpTo(stream: Stream, id: Slice): number {
  const { entriesAdded, length } = stream;
  if (entriesAdded === 0) return 0;
  const toLast = compareIds(id, stream.lastId);
  if (toLast === 0 || (length === 0 && toLast < 0)) return entriesAdded;
  if (toLast > 0) return NOT_KNOWN;
  if (lastGap(stream) !== null || length === 0) return NOT_KNOWN;
  const toFirst = compareIds(id, firstIdOf(stream));
  if (toFirst > 0) return NOT_KNOWN;
  return entriesAdded - length + (toFirst === 0 ? 1 : 0);
}
