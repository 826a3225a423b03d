/** Quantities as people read them. */

/** Three significant digits at least, with thousands apart: 123,456 or 12.3. */
export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const magnitude = Math.abs(value);
  const digits = magnitude >= 100 || magnitude === 0 ? 0 : magnitude >= 10 ? 1 : magnitude >= 1 ? 2 : 3;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits, minimumFractionDigits: 0 });
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  let value = bytes;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? value.toFixed(0) : value.toPrecision(3)} ${units[unit]}`;
}

/** Microseconds as µs, ms or s. */
export function formatMicroseconds(us: number): string {
  if (us < 1000) return `${us < 100 ? us.toFixed(1) : us.toFixed(0)} µs`;
  if (us < 1_000_000) return `${(us / 1000).toPrecision(3)} ms`;
  return `${(us / 1_000_000).toPrecision(3)} s`;
}

export function formatRatio(ratio: number): string {
  return `${ratio.toFixed(2)}×`;
}

export function formatDuration(seconds: number): string {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')} min`;
}
