/** Generated data sets: one type of value, so many keys that a tier is filled to a given share. */
import { LoadPool } from '../load.ts';
import type { Address } from '../load-spec.ts';

export const GENERATED_TYPES = ['string', 'hash', 'list', 'set', 'zset', 'stream'] as const;
export type GeneratedType = (typeof GENERATED_TYPES)[number];

export interface FillSpec {
  type: GeneratedType;
  /** Bytes of a string, element, field's value or member. */
  valueLength: number;
  /** Of a key that is not a string. */
  elements: number;
  /** Share of a value that a compressor can remove. */
  compressibility: number;
  seed: number;
}

/** Share of the memory that the data are to fill. */
export const FILL_SHARE = 0.8;
/** Keys that are tried to learn what a key takes, and the share of the memory that they may take. */
const TRIAL_KEYS = 5_000;
const TRIAL_SHARE = 0.1;
/** Bytes that a key takes beside its values, about. */
const KEY_BYTES = 64;
const CONNECTIONS = 4;
const PIPELINE = 32;
const TIMEOUT_SECONDS = 60;

/** What makes one key, as the bench's command lines. */
function commandOf({ type, elements }: FillSpec): string {
  const each = (item: (index: number) => string): string =>
    Array.from({ length: elements }, (_, i) => item(i)).join(' ');
  switch (type) {
    case 'string':
      return 'SET {key} {value}';
    case 'hash':
      return `HSET {key} ${each((i) => `field:${i} {value}`)}`;
    case 'list':
      return `RPUSH {key} ${each(() => '{value}')}`;
    case 'set':
      return `SADD {key} ${each(() => '{value}')}`;
    case 'zset':
      return `ZADD {key} ${each(() => '{int 1000000} {value}')}`;
    case 'stream':
      return [
        'XADD {key} * field {value}',
        ...Array<string>(elements - 1).fill('XADD key:{same} * field {value}'),
      ].join(' ; ');
  }
}

/** Bytes of memory that a key takes if nobody can be asked. */
export function guessedKeyBytes({ type, valueLength, elements }: FillSpec): number {
  return KEY_BYTES + valueLength * (type === 'string' ? 1 : elements);
}

export function trialKeys(spec: FillSpec, memoryBytes: number): number {
  return Math.max(1, Math.min(TRIAL_KEYS, Math.floor((memoryBytes * TRIAL_SHARE) / guessedKeyBytes(spec))));
}

/** Makes keys 0 to `keys` - 1. Returns the seconds that it took; throws what went wrong. */
export async function fill(pool: LoadPool, address: Address, spec: FillSpec, keys: number): Promise<number> {
  const outcome = await pool.run({
    address,
    driver: 'raw',
    mix: [{ line: commandOf(spec), weight: 1, access: 'write', name: 'fill' }],
    keyspace: keys,
    distribution: 'sequential',
    valueSizes: String(spec.valueLength),
    compressibility: spec.compressibility,
    verify: false,
    connections: CONNECTIONS,
    pipeline: PIPELINE,
    open: null,
    // Each command of an operation is a request.
    requests: keys * (spec.type === 'stream' ? spec.elements : 1),
    seconds: null,
    warmupSeconds: 0,
    warmupRequests: null,
    intervalSeconds: 1,
    timeoutSeconds: TIMEOUT_SECONDS,
    seed: spec.seed,
    workers: 1,
  });
  if (outcome.failure !== null) throw new Error(`the data could not be made: ${outcome.failure}`);
  if (outcome.errors > 0)
    throw new Error(`the data could not be made: the server answered ${outcome.firstError}`);
  return outcome.seconds;
}
