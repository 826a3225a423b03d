/** Value sizes and value bytes. */
import { Random } from './random.ts';

/** `128`: fixed; `64-1024`: each size equally often; `64:70,1024:30`: sizes by weight. Bytes. */
export type SizeSpec =
  | { kind: 'fixed'; bytes: number }
  | { kind: 'range'; low: number; high: number }
  | { kind: 'weighted'; sizes: number[]; weights: number[] };

const MAX_VALUE_BYTES = 512 * 1024 * 1024;

export function parseSizes(spec: string): SizeSpec {
  const bytes = (given: string): number => {
    const value = Number(given);
    if (!/^\d+$/.test(given) || value > MAX_VALUE_BYTES) {
      throw new RangeError(`value size "${spec}": expected bytes as 128, 64-1024 or 64:70,1024:30`);
    }
    return value;
  };
  if (spec.includes(':')) {
    const pairs = spec.split(',').map((pair) => pair.split(':'));
    const sizes = pairs.map(([size]) => bytes(size));
    const weights = pairs.map(([, weight]) => Number(weight));
    if (!weights.every((weight) => weight > 0))
      throw new RangeError(`value size "${spec}": weights must be above 0`);
    return { kind: 'weighted', sizes, weights };
  }
  const range = /^(\d+)-(\d+)$/.exec(spec);
  if (range !== null) {
    const [low, high] = [bytes(range[1]), bytes(range[2])];
    if (low > high) throw new RangeError(`value size "${spec}": the range is empty`);
    return { kind: 'range', low, high };
  }
  return { kind: 'fixed', bytes: bytes(spec) };
}

export function largest(spec: SizeSpec): number {
  if (spec.kind === 'fixed') return spec.bytes;
  return spec.kind === 'range' ? spec.high : Math.max(...spec.sizes);
}

export function averageSize(spec: SizeSpec): number {
  if (spec.kind === 'fixed') return spec.bytes;
  if (spec.kind === 'range') return (spec.low + spec.high) / 2;
  const total = spec.weights.reduce((sum, weight) => sum + weight, 0);
  return spec.sizes.reduce((sum, size, index) => sum + (size * spec.weights[index]) / total, 0);
}

/** The size for `fraction` in [0, 1): equal fractions give equal sizes. */
export function sizeAt(spec: SizeSpec, fraction: number): number {
  if (spec.kind === 'fixed') return spec.bytes;
  if (spec.kind === 'range') return spec.low + Math.floor(fraction * (spec.high - spec.low + 1));
  let at = fraction * spec.weights.reduce((sum, weight) => sum + weight, 0);
  for (let i = 0; i < spec.sizes.length; i++) {
    at -= spec.weights[i];
    if (at < 0) return spec.sizes[i];
  }
  return spec.sizes[spec.sizes.length - 1];
}

/** Bytes of one random block; a value longer than the pool repeats it. */
const POOL_BYTES = 1 << 20;
/** Compressible values are made of runs of this many bytes: a random part, then a constant part. */
const GRAIN_BYTES = 128;
/** Odd, so that the values of neighbouring keys begin at different places. */
const PLACE_STEP = 65537;

/**
 * Random bytes to cut values from. `compressibility` is the share that a compressor can remove, about:
 * 0 gives random bytes, 0.5 halves. Every value starts at a place of its own, so values differ.
 */
export class ValuePool {
  readonly bytes: Buffer;
  private readonly random: Random;

  constructor(seed: number, compressibility = 0, longest = 0) {
    if (!(compressibility >= 0 && compressibility < 1)) {
      throw new RangeError(`compressibility ${compressibility}: expected 0 to below 1`);
    }
    this.random = new Random(seed, 0x7a1e);
    const pool = Buffer.allocUnsafeSlow(POOL_BYTES);
    const constant = Math.round(GRAIN_BYTES * compressibility);
    for (let at = 0; at < POOL_BYTES; at += GRAIN_BYTES) {
      this.random.fill(pool.subarray(at, at + GRAIN_BYTES - constant));
      pool.fill(0x78, at + GRAIN_BYTES - constant, at + GRAIN_BYTES);
    }
    // Any start below POOL_BYTES can be followed by `longest` bytes.
    const rounds = 1 + Math.ceil(longest / POOL_BYTES);
    this.bytes = Buffer.concat(Array.from({ length: rounds }, () => pool));
  }

  /** Where a value of `size` bytes begins, at random. */
  draw(): number {
    return this.random.below(POOL_BYTES);
  }

  /** The value of key number `index`, always the same: what verification relies on. */
  valueOf(index: number, sizes: SizeSpec): Buffer {
    const place = this.placeOf(index);
    return this.bytes.subarray(place, place + this.sizeOf(index, sizes));
  }

  placeOf(index: number): number {
    return (index * PLACE_STEP) % POOL_BYTES;
  }

  sizeOf(index: number, sizes: SizeSpec): number {
    return sizeAt(sizes, (Math.imul(index, 0x9e3779b1) >>> 0) / 4294967296);
  }
}
