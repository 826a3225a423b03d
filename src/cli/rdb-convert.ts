/** `ardent rdb convert`: the same data as a file of version 10. */
import { realpathSync, statSync } from 'node:fs';
import { RDB_VERSION_WRITTEN } from '../rdb/format.ts';
import { RdbWriter } from '../rdb/writer.ts';
import { formatBytes, formatCount } from '../report/format.ts';
import { DumpFile, temporaryName } from '../store/dump/dump-file.ts';
import { UsageError } from './exit-codes.ts';
import { readFile } from './rdb-file.ts';

export interface ConvertOptions {
  compression: boolean;
  checksum: boolean;
  /** Leave out what the version has no place for, instead of refusing. */
  lossy: boolean;
}

/** Returns what was done, as a sentence. The old file stays until the new one is whole and synced. */
export async function convertFile(from: string, to: string, options: ConvertOptions): Promise<string> {
  const { compression, checksum, lossy } = options;
  const path = replaceable(to);
  const output = new DumpFile(path, temporaryName(path));
  try {
    const writer = new RdbWriter({
      write: (bytes) => output.write(bytes),
      patch: (offset, bytes) => output.patch(offset, bytes),
      compression,
      checksum,
    });
    await readFile(from, writer);
    const lost = lostText(writer.dropped);
    if (lost !== '' && !lossy) {
      throw new UsageError(
        `${from}: version ${RDB_VERSION_WRITTEN} has no place for ${lost}; --lossy leaves them out`,
      );
    }
    await output.commit();
    const without = lost === '' ? '' : `, without ${lost}`;
    return `${to}: version ${RDB_VERSION_WRITTEN}, ${formatCount(writer.keys)} keys, ${formatBytes(output.bytes)}${without}`;
  } catch (error) {
    await output.abandon();
    throw error;
  }
}

/**
 * Where the file that is to be replaced lies: a link stays, what it leads to is replaced. A device or a
 * pipe would be lost that way.
 */
function replaceable(path: string): string {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there === undefined) return path;
  if (!there.isFile()) throw new UsageError(`${path}: not a file`);
  return realpathSync(path);
}

function lostText(dropped: RdbWriter['dropped']): string {
  const parts: string[] = [];
  if (dropped.moduleValues > 0) parts.push(`${formatCount(dropped.moduleValues)} values of modules`);
  if (dropped.moduleAux > 0) parts.push(`${formatCount(dropped.moduleAux)} records of modules`);
  if (dropped.fieldDeadlines > 0) {
    parts.push(`${formatCount(dropped.fieldDeadlines)} deadlines of hash fields`);
  }
  return parts.join(', ');
}
