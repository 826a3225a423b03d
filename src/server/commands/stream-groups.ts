/** Streams: groups of consumers that share the entries among them. */
import type { Slice } from '../../bytes/slice.ts';
import type { PendingEntry, Stream, StreamGroup } from '../../store/api.ts';
import { cloneId, compareIds, newStreamId } from '../../store/stream-id.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { announceIfNew } from './announce.ts';
import { clampedInteger } from './arguments.ts';
import { helpCommand, wrongSubcommand } from './help.ts';
import { keyAt } from './key-specs.ts';
import { countFrom0, noKeyOrGroup, rangeId, replyId, strictId } from './stream-arguments.ts';
import { xautoclaim, xclaim } from './stream-claims.ts';

const KEY_REQUIRED =
  'ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the ' +
  'MKSTREAM option to create an empty stream automatically.';

const id = newStreamId();
const endId = newStreamId();

function noGroup(key: Slice, group: Slice): CommandError {
  return new CommandError(
    `NOGROUP No such consumer group '${group.latin1()}' for key name '${key.latin1()}'`,
  );
}

/** `[MKSTREAM] [ENTRIESREAD n]` from args[5] on; -1 entries when it is not given. */
function groupOptions(context: Context, creating: boolean): { makeStream: boolean; entriesRead: number } {
  const { argc } = context;
  let makeStream = false;
  let entriesRead = -1;
  for (let i = 5; i < argc; i++) {
    if (creating && context.is(i, 'mkstream')) {
      makeStream = true;
    } else if (context.is(i, 'entriesread') && i + 1 < argc) {
      entriesRead = clampedInteger(context, ++i);
      if (entriesRead < -1) throw new CommandError('ERR value for ENTRIESREAD must be positive or -1');
    } else {
      throw wrongSubcommand(context);
    }
  }
  return { makeStream, entriesRead };
}

function existingStream(context: Context): Stream {
  const stream = context.db.stream(context.args[2]);
  if (stream === null) throw new CommandError(KEY_REQUIRED);
  return stream;
}

function existingGroup(context: Context, stream: Stream): StreamGroup {
  const [, , key, name] = context.args;
  const group = stream.groups.get(name);
  if (group === null) throw noGroup(key, name);
  return group;
}

function isLast(context: Context): boolean {
  return context.is(4, '$');
}

function create(context: Context): void {
  const { args, argc, db } = context;
  const [, , key, name] = args;
  const { makeStream, entriesRead } = groupOptions(context, true);
  const found = makeStream ? db.stream(key) : existingStream(context);
  if (argc > 8) throw wrongSubcommand(context);
  id.u8.fill(0);
  if (!isLast(context)) strictId(context, 4, id);
  if (found === null) announceIfNew(context, key);
  const stream = found ?? db.stream(key, true);
  if (found === null) stream.create();
  const lastId = isLast(context) ? cloneId(stream.lastId) : id;
  if (stream.groups.create(name, lastId, entriesRead) === null)
    throw new CommandError('BUSYGROUP Consumer Group name already exists');
  if (found === null) context.changed(key, 't', 'xgroup-create');
  else noted(context, key, 'xgroup-create');
  context.reply.ok();
}

/** A change that watchers of the key are not told of, with its event. */
function noted(context: Context, key: Slice, event: string): void {
  context.dirtied();
  context.event(key, 't', event);
}

function setId(context: Context): void {
  const { args, argc, db } = context;
  const [, , key, name] = args;
  const { entriesRead } = groupOptions(context, false);
  const stream = existingStream(context);
  const group = existingGroup(context, stream);
  if (argc !== 5 && argc !== 7) throw wrongSubcommand(context);
  if (!isLast(context)) rangeless(context, 4, id);
  const lastId = isLast(context) ? cloneId(db.stream(key)!.lastId) : id;
  stream.groups.update(name, { ...group, lastId, entriesRead });
  noted(context, key, 'xgroup-setid');
  context.reply.ok();
}

/** args[i] as an id, or `-` or `+`. */
function rangeless(context: Context, i: number, into: Slice): void {
  if (context.is(i, '-') || context.is(i, '+')) rangeId(context, i, false, into);
  else strictId(context, i, into);
}

function destroy(context: Context): void {
  const [, , key, name] = context.args;
  const stream = existingStream(context);
  if (!stream.groups.destroy(name)) return context.reply.integer(0);
  noted(context, key, 'xgroup-destroy');
  context.ready(key);
  context.reply.integer(1);
}

