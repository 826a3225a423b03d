/** CONFIG. */
import { matchGlob } from '../../bytes/glob.ts';
import { Slice } from '../../bytes/slice.ts';
import { CommandError, type Command } from '../command.ts';
import { ConfigError, findParameter, parameterNames } from '../config.ts';
import { rewriteConfigFile } from '../config-file.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { PROTECTED } from '../parameters.ts';
import { helpCommand } from './help.ts';

function get({ argc, args, server, reply }: Context): void {
  const { config } = server;
  const found = new Map<string, string>();
  for (let i = 2; i < argc; i++) {
    const name = args[i].latin1();
    if (!/[[*?]/.test(name)) {
      const parameter = findParameter(name);
      if (parameter !== undefined && !found.has(name)) found.set(name, config.getAs(name));
      continue;
    }
    for (const [known] of parameterNames()) {
      if (config.isHidden(known) || found.has(known)) continue;
      if (matchGlob(args[i], Slice.from(known), true)) found.set(known, config.getAs(known));
    }
  }
  reply.map(found.size);
  for (const [name, value] of found) {
    reply.bulkString(name);
    reply.bulkBytes(Buffer.from(value, 'latin1'));
  }
}

function set(context: Context): void {
  const { argc, args, client, server, reply } = context;
  if (argc % 2 !== 0) throw syntaxError();
  const pairs: [string, string][] = [];
  for (let i = 2; i < argc; i += 2) pairs.push([args[i].latin1(), args[i + 1].latin1()]);
  const allowed = server.config.text('enable-protected-configs');
  const mayChange = allowed === 'yes' || (allowed === 'local' && client.local);
  const before = pairs.flatMap(([name]): [string, string][] => {
    const parameter = findParameter(name);
    return parameter === undefined ? [] : [[parameter.name, server.config.get(parameter.name)]];
  });
  try {
    server.config.set(pairs, (parameter) =>
      PROTECTED.has(parameter.name) && !mayChange ? "can't set protected config" : undefined,
    );
  } catch (error) {
    if (error instanceof ConfigError) throw new CommandError(`ERR ${error.message}`);
    throw error;
  }
  const moved = before.find(([name, value]) => ADDRESSES.has(name) && server.config.get(name) !== value);
  if (moved !== undefined) listenAnew(context, moved[0], before);
  else reply.ok();
}

/** Parameters that mean other listening sockets. */
const ADDRESSES = new Set(['port', 'bind']);

/** Replies when the new listeners are there; when one fails everything is as before. */
function listenAnew({ client, server }: Context, name: string, before: readonly [string, string][]): void {
  const { config, network, logger } = server;
  server.suspend(client);
  network.openTcp(config.number('port')).then(
    () => server.proceed(client, (output) => output.ok()),
    (error: unknown) => {
      logger.warn((error as Error).message);
      config.set(before, () => undefined);
      server.proceed(client, (output) =>
        output.error(
          `ERR CONFIG SET failed (possibly related to argument '${name}') - ` +
            'Unable to listen on this port. Check server logs.',
        ),
      );
    },
  );
}

function resetStat({ server, reply }: Context): void {
  server.statistics.reset();
  for (const entry of server.lookup.all()) entry.resetStatistics();
  reply.ok();
}

function rewrite({ server, reply }: Context): void {
  const { config, logger } = server;
  if (config.file === null) throw new CommandError('ERR The server is running without a config file');
  try {
    rewriteConfigFile(config, config.file);
  } catch (error) {
    throw new CommandError(`ERR Rewriting config file: ${(error as Error).message}`);
  }
  logger.warn('CONFIG REWRITE executed with success.');
  reply.ok();
}

/** Values of parameters such as passwords. */
function secretValues(args: readonly Slice[], argc: number): number[] {
  const secrets: number[] = [];
  for (let i = 2; i + 1 < argc; i += 2)
    if (findParameter(args[i].latin1())?.sensitive === true) secrets.push(i + 1);
  return secrets;
}

const admin = {
  flags: ['admin', 'noscript', 'loading', 'stale'],
  categories: [],
  group: 'server',
} as const;

export const configCommands: readonly Command[] = [
  {
    name: 'config',
    arity: -2,
    flags: [],
    categories: [],
    group: 'server',
    since: '2.0.0',
    complexity: 'Depends on the subcommand',
    summary: 'Reads and changes parameters',
    subcommands: [
      {
        ...admin,
        name: 'get',
        arity: -3,
        syntax: 'parameter(parameter)...',
        since: '2.0.0',
        complexity: 'O(N) with N parameters asked for',
        summary: 'Values of parameters',
        run: get,
      },
      {
        ...admin,
        name: 'set',
        arity: -4,
        syntax: 'parameter_value(parameter value)...',
        since: '2.0.0',
        complexity: 'O(N) with N parameters',
        tips: ['request_policy:all_nodes', 'response_policy:all_succeeded'],
        summary: 'Changes parameters, all of them or none',
        secrets: secretValues,
        run: set,
      },
      {
        ...admin,
        name: 'resetstat',
        arity: 2,
        since: '2.0.0',
        complexity: 'O(1)',
        summary: 'Sets the counters of INFO to zero',
        run: resetStat,
      },
      {
        ...admin,
        name: 'rewrite',
        arity: 2,
        since: '2.8.0',
        complexity: 'O(1)',
        summary: 'Writes the parameters to the configuration file',
        run: rewrite,
      },
      helpCommand('server', '5.0.0', [
        'GET <pattern>',
        '    Return parameters matching the glob-like <pattern> and their values.',
        'SET <directive> <value>',
        '    Set the configuration <directive> to <value>.',
        'RESETSTAT',
        '    Reset statistics reported by the INFO command.',
        'REWRITE',
        '    Rewrite the configuration file.',
      ]),
    ],
  },
];
