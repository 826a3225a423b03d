/**
 * Targets: servers that the bench starts itself (ardent with each engine, Redis), and servers that
 * somebody else runs, reached by address.
 */
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { TargetInfo } from '../results/document.ts';
import { ardentArguments, optionWords } from './ardent-command.ts';
import { Child, freePort, freshDirectory, removeDirectory } from './child.ts';
import { ControlConnection } from './control-connection.ts';
import type { Address } from './load-spec.ts';

/** A target could not be reached or started. */
export class TargetError extends Error {
  readonly code = 'TARGET';
}

export interface RunningTarget {
  address: Address;
  control: ControlConnection;
  /** Null when the process is not ours to see. */
  pid: number | null;
  dataDirectory: string | null;
  startSeconds: number | null;
  /** Null while it lives; else how it ended. */
  death(): string | null;
  stop(): Promise<void>;
}

export interface Target {
  info: TargetInfo;
  start(): Promise<RunningTarget>;
}

const START_TIMEOUT_MS = 30_000;

/** First executable of that name on the PATH, or the path itself; null when there is none. */
export function findExecutable(name: string): string | null {
  const candidates = name.includes('/')
    ? [name]
    : (process.env.PATH ?? '').split(delimiter).map((directory) => join(directory, name));
  for (const candidate of candidates) {
    try {
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      // The next one.
    }
  }
  return null;
}

/** A target that is started fresh on a free port. */
function ownTarget(
  info: TargetInfo,
  command: string,
  args: (port: number, directory: string) => string[],
  below?: string,
): Target {
  return {
    info,
    async start() {
      const directory = freshDirectory(info.id, below);
      let child: Child | null = null;
      try {
        const port = await freePort();
        const began = performance.now();
        child = await Child.start(command, args(port, directory), directory, join(directory, 'output.log'));
        const address = { host: '127.0.0.1', port };
        const control = await ControlConnection.openWhenUp(address, START_TIMEOUT_MS, child);
        const startSeconds = (performance.now() - began) / 1000;
        const process = child;
        const server = await control.info();
        info.version = server.ardent_version ?? server.redis_version ?? info.version;
        Object.assign(info.settings, await settingsOf(info, control));
        if (info.mode === 'engine-bound' && server.tier_limit_bytes !== '0') {
          throw new Error(`it keeps ${server.tier_limit_bytes} bytes in memory, so it is not engine-bound`);
        }
        return {
          address,
          control,
          pid: process.pid,
          dataDirectory: directory,
          startSeconds,
          death: () => (process.running ? null : process.obituary()),
          async stop() {
            control.close();
            // The data go with the directory: an orderly end would only cost time.
            await process.stop('SIGKILL');
            removeDirectory(directory);
          },
        };
      } catch (error) {
        await child?.stop('SIGKILL');
        removeDirectory(directory);
        throw new TargetError(`${info.label} did not start: ${(error as Error).message}`);
      }
    },
  };
}

/** What the server says of its settings, those not given included. */
async function settingsOf(info: TargetInfo, control: ControlConnection): Promise<Record<string, string>> {
  const patterns =
    info.kind === 'ardent'
      ? [`${info.engine}.*`, 'tier-memory', 'appendfsync', 'checkpoint-*']
      : ['appendonly', 'appendfsync', 'save', 'maxmemory', 'io-threads'];
  const settings: Record<string, string> = {};
  for (const pattern of patterns) {
    const words = (await control.call(`CONFIG GET ${pattern}`)) as string[];
    for (let at = 0; at + 1 < words.length; at += 2) settings[words[at]] = words[at + 1];
  }
  return settings;
}

export interface RedisOptions {
  executable: string;
  durability: 'none' | 'everysec' | 'always';
  /** A column to look at, not a base. */
  reference: boolean;
  below?: string;
}

const LOSES = {
  none: 'everything since the last snapshot; here none is taken, so everything',
  everysec: 'up to about a second of writes',
  always: 'nothing that was acknowledged',
} as const;