function createConsumer(context: Context): void {
  const [, , key, , name] = context.args;
  const stream = existingStream(context);
  const group = existingGroup(context, stream);
  const isNew = stream.groups.consumer(group, name) === null;
  if (isNew) {
    stream.groups.createConsumer(group, name, context.now);
    noted(context, key, 'xgroup-createconsumer');
  }
  context.reply.integer(isNew ? 1 : 0);
}

function deleteConsumer(context: Context): void {
  const [, , key, , name] = context.args;
  const stream = existingStream(context);
  const group = existingGroup(context, stream);
  const consumer = stream.groups.consumer(group, name);
  if (consumer === null) return context.reply.integer(0);
  const pending = stream.groups.removeConsumer(group, consumer);
  noted(context, key, 'xgroup-delconsumer');
  context.reply.integer(pending);
}

function xack(context: Context): void {
  const { args, argc, db, reply } = context;
  const stream = db.stream(args[1]);
  const group = stream?.groups.get(args[2]);
  if (stream === null || group === null || group === undefined) return reply.integer(0);
  for (let i = 3; i < argc; i++) strictId(context, i, id);
  let acknowledged = 0;
  for (let i = 3; i < argc; i++) {
    strictId(context, i, id);
    if (!stream.groups.removePending(group, id)) continue;
    acknowledged++;
    context.dirtied();
  }
  reply.integer(acknowledged);
}

function xpending(context: Context): void {
  const { args, argc, db } = context;
  const [, key, name] = args;
  if (argc !== 3 && (argc < 6 || argc > 9)) throw syntaxError();
  let least = 0;
  let most = 0;
  let consumerName: Slice | null = null;
  if (argc >= 6) {
    let at = 3;
    if (context.is(3, 'idle')) {
      least = clampedInteger(context, 4);
      if (argc < 8) throw syntaxError();
      at = 5;
    }
    most = countFrom0(context, at + 2);
    rangeId(context, at, false, id);
    rangeId(context, at + 1, true, endId);
    if (at + 3 < argc) consumerName = args[at + 3];
  }
  const stream = db.stream(key);
  const group = stream?.groups.get(name);
  if (stream === null || group === null || group === undefined) throw noKeyOrGroup(key, name);
  if (argc === 3) pendingSummary(context, stream, group);
  else pendingEntries(context, stream, group, { least, most, consumerName });
}

function pendingSummary({ reply }: Context, { groups }: Stream, group: StreamGroup): void {
  const count = groups.pendingCount(group);
  reply.array(4);
  reply.integer(count);
  if (count === 0) {
    reply.null();
    reply.null();
    reply.nullArray();
    return;
  }
  const last = newStreamId();
  groups.forEachPending(group, last, (first) => {
    replyId(reply, first);
    return false;
  });
  groups.lastPending(group, last);
  replyId(reply, last);
  const owners = groups
    .consumers(group)
    .map((consumer) => ({ name: consumer.name, owned: groups.ownedCount(group, consumer) }))
    .filter(({ owned }) => owned > 0);
  reply.array(owners.length);
  for (const { name, owned } of owners) {
    reply.array(2);
    reply.bulk(name);
    reply.bulkString(String(owned));
  }
}

interface PendingFilter {
  /** Milliseconds since the last delivery, at least. */
  least: number;
  most: number;
  consumerName: Slice | null;
}

function pendingEntries(
  { reply, now }: Context,
  { groups }: Stream,
  group: StreamGroup,
  { least, most, consumerName }: PendingFilter,
): void {
  const consumer = consumerName === null ? null : groups.consumer(group, consumerName);
  if (consumerName !== null && consumer === null) return reply.array(0);
  const found: { id: Slice; entry: PendingEntry }[] = [];
  const visit = (each: Slice, entry: PendingEntry): boolean => {
    if (compareIds(each, endId) > 0) return false;
    if (least === 0 || now - entry.deliveredAt >= least) found.push({ id: cloneId(each), entry });
    return found.length < most;
  };
  if (most > 0) {
    if (consumer === null) groups.forEachPending(group, id, visit);
    else groups.forEachOwned(group, consumer, id, visit);
  }
  reply.array(found.length);
  for (const { id: each, entry } of found) {
    reply.array(4);
    replyId(reply, each);
    reply.bulk(groups.consumerName(group, entry.consumer));
    reply.integer(Math.max(0, now - entry.deliveredAt));
    reply.integer(entry.deliveries);
  }
}

const common = { categories: ['stream'], group: 'stream', since: '5.0.0' } as const;
const GROUP_ID = 'id(id|new_id=$)';

