/**
 * Loads and saves every data set on every server, servers by turns, each life in a fresh process and
 * directory. What fails is recorded and does not lose the rest.
 */
import { closeSync, mkdirSync, openSync, fstatSync, readSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Environment } from '../../results/document.ts';
import {
  SAVE_LOAD_SCHEMA,
  type DataSet,
  type SaveLoadRecord,
  type SaveLoadResults,
  type SaveLoadTool,
} from '../../results/save-load-results.ts';
import { freshDirectory, removeDirectory } from '../child.ts';
import { describeEnvironment } from '../environment.ts';
import { LoadPool } from '../load.ts';
import { sampleProcess } from '../process-sample.ts';
import { fill, FILL_SHARE, guessedKeyBytes, trialKeys, type FillSpec } from './fill.ts';
import {
  placeFile,
  type LifeOptions,
  type Loaded,
  type RunningServer,
  type SaveLoadServer,
} from './server.ts';

const MB = 1024 * 1024;
const LOG_TAIL_BYTES = 4_000;

/** Where a data set comes from: a file, or commands that make it. */
export type Source = { file: string } | { spec: FillSpec };

export interface SaveLoadPlan {
  tool: SaveLoadTool;
  title: string;
  servers: SaveLoadServer[];
  /** Of generated data the number of keys is found out: 0 here. */
  dataSets: { info: DataSet; source: Source }[];
  repeats: number;
  compression: boolean;
  checksum: boolean;
  timeoutSeconds: number;
  baseline: string;
  /** Servers' directories. */
  dataRoot: string;
  /** Servers' logs; inside the directory of the results. */
  logDirectory: string;
  argv: string[];
  options: SaveLoadResults['options'];
  notes: string[];
}

export interface SaveLoadWatcher {
  /** The `position`-th of `of` lives of data sets on servers begins. */
  life(position: number, of: number, server: string, dataSet: string): void;
  /** `pid`: the server at work, null when it is not ours to see. */
  phase(text: string, pid: number | null): void;
  finished(record: SaveLoadRecord): void;
  note(text: string): void;
}

export interface SaveLoadHooks {
  watcher: SaveLoadWatcher;
  save(partial: SaveLoadResults): void;
  /** Why the run is to end early; null while it is to go on. */
  stopReason(): string | null;
  /** Gets what ends the server at work, so that a signal need not wait for a long command. */
  onServer(stop: (() => Promise<void>) | null): void;
}

class Interrupted extends Error {}

export async function runSaveLoad(plan: SaveLoadPlan, hooks: SaveLoadHooks): Promise<SaveLoadResults> {
  const run = new SaveLoadRun(plan, hooks);
  try {
    return await run.all();
  } finally {
    await run.close();
  }
}

class SaveLoadRun {
  private readonly plan: SaveLoadPlan;
  private readonly hooks: SaveLoadHooks;
  private readonly results: SaveLoadResults;
  private pool: LoadPool | null = null;
  private lives = 0;
  /** Bytes of memory that a key of a generated kind takes, of the server that needs most. */
  private readonly keyBytes = new Map<string, number>();

  constructor(plan: SaveLoadPlan, hooks: SaveLoadHooks) {
    this.plan = plan;
    this.hooks = hooks;
    const environment: Environment = describeEnvironment(plan.dataRoot);
    this.results = {
      schema: SAVE_LOAD_SCHEMA,
      tool: plan.tool,
      title: plan.title,
      startedAt: new Date().toISOString(),
      finishedAt: '',
      state: 'partial',
      rerun: ['ardent', ...plan.argv].join(' '),
      environment,
      options: plan.options,
      baseline: plan.baseline,
      targets: plan.servers.map(({ info }) => info),
      dataSets: plan.dataSets.map(({ info }) => info),
      results: [],
      logs: [],
      notes: [...plan.notes],
    };
    mkdirSync(plan.logDirectory, { recursive: true });
  }

  async close(): Promise<void> {
    await this.pool?.close();
  }

  async all(): Promise<SaveLoadResults> {
    const { plan, results, hooks } = this;
    const of = plan.dataSets.length * plan.repeats * plan.servers.length;
    let position = 0;
    try {
      for (const { info, source } of plan.dataSets) {
        if ('spec' in source) info.keys = await this.keysFor(source.spec, info.tierBytes!);
        for (let repeat = 1; repeat <= plan.repeats; repeat++) {
          for (let i = 0; i < plan.servers.length; i++) {
            // Each repeat begins with another server.
            const server = plan.servers[(i + repeat - 1) % plan.servers.length];
            this.checkStop();
            hooks.watcher.life(++position, of, server.info.label, info.label);
            const record = await this.measure(server, info, source, repeat);
            results.results.push(record);
            hooks.watcher.finished(record);
            this.stamp();
            hooks.save(results);
          }
        }
      }
      results.state = 'complete';
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
      results.partialReason = error.message;
    }
    this.stamp();
    return results;
  }