export function redisTarget(options: RedisOptions): Target {
  const { durability } = options;
  const settings: Record<string, string> = {
    save: '""',
    appendonly: durability === 'none' ? 'no' : 'yes',
    ...(durability === 'none' ? {} : { appendfsync: durability }),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => [
    `--${name}`,
    value === '""' ? '' : value,
  ]);
  return ownTarget(
    {
      id: durability === 'none' ? 'redis-none' : `redis-${durability}`,
      label: durability === 'none' ? 'Redis (no persistence)' : `Redis (AOF ${durability})`,
      kind: 'redis',
      reference: options.reference,
      version: '',
      durability: { class: durability, loses: LOSES[durability] },
      address: '',
      commandLine: `redis-server ${Object.entries(settings)
        .map(([name, value]) => `--${name} ${value}`)
        .join(' ')}`,
      settings,
    },
    options.executable,
    (port, directory) => ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, ...args],
    options.below,
  );
}

export interface ArdentOptions {
  engine: string;
  mode: 'served' | 'engine-bound';
  durability: 'no' | 'everysec' | 'always';
  /** Further server options, as `name` and value. */
  settings: Record<string, string>;
  below?: string;
}

export const ENGINE_LABELS: Record<string, string> = { leveldb: 'LevelDB', lmdb: 'LMDB', rocksdb: 'RocksDB' };

export function ardentTarget(options: ArdentOptions): Target {
  const settings: Record<string, string> = {
    engine: options.engine,
    appendfsync: options.durability,
    ...(options.mode === 'engine-bound' ? { 'tier-memory': '0' } : {}),
    ...options.settings,
  };
  const label = ENGINE_LABELS[options.engine] ?? options.engine;
  return ownTarget(
    {
      id: options.mode === 'served' ? options.engine : `${options.engine}-bound`,
      label: options.mode === 'served' ? label : `${label} (engine-bound)`,
      kind: 'ardent',
      engine: options.engine,
      mode: options.mode,
      reference: false,
      version: '',
      durability:
        options.durability === 'no'
          ? { class: 'none', loses: 'what the operating system had not written yet' }
          : { class: options.durability, loses: LOSES[options.durability] },
      address: '',
      commandLine: `ardent server ${optionWords(settings).join(' ')}`,
      settings,
    },
    process.execPath,
    (port, directory) => ardentArguments(port, join(directory, 'data'), settings),
    options.below,
  );
}

export interface ForeignOptions {
  name: string;
  address: Address;
  /** Allowed to delete what it holds. */
  allowFlush: boolean;
}

/** A server that somebody else runs. It is never stopped, and flushed only when that was allowed. */
export function foreignTarget(options: ForeignOptions): Target {
  const { address, name } = options;
  const place = address.path ?? `${address.host}:${address.port}`;
  const info: TargetInfo = {
    id: name,
    label: name,
    kind: 'foreign',
    reference: false,
    version: '',
    durability: { class: 'unknown', loses: 'not known to the bench' },
    address: place,
    commandLine: '',
    settings: {},
  };
  return {
    info,
    async start() {
      let control: ControlConnection;
      try {
        control = await ControlConnection.open(address);
      } catch (error) {
        throw new TargetError(
          `${name === place ? place : `${name} (${place})`} cannot be reached: ${(error as Error).message || 'no answer'}`,
        );
      }
      if (options.allowFlush) await control.call('FLUSHALL');
      const server = await control.info();
      info.version = server.ardent_version ?? server.valkey_version ?? server.redis_version ?? '';
      Object.assign(info.durability, await durabilityOf(control));
      let dead: string | null = null;
      // What one node of a cluster uses says nothing of the whole.
      const visible = address.cluster !== true && server.process_id !== undefined;
      const local = address.path !== undefined || ['127.0.0.1', 'localhost', '::1'].includes(address.host);
      return {
        address,
        control,
        pid: local && visible ? Number(server.process_id) : null,
        dataDirectory: null,
        startSeconds: null,
        death: () => dead,
        async stop() {
          dead = 'the bench has left it';
          control.close();
        },
      };
    },
  };
}

async function durabilityOf(control: ControlConnection): Promise<Partial<TargetInfo['durability']>> {
  try {
    const value = async (name: string): Promise<string | undefined> =>
      ((await control.call(`CONFIG GET ${name}`)) as string[])[1];
    if ((await value('appendonly')) !== 'yes') return {};
    const fsync = await value('appendfsync');
    if (fsync === 'everysec' || fsync === 'always') return { class: fsync, loses: LOSES[fsync] };
  } catch {
    // No CONFIG: it stays unknown.
  }
  return {};
}
