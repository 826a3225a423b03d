/** Every configuration parameter, as data. Names, values and error texts are Redis's where Redis has them. */
import { parseSize } from '../bytes/size.ts';
import { ENGINE_OPTIONS } from '../engines/options.ts';
import { splitWords } from '../resp/request-parser.ts';

interface Common {
  name: string;
  /** Redis's older name for the same parameter; listed and settable too. */
  alias?: string;
  /** What a value under the older name is under this one. */
  aliasValues?: Readonly<Record<string, string>>;
  /** Only at the start. */
  immutable?: true;
  /** Not shown in MONITOR and SLOWLOG. */
  sensitive?: true;
  /** What it is for, in one line, for `--help`; absent for those that are only accepted for the sake of clients. */
  help?: string;
}

export type Parameter = Common &
  (
    | { kind: 'boolean'; default: boolean }
    | {
        kind: 'number';
        default: number;
        min: number;
        max: number;
        /** Values beyond these are accepted, and brought back to them. */
        clamp?: readonly [number, number];
        /** `memory`: with units as 512mb; `octal`: file permissions. */
        unit?: 'memory' | 'octal';
        /** A negative value is a percentage and may be written with a percent sign. */
        percent?: true;
        /** The word `auto` stands for -1. */
        auto?: true;
      }
    | {
        kind: 'text';
        default: string;
        /** A name in a directory, no path. */
        fileName?: true;
        /** Of a directory: CONFIG GET tells it absolute. */
        directory?: true;
      }
    | { kind: 'choice'; default: string; choices: readonly string[] }
    /** A list of words with rules of its own. `parse` returns the canonical text, or throws Redis's complaint. */
    | { kind: 'words'; default: string; parse: (words: string[], current: string) => string }
  );

/** Why a value is refused. */
export class ParameterError extends Error {}

const INT_MAX = 2 ** 31 - 1;
const UINT_MAX = 2 ** 32 - 1;
/** Redis's LONG_MAX as far as a double is exact. */
const LONG_MAX = Number.MAX_SAFE_INTEGER;
const KB = 1024;
const MB = 1024 * KB;
const GB = 1024 * MB;

const flag = (name: string, value: boolean, more: Partial<Common> = {}): Parameter => ({
  name,
  kind: 'boolean',
  default: value,
  ...more,
});
const integer = (
  name: string,
  value: number,
  min: number,
  max: number,
  more: Partial<Common> & { clamp?: readonly [number, number] } = {},
): Parameter => ({ name, kind: 'number', default: value, min, max, ...more });
const bytes = (
  name: string,
  value: number,
  min: number,
  max: number,
  more: Partial<Common> = {},
): Parameter => ({ name, kind: 'number', unit: 'memory', default: value, min, max, ...more });
const text = (
  name: string,
  value: string,
  more: Partial<Common> & { fileName?: true; directory?: true } = {},
): Parameter => ({
  name,
  kind: 'text',
  default: value,
  ...more,
});
const choice = (
  name: string,
  value: string,
  choices: readonly string[],
  more: Partial<Common> = {},
): Parameter => ({ name, kind: 'choice', default: value, choices, ...more });
const words = (
  name: string,
  value: string,
  parse: (words: string[], current: string) => string,
  more: Partial<Common> = {},
): Parameter => ({ name, kind: 'words', default: value, parse, ...more });
const atStart = { immutable: true } as const;

/** Classes of clients with output limits of their own. */
const OUTPUT_CLASSES = ['normal', 'slave', 'pubsub'] as const;
export type OutputClass = (typeof OUTPUT_CLASSES)[number];

export interface OutputLimit {
  /** Bytes; 0: none. */
  hard: number;
  soft: number;
  softSeconds: number;
}

export function outputLimits(value: string): Record<OutputClass, OutputLimit> {
  const limits: Record<string, OutputLimit> = {};
  const parts = value.split(' ');
  for (let i = 0; i < parts.length; i += 4)
    limits[parts[i]] = { hard: +parts[i + 1], soft: +parts[i + 2], softSeconds: +parts[i + 3] };
  return limits;
}

