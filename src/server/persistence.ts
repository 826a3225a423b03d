/** SAVE and BGSAVE: when a dump is written, and what became of the last one. */
import path from 'node:path';
import type { BackupResult } from '../store/dump/backup.ts';
import type { DumpUnderWay } from '../store/dump/dumps.ts';
import type { DumpFormat } from '../store/dump/dump-thread.ts';
import type { SaveResult } from '../store/dump/save-slabs.ts';
import { describe } from './errors.ts';
import type { InfoFields, Server } from './server.ts';
import { REDIS_VERSION } from './version.ts';

export const IN_PROGRESS = 'ERR Background save already in progress';
/** After a failed save the next one by `save` points is this many seconds later. */
const RETRY_SECONDS = 5;

/** Makes dumps; what a durable store gives to the server. */
export interface DumpMaker {
  backup(to: string): Promise<BackupResult>;
  save(options: {
    path: string;
    format: DumpFormat;
    compression: boolean;
    checksum: boolean;
    aux: readonly (readonly [string, string])[];
    foreground: boolean;
    onSlice?: (ms: number) => void;
  }): DumpUnderWay;
}

interface SaveInProgress {
  dump: DumpUnderWay;
  /** Nobody waits for it. */
  background: boolean;
  /** Unix seconds. */
  startedAt: number;
}

export class Persistence {
  /** Unix seconds of the last file, or of the start. */
  lastSave = Math.floor(Date.now() / 1000);
  private readonly server: Server;
  private current: SaveInProgress | null = null;
  /** What begins when the save in progress has ended. */
  private scheduled: DumpFormat | null = null;
  private lastOk = true;
  private lastTry = 0;
  private lastSeconds = -1;
  private lastKeptBytes = 0;
  private saves = 0;
  /** Checkpoints asked for by BGREWRITEAOF that have not ended, and how the last one ended. */
  private rewrites = 0;
  private rewriteOk = true;

  constructor(server: Server) {
    this.server = server;
  }

  get inProgress(): boolean {
    return this.current !== null;
  }

  /** Pairs of seconds and changes after which a file is written. */
  private get points(): [number, number][] {
    const words = this.server.config.text('save').split(' ').filter(Boolean).map(Number);
    return words.flatMap((seconds, i) => (i % 2 === 0 ? [[seconds, words[i + 1]] as [number, number]] : []));
  }

  /** The last background save failed, and writes are to stop until one succeeds. */
  get stopsWrites(): boolean {
    return !this.lastOk && this.points.length > 0 && this.server.config.flag('stop-writes-on-bgsave-error');
  }

  /** The file that is written: an image stands beside the RDB file, under the same name. */
  file(format: DumpFormat): string {
    const { config } = this.server;
    const name = config.text('dbfilename');
    const written = format === 'rdb' ? name : `${name.replace(/\.rdb$/, '')}.image`;
    return path.resolve(config.text('dir'), written);
  }

  /** Writes a file of the data as they are now. Rejects when that fails; the file that was there stays. */
  async save(background: boolean, format: DumpFormat = 'rdb'): Promise<void> {
    const { server } = this;
    const file = this.file(format);
    const { config, logger } = server;
    const maker = server.durability?.dumps;
    if (maker === undefined) {
      // Without a durable store there is nothing to write to.
      server.changes = 0;
      this.lastSave = Math.floor(Date.now() / 1000);
      return;
    }
    const changes = server.changes;
    const startedAt = Math.floor(Date.now() / 1000);
    this.lastTry = startedAt;
    try {
      const dump = maker.save({
        path: file,
        format,
        compression: config.flag('rdbcompression'),
        checksum: config.flag('rdbchecksum'),
        aux: [
          ['redis-ver', REDIS_VERSION],
          ['redis-bits', '64'],
          ['ctime', String(startedAt)],
          ['used-mem', String(server.store.memory.used)],
          ['aof-base', '0'],
        ],
        foreground: !background,
        onSlice: (ms) => server.latency.record('dump-copy', ms, ms, Date.now()),
      });
      this.current = { dump, background, startedAt };
      const result = await dump.done;
      this.lastKeptBytes = dump.keptBytes;
      this.saved(file, changes, result);
    } catch (error) {
      if (background) this.lastOk = false;
      logger.error(`the dump ${file} could not be written: ${describe(error)}`);
      throw error;
    } finally {
      if (background) this.lastSeconds = Math.floor(Date.now() / 1000) - startedAt;
      this.current = null;
      server.checkWritable();
    }
  }

