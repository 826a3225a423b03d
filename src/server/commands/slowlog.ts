/** SLOWLOG. */
import { sliceInteger } from '../../bytes/number.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { helpCommand, wrongSubcommand } from './help.ts';

/** Entries shown unless a number is given. */
const COUNT = 10;

function get(context: Context): void {
  const { argc, args, server, reply } = context;
  if (argc > 3) throw wrongSubcommand(context);
  let count = COUNT;
  if (argc === 3) {
    count = sliceInteger(args[2]);
    if (!(count >= -1)) throw new CommandError('ERR count should be greater than or equal to -1');
  }
  const entries = count === -1 ? server.slowlog.entries : server.slowlog.entries.slice(0, count);
  reply.array(entries.length);
  for (const entry of entries) {
    reply.array(6);
    reply.integer(entry.id);
    reply.integer(entry.time);
    reply.integer(entry.microseconds);
    reply.array(entry.args.length);
    for (const argument of entry.args) reply.bulkBytes(argument);
    reply.bulkString(entry.address);
    reply.bulkString(entry.name);
  }
}

const slowlog = {
  flags: ['admin', 'loading', 'stale'],
  categories: [],
  group: 'server',
  since: '2.2.12',
} as const;

export const slowlogCommands: readonly Command[] = [
  {
    name: 'slowlog',
    arity: -2,
    flags: [],
    categories: [],
    group: 'server',
    since: '2.2.12',
    complexity: 'Depends on the subcommand',
    summary: 'The latest slow commands',
    subcommands: [
      {
        ...slowlog,
        name: 'get',
        arity: -2,
        syntax: '[count]',
        complexity: 'O(N) with N entries shown',
        tips: ['request_policy:all_nodes', 'nondeterministic_output'],
        summary: 'Shows entries, newest first',
        run: get,
      },
      {
        ...slowlog,
        name: 'len',
        arity: 2,
        complexity: 'O(1)',
        tips: ['request_policy:all_nodes', 'response_policy:agg_sum', 'nondeterministic_output'],
        summary: 'Counts the entries',
        run: ({ server, reply }) => reply.integer(server.slowlog.entries.length),
      },
      {
        ...slowlog,
        name: 'reset',
        arity: 2,
        complexity: 'O(N) with N entries',
        tips: ['request_policy:all_nodes', 'response_policy:all_succeeded'],
        summary: 'Forgets all entries',
        run: ({ server, reply }) => {
          server.slowlog.reset();
          reply.ok();
        },
      },
      helpCommand('server', '6.2.0', [
        'GET [<count>]',
        '    Return top <count> entries from the slowlog (default: 10, -1 mean all).',
        '    Entries are made of:',
        '    id, timestamp, time in microseconds, arguments array, client IP and port,',
        '    client name',
        'LEN',
        '    Return the length of the slowlog.',
        'RESET',
        '    Reset the slowlog.',
      ]),
    ],
  },
];
