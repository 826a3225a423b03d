/** LATENCY. */
import { CommandError, type Command } from '../command.ts';
import type { CommandEntry } from '../command-entry.ts';
import type { Context } from '../context.ts';
import { helpCommand } from './help.ts';

function latest({ server, reply }: Context): void {
  const { events } = server.latency;
  reply.array(events.size);
  for (const [event, { samples, max }] of events) {
    const last = samples.at(-1)!;
    reply.array(4);
    reply.bulkString(event);
    reply.integer(last.time);
    reply.integer(last.milliseconds);
    reply.integer(max);
  }
}

function history({ args, server, reply }: Context): void {
  const samples = server.latency.events.get(args[2].latin1())?.samples ?? [];
  reply.array(samples.length);
  for (const { time, milliseconds } of samples) {
    reply.array(2);
    reply.integer(time);
    reply.integer(milliseconds);
  }
}

function reset({ argc, args, server, reply }: Context): void {
  const { latency } = server;
  const events = argc > 2 ? args.slice(2, argc).map((name) => name.latin1()) : [...latency.events.keys()];
  reply.integer(events.filter((event) => latency.reset(event)).length);
}

const LEVELS = '_-=#';
const GRAPH_COLUMNS = 60;

function graph({ args, server, reply, now }: Context): void {
  const name = args[2].latin1();
  const series = server.latency.events.get(name);
  if (series === undefined) throw new CommandError(`ERR No samples available for event '${name}'`);
  const samples = series.samples.slice(-GRAPH_COLUMNS);
  const high = Math.max(...samples.map((sample) => sample.milliseconds));
  const low = Math.min(...samples.map((sample) => sample.milliseconds));
  const level = (milliseconds: number): string =>
    LEVELS[high === low ? 0 : Math.round(((milliseconds - low) / (high - low)) * (LEVELS.length - 1))];
  const age = (time: number): string => {
    const seconds = Math.max(0, Math.floor(now / 1000) - time);
    return seconds < 60
      ? `${seconds}s`
      : seconds < 3600
        ? `${Math.floor(seconds / 60)}m`
        : `${Math.floor(seconds / 3600)}h`;
  };
  const line = samples.map((sample) => level(sample.milliseconds)).join('');
  const span = `${age(samples[0].time)} ago`.padEnd(Math.max(line.length - 3, 0));
  reply.verbatim(
    `${name} - high ${high} ms, low ${low} ms (all time high ${series.max} ms)\n${'-'.repeat(80)}\n${line}\n${span}now\n`,
  );
}

function doctor({ server, reply }: Context): void {
  const { latency } = server;
  const lines: string[] = [];
  if (latency.threshold === 0)
    lines.push(
      'Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> switches it on.',
    );
  else if (latency.events.size === 0) lines.push('No latency spike has been seen.');
  for (const [event, { samples, max }] of latency.events) {
    const mean = samples.reduce((sum, sample) => sum + sample.milliseconds, 0) / samples.length;
    lines.push(`${event}: ${samples.length} spikes, mean ${mean.toFixed(0)} ms, worst ${max} ms`);
  }
  for (const [kind, milliseconds] of latency.longestSlices)
    lines.push(`longest slice of ${kind}: ${milliseconds.toFixed(2)} ms`);
  reply.verbatim(`${lines.join('\n')}\n`);
}

function histogram({ argc, args, server, reply }: Context): void {
  const asked: CommandEntry[] = [];
  if (argc === 2) asked.push(...server.lookup.all());
  for (let i = 2; i < argc; i++) {
    const entry = server.lookup.get(args[i].latin1());
    if (entry !== undefined) asked.push(entry, ...(entry.subcommands?.values() ?? []));
  }
  const shown = asked.filter((entry) => entry.histogram !== null);
  reply.map(shown.length);
  for (const { fullName, histogram: counts } of shown) {
    const steps = counts!.cumulative();
    reply.bulkString(fullName);
    reply.map(2);
    reply.bulkString('calls');
    reply.integer(counts!.total);
    reply.bulkString('histogram_usec');
    reply.map(steps.length);
    for (const [microseconds, count] of steps) {
      reply.integer(microseconds);
      reply.integer(count);
    }
  }
}

const latency = {
  flags: ['admin', 'noscript', 'loading', 'stale'],
  categories: [],
  group: 'server',
  since: '2.8.13',
  complexity: 'O(1)',
  tips: ['nondeterministic_output', 'request_policy:all_nodes', 'response_policy:special'],
} as const;

export const latencyCommands: readonly Command[] = [
  {
    name: 'latency',
    arity: -2,
    flags: [],
    categories: [],
    group: 'server',
    since: '2.8.13',
    complexity: 'Depends on the subcommand',
    summary: 'Latency spikes and durations of commands',
    subcommands: [
      { ...latency, name: 'latest', arity: 2, summary: 'The latest spike of each event', run: latest },
      {
        ...latency,
        name: 'history',
        arity: 3,
        syntax: 'event',
        summary: 'The spikes of an event',
        run: history,
      },
      {
        ...latency,
        name: 'graph',
        arity: 3,
        syntax: 'event',
        summary: 'Draws the spikes of an event',
        run: graph,
      },
      { ...latency, name: 'doctor', arity: 2, summary: 'A report in words', run: doctor },
      {
        ...latency,
        name: 'reset',
        arity: -2,
        syntax: '[event...]',
        tips: ['request_policy:all_nodes', 'response_policy:all_succeeded'],
        summary: 'Forgets spikes',
        run: reset,
      },
      {
        ...latency,
        name: 'histogram',
        arity: -2,
        syntax: '[command...]',
        since: '7.0.0',
        complexity: 'O(N) with N commands',
        summary: 'Durations of commands, cumulative',
        run: histogram,
      },
      helpCommand('server', '2.8.13', [
        'DOCTOR',
        '    Return a human readable latency analysis report.',
        'GRAPH <event>',
        '    Return an ASCII latency graph for the <event> class.',
        'HISTORY <event>',
        '    Return time-latency samples for the <event> class.',
        'LATEST',
        '    Return the latest latency samples for all events.',
        'RESET [<event> ...]',
        '    Reset latency data of one or more <event> classes.',
        '    (default: reset all data for all event classes)',
        'HISTOGRAM [COMMAND ...]',
        '    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.',
        '    If no commands are specified then all histograms are replied.',
      ]),
    ],
  },
];
