/** Cutting a log off at the first frame that cannot be read. */
import { dirname, basename } from 'node:path';
import type { Disk } from './disk.ts';
import { SEGMENT_HEADER_BYTES, positionOfSegmentName, segmentName } from './log-format.ts';
import type { LogFault } from './log-reader.ts';

const COPY_BYTES = 1024 * 1024;

/**
 * Ends the log before the bad frame: its segment is truncated there, later segments are removed.
 * With `aside`, a directory that must not exist yet, everything cut off is first copied there.
 */
export async function cutLog(disk: Disk, directory: string, fault: LogFault, aside?: string): Promise<void> {
  const doomed = disk
    .list(directory)
    .map(positionOfSegmentName)
    .filter((first) => first >= fault.position && segmentName(first) !== basename(fault.path));
  const keepsHeader =
    fault.offset >= SEGMENT_HEADER_BYTES && positionOfSegmentName(basename(fault.path)) <= fault.position;
  const faulty = positionOfSegmentName(basename(fault.path)) >= 0;
  if (aside !== undefined) {
    disk.makeDirectory(aside);
    if (faulty) await copyAside(disk, fault.path, keepsHeader ? fault.offset : 0, aside);
    for (const first of doomed) await copyAside(disk, `${directory}/${segmentName(first)}`, 0, aside);
    await disk.syncDirectory(aside);
    await disk.syncDirectory(dirname(aside));
  }
  // From the end backwards, so that a crash within leaves a log that ends at the same fault.
  for (const first of doomed.reverse()) disk.remove(`${directory}/${segmentName(first)}`);
  if (faulty && keepsHeader) {
    const file = disk.open(fault.path, 'write');
    try {
      file.truncate(fault.offset);
      await file.sync();
    } finally {
      file.close();
    }
  } else if (faulty) {
    disk.remove(fault.path);
  }
  await disk.syncDirectory(directory);
}

/** Copies a file from an offset on into the directory `aside`, and syncs it. */
export async function copyAside(disk: Disk, path: string, from: number, aside: string): Promise<void> {
  const source = disk.open(path, 'read');
  const target = disk.open(`${aside}/${basename(path)}${from > 0 ? `.from-${from}` : ''}`, 'create');
  try {
    const piece = Buffer.alloc(COPY_BYTES);
    let done = 0;
    for (;;) {
      const got = source.read(piece, from + done);
      if (got === 0) break;
      await target.writeLater(piece.subarray(0, got), done);
      done += got;
    }
    await target.sync();
  } finally {
    source.close();
    target.close();
  }
}
