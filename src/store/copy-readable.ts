/** The repair of an engine of which blocks cannot be read: what can be is copied into a new one, which takes its place. */
import type { Engine } from '../engines/engine.ts';
import { openEngine } from '../engines/open.ts';
import { RowPacker } from '../engines/packed.ts';
import type { CheckOptions, CheckReport } from './check.ts';
import type { DataDirectory } from './data-directory.ts';
import type { Disk } from './disk.ts';
import { RowWalk } from './row-walk.ts';

const SCAN_CHUNK_BYTES = 1024 * 1024;
const FIRST_KEY = Uint8Array.of(0);

/** Returns the engine as it is when all of it can be read; otherwise the copy, opened in its place. */
export async function copyReadable(
  engine: Engine,
  directory: DataDirectory,
  disk: Disk,
  report: CheckReport,
  options: CheckOptions,
): Promise<Engine> {
  const gaps = await gapsOf(engine, options);
  if (gaps.length === 0) return engine;
  const { engineDirectory, identity } = directory;
  for (const gap of gaps)
    options.onLoss?.(`${engineDirectory}: rows cannot be read and will be gone: ${gap}`);

  const copyDirectory = `${directory.path}/engine-copy-${Date.now()}`;
  const copy = await openEngine(identity.engine, copyDirectory);
  let rows = 0;
  try {
    for await (const chunk of engine.scan({
      start: FIRST_KEY,
      chunkBytes: SCAN_CHUNK_BYTES,
      salvage: true,
    })) {
      const packer = new RowPacker(chunk.length);
      const walk = new RowWalk(chunk, true);
      while (walk.next()) {
        const { bytes, keyStart, valueStart, end } = walk;
        if (walk.damaged) options.onLoss?.(`row ${walk.name} is damaged and will be gone`);
        else packer.row(bytes.subarray(keyStart, valueStart), bytes.subarray(valueStart, end));
      }
      rows += packer.rows;
      await copy.write(packer.take());
      options.onProgress?.(`${rows} rows copied`);
    }
    await copy.write({ bytes: new ArrayBuffer(0), length: 0, rows: 0 }, { sync: true });
  } finally {
    await copy.close();
    await engine.close();
  }
  const aside = `${directory.path}/engine-damaged-${Date.now()}`;
  disk.rename(engineDirectory, aside);
  disk.rename(copyDirectory, engineDirectory);
  await disk.syncDirectory(directory.path);
  report.repaired.push(
    `${engineDirectory}: made anew of the ${rows} rows that can be read; the damaged one is in ${aside}`,
  );
  return openEngine(identity.engine, engineDirectory);
}

/** Why rows cannot be read, for each place. */
async function gapsOf(engine: Engine, { onProgress }: CheckOptions): Promise<string[]> {
  const gaps: string[] = [];
  let bytes = 0;
  for await (const chunk of engine.scan({ start: FIRST_KEY, chunkBytes: SCAN_CHUNK_BYTES, salvage: true })) {
    gaps.push(...(chunk.gaps ?? []));
    bytes += chunk.length;
    onProgress?.(`${bytes} bytes of rows`);
  }
  return gaps;
}
