/**
 * Servers that load and save a file: ours with each engine, Redis, any program by its command line, and
 * any server that runs already. Each knows how a file comes into it, and what of that time is the load.
 */
import { copyFileSync, linkSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SaveLoadTarget } from '../../results/save-load-results.ts';
import { splitCommandLine } from '../../workloads/command-line.ts';
import { ardentArguments, optionWords } from '../ardent-command.ts';
import { Child, freePort } from '../child.ts';
import { ControlConnection } from '../control-connection.ts';
import type { Address } from '../load-spec.ts';
import { ENGINE_LABELS, TargetError } from '../target.ts';
import { replayFile } from './replay.ts';

const POLL_MS = 5;
const DUMP = 'dump.rdb';

/** What a life of a server is to be. */
export interface LifeOptions {
  /** Fresh, and the server's own. */
  directory: string;
  /** File for what the server prints. */
  log: string;
  /** Bytes of memory that it may use for data; null: its own default. */
  memoryBytes: number | null;
  compression: boolean;
  checksum: boolean;
  /** Seconds that a load or a save may take. */
  timeoutSeconds: number;
}

export interface Loaded {
  /** Until all of it is served. */
  seconds: number;
  /** The same and until the engine has it; null where there is no difference. */
  settledSeconds: number | null;
}

export interface Saved {
  seconds: number;
  /** Null when the file cannot be seen from here. */
  path: string | null;
  bytes: number | null;
}

export interface RunningServer {
  address: Address;
  control: ControlConnection;
  pid: number | null;
  startSeconds: number | null;
  death(): string | null;
  save(): Promise<Saved>;
  /** For servers that load while they run; others are started with the file. */
  load?(file: string): Promise<Loaded>;
  stop(): Promise<void>;
}

export interface SaveLoadServer {
  info: SaveLoadTarget;
  /** Starts it empty, or with a file that it loads while it starts. */
  start(options: LifeOptions, file: string | null): Promise<RunningServer & { loaded: Loaded | null }>;
}

