/** INFO. */
import type { Command } from '../command.ts';
import { infoText } from '../info.ts';

export const infoCommands: readonly Command[] = [
  {
    name: 'info',
    arity: -1,
    syntax: '[section...]',
    flags: ['loading', 'stale'],
    categories: ['dangerous'],
    group: 'server',
    since: '1.0.0',
    complexity: 'O(1)',
    tips: ['nondeterministic_output', 'request_policy:all_shards', 'response_policy:special'],
    summary: 'State and statistics of the server',
    run: ({ argc, args, server, reply }) => {
      const asked = args.slice(1, argc).map((name) => name.latin1());
      reply.verbatim(infoText(server, asked));
    },
  },
];
