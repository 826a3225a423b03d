/**
 * Which key comes next. Keys are numbers in [0, size); how a number becomes bytes is the command
 * line's business. Each distribution is deterministic for a seed.
 */
import { Random } from './random.ts';

const DISTRIBUTIONS = ['uniform', 'sequential', 'zipfian', 'latest', 'hotspot', 'insert'] as const;
export type DistributionName = (typeof DISTRIBUTIONS)[number];

export interface Distribution {
  name: DistributionName;
  /** Of zipfian and latest. YCSB's constant is 0.99. */
  exponent: number;
  /** Of hotspot: share of the keys that is hot, and share of the requests that goes there. */
  hotKeys: number;
  hotRequests: number;
}

/** YCSB's constants (core/src/main/java/site/ycsb: ZipfianGenerator, HotspotIntegerGenerator). */
const DEFAULT_EXPONENT = 0.99;
const DEFAULT_HOT_KEYS = 0.2;
const DEFAULT_HOT_REQUESTS = 0.8;

/** `uniform`, `sequential`, `zipfian[:exponent]`, `latest[:exponent]`, `hotspot[:keys:requests]`, `insert`. */
export function parseDistribution(spec: string): Distribution {
  const [name, first, second] = spec.split(':');
  if (!DISTRIBUTIONS.includes(name as DistributionName)) {
    throw new RangeError(`unknown distribution "${spec}"; one of ${DISTRIBUTIONS.join(', ')}`);
  }
  const number = (given: string | undefined, fallback: number, max: number): number => {
    const value = given === undefined ? fallback : Number(given);
    if (!(value > 0 && value <= max))
      throw new RangeError(`distribution "${spec}": ${given} must be above 0 and at most ${max}`);
    return value;
  };
  const hotspot = name === 'hotspot';
  return {
    name: name as DistributionName,
    exponent: number(hotspot ? undefined : first, DEFAULT_EXPONENT, 5),
    hotKeys: number(hotspot ? first : undefined, DEFAULT_HOT_KEYS, 1),
    hotRequests: number(hotspot ? second : undefined, DEFAULT_HOT_REQUESTS, 1),
  };
}

/** Which share of the keys a worker or connection may insert or walk: number `index` of `of`. */
export interface Share {
  index: number;
  of: number;
}

export interface Chooser {
  next(): number;
}

/** Keys that exist already and those that this source adds; shared by the choosers of one source. */
export class KeyPopulation {
  /** Keys present before the run. */
  readonly size: number;
  readonly share: Share;
  private added = 0;

  constructor(size: number, share: Share = { index: 0, of: 1 }) {
    this.size = size;
    this.share = share;
  }

  /** The next new key: numbers above `size`, disjoint between shares. */
  insert(): number {
    return this.size + this.added++ * this.share.of + this.share.index;
  }

  /** Newest key first: rank 0 is the key inserted last. */
  newest(rank: number): number {
    if (rank < this.added) {
      return this.size + (this.added - 1 - rank) * this.share.of + this.share.index;
    }
    return this.size - 1 - (rank - this.added);
  }

  get total(): number {
    return this.size + this.added;
  }
}

class Uniform implements Chooser {
  private readonly random: Random;
  private readonly size: number;
  constructor(random: Random, size: number) {
    this.random = random;
    this.size = size;
  }
  next(): number {
    return this.random.below(this.size);
  }
}

class Sequential implements Chooser {
  private at: number;
  private readonly step: number;
  private readonly start: number;
  private readonly size: number;
  constructor(size: number, share: Share) {
    this.start = share.index % size;
    this.at = this.start;
    this.step = share.of;
    this.size = size;
  }
  next(): number {
    const key = this.at;
    this.at = key + this.step < this.size ? key + this.step : this.start;
    return key;
  }
}

/**
 * Ranks 0, 1, 2... with probability proportional to 1 / (rank + 1)^exponent, by rejection-inversion
 * (Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone discrete
 * distributions", 1996): constant time and memory, any exponent above 0.
 */