  private stamp(): void {
    this.results.finishedAt = new Date().toISOString();
  }

  private checkStop(): void {
    const reason = this.hooks.stopReason();
    if (reason !== null) throw new Interrupted(reason);
  }

  private async measure(
    server: SaveLoadServer,
    dataSet: DataSet,
    source: Source,
    repeat: number,
  ): Promise<SaveLoadRecord> {
    const record: SaveLoadRecord = {
      db: server.info.label,
      target: server.info.id,
      dataSet: dataSet.id,
      repeat,
      keys: dataSet.keys,
      valueLength: dataSet.valueLength,
      saveTimeSec: null,
      loadTimeSec: null,
      settledTimeSec: null,
      startTimeSec: null,
      fillTimeSec: null,
      rdbSizeMB: null,
      usedMemoryMB: null,
      rssMB: null,
      dbSize: null,
      saveStatus: 'not run',
      loadStatus: 'not run',
    };
    const kept = freshDirectory(`${server.info.id}-file`, this.plan.dataRoot);
    try {
      await this.lifeOf(server, dataSet, source, record, kept);
    } catch (error) {
      this.checkStop();
      record.error = (error as Error).message;
      this.hooks.watcher.note(`${server.info.label}, ${dataSet.label}: failed: ${record.error}`);
    } finally {
      removeDirectory(kept);
    }
    return record;
  }

  private async lifeOf(
    server: SaveLoadServer,
    dataSet: DataSet,
    source: Source,
    record: SaveLoadRecord,
    kept: string,
  ): Promise<void> {
    // A file in the server's own format is loaded as it is; else it first has to make one.
    const own = 'file' in source && server.info.format === 'rdb';
    const saved = join(kept, 'saved');
    if (own && server.info.kind !== 'foreign') {
      // What a start takes without a file is not part of the load.
      await this.life(server, dataSet, null, 'empty', async (running) => {
        record.startTimeSec = running.startSeconds;
      });
    }
    await this.life(server, dataSet, own ? source.file : null, 'first', async (running, loaded) => {
      record.startTimeSec ??= running.startSeconds;
      if ('spec' in source) {
        this.phase(`making ${dataSet.keys.toLocaleString('en')} keys`, running);
        record.fillTimeSec = await fill(this.loadPool(), running.address, source.spec, dataSet.keys);
        const found = await dbSize(running);
        if (found !== dataSet.keys) throw new Error(`${dataSet.keys} keys were sent, and ${found} are there`);
      } else if (own) {
        await this.afterLoad(running, loaded, record);
      } else {
        if (running.load === undefined) throw new Error(`${server.info.label} cannot load ${source.file}`);
        this.phase(`loading ${basename(source.file)}`, running);
        await running.load(source.file);
      }
      this.phase('saving', running);
      record.saveStatus = 'failed';
      const { seconds, bytes, path } = await running.save();
      record.saveStatus = 'ok';
      record.saveTimeSec = seconds;
      record.rdbSizeMB = bytes === null ? null : bytes / MB;
      if (!own && path !== null) placeFile(path, saved);
      else if (!own) throw new Error('the file that it saved cannot be seen, so it cannot be loaded again');
    });
    if (own) return;
    await this.life(server, dataSet, saved, 'second', async (running, loaded) => {
      await this.afterLoad(running, loaded, record);
    });
  }

  private async afterLoad(
    running: RunningServer,
    loaded: Loaded | null,
    record: SaveLoadRecord,
  ): Promise<void> {
    record.loadStatus = 'failed';
    record.loadTimeSec = loaded!.seconds;
    record.settledTimeSec = loaded!.settledSeconds;
    record.dbSize = await dbSize(running);
    const info = await running.control.info();
    record.usedMemoryMB = info.used_memory === undefined ? null : Number(info.used_memory) / MB;
    const sample = running.pid === null ? null : sampleProcess(running.pid);
    record.rssMB = sample === null ? null : sample.rssAnonBytes / MB;
    if (record.dbSize !== record.keys) {
      throw new Error(`the data set has ${record.keys} keys, and after the load there are ${record.dbSize}`);
    }
    record.loadStatus = 'ok';
  }

