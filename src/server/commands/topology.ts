/** One server alone: what it says of replication and clusters. */
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { sliceInteger } from '../../bytes/number.ts';
import { TIMEOUT_NEGATIVE } from '../errors.ts';
import { helpCommand } from './help.ts';

const NO_CLUSTER = 'ERR This instance has cluster support disabled';

function refuseCluster(): void {
  throw new CommandError(NO_CLUSTER);
}

function role({ server, reply }: Context): void {
  reply.array(3);
  reply.bulkString('master');
  reply.integer(server.log?.position ?? 0);
  reply.array(0);
}

function replicaOf(context: Context): void {
  if (!context.is(1, 'no') || !context.is(2, 'one'))
    throw new CommandError('ERR this server cannot replicate from another');
  context.reply.ok();
}

/** There are no replicas to wait for: all that can pass is the time. */
function wait(context: Context): void {
  const { args, reply } = context;
  const replicas = context.integer(1);
  const timeout = sliceInteger(args[2]);
  if (Number.isNaN(timeout)) throw new CommandError('ERR timeout is not an integer or out of range');
  if (timeout < 0) throw new CommandError(TIMEOUT_NEGATIVE);
  if (replicas <= 0 || !context.mayBlock) {
    reply.integer(0);
    return;
  }
  context.block({ keys: [], timeoutMs: timeout, onTimeout: (output) => output.integer(0) });
}

const clusterState = {
  flags: ['stale'],
  categories: [],
  group: 'cluster',
  since: '3.0.0',
  run: refuseCluster,
} as const;

const varying = { tips: ['nondeterministic_output'] } as const;
const admin = { flags: ['admin', 'stale', 'no_async_loading'] } as const;

const clusterSubcommands: readonly Command[] = [
  { ...clusterState, ...varying, name: 'info', arity: 2, summary: 'State of the cluster' },
  { ...clusterState, ...varying, name: 'nodes', arity: 2, summary: 'Nodes of the cluster' },
  {
    ...clusterState,
    ...varying,
    name: 'slots',
    arity: 2,
    deprecated: { since: '7.0.0', use: '`CLUSTER SHARDS`' },
    summary: 'Which node serves which slots',
  },
  { ...clusterState, ...varying, name: 'shards', arity: 2, since: '7.0.0', summary: 'Shards of the cluster' },
  {
    ...clusterState,
    ...varying,
    name: 'links',
    arity: 2,
    since: '7.0.0',
    summary: 'Connections between nodes',
  },
  { ...clusterState, name: 'myid', arity: 2, summary: 'The id of this node' },
  { ...clusterState, name: 'keyslot', arity: 3, syntax: 'key:string', summary: 'The slot of a key' },
  {
    ...clusterState,
    name: 'countkeysinslot',
    arity: 3,
    syntax: 'slot',
    summary: 'Counts the keys of a slot',
  },
  {
    ...clusterState,
    ...varying,
    name: 'getkeysinslot',
    arity: 4,
    syntax: 'slot count',
    summary: 'Keys of a slot',
  },
  {
    ...clusterState,
    ...admin,
    name: 'meet',
    arity: -4,
    syntax: 'ip port [cluster_bus_port]',
    summary: 'Joins two nodes',
  },
  {
    ...clusterState,
    name: 'reset',
    arity: -2,
    syntax: '[hard_soft(HARD|SOFT)]',
    flags: ['admin', 'noscript', 'stale'],
    summary: 'Leaves the cluster',
  },
  {
    ...clusterState,
    ...varying,
    name: 'replicas',
    arity: 3,
    syntax: 'node-id',
    flags: ['admin', 'stale'],
    since: '5.0.0',
    summary: 'Replicas of a node',
  },
];

/** There are no modules, and none can be loaded; clients ask for the list. */
const moduleCommand: Command = {
  name: 'module',
  arity: -2,
  flags: [],
  categories: [],
  group: 'server',
  since: '4.0.0',
  complexity: 'depends on the subcommand',
  summary: 'Extensions of the server: there are none',
  subcommands: [
    {
      name: 'list',
      arity: 2,
      flags: ['admin', 'noscript'],
      categories: [],
      group: 'server',
      since: '4.0.0',
      complexity: 'O(1)',
      tips: ['nondeterministic_output_order'],
      summary: 'Lists the modules: none',
      run: ({ reply }) => reply.array(0),
    },
    helpCommand('server', '5.0.0', ['LIST', '    Return a list of loaded modules.']),
  ],
};

export const topologyCommands: readonly Command[] = [
  moduleCommand,
  {
    name: 'role',
    arity: 1,
    flags: ['noscript', 'loading', 'stale', 'fast'],
    categories: ['admin', 'dangerous'],
    group: 'server',
    since: '2.8.12',
    complexity: 'O(1)',
    summary: 'The role of the server in replication',
    run: role,
  },
  ...(['replicaof', 'slaveof'] as const).map((name): Command => ({
    name,
    arity: 3,
    syntax: 'args(host-port(host port)|no-one(NO ONE))',
    flags: ['admin', 'noscript', 'stale', 'no_async_loading'],
    categories: [],
    group: 'server',
    since: name === 'replicaof' ? '5.0.0' : '1.0.0',
    deprecated: name === 'slaveof' ? { since: '5.0.0', use: '`REPLICAOF`' } : undefined,
    complexity: 'O(1)',
    summary: 'Makes the server a replica, or a master of its own',
    run: replicaOf,
  })),
  {
    name: 'wait',
    arity: 3,
    syntax: 'numreplicas timeout:integer',
    flags: ['noscript'],
    categories: ['connection'],
    group: 'generic',
    since: '3.0.0',
    complexity: 'O(1)',
    tips: ['request_policy:all_shards', 'response_policy:agg_min'],
    summary: 'Waits until replicas have the writes of this connection',
    run: wait,
  },
  ...(['readonly', 'readwrite'] as const).map((name): Command => ({
    name,
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    categories: ['connection'],
    group: 'cluster',
    since: '3.0.0',
    complexity: 'O(1)',
    summary: 'Whether a cluster’s replica may answer reads',
    run: refuseCluster,
  })),
  {
    name: 'cluster',
    arity: -2,
    flags: [],
    categories: [],
    group: 'cluster',
    since: '3.0.0',
    complexity: 'Depends on the subcommand',
    summary: 'Clusters',
    subcommands: [...clusterSubcommands, { ...helpCommand('cluster', '5.0.0', []), run: refuseCluster }],
  },
];
