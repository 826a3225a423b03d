import { createRequire } from 'node:module';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ENGINE_NAMES, EngineError, type EngineName } from './engine.ts';
import { linkTables, syncPath } from './files.ts';

/** Version of what an engine's directory holds: file names and this identity, not the rows. */
const FORMAT_VERSION = 1;

/** Names which engine a directory belongs to: lines of `name: value`. */
const IDENTITY = 'ENGINE';
/** The same while the engine is being made; renamed when it is there. */
const IDENTITY_NEW = 'ENGINE.new';

/** The package that binds each engine. */
export const BINDING_PACKAGES: Readonly<Record<EngineName, string>> = {
  leveldb: 'classic-level',
  lmdb: 'lmdb',
  rocksdb: 'rocksdb-native',
};

/**
 * Looks whether `directory` may be opened as engine `name`, before anything is changed in it.
 * @returns whether the engine must still be made: the directory is new, empty, or the making of the
 * same engine was cut short in it
 * @throws EngineError ENGINE_MISMATCH, ENGINE_FORMAT, ENGINE_DAMAGED, ENGINE_IO
 */
export function claimDirectory(name: EngineName, directory: string): boolean {
  let entries: string[];
  try {
    mkdirSync(directory, { recursive: true });
    entries = readdirSync(directory);
  } catch (cause) {
    throw new EngineError(
      'ENGINE_IO',
      `cannot use ${directory} as the directory of engine ${name}: ${(cause as Error).message}`,
      cause,
    );
  }
  if (entries.includes(IDENTITY)) {
    checkIdentity(name, directory, IDENTITY);
    return false;
  }
  if (entries.includes(IDENTITY_NEW)) {
    // The identity itself may be cut short; then nothing else was made yet.
    if (entries.length > 1) checkIdentity(name, directory, IDENTITY_NEW);
  } else if (entries.length > 0) {
    throw new EngineError(
      'ENGINE_MISMATCH',
      `${directory} holds ${guessOwner(entries)} but no file ${IDENTITY}, so no engine of ardent ` +
        `wrote it; give engine ${name} an empty directory`,
    );
  }
  writeFileSync(join(directory, IDENTITY_NEW), identityText(name), { flush: true });
  return true;
}

/** Marks a directory's engine as made, once its own files are on disk. */
export async function sealDirectory(directory: string): Promise<void> {
  await syncPath(directory);
  renameSync(join(directory, IDENTITY_NEW), join(directory, IDENTITY));
  await syncPath(directory);
}

/** Adds the identity to a copy of an engine's files. */
export async function markCopy(name: EngineName, directory: string): Promise<void> {
  writeFileSync(join(directory, IDENTITY_NEW), identityText(name), { flush: true });
  await sealDirectory(directory);
}

/** Copies the files of a log-structured engine that nobody has open, by hard links where they never change. */
export async function copyFiles(name: EngineName, from: string, to: string): Promise<void> {
  mkdirSync(to);
  await linkTables(from, to);
  await markCopy(name, to);
}

function identityText(name: EngineName): string {
  const binding = BINDING_PACKAGES[name];
  return `engine: ${name}\nbinding: ${binding} ${packageVersion(binding)}\nformat: ${FORMAT_VERSION}\n`;
}

function checkIdentity(name: EngineName, directory: string, file: string): void {
  const path = join(directory, file);
  const lines = new Map<string, string>();
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const colon = line.indexOf(': ');
    if (colon > 0) lines.set(line.slice(0, colon), line.slice(colon + 2));
  }
  const engine = lines.get('engine');
  const format = lines.get('format');
  if (engine === undefined || format === undefined) {
    throw new EngineError(
      'ENGINE_DAMAGED',
      `${path} does not name an engine and a format; restore the directory from a backup`,
    );
  }
  if (engine !== name) {
    const known = ENGINE_NAMES.some((one) => one === engine);
    throw new EngineError(
      'ENGINE_MISMATCH',
      `${directory} was written by engine ${engine}, not ${name}; ` +
        (known ? `open it with --engine ${engine}, or ` : '') +
        `give engine ${name} another directory`,
    );
  }
  if (format !== String(FORMAT_VERSION)) {
    throw new EngineError(
      'ENGINE_FORMAT',
      `${directory} has format ${format} of engine ${name} (written with ` +
        `${lines.get('binding') ?? 'an unnamed binding'}), this version of ardent reads format ` +
        `${FORMAT_VERSION}; use the version that wrote it, or import from a dump`,
    );
  }
}

function guessOwner(entries: readonly string[]): string {
  if (entries.includes('data.mdb')) return 'files of LMDB';
  if (entries.includes('CURRENT')) {
    const rocks = entries.some((name) => name.endsWith('.sst') || name.startsWith('OPTIONS-'));
    return rocks ? 'files of RocksDB' : 'files of LevelDB';
  }
  return 'other files';
}

/** Version of an installed package. @throws when it is not installed */
export function packageVersion(name: string): string {
  const require = createRequire(import.meta.url);
  for (let at = dirname(require.resolve(name)); ; at = dirname(at)) {
    const path = join(at, 'package.json');
    if (existsSync(path)) {
      const found = JSON.parse(readFileSync(path, 'utf8')) as { name?: string; version?: string };
      if (found.name === name) return found.version ?? 'unknown';
    }
    if (at === dirname(at)) throw new Error(`no package.json of ${name}`);
  }
}
