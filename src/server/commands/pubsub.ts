/** Publish and subscribe: channels, patterns and shard channels. */
import { matchGlob } from '../../bytes/glob.ts';
import { Slice } from '../../bytes/slice.ts';
import type { Command } from '../command.ts';
import type { Client } from '../client.ts';
import type { Context } from '../context.ts';
import type { SubscriptionKind } from '../pubsub.ts';
import { helpCommand, wrongSubcommand } from './help.ts';
import { keyAt, keysFrom } from './key-specs.ts';

function publish(context: Context, sharded: boolean): void {
  const { args, server, reply } = context;
  const receivers = server.pubsub.receivers(args[1].toBuffer(), sharded);
  if (receivers > 0) context.message(args[1], args[2], sharded);
  reply.integer(receivers);
}

function subscribe(kind: SubscriptionKind): (context: Context) => void {
  return ({ argc, args, client, server, reply }) => {
    for (let i = 1; i < argc; i++) server.pubsub.subscribe(client, kind, args[i].latin1(), reply);
  };
}

function unsubscribe(kind: SubscriptionKind): (context: Context) => void {
  return ({ argc, args, client, server, reply }) => {
    const names = args.slice(1, argc).map((name) => name.latin1());
    server.pubsub.unsubscribe(client, kind, names, reply);
  };
}

function listChannels(table: ReadonlyMap<string, ReadonlySet<Client>>, context: Context): void {
  const { argc, args, reply } = context;
  if (argc > 3) throw wrongSubcommand(context);
  const names = [...table.keys()].map((name) => Slice.from(Buffer.from(name, 'latin1')));
  const shown = argc > 2 ? names.filter((name) => matchGlob(args[2], name)) : names;
  reply.array(shown.length);
  for (const name of shown) reply.bulk(name);
}

function countSubscribers(table: ReadonlyMap<string, ReadonlySet<Client>>, context: Context): void {
  const { argc, args, reply } = context;
  reply.array((argc - 2) * 2);
  for (let i = 2; i < argc; i++) {
    reply.bulk(args[i]);
    reply.integer(table.get(args[i].latin1())?.size ?? 0);
  }
}

const messages = { categories: [], group: 'pubsub', since: '2.0.0' } as const;
const subscription = { ...messages, flags: ['pubsub', 'noscript', 'loading', 'stale'] } as const;
const listing = { ...messages, since: '2.8.0', flags: ['pubsub', 'loading', 'stale'] } as const;

export const pubsubCommands: readonly Command[] = [
  {
    ...messages,
    name: 'publish',
    arity: 3,
    syntax: 'channel message',
    flags: ['pubsub', 'loading', 'stale', 'fast', 'may_replicate'],
    complexity: 'O(N+M) with N subscribers of the channel and M patterns',
    summary: 'Sends a message to the subscribers of a channel',
    run: (context) => publish(context, false),
  },
  {
    ...messages,
    name: 'spublish',
    arity: 3,
    syntax: 'shardchannel message',
    flags: ['pubsub', 'loading', 'stale', 'fast', 'may_replicate'],
    since: '7.0.0',
    complexity: 'O(N) with N subscribers of the channel',
    summary: 'Sends a message to the subscribers of a shard channel',
    keys: [keyAt(1, 'not_key')],
    run: (context) => publish(context, true),
  },
  {
    ...subscription,
    name: 'subscribe',
    arity: -2,
    syntax: 'channel...',
    complexity: 'O(N) with N channels',
    summary: 'Listens to channels',
    run: subscribe('channel'),
  },
  {
    ...subscription,
    name: 'psubscribe',
    arity: -2,
    syntax: 'pattern(pattern)...',
    complexity: 'O(N) with N patterns',
    summary: 'Listens to all channels whose names match patterns',
    run: subscribe('pattern'),
  },
  {
    ...subscription,
    name: 'ssubscribe',
    arity: -2,
    syntax: 'shardchannel...',
    since: '7.0.0',
    complexity: 'O(N) with N shard channels',
    summary: 'Listens to shard channels',
    keys: [keysFrom(1, -1, 'not_key')],
    run: subscribe('shard'),
  },
  {
    ...subscription,
    name: 'unsubscribe',
    arity: -1,
    syntax: '[channel...]',
    complexity: 'O(N) with N channels',
    summary: 'Stops listening to channels',
    run: unsubscribe('channel'),
  },
  {
    ...subscription,
    name: 'punsubscribe',
    arity: -1,
    syntax: '[pattern...]',
    complexity: 'O(N+M) with N patterns of the client and M in all',
    summary: 'Stops listening to patterns',
    run: unsubscribe('pattern'),
  },
  {
    ...subscription,
    name: 'sunsubscribe',
    arity: -1,
    syntax: '[shardchannel...]',
    since: '7.0.0',
    complexity: 'O(N) with N shard channels',
    summary: 'Stops listening to shard channels',
    keys: [keysFrom(1, -1, 'not_key')],
    run: unsubscribe('shard'),
  },
  {
    name: 'pubsub',
    arity: -2,
    flags: [],
    categories: [],
    group: 'pubsub',
    since: '2.8.0',
    complexity: 'Depends on the subcommand',
    summary: 'Tells of channels and subscribers',
    subcommands: [
      {
        ...listing,
        name: 'channels',
        arity: -2,
        syntax: '[pattern]',
        complexity: 'O(N) with N active channels',
        summary: 'Lists channels that have subscribers',
        run: (context) => listChannels(context.server.pubsub.channels, context),
      },
      {
        ...listing,
        name: 'numsub',
        arity: -2,
        syntax: '[channel...]',
        complexity: 'O(N) with N channels asked for',
        summary: 'Counts the subscribers of channels',
        run: (context) => countSubscribers(context.server.pubsub.channels, context),
      },
      {
        ...listing,
        name: 'numpat',
        arity: 2,
        complexity: 'O(1)',
        summary: 'Counts the patterns that clients listen to',
        run: ({ server, reply }) => reply.integer(server.pubsub.patterns.size),
      },
      {
        ...listing,
        name: 'shardchannels',
        arity: -2,
        syntax: '[pattern]',
        since: '7.0.0',
        complexity: 'O(N) with N active shard channels',
        summary: 'Lists shard channels that have subscribers',
        run: (context) => listChannels(context.server.pubsub.shards, context),
      },
      {
        ...listing,
        name: 'shardnumsub',
        arity: -2,
        syntax: '[shardchannel...]',
        since: '7.0.0',
        complexity: 'O(N) with N shard channels asked for',
        summary: 'Counts the subscribers of shard channels',
        run: (context) => countSubscribers(context.server.pubsub.shards, context),
      },
      helpCommand('pubsub', '6.2.0', [
        'CHANNELS [<pattern>]',
        "    Return the currently active channels matching a <pattern> (default: '*').",
        'NUMPAT',
        '    Return number of subscriptions to patterns.',
        'NUMSUB [<channel> ...]',
        '    Return the number of subscribers for the specified channels, excluding',
        '    pattern subscriptions(default: no channels).',
        'SHARDCHANNELS [<pattern>]',
        "    Return the currently active shard level channels matching a <pattern> (default: '*').",
        'SHARDNUMSUB [<shardchannel> ...]',
        '    Return the number of subscribers for the specified shard level channel(s)',
      ]),
    ],
  },
];