function parseOutputLimits(parts: string[], current: string): string {
  if (parts.length % 4 !== 0)
    throw new ParameterError('Wrong number of arguments in buffer limit configuration.');
  const limits = outputLimits(current);
  for (let i = 0; i < parts.length; i += 4) {
    const name = parts[i].toLowerCase() === 'replica' ? 'slave' : parts[i].toLowerCase();
    const kind = OUTPUT_CLASSES.find((known) => known === name);
    if (kind === undefined)
      throw new ParameterError('Invalid client class specified in buffer limit configuration.');
    const hard = parseSize(parts[i + 1]);
    const soft = parseSize(parts[i + 2]);
    if (hard === undefined || soft === undefined || !/^[0-9]+$/.test(parts[i + 3]))
      throw new ParameterError('Error in hard, soft or soft_seconds setting in buffer limit configuration.');
    limits[kind] = { hard, soft, softSeconds: Number(parts[i + 3]) };
  }
  return OUTPUT_CLASSES.map((kind) => {
    const { hard, soft, softSeconds } = limits[kind];
    return `${kind} ${hard} ${soft} ${softSeconds}`;
  }).join(' ');
}

/** Classes that `A` stands for, in the order in which they are shown. */
const EVENT_CLASSES_ALL = 'g$lshzxetd';

