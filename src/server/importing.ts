/** IMPORT: a dump into the running server, all of it or nothing. */
import type { Import, ImportCounts, Imports, ImportSource } from '../store/dump/imports.ts';
import { faultPoint } from '../store/fault-point.ts';
import { describe } from './errors.ts';
import type { InfoFields, Server } from './server.ts';

/** An import that was refused or has failed: nothing has changed. */
export class ImportError extends Error {}

export class Importing {
  private readonly server: Server;
  private current: Import | null = null;
  /** An import has been asked for. */
  private busy = false;

  constructor(server: Server) {
    this.server = server;
  }

  private get imports(): Imports {
    const { imports } = this.server.options;
    if (imports === undefined) throw new ImportError('this server has no data directory');
    return imports;
  }

  /** Keys in the server. */
  private get keys(): number {
    const { store } = this.server;
    let keys = 0;
    for (let i = 0; i < store.databaseCount; i++) keys += store.database(i).size;
    return keys;
  }

  private refuseIfNotEmpty(mode: ImportSource['mode']): void {
    if (mode === 'new' && this.keys > 0)
      throw new ImportError(
        `the server holds ${this.keys} keys; say REPLACE or SKIP for those that are in the file too, or empty it`,
      );
  }

  /** Loads the file. */
  async run(source: Omit<ImportSource, 'now'>): Promise<ImportCounts> {
    const { imports } = this;
    if (this.busy) throw new ImportError('another import is in progress');
    this.refuseIfNotEmpty(source.mode);
    this.busy = true;
    try {
      // What the one before has merged must be in the engine first.
      await imports.merged();
      return await this.runOne(source);
    } finally {
      this.busy = false;
    }
  }

  private async runOne(source: Omit<ImportSource, 'now'>): Promise<ImportCounts> {
    const { server, imports } = this;
    const began = performance.now();
    const loading = imports.begin({ ...source, now: server.store.now }, server.config.flag('rdbchecksum'), {
      writerDelayMs: () => server.durability?.writerDelayMs?.() ?? 0,
      holdCheckpoints: () => server.durability?.holdCheckpoints?.() ?? (() => {}),
    });
    this.current = loading;
    let imported: ReturnType<Import['commit']>;
    try {
      await loading.loaded;
      if (loading.isInEngine) {
        await server.durability?.checkpoint?.();
        faultPoint('import-checkpointed');
      }
      imported = this.commit(loading);
    } catch (error) {
      loading.abandon();
      imports.forget(loading.id);
      throw error;
    } finally {
      this.current = null;
    }
    const { counts, merges } = imported;
    const seconds = ((performance.now() - began) / 1000).toFixed(2);
    server.logger.info(`${source.path}: ${counts.keys} keys imported and served after ${seconds} s`);
    void this.settle(source.path);
    for (const { moved, from, into } of merges) {
      server.logger.info(`${source.path}: merging ${from.size} keys with ${into.size}`);
      await moved;
    }
    const both = merges.reduce((sum, merge) => sum + merge.both, 0);
    if (source.mode === 'replace') counts.replaced = both;
    else counts.skipped = both;
    return counts;
  }

  private commit(loading: Import): ReturnType<Import['commit']> {
    const { server, imports } = this;
    const { source } = loading;
    server.turns.begin();
    this.refuseIfNotEmpty(source.mode);
    const { effects, context, store } = server;
    // In a frame of its own: what goes before it must be in the log.
    if (!server.logWriter.flush() || effects === null)
      throw new ImportError(`the log cannot be written: ${server.logWriter.failure ?? ''}`);
    for (let i = 0; i < store.databaseCount; i++) {
      const database = store.database(i);
      // A watched key may become another one, or be there where it was not.
      server.watches.break(server.watches.touchedBy(database, () => true));
    }
    const inEngine = loading.isInEngine;
    const imported = loading.commit();
    if (inEngine) imports.forget(loading.id);
    else imports.keep(loading.id);
    effects.parts(['IMPORT', loading.id, source.mode, source.database, source.now]);
    server.logWriter.flush();
    faultPoint('import-logged');
    server.changes += imported.counts.keys;
    context.flushed();
    for (let i = 0; i < store.databaseCount; i++) context.signalDatabase(store.database(i));
    if (context.staging) server.output.publish(context.client);
    return imported;
  }

  /** Has the engine take over what was imported. */
  async settle(what: string): Promise<void> {
    const { server, imports } = this;
    const checkpoint = server.durability?.checkpoint;
    if (checkpoint === undefined) return;
    try {
      await imports.settle(checkpoint);
      if (imports.lastSettledMs >= 0)
        server.logger.info(
          `${what}: settled in the engine after ${(imports.lastSettledMs / 1000).toFixed(2)} s more`,
        );
    } catch (error) {
      // The copy stays, and the log leads to it.
      server.logger.warn(`${what}: imported, but not in the engine yet: ${describe(error)}`);
    }
  }

  info(): InfoFields {
    const { imports } = this.server.options;
    if (imports === undefined) return {};
    return {
      import_in_progress: this.current === null ? 0 : 1,
      import_loaded_perc: ((this.current?.fraction ?? 0) * 100).toFixed(2),
      import_unsettled_bytes: imports.unsettledBytes,
      import_last_settled_ms: Math.round(imports.lastSettledMs),
    };
  }
}
