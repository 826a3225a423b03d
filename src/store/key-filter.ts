/**
 * A set of hashes that may say yes of one that it does not have (about one in sixty), never no of one that
 * it has: a Bloom filter in blocks of one cache line's half, so that a look-up waits for memory once a part
 * (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters, 2007; eight bits a hash, one in
 * each word of a block). It grows by parts, each twice as large as the one before.
 */

export const BITS_A_KEY = 10;
const BLOCK_WORDS = 8;
const FIRST_KEYS_MIN = 4096;
/** Odd multipliers whose upper bits pick the bit of each word of a block. */
const SALTS = Int32Array.of(
  0x47b6137b,
  0x44974d91,
  0x8824ad5b,
  0xa2b7289d,
  0x705495c7,
  0x2df1424b,
  0x9efc4947,
  0x5c6bfb31,
);

export interface FilterPart {
  /** Blocks of eight words. */
  words: Int32Array;
  blocks: number;
  /** Hashes that it is to take, and has taken. */
  keys: number;
  taken: number;
}

/** A part without hashes for so many. */
export function newPart(keys: number): FilterPart {
  const blocks = Math.ceil((keys * BITS_A_KEY) / (32 * BLOCK_WORDS));
  return { words: new Int32Array(blocks * BLOCK_WORDS), blocks, keys, taken: 0 };
}

export class KeyFilter {
  /** Bytes of all parts. */
  bytes = 0;
  /** Hashes that have been added, those of one hash counted once. */
  count = 0;

  readonly parts: FilterPart[];
  private readonly maxBytes: number;

  /** Of parts that were another filter's; never more than `maxBytes`. */
  constructor(parts: FilterPart[], maxBytes = Infinity) {
    this.maxBytes = maxBytes;
    this.parts = parts;
    for (const { words, taken } of parts) {
      this.bytes += words.byteLength;
      this.count += taken;
    }
  }

  /** For about `keys` hashes at first. */
  static for(keys: number, maxBytes?: number): KeyFilter {
    return new KeyFilter([newPart(Math.max(Math.ceil(keys), FIRST_KEYS_MIN))], maxBytes);
  }

  has(hash: number): boolean {
    const mixed = mix(hash);
    for (const part of this.parts) if (isIn(part, hash, mixed)) return true;
    return false;
  }

  /** Adds a hash; false when it would become too large for that: from then on it is of no use. */
  add(hash: number): boolean {
    const mixed = mix(hash);
    for (const part of this.parts) if (isIn(part, hash, mixed)) return true;
    let part = this.parts[this.parts.length - 1];
    if (part.taken === part.keys) {
      if (!this.addPart(2 * part.keys)) return false;
      part = this.parts[this.parts.length - 1];
    }
    const { words } = part;
    const at = blockOf(part, mixed);
    for (let i = 0; i < BLOCK_WORDS; i++) words[at + i] |= 1 << (Math.imul(hash, SALTS[i]) >>> 27);
    part.taken++;
    this.count++;
    return true;
  }

  private addPart(keys: number): boolean {
    if (this.bytes + (keys * BITS_A_KEY) / 8 > this.maxBytes) return false;
    const part = newPart(keys);
    this.parts.push(part);
    this.bytes += part.words.byteLength;
    return true;
  }
}

/** Makes the choice of the block independent of that of its bits (the last steps of MurmurHash3). */
function mix(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function blockOf(part: FilterPart, mixed: number): number {
  return Math.floor((mixed / 2 ** 32) * part.blocks) * BLOCK_WORDS;
}

function isIn(part: FilterPart, hash: number, mixed: number): boolean {
  const { words } = part;
  const at = blockOf(part, mixed);
  for (let i = 0; i < BLOCK_WORDS; i++)
    if (((words[at + i] >>> (Math.imul(hash, SALTS[i]) >>> 27)) & 1) === 0) return false;
  return true;
}
