/** MEMORY. */
import v8 from 'node:v8';
import vm from 'node:vm';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { formatDouble, sliceInteger } from '../../bytes/number.ts';
import { NOT_INTEGER, syntaxError } from '../errors.ts';
import { Type, type Store } from '../../store/api.ts';
import type { Server } from '../server.ts';
import { helpCommand } from './help.ts';
import { keyAt } from './key-specs.ts';

function usage(context: Context): void {
  const { argc, args, db, reply } = context;
  for (let i = 3; i < argc; i += 2) {
    if (!context.is(i, 'samples') || i + 1 >= argc) throw syntaxError();
    // The tier knows the size of a value without looking at samples of it.
    const samples = sliceInteger(args[i + 1]);
    if (Number.isNaN(samples)) throw new CommandError(NOT_INTEGER);
    if (samples < 0) throw syntaxError();
  }
  if (db.type(args[2]) === Type.None) reply.null();
  else reply.integer(db.memoryUsage(args[2]));
}

function stats({ server, store, reply }: Context): void {
  const process_ = process.memoryUsage();
  const { used, limit, blocks, slabs, chunks } = store.memory;
  const peak = Math.max(server.statistics.peakMemory, used);
  let keys = 0;
  for (let i = 0; i < store.databaseCount; i++) keys += store.database(i).size;
  let clients = 0;
  for (const client of server.clients.values()) clients += client.outputBytes + client.reader.capacity;
  // What Redis tells and we do not have is 0: client libraries expect each of its fields.
  const fields: [name: string, value: number, double?: true][] = [
    ['peak.allocated', peak],
    ['total.allocated', used],
    ['startup.allocated', 0],
    ['replication.backlog', 0],
    ['clients.slaves', 0],
    ['clients.normal', clients],
    ['cluster.links', 0],
    ['aof.buffer', server.effects?.capacity ?? 0],
    ['lua.caches', 0],
    ['functions.caches', 0],
    ['overhead.total', 0],
    ['tier.limit', limit],
    ['heap.used', process_.heapUsed],
    ['heap.total', process_.heapTotal],
    ['external', process_.external],
    ['keys.count', keys],
    ['keys.bytes-per-key', keys === 0 ? 0 : Math.floor(used / keys)],
    ['dataset.bytes', used],
    ['dataset.percentage', used === 0 ? 0 : 100, true],
    ['peak.percentage', peak === 0 ? 0 : (used * 100) / peak, true],
    ['allocator.allocated', blocks],
    ['allocator.active', slabs],
    ['allocator.resident', chunks],
    ['allocator-fragmentation.ratio', blocks === 0 ? 0 : slabs / blocks, true],
    ['allocator-fragmentation.bytes', slabs - blocks],
    ['allocator-rss.ratio', slabs === 0 ? 0 : chunks / slabs, true],
    ['allocator-rss.bytes', chunks - slabs],
    ['rss-overhead.ratio', chunks === 0 ? 0 : process_.rss / chunks, true],
    ['rss-overhead.bytes', process_.rss - chunks],
    ['process.resident', process_.rss],
    ['fragmentation', used === 0 ? 0 : process_.rss / used, true],
    ['fragmentation.bytes', process_.rss - used],
  ];
  reply.map(fields.length);
  for (const [name, value, double] of fields) {
    reply.bulkString(name);
    if (double === true) reply.double(formatDouble(value));
    else reply.integer(value);
  }
}

/** Buffers that requests, replies and rows have left behind go back with V8's next collection, which may be long in coming. */
function collectGarbage(): void {
  v8.setFlagsFromString('--expose-gc');
  (vm.runInNewContext('gc') as () => void)();
}

/** Commands in a hundred that waited for the engine, from which on the tier is too small for what is used. */
const WAITS_MANY = 5;
/** Fetches from which on they can be judged. */
const FETCHES_JUDGED = 100;