export class ZipfianRanks {
  private readonly random: Random;
  private readonly exponent: number;
  private size = 0;
  private low = 0;
  private high = 0;
  private readonly shortcut: number;

  constructor(random: Random, size: number, exponent: number) {
    this.random = random;
    this.exponent = exponent;
    this.shortcut = 2 - this.inverse(this.integral(2.5) - 2 ** -exponent);
    this.resize(size);
  }

  /** For a population that grows. */
  resize(size: number): void {
    if (size === this.size) return;
    this.size = size;
    this.low = this.integral(1.5) - 1;
    this.high = this.integral(size + 0.5);
  }

  /** Antiderivative of x^-exponent. */
  private integral(x: number): number {
    const log = Math.log(x);
    const t = (1 - this.exponent) * log;
    return Math.abs(t) > 1e-8 ? (Math.expm1(t) / t) * log : log * (1 + t / 2);
  }

  private inverse(x: number): number {
    const t = Math.max(-1, x * (1 - this.exponent));
    return Math.exp(Math.abs(t) > 1e-8 ? (Math.log1p(t) / t) * x : x * (1 - t / 2));
  }

  next(): number {
    for (;;) {
      const u = this.high + this.random.fraction() * (this.low - this.high);
      const x = this.inverse(u);
      const k = Math.min(this.size, Math.max(1, Math.floor(x + 0.5)));
      if (k - x <= this.shortcut || u >= this.integral(k + 0.5) - k ** -this.exponent) return k - 1;
    }
  }
}

function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/** Popular keys lie scattered over the key space, each rank on a key of its own. */
class Zipfian implements Chooser {
  private readonly ranks: ZipfianRanks;
  private readonly step: number;
  private readonly size: number;
  constructor(random: Random, size: number, exponent: number) {
    this.ranks = new ZipfianRanks(random, size, exponent);
    this.size = size;
    // A step coprime to the size makes rank -> rank * step mod size a permutation; near the golden
    // section it scatters neighbours. The product must stay exact.
    let step = Math.max(1, Math.min(Math.floor(size * 0.618), Math.floor(Number.MAX_SAFE_INTEGER / size)));
    while (gcd(step, size) !== 1) step--;
    this.step = step;
  }
  next(): number {
    return (this.ranks.next() * this.step) % this.size;
  }
}

class Latest implements Chooser {
  private readonly ranks: ZipfianRanks;
  private readonly population: KeyPopulation;
  constructor(random: Random, population: KeyPopulation, exponent: number) {
    this.ranks = new ZipfianRanks(random, population.size, exponent);
    this.population = population;
  }
  next(): number {
    this.ranks.resize(this.population.total);
    return this.population.newest(this.ranks.next());
  }
}

class Insert implements Chooser {
  private readonly population: KeyPopulation;
  constructor(population: KeyPopulation) {
    this.population = population;
  }
  next(): number {
    return this.population.insert();
  }
}

class Hotspot implements Chooser {
  private readonly random: Random;
  private readonly size: number;
  private readonly hot: number;
  private readonly hotRequests: number;
  constructor(random: Random, size: number, distribution: Distribution) {
    this.random = random;
    this.size = size;
    this.hot = Math.max(1, Math.floor(size * distribution.hotKeys));
    this.hotRequests = this.hot === size ? 1 : distribution.hotRequests;
  }
  next(): number {
    if (this.random.fraction() < this.hotRequests) return this.random.below(this.hot);
    return this.hot + this.random.below(this.size - this.hot);
  }
}

/** @param random of its own for each chooser, or shared: the draws interleave */
export function createChooser(
  distribution: Distribution,
  population: KeyPopulation,
  random: Random,
  size = population.size,
): Chooser {
  switch (distribution.name) {
    case 'uniform':
      return new Uniform(random, size);
    case 'sequential':
      return new Sequential(size, population.share);
    case 'zipfian':
      return new Zipfian(random, size, distribution.exponent);
    case 'latest':
      return new Latest(random, population, distribution.exponent);
    case 'hotspot':
      return new Hotspot(random, size, distribution);
    case 'insert':
      return new Insert(population);
  }
}