export const streamGroupCommands: readonly Command[] = [
  {
    ...common,
    name: 'xgroup',
    arity: -2,
    flags: [],
    categories: [],
    complexity: 'depends on the subcommand',
    summary: 'Makes, changes and removes consumer groups.',
    subcommands: [
      {
        ...common,
        name: 'create',
        arity: -5,
        syntax: `key groupname ${GROUP_ID} [MKSTREAM] [ENTRIESREAD entries_read]`,
        flags: ['write', 'denyoom'],
        keys: [keyAt(2, 'RW', 'insert')],
        complexity: 'O(1)',
        summary: 'Makes a consumer group.',
        run: create,
      },
      {
        ...common,
        name: 'setid',
        arity: -5,
        syntax: `key groupname ${GROUP_ID} [ENTRIESREAD entries_read]`,
        flags: ['write'],
        keys: [keyAt(2, 'RW', 'update')],
        complexity: 'O(1)',
        summary: 'Sets the id up to which a group has had the entries.',
        run: setId,
      },
      {
        ...common,
        name: 'destroy',
        arity: 4,
        syntax: 'key groupname',
        flags: ['write'],
        keys: [keyAt(2, 'RW', 'delete')],
        complexity: 'O(N), N being the number of pending entries',
        summary: 'Removes a consumer group.',
        run: destroy,
      },
      {
        ...common,
        name: 'createconsumer',
        arity: 5,
        since: '6.2.0',
        syntax: 'key groupname consumername',
        flags: ['write', 'denyoom'],
        keys: [keyAt(2, 'RW', 'insert')],
        complexity: 'O(1)',
        summary: 'Makes a consumer in a group.',
        run: createConsumer,
      },
      {
        ...common,
        name: 'delconsumer',
        arity: 5,
        syntax: 'key groupname consumername',
        flags: ['write'],
        keys: [keyAt(2, 'RW', 'delete')],
        complexity: 'O(N), N being the number of its pending entries',
        summary: 'Removes a consumer with its pending entries.',
        run: deleteConsumer,
      },
      {
        ...helpCommand('stream', '5.0.0', [
          'CREATE <key> <groupname> <id|$> [option]',
          '    Create a new consumer group. Options are:',
          '    * MKSTREAM',
          '      Create the empty stream if it does not exist.',
          '    * ENTRIESREAD entries_read',
          "      Set the group's entries_read counter (internal use).",
          'CREATECONSUMER <key> <groupname> <consumer>',
          '    Create a new consumer in the specified group.',
          'DELCONSUMER <key> <groupname> <consumer>',
          '    Remove the specified consumer.',
          'DESTROY <key> <groupname>',
          '    Remove the specified group.',
          'SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]',
          '    Set the current group ID and entries_read counter.',
        ]),
        categories: ['stream'],
      },
    ],
  },
  {
    ...common,
    name: 'xack',
    arity: -4,
    syntax: 'key group id...',
    flags: ['write', 'fast'],
    keys: [keyAt(1, 'RW', 'update')],
    complexity: 'O(log(N)) for each id, N being the number of pending entries',
    summary: 'Takes entries off the list of those that are pending.',
    run: xack,
  },
  {
    ...common,
    name: 'xpending',
    arity: -3,
    syntax: 'key group [filters([IDLE min-idle-time:integer] start:string end:string count [consumer])]',
    flags: ['readonly'],
    keys: [keyAt(1, 'RO', 'access')],
    complexity: 'O(log(N)+M) for N pending entries and M that are looked at',
    tips: ['nondeterministic_output'],
    summary: 'Tells which entries are pending, and whose they are.',
    run: xpending,
  },
  {
    ...common,
    name: 'xclaim',
    arity: -6,
    syntax:
      'key group consumer min-idle-time id... [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] ' +
      '[FORCE] [JUSTID] [LASTID id]',
    flags: ['write', 'fast'],
    keys: [keyAt(1, 'RW', 'update')],
    complexity: 'O(log(N)) for each id, N being the number of pending entries',
    tips: ['nondeterministic_output'],
    summary: 'Makes pending entries those of another consumer.',
    run: xclaim,
  },
  {
    ...common,
    name: 'xautoclaim',
    arity: -6,
    since: '6.2.0',
    syntax: 'key group consumer min-idle-time start:string [COUNT count] [JUSTID]',
    flags: ['write', 'fast'],
    keys: [keyAt(1, 'RW', 'delete')],
    complexity: 'O(M*log(N)) for N pending entries and M that are looked at',
    tips: ['nondeterministic_output'],
    summary: 'Makes entries that have been pending for long those of another consumer.',
    run: xautoclaim,
  },
];
