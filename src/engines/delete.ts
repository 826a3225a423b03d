import { release } from '../bytes/release.ts';
import type { Scan } from './binding.ts';
import type { PackedBatch } from './engine.ts';
import { RowCursor, RowPacker } from './packed.ts';

/** Bytes of keys deleted in one write: a few milliseconds of work, between which others are served. */
const DELETE_BYTES = 64 * 1024;

/** Deletes the rows of a scan of keys, a batch of `bytes` at a time. */
export async function deleteScanned(
  scan: Scan,
  write: (batch: PackedBatch) => Promise<void>,
  bytes = DELETE_BYTES,
): Promise<void> {
  const packer = new RowPacker(bytes * 2);
  for (;;) {
    const keys = await scan.next(bytes);
    if (keys === undefined) return;
    const cursor = new RowCursor(keys);
    while (cursor.advance()) packer.row(cursor.key, undefined);
    const batch = packer.take();
    await write(batch);
    release([keys.bytes, batch.bytes]);
  }
}
