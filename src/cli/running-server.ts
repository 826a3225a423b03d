/** A running `ardent server`: from its configuration to connections, and its orderly end. */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { existsSync, unlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pc from 'picocolors';
import { formatSize } from '../bytes/size.ts';
import { ENGINE_OPTIONS, engineMemory } from '../engines/options.ts';
import type { EngineName } from '../engines/engine.ts';
import type { Config } from '../server/config.ts';
import { Server, type InfoFields, type Logger } from '../server/server.ts';
import { VERSION } from '../server/version.ts';
import { OVERDRAFT_BYTES, WORKING_BYTES } from '../store/evictor.ts';
import { checkpointMemory, type CheckpointOptions } from '../store/checkpoint.ts';
import { removeTemporary } from '../store/dump/dump-file.ts';
import { Dumps } from '../store/dump/dumps.ts';
import { Imports } from '../store/dump/imports.ts';
import { DUMP_MEMORY } from '../store/dump/save-slabs.ts';
import { openPersistentStore, type PersistentStore } from '../store/persistent-store.ts';
import type { RecoveryProgress } from '../store/recovery.ts';
import { Tier } from '../store/tier.ts';
import { EXIT } from './exit-codes.ts';
import { openLogger } from './server-log.ts';

/** A recovery shorter than this (ms) is not seen by clients: the port opens after it. A longer one answers -LOADING. */
const QUIET_START_MS = 3000;
/** Milliseconds between two lines that tell of recovery. */
const PROGRESS_MS = 2000;
/** Anonymous memory beside tier, engine and checkpoint: the program, its threads' heaps, buffers of connections. */
const OTHER_MEMORY = 200 * 1024 * 1024;
/** Milliseconds that connections have to take their last replies. */
const GOODBYE_MS = 100;
/** Of `shutdown-timeout`, what a last checkpoint may take; the rest is for the log, the engine and the connections. */
const CHECKPOINT_SHARE = 0.7;

function banner(config: Config): string {
  const port = config.number('port');
  const socket = config.text('unixsocket');
  const policy = config.text('appendfsync');
  const durability = {
    everysec: 'every reply after its log entry is written; synced once a second',
    always: 'every reply after its log entry is synced to disk',
    no: 'every reply after its log entry is written; synced when the system likes',
  }[policy];
  const tier = config.number('tier-memory');
  const rows: [string, string][] = [
    ['engine', config.text('engine')],
    ['directory', path.resolve(config.text('dir'))],
    ['memory', tier < 0 ? 'half of the machine’s' : tier === 0 ? 'none for data' : formatSize(tier)],
    ['durability', `${policy}: ${durability}`],
  ];
  if (port !== 0) rows.push(['listening', `port ${port} on ${config.text('bind')}`]);
  if (socket !== '') rows.push(['socket', socket]);
  rows.push(['connect', port !== 0 ? `redis-cli -p ${port}` : `redis-cli -s ${socket}`]);
  const lines = rows.map(([name, value]) => `  ${pc.dim(name.padEnd(11))}${value}`);
  return `\n  ${pc.bold('Ardent')} ${VERSION}\n\n${lines.join('\n')}\n\n`;
}

function engineOptions(config: Config): Record<string, number | boolean> {
  const engine = config.text('engine') as EngineName;
  const options: Record<string, number | boolean> = {};
  for (const { name, kind } of ENGINE_OPTIONS[engine])
    if (config.changed.has(name)) options[name] = kind === 'switch' ? config.flag(name) : config.number(name);
  return options;
}

/** Checkpoint limits as the store takes them. */
function checkpointLimits(config: Config): CheckpointOptions {
  return {
    dirtyBytes: config.number('checkpoint-dirty'),
    dirtyBytesMax: config.number('checkpoint-dirty-max'),
    logBytes: config.number('checkpoint-log'),
    logBytesMax: config.number('checkpoint-log-max'),
    ageMs: config.number('checkpoint-age') * 1000,
    batchBytes: config.number('checkpoint-batch'),
  };
}

const LIMIT_PARAMETERS = [
  'checkpoint-dirty',
  'checkpoint-dirty-max',
  'checkpoint-log',
  'checkpoint-log-max',
  'checkpoint-age',
  'checkpoint-batch',
];

/** A server process: store, server, signals, and an orderly end. */
export class RunningServer {
  private readonly config: Config;
  private readonly logger: Logger;
  private readonly store: Tier;
  private readonly server: Server;
  private readonly imports: Imports;
  private persistent: PersistentStore<Tier> | null = null;
  private ending: Promise<void> | null = null;
  private pidFile = '';

  constructor(config: Config) {
    this.config = config;
    this.logger = openLogger(config);
    this.store = new Tier({ databases: config.number('databases') });
    this.imports = new Imports(
      this.store,
      path.resolve(config.text('dir')),
      () => this.server.context.encodingLimits,
    );
    this.server = new Server({
      store: this.store,
      imports: this.imports,
      evicts: true,
      loading: true,
      config,
      logger: this.logger,
      shutdown: ({ nosave, reason }) => void this.end(reason, EXIT.ok, nosave),
      onFatal: (error) => this.fatal(error),
    });
  }

  /** Rejects when it cannot serve; then nothing is listened on any more. */
  async start(): Promise<void> {
    try {
      await this.begin();
    } catch (error) {
      this.server.network.close();
      throw error;
    }
  }

  private async begin(): Promise<void> {
    const { config, logger, server } = this;
    for (const signal of ['SIGTERM', 'SIGINT'] as const)
      process.on(signal, () => {
        if (this.ending !== null) process.exit(128 + (signal === 'SIGTERM' ? 15 : 2));
        void this.endBySignal(signal);
      });
    process.on('uncaughtException', (error) => this.fatal(error));
    process.on('unhandledRejection', (error) => this.fatal(error));
    server.statistics.loopDelay.start();
    server.sections = { memory: () => this.memoryAccount() };
    const chance = config.number('random-faults') / 100;
    if (chance > 0) {
      const seed = Number(process.env.SEED ?? randomInt(2 ** 31));
      this.store.faultAtRandom(seed, chance);
      logger.warn(`random faults: ${config.number('random-faults')}% of looks at data, SEED=${seed}`);
    }
    config.onChange('tier-warm-up', () => {
      this.store.warmer.paused = !config.flag('tier-warm-up');
    });
    // Before the data directory is made: a start in vain leaves nothing behind. Who connects waits until `admit`.
    await server.network.open();
    const opening = this.openStore();
    await Promise.race([opening, delay(QUIET_START_MS, undefined, { ref: false })]);
    server.admit();
    this.writePidFile();
    if (process.stdout.isTTY && config.text('logfile') === '') process.stdout.write(banner(config));
    logger.info(
      `Ardent ${VERSION}: engine ${config.text('engine')}, directory ${path.resolve(config.text('dir'))}, ` +
        `port ${config.number('port')}, appendfsync ${config.text('appendfsync')}`,
    );
    const persistent = await opening;
    this.persistent = persistent;
    persistent.flush = () => server.logWriter.flush();
    const limits = persistent.checkpointer.limits;
    for (const name of LIMIT_PARAMETERS)
      config.onChange(name, () => void Object.assign(limits, checkpointLimits(config)));
    const dumps = new Dumps(persistent, this.imports);
    removeTemporary(path.resolve(config.text('dir')));
    this.imports.clean();
    server.attach({
      log: persistent.log,
      sections: this.sections(persistent),
      checkpoint: () => persistent.checkpointer.checkpoint(),
      holdCheckpoints: () => {
        void persistent.checkpointer.hold();
        return () => persistent.checkpointer.release();
      },
      dumps,
      writerDelayMs: () => Math.max(persistent.checkpointer.writerDelayMs, dumps.writerDelayMs),
    });
    void server.importing.settle('what was imported before the start');
    if (!(await this.importFirst(persistent))) return;
    const keys = Array.from({ length: this.store.databaseCount }, (_, i) => this.store.database(i).size);
    logger.info(`ready to accept connections: ${keys.reduce((sum, size) => sum + size, 0)} keys`);
    notifyReady(config, logger);
    process.send?.({ ready: true });
  }

  /**
   * A directory in which nothing has happened yet, with a dump in it: somebody comes from Redis. Loads it before
   * anything is served. False when it cannot be loaded; then the server ends, and nothing has happened.
   */
  private async importFirst({ recovered }: PersistentStore<Tier>): Promise<boolean> {
    const { logger, server } = this;
    // A checkpoint without a log is one of an import that has not ended.
    if (recovered.position !== 0) return true;
    const file = (['rdb', 'image'] as const)
      .map((format) => server.persistence.file(format))
      .find((name) => existsSync(name));
    if (file === undefined) return true;
    logger.warn(`the data directory is new and has a dump: importing ${file}`);
    server.beginLoading();
    try {
      await server.importing.run({ path: file, mode: 'new', database: -1 });
    } catch (error) {
      logger.error(`${(error as Error).message}; move it away to start without`);
      await this.end('the dump cannot be imported', EXIT.data, true);
      return false;
    }
    server.endLoading();
    return true;
  }

  private async openStore(): Promise<PersistentStore<Tier>> {
    const { config, logger, server } = this;
    const engine = config.text('engine') as EngineName;
    const { latency } = server;
    this.store.slice = (kind, work) => latency.slice(kind, Date.now(), work);
    this.store.arena.spare.onRelease = (ms, workMs) =>
      latency.record('memory-release', ms, workMs, Date.now());
    let told = Date.now();
    return openPersistentStore(this.store, {
      path: path.resolve(config.text('dir')),
      engine,
      engineOptions: engineOptions(config),
      appendfsync: config.text('appendfsync') as 'always' | 'everysec' | 'no',
      checkpoint: checkpointLimits(config),
      replay: (payload, following) => server.replay(payload, following),
      evicts: true,
      onProgress: (progress) => {
        if (server.loading !== null) server.loading.fraction = fraction(progress);
        if (Date.now() - told < PROGRESS_MS) return;
        told = Date.now();
        logger.info(`loading: ${describeProgress(progress)}`);
      },
      onNotice: (message) => logger.info(message),
      onWarning: (message) => logger.warn(message),
      onFatal: (error) => this.fatal(error),
      onSlice: (kind, ms, workMs) => latency.record(kind, ms, workMs, Date.now()),
    });
  }

  /** What anonymous memory stays within, a line each. */
  private memoryAccount(): InfoFields {
    const { config } = this;
    const tier = Math.max(this.server.tierLimit.bytes, WORKING_BYTES);
    const engine = engineMemory(config.text('engine') as EngineName, engineOptions(config));
    const checkpoint = checkpointMemory(checkpointLimits(config));
    return {
      memory_account_tier: tier,
      memory_account_overdraft: OVERDRAFT_BYTES,
      memory_account_engine: engine,
      memory_account_checkpoint: checkpoint,
      memory_account_dump: DUMP_MEMORY,
      memory_account_other: OTHER_MEMORY,
      memory_account_total: tier + OVERDRAFT_BYTES + engine + checkpoint + DUMP_MEMORY + OTHER_MEMORY,
    };
  }

  /** What of the data is in memory, and what it costs that the rest is not. */
  private residency(): InfoFields {
    const { store, server } = this;
    const now = store.residency();
    return {
      tier_complete: Number(now.complete),
      tier_keys: now.keys,
      tier_resident_keys: now.residentKeys,
      tier_pinned_bytes: now.pinnedBytes,
      tier_waiting_units: now.waiting,
      tier_waiting_clients: server.faults.waiting.size,
      tier_faults: now.faults,
      tier_fetch_rounds: now.fetchRounds,
      tier_fetch_rounds_max: now.roundsMax,
      tier_fetched_rows: now.fetchedRows,
      tier_absent_rows: now.absentRows,
      tier_given_up_commands: server.faults.givenUp,
      tier_evicted_keys: now.evictedKeys,
      tier_evicted_pages: now.evictedPages,
      tier_warming: Number(now.warming),
      tier_warmed_rows: now.warmedRows,
      tier_warm_up_ms: Math.round(now.warmUpMs),
      tier_filter_bytes: now.filterBytes,
      tier_filter_hits: now.filterHits,
    };
  }

  private sections(persistent: PersistentStore<Tier>): Record<string, () => InfoFields> {
    const { log, checkpointer, recovered, directory } = persistent;
    const { config, store } = this;
    return {
      memory: () => this.memoryAccount(),
      engine: () => ({
        engine: config.text('engine'),
        engine_binding: directory.identity.binding,
        engine_directory: directory.engineDirectory,
        recovered_rows: recovered.rows,
        recovered_log_bytes: recovered.replayedBytes,
        recovered_load_ms: Math.round(recovered.loadMs),
        recovered_replay_ms: Math.round(recovered.replayMs),
      }),
      tier: () => ({
        tier_used_bytes: store.memory.used,
        tier_limit_bytes: store.memory.limit,
        tier_evictable_bytes: store.memory.evictable,
        tier_damaged_keys: store.damagedKeys,
        ...this.residency(),
      }),
      log: () => ({
        log_policy: log.policy,
        log_position: log.position,
        log_synced_position: log.syncedPosition,
        log_segments: log.segments,
        log_appends: log.stats.appends,
        log_appended_bytes: log.stats.appendedBytes,
        log_syncs: log.stats.syncs,
        log_sync_failures: log.stats.syncFailures,
        log_last_sync_ms: log.stats.lastSyncMs.toFixed(2),
        log_longest_sync_ms: log.stats.longestSyncMs.toFixed(2),
        log_failure: log.failure ?? '',
      }),
      checkpoint: () => {
        const fields: InfoFields = {};
        for (const [name, value] of Object.entries(checkpointer.info()))
          fields[`checkpoint_${name}`] =
            typeof value === 'boolean'
              ? Number(value)
              : typeof value === 'number'
                ? Number(value.toFixed(3))
                : value;
        return fields;
      },
    };
  }

  private writePidFile(): void {
    const { config } = this;
    const file = config.text('pidfile');
    if (file === '') return;
    try {
      writeFileSync(file, `${process.pid}\n`);
      this.pidFile = file;
    } catch (error) {
      this.logger.warn(`pid file ${file} cannot be written: ${(error as Error).message}`);
    }
  }

  private fatal(error: unknown): void {
    if (this.ending !== null) return;
    this.logger.error(`fatal: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    this.server.fail(error);
    // The log holds everything acknowledged; state in doubt must not become a checkpoint.
    const code = (error as { code?: string }).code === 'ROW_DAMAGED' ? EXIT.data : EXIT.failed;
    void this.end('an error that leaves the state in doubt', code, true);
  }

  private async endBySignal(signal: string): Promise<void> {
    // A failed dump is logged; the data are in the log and the engine all the same.
    await this.server.persistence.beforeEnd(false).catch(() => undefined);
    await this.end(`${signal} received`, EXIT.ok, false);
  }

  /** Sends what is due, writes what is to be kept, and exits. */
  end(reason: string, code: number, nosave: boolean): Promise<void> {
    this.ending ??= this.endNow(reason, code, nosave);
    return this.ending;
  }

  private async endNow(reason: string, code: number, nosave: boolean): Promise<void> {
    const { config, logger, server, persistent } = this;
    logger.warn(`${reason}: ending`);
    server.stop();
    let complete = true;
    try {
      if (persistent !== null)
        complete = await persistent.close(
          nosave ? 0 : config.number('shutdown-timeout') * 1000 * CHECKPOINT_SHARE,
        );
    } catch (error) {
      complete = false;
      logger.error(`while ending: ${(error as Error).message}`);
    }
    // Connections end last: who waits for the end of one finds the data closed.
    server.close();
    await new Promise((resolve) => setTimeout(resolve, GOODBYE_MS));
    if (this.pidFile !== '' && existsSync(this.pidFile)) unlinkSync(this.pidFile);
    logger.warn(complete ? 'bye' : 'ended with data that could not be brought to the disk');
    process.exit(complete || code !== EXIT.ok ? code : EXIT.failed);
  }
}

/** Recovery as a part of 1; loading rows and replaying the log count alike. */
function fraction({ step, done, total }: RecoveryProgress): number {
  const part = total > 0 ? Math.min(1, done / total) : 0;
  return step === 'replay' ? 0.5 + part / 2 : part / 2;
}

function describeProgress({ step, done, total }: RecoveryProgress): string {
  const size = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(0)} MB`;
  if (step === 'load') return `${done} rows of the engine read`;
  return `${step === 'redo' ? 'finishing a checkpoint' : 'replaying the log'}, ${size(done)} of ${size(total)}`;
}

/** Tells systemd (or upstart) that the server is ready, where asked for. */
function notifyReady(config: Config, logger: Logger): void {
  const mode = config.text('supervised');
  if (mode === 'upstart' || (mode === 'auto' && process.env.UPSTART_JOB !== undefined)) {
    process.kill(process.pid, 'SIGSTOP');
  } else if ((mode === 'systemd' || mode === 'auto') && process.env.NOTIFY_SOCKET !== undefined) {
    const notify = spawn('systemd-notify', ['--ready', `--pid=${process.pid}`], { stdio: 'ignore' });
    notify.on('error', (error) => logger.warn(`systemd-notify: ${error.message}`));
  }
}