  /** One process in a directory of its own, with or without a file to load. */
  private async life(
    server: SaveLoadServer,
    dataSet: DataSet,
    file: string | null,
    name: string,
    work: (running: RunningServer, loaded: Loaded | null) => Promise<void>,
  ): Promise<void> {
    const { plan, hooks } = this;
    this.checkStop();
    const directory = freshDirectory(server.info.id, plan.dataRoot);
    const logName =
      `${String(++this.lives).padStart(4, '0')}-${server.info.id}-${dataSet.id}-${name}.log`.replace(
        /[^\w.-]+/g,
        '-',
      );
    const options: LifeOptions = {
      directory,
      log: join(plan.logDirectory, logName),
      memoryBytes: dataSet.tierBytes,
      compression: plan.compression,
      checksum: plan.checksum,
      timeoutSeconds: plan.timeoutSeconds,
    };
    closeSync(openSync(options.log, 'a'));
    let running: (RunningServer & { loaded: Loaded | null }) | null = null;
    try {
      hooks.watcher.phase(file === null ? 'starting' : `loading ${basename(file)}`, null);
      running = await server.start(options, file);
      const live = running;
      hooks.onServer(() => live.stop());
      try {
        await work(live, live.loaded);
      } catch (error) {
        const death = live.death();
        throw death === null ? error : new Error(`the server died: ${death}`);
      }
    } finally {
      hooks.onServer(null);
      await running?.stop();
      removeDirectory(directory);
      this.results.logs.push({
        target: server.info.id,
        dataSet: dataSet.id,
        file: `${basename(plan.logDirectory)}/${logName}`,
        tail: tailOf(options.log),
      });
    }
  }

  private phase(text: string, running: RunningServer): void {
    this.checkStop();
    this.hooks.watcher.phase(text, running.pid);
  }

  private loadPool(): LoadPool {
    return (this.pool ??= new LoadPool(1));
  }

  /** How many keys fill the share of the memory on the server that needs most for them. */
  private async keysFor(spec: FillSpec, tierBytes: number): Promise<number> {
    const kind = `${spec.type}/${spec.valueLength}`;
    if (!this.keyBytes.has(kind)) {
      let most = 0;
      const keys = trialKeys(spec, tierBytes);
      for (const server of this.plan.servers) {
        const trial: DataSet = {
          ...{ id: `trial-${spec.type}`, label: `a trial of ${spec.type}`, type: spec.type, tierBytes },
          ...{ valueLength: spec.valueLength, keys, fileBytes: null, path: null },
        };
        try {
          await this.life(server, trial, null, 'trial', async (running) => {
            const used = async (): Promise<number> => Number((await running.control.info()).used_memory);
            this.phase(`trying what a ${spec.type} takes`, running);
            const before = await used();
            await fill(this.loadPool(), running.address, spec, keys);
            const after = await used();
            if (after > before) most = Math.max(most, (after - before) / keys);
          });
        } catch (error) {
          this.checkStop();
          this.hooks.watcher.note(
            `${server.info.label}: ${spec.type} could not be tried: ${(error as Error).message}`,
          );
        }
      }
      this.keyBytes.set(kind, most);
    }
    const perKey = this.keyBytes.get(kind) || guessedKeyBytes(spec);
    return Math.max(1, Math.floor((tierBytes * FILL_SHARE) / perKey));
  }
}

/** Keys in all databases. */
async function dbSize({ control }: RunningServer): Promise<number> {
  const info = await control.info();
  const keys = Object.entries(info).flatMap(([name, value]) => {
    const match = /^db\d+$/.test(name) ? /keys=(\d+)/.exec(value) : null;
    return match === null ? [] : [Number(match[1])];
  });
  return keys.length > 0 ? keys.reduce((sum, n) => sum + n, 0) : Number(await control.call('DBSIZE'));
}

function tailOf(path: string): string {
  try {
    const file = openSync(path, 'r');
    try {
      const { size } = fstatSync(file);
      const bytes = Buffer.alloc(Math.min(size, LOG_TAIL_BYTES));
      readSync(file, bytes, 0, bytes.length, size - bytes.length);
      const text = bytes.toString('utf8');
      // The first line is cut unless it is the file's first.
      return size > LOG_TAIL_BYTES ? text.slice(text.indexOf('\n') + 1) : text;
    } finally {
      closeSync(file);
    }
  } catch {
    return '';
  }
}
