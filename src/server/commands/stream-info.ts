/** XINFO: what is known of a stream and its groups. */
import type { Slice } from '../../bytes/slice.ts';
import type { PendingEntry, Stream, StreamConsumer, StreamGroup } from '../../store/api.ts';
import { cloneId, compareIds, newStreamId } from '../../store/stream-id.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { NO_SUCH_KEY } from '../errors.ts';
import type { Reply } from '../reply.ts';
import { clampedInteger } from './arguments.ts';
import { helpCommand, wrongSubcommand } from './help.ts';
import { keyAt } from './key-specs.ts';
import { readStream } from './lookups.ts';
import { replyEntries, replyId } from './stream-arguments.ts';
import { entriesUpTo, firstIdOf, lastGap } from './stream-delivery.ts';

/** What FULL shows of entries and pending entries unless told otherwise. */
const COUNT_DEFAULT = 10;
const FIRST_POSSIBLE = newStreamId();

function streamAt(context: Context): Stream {
  const stream = readStream(context, context.args[2]);
  if (stream === null) throw new CommandError(NO_SUCH_KEY);
  return stream;
}

/** The options of XINFO STREAM: the count of FULL (0: all), -1 without. */
function fullCount(context: Context): number {
  const { argc } = context;
  if (argc === 3) return -1;
  if ((argc !== 4 && argc !== 6) || !context.is(3, 'full')) throw wrongSubcommand(context);
  if (argc === 4) return COUNT_DEFAULT;
  if (!context.is(4, 'count')) throw wrongSubcommand(context);
  const count = clampedInteger(context, 5);
  return count < 0 ? COUNT_DEFAULT : count;
}

function stream(context: Context): void {
  const { reply } = context;
  const found = streamAt(context);
  const count = fullCount(context);
  const { length } = found;
  // The trees of Redis, as they would be had it been filled in order.
  const nodes = Math.ceil(length / (context.server.config.number('stream-node-max-entries') || Infinity));
  reply.map(count < 0 ? 10 : 9);
  reply.bulkString('length');
  reply.integer(length);
  reply.bulkString('radix-tree-keys');
  reply.integer(nodes);
  reply.bulkString('radix-tree-nodes');
  reply.integer(nodes + 1);
  reply.bulkString('last-generated-id');
  replyId(reply, found.lastId);
  reply.bulkString('max-deleted-entry-id');
  replyId(reply, found.maxDeletedId);
  reply.bulkString('entries-added');
  reply.integer(found.entriesAdded);
  reply.bulkString('recorded-first-entry-id');
  replyId(reply, firstIdOf(found));
  if (count >= 0) return full(reply, found, count || Infinity);
  reply.bulkString('groups');
  reply.integer(found.groups.count);
  for (const end of ['first', 'last']) {
    reply.bulkString(`${end}-entry`);
    if (length === 0) reply.null();
    else replyEntries(reply, found, end === 'first' ? 0 : length - 1, 1, 1);
  }
}

/** The rest of XINFO STREAM FULL: at most `most` entries and as many pending ones of each. */
function full(reply: Reply, found: Stream, most: number): void {
  const { groups } = found;
  const shown = Math.min(found.length, most);
  reply.bulkString('entries');
  reply.array(shown);
  replyEntries(reply, found, 0, 1, shown);
  reply.bulkString('groups');
  const names = groups.names();
  reply.array(names.length);
  for (const name of names) {
    const group = groups.get(name)!;
    reply.map(7);
    reply.bulkString('name');
    reply.bulk(name);
    reply.bulkString('last-delivered-id');
    replyId(reply, group.lastId);
    replyProgress(reply, found, group);
    reply.bulkString('pel-count');
    reply.integer(groups.pendingCount(group));
    reply.bulkString('pending');
    const pending: Pending[] = [];
    groups.forEachPending(group, FIRST_POSSIBLE, collector(pending, most));
    reply.array(pending.length);
    for (const { id, entry } of pending) {
      reply.array(4);
      replyId(reply, id);
      reply.bulk(groups.consumerName(group, entry.consumer));
      reply.integer(entry.deliveredAt);
      reply.integer(entry.deliveries);
    }
    reply.bulkString('consumers');
    const consumers = groups.consumers(group);
    reply.array(consumers.length);
    for (const consumer of consumers) fullConsumer(reply, found, group, consumer, most);
  }
}

interface Pending {
  id: Slice;
  entry: PendingEntry;
}

/** Collects `most` pending entries, at least one. */
function collector(into: Pending[], most: number): (id: Slice, entry: PendingEntry) => boolean {
  return (id, entry) => into.push({ id: cloneId(id), entry }) < most;
}