/** What to do when much of what commands need is not in memory. */
function residencyAdvice(server: Server, store: Store): string[] {
  const { complete, fetchRounds, keys, residentKeys } = store.residency();
  const waits = (100 * fetchRounds) / Math.max(1, server.commandsProcessed());
  if (complete || fetchRounds < FETCHES_JUDGED || waits < WAITS_MANY) return [];
  return [
    `What is used does not fit in memory: ${fetchRounds} fetches from the engine for ${server.commandsProcessed()} commands, ` +
      `${residentKeys} of ${keys} keys are in memory. Raise tier-memory (${store.memory.limit} bytes).`,
  ];
}

function doctor({ server, store, reply }: Context): void {
  const { used, limit } = store.memory;
  const lines: string[] = [];
  if (server.options.evicts === true) lines.push(...residencyAdvice(server, store));
  else if (limit > 0 && used > limit * 0.9)
    lines.push(
      `The memory tier holds ${used} of ${limit} bytes: writes will soon be refused. Raise tier-memory or delete data.`,
    );
  const outputs = [...server.clients.values()].filter((client) => client.outputBytes > 1024 * 1024);
  if (outputs.length > 0)
    lines.push(`${outputs.length} clients have more than 1 MB of replies waiting: they read too slowly.`);
  if (lines.length === 0) lines.push('No memory problem was found.');
  reply.verbatim(`${lines.join('\n')}\n`);
}

const PURGE_MS = 5;

const shards = { categories: [], group: 'server', since: '4.0.0' } as const;

export const memoryCommands: readonly Command[] = [
  {
    name: 'memory',
    arity: -2,
    flags: [],
    categories: [],
    group: 'server',
    since: '4.0.0',
    complexity: 'Depends on the subcommand',
    summary: 'Tells of memory',
    subcommands: [
      {
        ...shards,
        name: 'usage',
        arity: -3,
        syntax: 'key [SAMPLES count]',
        flags: ['readonly'],
        complexity: 'O(1)',
        summary: 'Bytes that a key and its value take',
        keys: [keyAt(2, 'RO')],
        run: usage,
      },
      {
        ...shards,
        name: 'stats',
        arity: 2,
        flags: [],
        complexity: 'O(N) with N connections',
        tips: ['nondeterministic_output', 'request_policy:all_shards', 'response_policy:special'],
        summary: 'What the memory is used for',
        run: stats,
      },
      {
        ...shards,
        name: 'doctor',
        arity: 2,
        flags: [],
        complexity: 'O(N) with N connections',
        tips: ['nondeterministic_output', 'request_policy:all_shards', 'response_policy:special'],
        summary: 'Memory problems, in words',
        run: doctor,
      },
      {
        ...shards,
        name: 'malloc-stats',
        arity: 2,
        flags: [],
        complexity: 'O(1)',
        tips: ['nondeterministic_output', 'request_policy:all_shards', 'response_policy:special'],
        summary: 'Figures of the allocator',
        run: ({ reply }) => reply.bulkString('Stats not supported for the current allocator'),
      },
      {
        ...shards,
        name: 'purge',
        arity: 2,
        flags: [],
        complexity: 'O(1)',
        tips: ['request_policy:all_shards', 'response_policy:all_succeeded'],
        summary: 'Gives free memory back to the system',
        run: ({ store, reply }) => {
          store.backgroundSlice(PURGE_MS);
          store.defragment(PURGE_MS);
          collectGarbage();
          reply.ok();
        },
      },
      helpCommand('server', '4.0.0', [
        'DOCTOR',
        '    Return memory problems reports.',
        'MALLOC-STATS',
        '    Return internal statistics report from the memory allocator.',
        'PURGE',
        '    Attempt to purge dirty pages for reclamation by the allocator.',
        'STATS',
        '    Return information about the memory usage of the server.',
        'USAGE <key> [SAMPLES <count>]',
        '    Return memory in bytes used by <key> and its value. Nested values are',
        '    sampled up to <count> times (default: 5, 0 means sample all).',
      ]),
    ],
  },
];