function parseEvents(parts: string[]): string {
  const given = parts.join(' ');
  const letters = new Set(given.replace('A', EVENT_CLASSES_ALL));
  for (const letter of letters)
    if (!'g$lshzxetdnKEm'.includes(letter))
      throw new ParameterError("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
  const all = [...EVENT_CLASSES_ALL].every((letter) => letters.has(letter));
  const shown = all ? 'A' : [...EVENT_CLASSES_ALL, 'n'].filter((letter) => letters.has(letter)).join('');
  const beside = all ? ['K', 'E', 'm', 'n'] : ['K', 'E', 'm'];
  return shown + beside.filter((letter) => letters.has(letter)).join('');
}

/** Event classes of a canonical `notify-keyspace-events` value. */
export function eventClasses(value: string): Set<string> {
  return new Set(value.replace('A', EVENT_CLASSES_ALL));
}

function parseSave(parts: string[]): string {
  if (parts.length === 1 && parts[0] === '') return '';
  const bad = parts.some((part, i) => !/^-?[0-9]+$/.test(part) || Number(part) < (i % 2 === 0 ? 1 : 0));
  if (parts.length % 2 !== 0 || bad) throw new ParameterError('Invalid save parameters');
  return parts.join(' ');
}

function parsePercentiles(parts: string[]): string {
  if (parts.length === 1 && parts[0] === '') return '';
  return parts
    .map((part) => {
      const value = part === '' ? NaN : Number(part);
      if (Number.isNaN(value))
        throw new ParameterError('Invalid latency-tracking-info-percentiles parameters');
      if (value < 0 || value > 100)
        throw new ParameterError(
          'latency-tracking-info-percentiles parameters should sit between [0.0,100.0]',
        );
      return String(value);
    })
    .join(' ');
}

function parseOomScores(parts: string[]): string {
  if (parts.length !== 3) throw new ParameterError('wrong number of arguments');
  if (parts.some((part) => !/^-?[0-9]+$/.test(part) || Math.abs(Number(part)) > 2000))
    throw new ParameterError('Invalid oom-score-adj-values, elements must be between -2000 and 2000.');
  return parts.join(' ');
}

function parseShutdown(parts: string[]): string {
  const choices = ['default', 'save', 'nosave', 'now', 'force'];
  if (parts.length === 0 || parts.some((part) => !choices.includes(part.toLowerCase())))
    throw new ParameterError(`argument(s) must be one of the following: ${choices.join(', ')}`);
  return parts.join(' ').toLowerCase();
}

/** Parameters that this server acts on. */
const effective: readonly Parameter[] = [
  // Network
  integer('port', 6379, 0, 65535, { help: 'TCP port; 0: none' }),
  words('bind', '* -::*', (parts) => parts.join(' '), {
    help: 'addresses to listen on; -address: no matter if it is not there',
  }),
  text('unixsocket', '', { ...atStart, help: 'path of a unix socket to listen on' }),
  {
    name: 'unixsocketperm',
    kind: 'number',
    unit: 'octal',
    default: 0,
    min: 0,
    max: 0o777,
    ...atStart,
    help: 'permissions of the unix socket, octal',
  },
  integer('tcp-backlog', 511, 0, INT_MAX, { ...atStart, help: 'connections that may wait to be accepted' }),
  integer('timeout', 0, 0, INT_MAX, { help: 'seconds after which an idle client is closed; 0: never' }),
  integer('tcp-keepalive', 300, 0, INT_MAX, { help: 'seconds between TCP keep-alives; 0: none' }),
  integer('maxclients', 10000, 1, UINT_MAX, { help: 'most clients at a time' }),
  flag('protected-mode', true, {
    help: 'without a password, only local connections when no address is bound',
  }),
  text('requirepass', '', { sensitive: true, help: 'password of the default user' }),
  words(
    'client-output-buffer-limit',
    'normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60',
    parseOutputLimits,
    {
      help: 'class hard soft seconds: what may wait for a slow client',
    },
  ),
  bytes('client-query-buffer-limit', GB, MB, LONG_MAX, { help: 'longest unfinished request of a client' }),
  bytes('proto-max-bulk-len', 512 * MB, MB, LONG_MAX, { help: 'longest argument and string' }),
  // General
  flag('daemonize', false, { ...atStart, help: 'run in the background' }),
  text('pidfile', '', { ...atStart, help: 'file that holds the process id' }),
  choice('supervised', 'no', ['upstart', 'systemd', 'auto', 'no'], {
    ...atStart,
    help: 'tell systemd when the server is ready',
  }),
  choice('loglevel', 'notice', ['debug', 'verbose', 'notice', 'warning'], {
    help: 'least level that is logged',
  }),
  text('logfile', '', { ...atStart, help: 'file of the server log; empty: standard output' }),
  integer('databases', 16, 1, 16384, { ...atStart, help: 'number of databases' }),
  integer('hz', 10, 0, INT_MAX, { clamp: [1, 500], help: 'rounds of background work a second' }),
  integer('shutdown-timeout', 10, 0, INT_MAX, {
    help: 'seconds that ending may take; a last checkpoint gets 0.7 of them',
  }),
  choice('enable-debug-command', 'no', ['no', 'yes', 'local'], { ...atStart, help: 'allow DEBUG' }),
  choice('enable-protected-configs', 'no', ['no', 'yes', 'local'], {
    ...atStart,
    help: 'allow CONFIG SET dir and dbfilename',
  }),
  // Data
  text('dir', './ardent-data', { ...atStart, directory: true, help: 'data directory' }),
  choice('engine', 'lmdb', ['leveldb', 'lmdb', 'rocksdb'], {
    ...atStart,
    help: 'what keeps the data on disk',
  }),
  {
    ...bytes('tier-memory', -1, 0, LONG_MAX, {
      alias: 'maxmemory',
      aliasValues: { '0': 'auto' },
      help: 'memory for data; what exceeds it is in the engine only; auto: half of the machine’s, 0: none',
    }),
    auto: true,
  } as Parameter,
  flag('tier-warm-up', true, {
    help: 'after a start read the data into memory, as far as it has room, while they are served',
  }),
  choice('appendfsync', 'everysec', ['everysec', 'always', 'no'], {
    help: 'when the log is forced to disk',
  }),
  bytes('checkpoint-dirty', 512 * MB, MB, LONG_MAX, { help: 'changed bytes that begin a checkpoint' }),
  bytes('checkpoint-dirty-max', GB, MB, LONG_MAX, {
    help: 'changed bytes at which writers are slowed the most',
  }),
  bytes('checkpoint-log', GB, MB, LONG_MAX, { help: 'log bytes that begin a checkpoint' }),
  bytes('checkpoint-log-max', 2 * GB, MB, LONG_MAX, {
    help: 'log bytes at which writers are slowed the most',
  }),
  integer('checkpoint-age', 60, 1, INT_MAX, { help: 'seconds after which changes are checkpointed' }),
  bytes('checkpoint-batch', 64 * MB, MB, GB, { help: 'most bytes of one write to the engine' }),
  integer('random-faults', 0, 0, 100, {
    ...atStart,
    help: 'for tests: percentage of looks at data that find it not in memory',
  }),
  // Dumps
  text('dbfilename', 'dump.rdb', {
    fileName: true,
    help: 'RDB file that SAVE and BGSAVE write in the data directory',
  }),
  words('save', '', parseSave, {
    help: 'seconds and changes after which an RDB file is written, in pairs; empty: never',
  }),
  flag('rdbcompression', true, { help: 'compress strings in RDB files' }),
  flag('rdbchecksum', true, { ...atStart, help: 'end RDB files with a checksum, and check it' }),
  flag('stop-writes-on-bgsave-error', true, {
    help: 'with save points: refuse writes while the last dump failed',
  }),
  // Observation
  integer('slowlog-log-slower-than', 10000, -1, LONG_MAX, {
    help: 'microseconds from which a command is in SLOWLOG; -1: none',
  }),
  integer('slowlog-max-len', 128, 0, LONG_MAX, { help: 'entries of SLOWLOG' }),
  integer('latency-monitor-threshold', 0, 0, LONG_MAX, {
    help: 'milliseconds from which LATENCY records; 0: off',
  }),
  flag('latency-tracking', true, { help: 'keep a histogram of durations for each command' }),
  words('latency-tracking-info-percentiles', '50 99 99.9', parsePercentiles, {
    help: 'percentiles in INFO latencystats',
  }),
  words('notify-keyspace-events', '', parseEvents, { help: 'classes of keyspace events that are published' }),
  integer('tracking-table-max-keys', 1_000_000, 0, LONG_MAX, {
    help: 'keys remembered for client-side caching',
  }),
  // Encodings as they are reported
  integer('hash-max-listpack-entries', 512, 0, LONG_MAX, { alias: 'hash-max-ziplist-entries' }),
  bytes('hash-max-listpack-value', 64, 0, LONG_MAX, { alias: 'hash-max-ziplist-value' }),
  integer('set-max-intset-entries', 512, 0, LONG_MAX),
  integer('zset-max-listpack-entries', 128, 0, LONG_MAX, { alias: 'zset-max-ziplist-entries' }),
  bytes('zset-max-listpack-value', 64, 0, LONG_MAX, { alias: 'zset-max-ziplist-value' }),
];

/** Parameters that clients and tools set or read and that change nothing here. */
const accepted: readonly Parameter[] = [
  words('shutdown-on-sigint', 'default', parseShutdown),
  words('shutdown-on-sigterm', 'default', parseShutdown),
  words('oom-score-adj-values', '0 200 800', parseOomScores),
  choice('oom-score-adj', 'no', ['no', 'yes', 'relative', 'absolute']),
  choice('maxmemory-policy', 'noeviction', [
    'volatile-lru',
    'volatile-lfu',
    'volatile-random',
    'volatile-ttl',
    'allkeys-lru',
    'allkeys-lfu',
    'allkeys-random',
    'noeviction',
  ]),
  integer('maxmemory-samples', 5, 1, INT_MAX),
  integer('maxmemory-eviction-tenacity', 10, 0, 100),
  {
    name: 'maxmemory-clients',
    kind: 'number',
    unit: 'memory',
    percent: true,
    default: 0,
    min: -100,
    max: LONG_MAX,
  },
  flag('appendonly', true),
  text('appendfilename', 'appendonly.aof', atStart),
  text('appenddirname', 'appendonlydir', atStart),
  flag('no-appendfsync-on-rewrite', false),
  integer('auto-aof-rewrite-percentage', 100, 0, INT_MAX),
  bytes('auto-aof-rewrite-min-size', 64 * MB, 0, LONG_MAX),
  flag('aof-load-truncated', true),
  flag('aof-use-rdb-preamble', true),
  flag('aof-rewrite-incremental-fsync', true),
  flag('aof-timestamp-enabled', false),
  flag('aof-disable-auto-gc', false),
  flag('rdb-del-sync-files', false),
  flag('rdb-save-incremental-fsync', true),
  integer('rdb-key-save-delay', 0, -INT_MAX - 1, INT_MAX),
  integer('key-load-delay', 0, -INT_MAX - 1, INT_MAX),
  flag('activerehashing', true),
  flag('activedefrag', false),
  integer('active-defrag-cycle-min', 1, 1, 99),
  integer('active-defrag-cycle-max', 25, 1, 99),
  integer('active-defrag-threshold-lower', 10, 0, 1000),
  integer('active-defrag-threshold-upper', 100, 0, 1000),
  integer('active-defrag-max-scan-fields', 1000, 1, LONG_MAX),
  bytes('active-defrag-ignore-bytes', 100 * MB, 1, LONG_MAX),
  integer('active-expire-effort', 1, 1, 10),
  flag('dynamic-hz', true),
  flag('lazyfree-lazy-eviction', false),
  flag('lazyfree-lazy-expire', false),
  flag('lazyfree-lazy-server-del', false),
  flag('lazyfree-lazy-user-del', false),
  flag('lazyfree-lazy-user-flush', false),
  integer('lfu-log-factor', 10, 0, INT_MAX),
  integer('lfu-decay-time', 1, 0, INT_MAX),
  integer('list-max-listpack-size', -2, -INT_MAX - 1, INT_MAX, { alias: 'list-max-ziplist-size' }),
  integer('list-compress-depth', 0, 0, INT_MAX),
  bytes('stream-node-max-bytes', 4096, 0, LONG_MAX),
  integer('stream-node-max-entries', 100, 0, LONG_MAX),
  bytes('hll-sparse-max-bytes', 3000, 0, LONG_MAX),
  integer('busy-reply-threshold', 5000, 0, LONG_MAX, { alias: 'lua-time-limit' }),
  choice('sanitize-dump-payload', 'no', ['no', 'yes', 'clients']),
  choice('acl-pubsub-default', 'resetchannels', ['allchannels', 'resetchannels']),
  integer('acllog-max-len', 128, 0, LONG_MAX),
  text('aclfile', '', atStart),
  choice('enable-module-command', 'no', ['no', 'yes', 'local'], atStart),
  integer('io-threads', 1, 1, 128, atStart),
  flag('io-threads-do-reads', false, atStart),
  flag('jemalloc-bg-thread', true),
  flag('crash-log-enabled', true),
  flag('crash-memcheck-enabled', true),
  flag('disable-thp', true, atStart),
  flag('set-proc-title', true, atStart),
  text('proc-title-template', '{title} {listen-addr} {server-mode}'),
  flag('always-show-logo', false, atStart),
  flag('syslog-enabled', false, atStart),
  text('syslog-ident', 'redis', atStart),
  text('ignore-warnings', ''),
  text('bind-source-addr', ''),
  integer('socket-mark-id', 0, 0, UINT_MAX, atStart),
  flag('cluster-enabled', false, atStart),
  integer('cluster-node-timeout', 15000, 0, LONG_MAX),
  text('masteruser', '', { sensitive: true }),
  text('masterauth', '', { sensitive: true }),
  words('replicaof', '', (parts) => parts.join(' '), { ...atStart, alias: 'slaveof' }),
  flag('replica-serve-stale-data', true, { alias: 'slave-serve-stale-data' }),
  flag('replica-read-only', true, { alias: 'slave-read-only' }),
  flag('replica-lazy-flush', false, { alias: 'slave-lazy-flush' }),
  flag('replica-ignore-maxmemory', true, { alias: 'slave-ignore-maxmemory' }),
  flag('replica-announced', true),
  integer('replica-priority', 100, 0, INT_MAX, { alias: 'slave-priority' }),
  text('replica-announce-ip', '', { alias: 'slave-announce-ip' }),
  integer('replica-announce-port', 0, 0, 65535, { alias: 'slave-announce-port' }),
  integer('min-replicas-to-write', 0, 0, INT_MAX, { alias: 'min-slaves-to-write' }),
  integer('min-replicas-max-lag', 10, 0, INT_MAX, { alias: 'min-slaves-max-lag' }),
  integer('repl-timeout', 60, 1, INT_MAX),
  integer('repl-ping-replica-period', 10, 1, INT_MAX, { alias: 'repl-ping-slave-period' }),
  flag('repl-disable-tcp-nodelay', false),
  flag('repl-diskless-sync', true),
  integer('repl-diskless-sync-delay', 5, 0, INT_MAX),
  choice('repl-diskless-load', 'disabled', ['disabled', 'on-empty-db', 'swapdb']),
  bytes('repl-backlog-size', MB, 1, LONG_MAX),
  integer('repl-backlog-ttl', 3600, 0, LONG_MAX),
  integer('watchdog-period', 0, 0, INT_MAX),
];

/** The engines' own options, by their own names. */
const engineParameters: readonly Parameter[] = Object.values(ENGINE_OPTIONS)
  .flat()
  .map(({ name, kind, default: value, min, max, help }): Parameter => {
    const common = { name, help, ...atStart };
    if (kind === 'switch') return { ...common, kind: 'boolean', default: value === true };
    const number = { ...common, kind: 'number', default: Number(value), min, max } as const;
    return kind === 'size' ? { ...number, unit: 'memory' } : number;
  });

export const parameters: readonly Parameter[] = [...effective, ...engineParameters, ...accepted];

/** What `--help` lists, in groups. */
export const parameterGroups: Readonly<Record<string, readonly Parameter[]>> = {
  'Server parameters:': effective.filter((parameter) => parameter.help !== undefined),
  'Engine parameters:': engineParameters,
};

/** Parameters that CONFIG GET shows by their exact name only, as Redis does. */
export const HIDDEN = new Set(['watchdog-period', 'rdb-key-save-delay', 'key-load-delay']);
/** Parameters that CONFIG SET changes only where `enable-protected-configs` allows it. */
export const PROTECTED = new Set(['dbfilename']);

/** Reads a value as written in a file or command; throws ParameterError. */
export function parseParameter(
  parameter: Parameter,
  value: string,
  current: string,
): string | number | boolean {
  switch (parameter.kind) {
    case 'boolean': {
      const lower = value.toLowerCase();
      if (lower !== 'yes' && lower !== 'no') throw new ParameterError("argument must be 'yes' or 'no'");
      return lower === 'yes';
    }
    case 'number':
      return parseNumber(parameter, value);
    case 'text':
      if (parameter.fileName === true && value.includes('/'))
        throw new ParameterError(`${parameter.name} can't be a path, just a filename`);
      return value;
    case 'choice': {
      const chosen = parameter.choices.find((name) => name === value.toLowerCase());
      if (chosen === undefined)
        throw new ParameterError(`argument(s) must be one of the following: ${parameter.choices.join(', ')}`);
      return chosen;
    }
    case 'words': {
      const parts = value === '' ? [''] : splitWords(value);
      if (parts === undefined) throw new ParameterError('unbalanced quotes');
      return parameter.parse(parts, current);
    }
  }
}

function parseNumber(parameter: Parameter & { kind: 'number' }, value: string): number {
  let parsed: number | undefined;
  if (parameter.auto === true && value.toLowerCase() === 'auto') return -1;
  if (parameter.unit === 'memory') parsed = parseSize(value);
  else if (parameter.unit === 'octal') parsed = /^[0-7]+$/.test(value) ? parseInt(value, 8) : undefined;
  else if (/^(?:0|-?[1-9][0-9]{0,18})$/.test(value)) parsed = Number(value);
  const percentage = parameter.percent === true && /^([0-9]+)%$/.exec(value);
  if (percentage) {
    parsed = -Number(percentage[1]);
    if (parsed < parameter.min)
      throw new ParameterError(`percentage argument must be less or equal to ${-parameter.min}`);
    return parsed;
  }
  if (parsed === undefined) {
    if (parameter.percent === true) throw new ParameterError('argument must be a memory or percent value');
    if (parameter.unit === 'memory') throw new ParameterError('argument must be a memory value');
    if (parameter.unit === 'octal')
      throw new ParameterError("argument couldn't be parsed as an octal number");
    throw new ParameterError("argument couldn't be parsed into an integer");
  }
  if (parsed < parameter.min || parsed > parameter.max) {
    const [min, max] = [parameter.min, parameter.max].map((bound) => {
      if (bound === LONG_MAX) return '9223372036854775807';
      return parameter.unit === 'octal' ? bound.toString(8) : String(bound);
    });
    throw new ParameterError(`argument must be between ${min} and ${max} inclusive`);
  }
  const [least, most] = parameter.clamp ?? [parsed, parsed];
  return Math.min(Math.max(parsed, least), most);
}

/** A value as CONFIG GET shows it. */
export function showParameter(parameter: Parameter, value: string | number | boolean): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number' && parameter.kind === 'number') {
    if (parameter.unit === 'octal') return value.toString(8);
    if (parameter.percent === true && value < 0) return `${-value}%`;
    if (parameter.auto === true && value < 0) return 'auto';
  }
  return String(value);
}