function fullConsumer(
  reply: Reply,
  { groups }: Stream,
  group: StreamGroup,
  consumer: StreamConsumer,
  most: number,
): void {
  reply.map(4);
  reply.bulkString('name');
  reply.bulk(consumer.name);
  reply.bulkString('seen-time');
  reply.integer(consumer.seenAt);
  reply.bulkString('pel-count');
  reply.integer(groups.ownedCount(group, consumer));
  reply.bulkString('pending');
  const owned: Pending[] = [];
  groups.forEachOwned(group, consumer, FIRST_POSSIBLE, collector(owned, most));
  reply.array(owned.length);
  for (const { id, entry } of owned) {
    reply.array(3);
    replyId(reply, id);
    reply.integer(entry.deliveredAt);
    reply.integer(entry.deliveries);
  }
}

/** How many entries the group has read and how many are left, where that can be told. */
function replyProgress(reply: Reply, found: Stream, group: StreamGroup): void {
  const numberOrNull = (value: number): void => {
    if (value < 0) reply.null();
    else reply.integer(value);
  };
  reply.bulkString('entries-read');
  numberOrNull(group.entriesRead);
  reply.bulkString('lag');
  const { entriesAdded } = found;
  const gap = lastGap(found);
  let read = group.entriesRead;
  if (entriesAdded === 0) read = 0;
  else if (read < 0 || (gap !== null && compareIds(group.lastId, gap) <= 0))
    read = entriesUpTo(found, group.lastId);
  if (read < 0) reply.null();
  else reply.integer(entriesAdded - read);
}

function groups(context: Context): void {
  const { reply } = context;
  const found = streamAt(context);
  const names = found.groups.names();
  reply.array(names.length);
  for (const name of names) {
    const group = found.groups.get(name)!;
    reply.map(6);
    reply.bulkString('name');
    reply.bulk(name);
    reply.bulkString('consumers');
    reply.integer(found.groups.consumerCount(group));
    reply.bulkString('pending');
    reply.integer(found.groups.pendingCount(group));
    reply.bulkString('last-delivered-id');
    replyId(reply, group.lastId);
    replyProgress(reply, found, group);
  }
}

function consumers(context: Context): void {
  const { args, reply, now } = context;
  const found = streamAt(context);
  const group = found.groups.get(args[3]);
  if (group === null) {
    throw new CommandError(
      `NOGROUP No such consumer group '${args[3].latin1()}' for key name '${args[2].latin1()}'`,
    );
  }
  const all = found.groups.consumers(group);
  reply.array(all.length);
  for (const consumer of all) {
    reply.map(3);
    reply.bulkString('name');
    reply.bulk(consumer.name);
    reply.bulkString('pending');
    reply.integer(found.groups.ownedCount(group, consumer));
    reply.bulkString('idle');
    // One that the log says was made, but not when, has not been seen.
    reply.integer(consumer.seenAt === 0 ? 0 : Math.max(0, now - consumer.seenAt));
  }
}

const common = {
  flags: ['readonly'],
  categories: ['stream'],
  group: 'stream',
  since: '5.0.0',
  keys: [keyAt(2, 'RO', 'access')],
} as const;

export const streamInfoCommands: readonly Command[] = [
  {
    name: 'xinfo',
    arity: -2,
    flags: [],
    categories: [],
    group: 'stream',
    since: '5.0.0',
    complexity: 'depends on the subcommand',
    summary: 'Looks into streams.',
    subcommands: [
      {
        ...common,
        name: 'stream',
        arity: -3,
        syntax: 'key [FULL full([COUNT count])]',
        complexity: 'O(log(N)), and with FULL O(M) for M elements that are shown',
        summary: 'Describes a stream.',
        run: stream,
      },
      {
        ...common,
        name: 'groups',
        arity: 3,
        syntax: 'key',
        complexity: 'O(N), N being the number of groups',
        summary: 'Describes the groups of a stream.',
        run: groups,
      },
      {
        ...common,
        name: 'consumers',
        arity: 4,
        syntax: 'key groupname',
        complexity: 'O(N), N being the number of consumers',
        tips: ['nondeterministic_output'],
        summary: 'Describes the consumers of a group.',
        run: consumers,
      },
      {
        ...helpCommand('stream', '5.0.0', [
          'CONSUMERS <key> <groupname>',
          '    Show consumers of <groupname>.',
          'GROUPS <key>',
          '    Show the stream consumer groups.',
          'STREAM <key> [FULL [COUNT <count>]',
          '    Show information about the stream.',
        ]),
        categories: ['stream'],
      },
    ],
  },
];