/** A server's file under another name, without copying where that can be. */
export function placeFile(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** SAVE, and the file that it leaves. */
async function saveOver(
  control: ControlConnection,
  command: string,
  expected: string | null,
): Promise<Saved> {
  const began = performance.now();
  await control.call(command);
  const seconds = (performance.now() - began) / 1000;
  let path = expected;
  if (path === null) {
    try {
      const value = async (name: string): Promise<string> =>
        ((await control.call(`CONFIG GET ${name}`)) as string[])[1];
      path = join(await value('dir'), await value('dbfilename'));
    } catch {
      return { seconds, path: null, bytes: null };
    }
  }
  try {
    return { seconds, path, bytes: statSync(path).size };
  } catch {
    return { seconds, path: null, bytes: null };
  }
}

interface Started {
  child: Child;
  address: Address;
  control: ControlConnection;
  seconds: number;
}

async function startChild(
  label: string,
  command: string,
  args: (port: number) => string[],
  options: LifeOptions,
): Promise<Started> {
  let child: Child | null = null;
  try {
    const port = await freePort();
    const began = performance.now();
    child = await Child.start(command, args(port), options.directory, options.log);
    const address = { host: '127.0.0.1', port };
    const timeoutMs = options.timeoutSeconds * 1000;
    const control = await ControlConnection.openWhenUp(address, timeoutMs, child, timeoutMs);
    return { child, address, control, seconds: (performance.now() - began) / 1000 };
  } catch (error) {
    await child?.stop('SIGKILL');
    throw new TargetError(`${label} did not start: ${(error as Error).message}`);
  }
}

/** What all that were started here have in common. */
function running({ child, address, control, seconds }: Started): Omit<RunningServer, 'save'> {
  return {
    address,
    control,
    pid: child.pid,
    startSeconds: seconds,
    death: () => (child.running ? null : child.obituary()),
    async stop() {
      control.close();
      // Its directory is not used again: an orderly end would only cost time.
      await child.stop('SIGKILL');
    },
  };
}

/** Our own server, which imports while it runs. */
export function ardentServer(
  engine: string,
  format: 'rdb' | 'image',
  settings: Record<string, string> = {},
): SaveLoadServer {
  const name = ENGINE_LABELS[engine] ?? engine;
  const info: SaveLoadTarget = {
    id: format === 'image' ? `${engine}-image` : engine,
    label: format === 'image' ? `${name} (image)` : name,
    kind: 'ardent',
    version: '',
    commandLine: ['ardent server', ...optionWords({ engine, ...settings })].join(' '),
    format,
    loadedBy: 'IMPORT on a running server',
  };
  return {
    info,
    async start(options, file) {
      const data = join(options.directory, 'data');
      const started = await startChild(
        info.label,
        process.execPath,
        (port) =>
          ardentArguments(port, data, {
            engine,
            rdbcompression: options.compression ? 'yes' : 'no',
            rdbchecksum: options.checksum ? 'yes' : 'no',
            ...(options.memoryBytes === null ? {} : { 'tier-memory': String(options.memoryBytes) }),
            ...settings,
          }),
        options,
      );
      const { control } = started;
      info.version = (await control.info()).ardent_version ?? info.version;
      const load = async (path: string): Promise<Loaded> => {
        const began = performance.now();
        await control.call('IMPORT', path);
        const seconds = (performance.now() - began) / 1000;
        await settled(control);
        return { seconds, settledSeconds: (performance.now() - began) / 1000 };
      };
      return {
        ...running(started),
        loaded: file === null ? null : await load(file),
        load,
        save: () =>
          saveOver(
            control,
            format === 'image' ? 'SAVE image' : 'SAVE',
            format === 'image' ? join(data, 'dump.image') : null,
          ),
      };
    },
  };
}

/** Until the engine has all that was written. */
async function settled(control: ControlConnection): Promise<void> {
  for (;;) {
    const info = await control.info();
    if (info.import_unsettled_bytes === undefined || info.import_unsettled_bytes === '0') return;
    await sleep(POLL_MS);
  }
}

/** Seconds, as Redis and its relatives write them into their log when they have loaded a file. */
function loadSecondsIn(log: string): number | null {
  const match = /DB loaded from disk: ([\d.]+) seconds/.exec(readFileSync(log, 'latin1'));
  return match === null ? null : Number(match[1]);
}

/** Redis, or any server by a command line that has `{port}` and `{dir}`: it finds the file when it starts. */
function loadingAtStart(
  info: SaveLoadTarget,
  command: string,
  args: (port: number, options: LifeOptions) => string[],
): SaveLoadServer {
  let emptySeconds: number | null = null;
  return {
    info,
    async start(options, file) {
      if (file !== null) placeFile(file, join(options.directory, DUMP));
      const started = await startChild(info.label, command, (port) => args(port, options), options);
      const server = await started.control.info();
      info.version = server.valkey_version ?? server.redis_version ?? info.version;
      if (file === null) emptySeconds ??= started.seconds;
      const loaded: Loaded | null =
        file === null
          ? null
          : {
              seconds: loadSecondsIn(options.log) ?? Math.max(0, started.seconds - (emptySeconds ?? 0)),
              settledSeconds: null,
            };
      return {
        ...running(started),
        startSeconds: file === null ? started.seconds : emptySeconds,
        loaded,
        save: () => saveOver(started.control, 'SAVE', null),
      };
    },
  };
}

const LOADED_AT_START = 'while it starts, as its log tells; else the start with the file less one without';

export function redisServer(executable: string): SaveLoadServer {
  return loadingAtStart(
    {
      id: 'redis',
      label: 'Redis',
      kind: 'redis',
      version: '',
      commandLine: "redis-server --save '' --appendonly no",
      format: 'rdb',
      loadedBy: LOADED_AT_START,
    },
    executable,
    (port, { directory, memoryBytes, compression, checksum }) => [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--dbfilename', DUMP],
      ...['--save', '', '--appendonly', 'no', '--enable-debug-command', 'yes'],
      ...['--rdbcompression', compression ? 'yes' : 'no', '--rdbchecksum', checksum ? 'yes' : 'no'],
      ...(memoryBytes === null
        ? []
        : ['--maxmemory', String(memoryBytes), '--maxmemory-policy', 'noeviction']),
    ],
  );
}

/** @param line a command line with `{port}` and `{dir}`; the file lies in the directory as dump.rdb */
export function commandServer(name: string, line: string): SaveLoadServer {
  const [command, ...words] = splitCommandLine(line);
  if (!line.includes('{port}')) {
    throw new RangeError(`${name}=${line}: the command needs {port}, and {dir} for where dump.rdb lies`);
  }
  return loadingAtStart(
    {
      id: name,
      label: name,
      kind: 'command',
      version: '',
      commandLine: line,
      format: 'rdb',
      loadedBy: LOADED_AT_START,
    },
    command,
    (port, { directory, memoryBytes }) =>
      words.map((word) =>
        word
          .replaceAll('{port}', String(port))
          .replaceAll('{dir}', directory)
          .replaceAll('{memory}', String(memoryBytes ?? 0)),
      ),
  );
}

/** A server that somebody else runs: emptied, and filled by ordinary commands. */
export function foreignServer(name: string, address: Address): SaveLoadServer {
  const place = address.path ?? `${address.host}:${address.port}`;
  const info: SaveLoadTarget = {
    id: name,
    label: name,
    kind: 'foreign',
    version: '',
    commandLine: place,
    format: 'rdb',
    loadedBy: 'commands over the wire',
  };
  return {
    info,
    async start(options, file) {
      let control: ControlConnection;
      try {
        control = await ControlConnection.open(address, options.timeoutSeconds * 1000);
      } catch (error) {
        throw new TargetError(
          `${name} (${place}) cannot be reached: ${(error as Error).message || 'no answer'}`,
        );
      }
      const server = await control.info();
      info.version = server.ardent_version ?? server.valkey_version ?? server.redis_version ?? '';
      await control.call('FLUSHALL');
      let dead: string | null = null;
      const load = async (path: string): Promise<Loaded> => {
        await control.call('FLUSHALL');
        const began = performance.now();
        await replayFile(path, address);
        return { seconds: (performance.now() - began) / 1000, settledSeconds: null };
      };
      const local = address.path !== undefined || ['127.0.0.1', 'localhost', '::1'].includes(address.host);
      return {
        address,
        control,
        pid: local && server.process_id !== undefined ? Number(server.process_id) : null,
        startSeconds: null,
        loaded: file === null ? null : await load(file),
        load,
        death: () => dead,
        save: () => saveOver(control, 'SAVE', null),
        async stop() {
          dead = 'the bench has left it';
          control.close();
        },
      };
    },
  };
}
