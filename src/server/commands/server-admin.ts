/** The server itself: time, saving, ending, watching. */
import { CommandError, type Command } from '../command.ts';
import { Gate } from '../client.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { REDIS_VERSION } from '../version.ts';

function time({ reply }: Context): void {
  const micros = Math.floor((performance.timeOrigin + performance.now()) * 1000);
  reply.array(2);
  reply.bulkString(String(Math.floor(micros / 1e6)));
  reply.bulkString(String(micros % 1e6));
}

const CANNOT_END = 'ERR Errors trying to SHUTDOWN. Check logs.';

function shutdown(context: Context): void {
  const { argc, server, client } = context;
  const words = new Set<string>();
  for (let i = 1; i < argc; i++) {
    const word = context.word(i);
    if (!['save', 'nosave', 'now', 'force', 'abort'].includes(word)) throw syntaxError();
    words.add(word);
  }
  if ((words.has('abort') && words.size > 1) || (words.has('save') && words.has('nosave')))
    throw syntaxError();
  // Ending is one step here, which nothing can interrupt.
  if (words.has('abort')) throw new CommandError('ERR No shutdown in progress.');
  const end = server.options.shutdown;
  if (end === undefined) throw new CommandError('ERR this server cannot be ended by a command');
  server.suspend(client);
  const request = { nosave: words.has('nosave'), reason: `SHUTDOWN from ${client.address}` };
  const saved = request.nosave ? server.persistence.stop() : server.persistence.beforeEnd(words.has('save'));
  saved.then(
    () => end(request),
    () => {
      if (words.has('force')) end(request);
      else server.proceed(client, (output) => output.error(CANNOT_END));
    },
  );
}

function monitor({ server, client, reply, mayBlock }: Context): void {
  if (!mayBlock) throw new CommandError("ERR MONITOR isn't allowed for DENY BLOCKING client");
  client.monitor = true;
  server.monitors.add(client);
  server.setGate(Gate.Monitored, true);
  reply.ok();
}

/** A small picture that differs each time: a row of rising lines, drawn by the dice. */
function lolwut(context: Context): void {
  const { argc, reply } = context;
  const version = argc > 2 && context.is(1, 'version') ? context.integer(2) : 7;
  const rows: string[] = [];
  for (let row = 0; row < 4; row++) {
    let line = '';
    for (let column = 0; column < 24; column++) line += ' .:|'[Math.floor(context.random() * (row + 1))];
    rows.push(line);
  }
  reply.verbatim(`${rows.join('\n')}\nRedis ver. ${REDIS_VERSION} (drawing ${version})\n`);
}

export const serverAdminCommands: readonly Command[] = [
  {
    name: 'time',
    arity: 1,
    flags: ['loading', 'stale', 'fast'],
    categories: [],
    group: 'server',
    since: '2.6.0',
    complexity: 'O(1)',
    tips: ['nondeterministic_output'],
    summary: 'The server’s clock: seconds and microseconds',
    run: time,
  },
  {
    name: 'shutdown',
    arity: -1,
    syntax: '[nosave_save(NOSAVE|SAVE)] [NOW] [FORCE] [ABORT]',
    flags: ['admin', 'noscript', 'loading', 'stale', 'no_multi', 'allow_busy'],
    categories: [],
    group: 'server',
    since: '1.0.0',
    complexity: 'O(N) with N changed rows, O(1) with NOSAVE',
    summary: 'Ends the server',
    run: shutdown,
  },
  {
    name: 'monitor',
    arity: 1,
    flags: ['admin', 'noscript', 'loading', 'stale'],
    categories: [],
    group: 'server',
    since: '1.0.0',
    summary: 'Shows every command as it is run',
    run: monitor,
  },
  {
    name: 'lolwut',
    arity: -1,
    syntax: '[VERSION version]',
    flags: ['readonly', 'fast'],
    categories: [],
    group: 'server',
    since: '5.0.0',
    summary: 'Draws something and tells the version',
    run: lolwut,
  },
];
