import { parentPort, workerData } from 'node:worker_threads';
import type { Binding, Site } from './binding.ts';
import { EngineError, type EngineName } from './engine.ts';
import { engineFailure } from './failure.ts';
import { Host } from './host.ts';
import { BINDING_PACKAGES, claimDirectory, sealDirectory } from './identity.ts';
import { resolveOptions } from './options.ts';
import { Lane } from './pace.ts';
import type { Opened, Start } from './protocol.ts';
import { stepBack } from './thread-priority.ts';

/** The file an engine's thread runs. */
const { engine, directory, options, salvage, redone, port } = workerData as Start;

/** Each engine's module is loaded on demand, so that a missing binding concerns its engine only. */
async function loadBinding(name: EngineName): Promise<(site: Site) => Promise<Binding>> {
  try {
    switch (name) {
      case 'leveldb':
        return (await import('./leveldb.ts')).openLevelDb;
      case 'lmdb':
        return (await import('./lmdb.ts')).openLmdb;
      case 'rocksdb':
        return (await import('./rocksdb.ts')).openRocksDb;
    }
  } catch (cause) {
    throw new EngineError(
      'ENGINE_MISSING',
      `engine ${name} for ${directory}: its binding ${BINDING_PACKAGES[name]} cannot be loaded on ` +
        `${process.platform}-${process.arch} (${(cause as Error).message}); run npm install, or ` +
        `choose another engine`,
      cause,
    );
  }
}

async function start(): Promise<void> {
  // First of all: without its binding an engine leaves no trace in the directory.
  const openBinding = await loadBinding(engine);
  const prefix = `${engine}.`;
  const resolved = Object.entries(resolveOptions(engine, options));
  const site: Site = {
    directory,
    options: Object.fromEntries(resolved.map(([name, value]) => [name.slice(prefix.length), value])),
    fresh: claimDirectory(engine, directory),
    salvage,
    redone,
    writes: new Lane(),
    maintenance: new Lane(),
  };
  const binding = await openBinding(site);
  if (site.fresh) await sealDirectory(directory);
  new Host(engine, site, binding).serve(port);
}

let opened: Opened = { opened: true };
stepBack();
try {
  await start();
} catch (error) {
  const { code, message } = engineFailure(engine, directory, error);
  opened = { opened: false, code, message };
  port.close();
}
parentPort?.postMessage(opened);
