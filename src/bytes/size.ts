const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  k: 1000,
  kb: 1024,
  m: 1000 ** 2,
  mb: 1024 ** 2,
  g: 1000 ** 3,
  gb: 1024 ** 3,
  t: 1000 ** 4,
  tb: 1024 ** 4,
};

/**
 * Bytes of a size such as `512mb`, in redis.conf's units: k, m, g are powers of 1,000 and kb, mb, gb
 * (also t, tb) of 1,024, in either case; without a unit, bytes. Undefined if it is not a size, or
 * not a safe integer.
 */
export function parseSize(text: string): number | undefined {
  const match = /^(\d+)([a-z]*)$/i.exec(text);
  if (match === null) return undefined;
  const unit = UNITS[match[2].toLowerCase()];
  if (unit === undefined) return undefined;
  const bytes = Number(match[1]) * unit;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The shortest exact way to write a size in powers of 1,024: 33554432 is `32mb`. */
export function formatSize(bytes: number): string {
  for (const unit of ['tb', 'gb', 'mb', 'kb']) {
    if (bytes > 0 && bytes % UNITS[unit] === 0) return `${bytes / UNITS[unit]}${unit}`;
  }
  return String(bytes);
}