  private saved(file: string, changes: number, { bytes, keys, elapsed }: SaveResult): void {
    const { server } = this;
    this.lastOk = true;
    this.saves++;
    server.changes -= changes;
    this.lastSave = Math.floor(Date.now() / 1000);
    server.logger.info(`${file}: ${keys} keys, ${bytes} bytes, written in ${(elapsed / 1000).toFixed(2)} s`);
  }

  /** Begins a save that nobody waits for. */
  begin(format: DumpFormat = 'rdb'): void {
    this.scheduled = null;
    this.save(true, format).catch(() => {
      // logged, and told by INFO
    });
  }

  /** Begins one as soon as the one in progress has ended. */
  schedule(format: DumpFormat): void {
    this.scheduled = format;
  }

  /** Once a second: begins what is due. */
  tick(): void {
    if (this.current !== null || this.server.loading !== null) return;
    if (this.scheduled !== null) {
      this.begin(this.scheduled);
      return;
    }
    const now = Math.floor(Date.now() / 1000);
    if (!this.lastOk && now - this.lastTry <= RETRY_SECONDS) return;
    const { changes } = this.server;
    for (const [seconds, changed] of this.points) {
      if (changes < changed || changes === 0 || now - this.lastSave <= seconds) continue;
      this.server.logger.info(`${changes} changes in ${seconds} seconds: saving`);
      this.begin();
      return;
    }
  }

  private backingUp = false;

  /** Makes a copy of the data directory. */
  async backup(to: string): Promise<BackupResult> {
    const { server } = this;
    const maker = server.durability?.dumps;
    if (maker === undefined) throw new Error('this server has no data directory');
    if (this.backingUp) throw new Error('another backup is in progress');
    this.backingUp = true;
    try {
      const result = await maker.backup(to);
      server.logger.info(
        `${to}: backed up to log position ${result.position} in ${(result.elapsedMs / 1000).toFixed(2)} s, ` +
          `of which nothing else was done for ${result.pauseMs.toFixed(1)} ms`,
      );
      return result;
    } finally {
      this.backingUp = false;
    }
  }

  /** Before the process ends: a file, if `save` points or SHUTDOWN SAVE ask for one. */
  async beforeEnd(always: boolean): Promise<void> {
    await this.stop();
    if (always || this.points.length > 0) await this.save(false);
  }

  /** Gives up what is being written. */
  async stop(): Promise<void> {
    this.scheduled = null;
    this.current?.dump.abandon();
    await this.current?.dump.done.catch(() => undefined);
  }

  /** What BGREWRITEAOF is for, a shorter log, is what a checkpoint brings. */
  rewriteLog(): void {
    const { durability, logger } = this.server;
    if (durability?.checkpoint === undefined) return;
    this.rewrites++;
    durability
      .checkpoint()
      .then(
        () => (this.rewriteOk = true),
        (error: unknown) => {
          this.rewriteOk = false;
          logger.error(`checkpoint failed: ${describe(error)}`);
        },
      )
      .finally(() => this.rewrites--);
  }

  /** INFO's rdb_ and aof_rewrite fields. */
  info(): InfoFields {
    const { current, server } = this;
    const now = Math.floor(Date.now() / 1000);
    let total = 0;
    for (let i = 0; i < server.store.databaseCount; i++) total += server.store.database(i).size;
    return {
      current_cow_peak: current?.dump.keptBytes ?? 0,
      current_cow_size: current?.dump.keptBytes ?? 0,
      current_cow_size_age: current === null ? 0 : now - current.startedAt,
      current_fork_perc: ((current?.dump.fraction ?? 0) * 100).toFixed(2),
      current_save_keys_processed: current === null ? 0 : Math.round(total * current.dump.fraction),
      current_save_keys_total: current === null ? 0 : total,
      rdb_changes_since_last_save: server.changes,
      rdb_bgsave_in_progress: current?.background === true ? 1 : 0,
      rdb_last_save_time: this.lastSave,
      rdb_last_bgsave_status: this.lastOk ? 'ok' : 'err',
      rdb_last_bgsave_time_sec: this.lastSeconds,
      rdb_current_bgsave_time_sec: current?.background === true ? now - current.startedAt : -1,
      rdb_saves: this.saves,
      rdb_last_cow_size: this.lastKeptBytes,
      aof_rewrite_in_progress: this.rewrites > 0 ? 1 : 0,
      aof_last_bgrewrite_status: this.rewriteOk ? 'ok' : 'err',
    };
  }
}
