/** HELP subcommands: the same frame for every container. */
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';

/** The HELP subcommand of a container; `lines` are Redis's, without the frame. */
export function helpCommand(group: string, since: string, lines: readonly string[]): Command {
  return {
    name: 'help',
    arity: 2,
    flags: ['loading', 'stale'],
    categories: [],
    group,
    since,
    complexity: 'O(1)',
    summary: 'Lists the subcommands',
    run: ({ args, reply }: Context) => {
      const name = args[0].latin1().toUpperCase();
      reply.array(lines.length + 3);
      reply.simple(`${name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:`);
      for (const line of lines) reply.simple(line);
      reply.simple('HELP');
      reply.simple('    Prints this help.');
    },
  };
}

/** What Redis says of a subcommand whose arguments do not fit. */
export function wrongSubcommand(context: Context): CommandError {
  const [container, sub] = context.args;
  return new CommandError(
    `ERR unknown subcommand or wrong number of arguments for '${sub.latin1().slice(0, 128)}'. ` +
      `Try ${container.latin1().toUpperCase()} HELP.`,
  );
}
