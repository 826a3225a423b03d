/** How large an engine's own cache is, and options that make it small beside the data of an engine-bound run. */
import type { EngineName } from '../engines/engine.ts';
import { ENGINE_OPTIONS, resolveOptions } from '../engines/options.ts';
import type { TargetInfo } from '../results/document.ts';

/** Engine-bound: the data are at least so many times the engine's cache, and its write buffer a quarter of that. */
const DATA_PER_CACHE = 4;
/** What the bindings leave to RocksDB's own default; it can only be had or not. */
const ROCKSDB_CACHE_BYTES = 32 * 1024 ** 2;

/** Options of an engine whose cache is small beside `dataBytes`; what its defaults fulfil is left out. */
export function smallCacheOptions(engine: EngineName, dataBytes: number): Record<string, string> {
  const cache = dataBytes / DATA_PER_CACHE;
  const smaller = (name: string, wanted: number): Record<string, string> => {
    const spec = ENGINE_OPTIONS[engine].find((option) => option.name === name)!;
    const bytes = Math.floor(Math.max(spec.min, wanted));
    return bytes < Number(spec.default) ? { [name]: String(bytes) } : {};
  };
  switch (engine) {
    case 'leveldb':
      return {
        ...smaller('leveldb.block-cache-size', cache),
        ...smaller('leveldb.write-buffer-size', cache / DATA_PER_CACHE),
      };
    case 'rocksdb':
      return {
        ...(ROCKSDB_CACHE_BYTES > cache ? { 'rocksdb.block-cache': 'no' } : {}),
        ...smaller('rocksdb.write-buffer-size', cache / DATA_PER_CACHE),
      };
    case 'lmdb':
      return {};
  }
}

/** The options of its engine that a target was given, by full name. */
export function engineOptionsOf({ engine, settings }: TargetInfo): Record<string, string | number | boolean> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => name.startsWith(`${engine}.`)));
}

/** Bytes of the engine's own cache; null where it has none but the system's page cache (LMDB). */
export function engineCacheBytes(target: TargetInfo): number | null {
  if (target.engine !== 'leveldb' && target.engine !== 'rocksdb') return null;
  const options = resolveOptions(target.engine, engineOptionsOf(target));
  return target.engine === 'leveldb'
    ? Number(options['leveldb.block-cache-size'])
    : Number(options['rocksdb.block-cache']) * ROCKSDB_CACHE_BYTES;
}

/** Bytes that an engine gathers in memory before they become a table; null where there is no such buffer. */
export function writeBufferBytes(target: TargetInfo): number | null {
  if (target.engine !== 'leveldb' && target.engine !== 'rocksdb') return null;
  const options = resolveOptions(target.engine, engineOptionsOf(target));
  return Number(options[`${target.engine}.write-buffer-size`]);
}
