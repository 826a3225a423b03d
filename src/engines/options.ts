import { formatSize, parseSize } from '../bytes/size.ts';
import { EngineError, type EngineName, type EngineOptions } from './engine.ts';

/** An engine's option: the table is what `ardent server --help`, docs and the check below read. */
export interface OptionSpec {
  /** Full name: the engine's, a dot, the binding's own name in kebab case. */
  name: string;
  kind: 'size' | 'count' | 'switch';
  default: number | boolean;
  min: number;
  max: number;
  /** What it does, and what it costs in memory. */
  help: string;
}

const MB = 1024 ** 2;
const GB = 1024 ** 3;

function size(name: string, bytes: number, min: number, max: number, help: string): OptionSpec {
  return { name, kind: 'size', default: bytes, min, max, help };
}

function count(name: string, value: number, min: number, max: number, help: string): OptionSpec {
  return { name, kind: 'count', default: value, min, max, help };
}

function toggle(name: string, value: boolean, help: string): OptionSpec {
  return { name, kind: 'switch', default: value, min: 0, max: 1, help };
}

/** LevelDB's and RocksDB's defaults come to the same 96 MB: 32 of cache, and 2 x 32 of write buffers. */
export const ENGINE_OPTIONS: Readonly<Record<EngineName, readonly OptionSpec[]>> = {
  leveldb: [
    size(
      'leveldb.block-cache-size',
      32 * MB,
      0,
      4 * GB - 1,
      'Cache of uncompressed table blocks. Costs this much memory when full.',
    ),
    size(
      'leveldb.write-buffer-size',
      32 * MB,
      64 * 1024,
      1 * GB,
      'Rows held in memory before they become a table. Costs up to twice this much memory, and up to this much log is replayed at a start.',
    ),
    size(
      'leveldb.max-file-size',
      8 * MB,
      1 * MB,
      1 * GB,
      'Size of a table. Larger tables mean fewer files and longer compactions. Costs no memory.',
    ),
    size(
      'leveldb.block-size',
      4096,
      1024,
      4 * MB,
      'Uncompressed size of the unit that is read and compressed. Costs no memory.',
    ),
    count(
      'leveldb.max-open-files',
      1000,
      64,
      1_000_000,
      'Tables kept open. Each costs a file descriptor and its index, some 20 KB for a table of 8 MB.',
    ),
    toggle('leveldb.compression', true, 'Compress blocks with Snappy. Costs no memory.'),
  ],
  lmdb: [
    size(
      'lmdb.map-size',
      64 * GB,
      1 * MB,
      16 * 1024 * GB,
      'Limit of the data file. Address space, not memory: the file is mapped as it grows, and its pages are the system page cache.',
    ),
    count(
      'lmdb.max-readers',
      126,
      8,
      4096,
      'Read transactions open at a time, scans and backups included. Costs 64 bytes each.',
    ),
    toggle(
      'lmdb.read-ahead',
      true,
      'Let the system read ahead. Switch it off when the data are larger than memory and read at random. Costs no memory.',
    ),
  ],
  rocksdb: [
    toggle(
      'rocksdb.block-cache',
      true,
      'Cache of uncompressed table blocks, with their indexes and filters. Costs 32 MB when full: the binding leaves its size at the default of RocksDB.',
    ),
    size(
      'rocksdb.write-buffer-size',
      32 * MB,
      64 * 1024,
      1 * GB,
      'Rows held in memory before they become a table. Costs this much memory for each write buffer.',
    ),
    count(
      'rocksdb.max-write-buffer-number',
      2,
      2,
      16,
      'Write buffers in memory, one being filled while the others become tables. Multiplies the cost of rocksdb.write-buffer-size.',
    ),
    count(
      'rocksdb.max-background-jobs',
      2,
      1,
      64,
      'Threads of flushes and compactions. Each compaction holds a few MB.',
    ),
    size(
      'rocksdb.block-size',
      4096,
      1024,
      4 * MB,
      'Uncompressed size of the unit that is read. Costs no memory.',
    ),
    count(
      'rocksdb.max-open-files',
      1000,
      64,
      1_000_000,
      'Tables kept open. Each costs a file descriptor and some KB.',
    ),
  ],
};

/** Option values of an engine by their full name: the given ones checked, the others by default. */
export function resolveOptions(engine: EngineName, given: EngineOptions): EngineOptions {
  const specs = ENGINE_OPTIONS[engine];
  const resolved: Record<string, number | boolean> = {};
  for (const spec of specs) resolved[spec.name] = spec.default;
  for (const [name, value] of Object.entries(given)) {
    const spec = specs.find((one) => one.name === name);
    if (spec === undefined) {
      const valid = specs.map((one) => one.name).join(', ');
      throw new EngineError('ENGINE_OPTION', `engine ${engine} has no option ${name}; it has: ${valid}`);
    }
    resolved[name] = optionValue(spec, value);
  }
  return resolved;
}

/** RocksDB's own default, which its binding leaves as it is. */
const ROCKSDB_BLOCK_CACHE = 32 * MB;

/** Bytes of anonymous memory that an engine may hold for as long as it is open: caches and write buffers. */
export function engineMemory(engine: EngineName, given: EngineOptions): number {
  const options = resolveOptions(engine, given);
  const value = (name: string): number => Number(options[`${engine}.${name}`]);
  switch (engine) {
    case 'leveldb':
      return value('block-cache-size') + 2 * value('write-buffer-size');
    case 'rocksdb':
      return (
        value('block-cache') * ROCKSDB_BLOCK_CACHE +
        value('max-write-buffer-number') * value('write-buffer-size')
      );
    case 'lmdb':
      // Its cache is the system's, of mapped pages; those of a transaction count with the checkpoint.
      return 0;
  }
}

function optionValue(spec: OptionSpec, value: string | number | boolean): number | boolean {
  if (spec.kind === 'switch') {
    if (value === true || value === 'yes' || value === 'true') return true;
    if (value === false || value === 'no' || value === 'false') return false;
    throw invalid(spec, value, 'yes or no');
  }
  const number = typeof value === 'string' ? parseSize(value) : value;
  if (typeof number !== 'number' || !(number >= spec.min && number <= spec.max)) {
    throw invalid(spec, value, `${formatValue(spec, spec.min)} to ${formatValue(spec, spec.max)}`);
  }
  return number;
}

function invalid(spec: OptionSpec, value: string | number | boolean, valid: string): EngineError {
  return new EngineError('ENGINE_OPTION', `${spec.name} cannot be ${value}; it takes ${valid}`);
}

/** A value as it is written in a configuration: `32mb`, `1000`, `yes`. */
export function formatValue(spec: OptionSpec, value: number | boolean): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return spec.kind === 'size' ? formatSize(value) : String(value);
}
