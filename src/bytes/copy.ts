/** Above this many bytes a call of Buffer.copy, with the view that it makes, is faster than a loop (bench-micro/bytes.mjs). */
const LOOP_BYTES_MAX = 160;

/**
 * Copies bytes between two memories, or two places of one that do not overlap; the views are over the
 * same memories as the buffers, from their offset 0.
 */
export function copyBetween(
  from: Buffer,
  fromView: DataView,
  start: number,
  to: Buffer,
  toView: DataView,
  at: number,
  length: number,
): void {
  const end = start + length;
  if (length > LOOP_BYTES_MAX) {
    from.copy(to, at, start, end);
    return;
  }
  for (const last = end - 16; start <= last; start += 16, at += 16) {
    toView.setInt32(at, fromView.getInt32(start, true), true);
    toView.setInt32(at + 4, fromView.getInt32(start + 4, true), true);
    toView.setInt32(at + 8, fromView.getInt32(start + 8, true), true);
    toView.setInt32(at + 12, fromView.getInt32(start + 12, true), true);
  }
  for (const last = end - 4; start <= last; start += 4, at += 4)
    toView.setInt32(at, fromView.getInt32(start, true), true);
  while (start < end) to[at++] = from[start++];
}
