/**
 * Content that is larger than `tier-memory`: many keys, and a hash, a set, a sorted set and a list each of
 * which is larger alone. Step n changes one element of each, so that all content follows from the number
 * of the last step, and any part of it can be asked for.
 */

/** Steps go through the elements in jumps of this prime, which no size is a multiple of. */
const JUMP = 7919;
/** Elements of one command of the load, bytes of an element, of a key's value. */
const BATCH = 100;
const ELEMENT_BYTES = 100;
const VALUE_BYTES = 1000;
/** Requests under way while loading, and while reading. */
const OUTSTANDING = 32;

const NOISE = (() => {
  let state = 1;
  let text = '';
  while (text.length < 65_536) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    text += state.toString(36);
  }
  return text;
})();

/** What element i is after step `version` has changed it; version 0 is as it was loaded. */
function text(i, version, length = ELEMENT_BYTES) {
  const head = `${i}:${version}:`;
  const at = (i * 31 + version * 17) % (NOISE.length - length);
  return head + NOISE.slice(at, at + length - head.length);
}

const field = (i) => `field:${i}`;
const keyOf = (i) => `large:${i}`;

/**
 * Each kind: bytes of an element; commands that load elements and that step n makes of element i, which was
 * last changed by step `before`; how elements, given as pairs [i, version], are asked for after step n; and
 * all of it. `size` is the number of elements.
 */
const KINDS = {
  keys: {
    elementBytes: VALUE_BYTES,
    load: (all) => ['MSET', ...all.flatMap((i) => [keyOf(i), text(i, 0, VALUE_BYTES)])],
    change: (i, n) => [['SET', keyOf(i), text(i, n, VALUE_BYTES)]],
    read: (client, pairs) => client.call('MGET', ...pairs.map(([i]) => keyOf(i))),
    expected: ([i, version]) => text(i, version, VALUE_BYTES),
  },
  hash: {
    elementBytes: ELEMENT_BYTES,
    load: (all) => ['HSET', 'large hash', ...all.flatMap((i) => [field(i), text(i, 0)])],
    change: (i, n) => [['HSET', 'large hash', field(i), text(i, n)]],
    read: (client, pairs) => client.call('HMGET', 'large hash', ...pairs.map(([i]) => field(i))),
    expected: ([i, version]) => text(i, version),
    count: ['HLEN', 'large hash'],
    all: ['HGETALL', 'large hash'],
    whole: ([i, version]) => [field(i), text(i, version)],
  },
  set: {
    elementBytes: ELEMENT_BYTES,
    load: (all) => ['SADD', 'large set', ...all.map((i) => text(i, 0))],
    change: (i, n, before) => [
      ['SREM', 'large set', text(i, before)],
      ['SADD', 'large set', text(i, n)],
    ],
    read: (client, pairs) => client.call('SMISMEMBER', 'large set', ...pairs.map((pair) => text(...pair))),
    expected: () => 1,
    count: ['SCARD', 'large set'],
    all: ['SMEMBERS', 'large set'],
    whole: (pair) => [text(...pair)],
  },
  zset: {
    // It is there by score and by member.
    elementBytes: 2 * ELEMENT_BYTES,
    load: (all) => ['ZADD', 'large zset', ...all.flatMap((i) => [0, text(i, 0)])],
    change: (i, n) => [['ZADD', 'large zset', n, text(i, 0)]],
    read: (client, pairs) => client.call('ZMSCORE', 'large zset', ...pairs.map(([i]) => text(i, 0))),
    expected: ([, version]) => String(version),
    count: ['ZCARD', 'large zset'],
    all: ['ZRANGE', 'large zset', 0, -1, 'WITHSCORES'],
    whole: ([i, version]) => [text(i, 0), String(version)],
  },
  /** It is turned by one element with each step. */
  list: {
    elementBytes: ELEMENT_BYTES,
    load: (all) => ['RPUSH', 'large list', ...all.map((i) => text(i, 0))],
    change: (i, n, before, size) => [
      ['LSET', 'large list', placeOf(i, n - 1, size), text(i, n)],
      ['LMOVE', 'large list', 'large list', 'LEFT', 'RIGHT'],
    ],
    read: (client, pairs, n, size) =>
      Promise.all(pairs.map(([i]) => client.call('LINDEX', 'large list', placeOf(i, n, size)))),
    expected: ([i, version]) => text(i, version),
    count: ['LLEN', 'large list'],
    all: ['LRANGE', 'large list', 0, -1],
    whole: (pair) => [text(...pair)],
  },
};

const modulo = (a, size) => ((a % size) + size) % size;
const placeOf = (i, n, size) => modulo(i - n, size);

/** The number that undoes a multiplication by JUMP modulo `size` (extended Euclid). */
function inverse(size) {
  let [a, b, x, y] = [JUMP % size, size, 1, 0];
  while (a > 1) {
    const q = Math.floor(b / a);
    [a, b, x, y] = [b - q * a, a, y - q * x, x];
  }
  return modulo(x, size);
}

export class Large {
  /** @param bytes by kind (keys, hash, set, zset, list): what there is of it, at least */
  constructor(bytes) {
    this.parts = Object.entries(bytes).map(([name, wanted]) => {
      const kind = KINDS[name];
      let size = Math.ceil(wanted / kind.elementBytes);
      if (size % JUMP === 0) size++;
      return { name, kind, size, inverse: inverse(size) };
    });
  }

  /** Elements of each kind. */
  get sizes() {
    return Object.fromEntries(this.parts.map(({ name, size }) => [name, size]));
  }

  /** Each kind as content of its own. */
  each() {
    return this.parts.map(({ name, size, kind }) => new Large({ [name]: size * kind.elementBytes }));
  }

  async load(client) {
    for (const { kind, size } of this.parts) {
      await pipelined(range(Math.ceil(size / BATCH)), (batch) =>
        client.call(...kind.load(range(Math.min(BATCH, size - batch * BATCH)).map((i) => batch * BATCH + i))),
      );
    }
  }

  /** The commands of step n. */
  commandsOf(n) {
    return this.parts.flatMap((part) => {
      const i = changedBy(part, n);
      return part.kind.change(i, n, versionOf(part, i, n - 1), part.size);
    });
  }

  /**
   * Compares after step n: what steps after `since` have changed, `samples` more elements of each kind, and
   * how many there are. Resolves to what differs first, or null.
   */
  async sample(client, n, since, samples, below) {
    for (const part of this.parts) {
      const { kind, size, name } = part;
      const changed = range(Math.min(size, n - since)).map((back) => changedBy(part, n - back));
      const asked = changed.concat(range(samples).map(() => below(size)));
      const pairs = asked.map((i) => [i, versionOf(part, i, n)]);
      const batches = range(Math.ceil(pairs.length / BATCH)).map((b) =>
        pairs.slice(b * BATCH, (b + 1) * BATCH),
      );
      const replies = await pipelined(batches, (batch) => kind.read(client, batch, n, size));
      const different = firstDifference(pairs.map(kind.expected), replies.flat());
      if (different !== null) return `${name}, element ${pairs[different.at]?.[0]}: ${different.text}`;
      if (kind.count === undefined) continue;
      const count = await client.call(...kind.count);
      if (count !== size) return `${name}: ${count} elements, expected ${size}`;
    }
    return null;
  }

  /** Compares everything after step n: collections by one command that reads all of it. */
  async whole(client, n) {
    for (const part of this.parts) {
      const { kind, size, name } = part;
      if (kind.all === undefined) {
        const different = await new Large({ [name]: size * kind.elementBytes }).sample(
          client,
          n,
          n - size,
          0,
        );
        if (different !== null) return different;
        continue;
      }
      const reply = await client.call(...kind.all);
      const elements = range(size).map((place) => (name === 'list' ? modulo(place + n, size) : place));
      const expected = elements.map((i) => kind.whole([i, versionOf(part, i, n)]).join(' '));
      const width = kind.whole([0, 0]).length;
      const found = range(Math.ceil(reply.length / width)).map((i) =>
        reply.slice(i * width, (i + 1) * width).join(' '),
      );
      if (name !== 'list') {
        expected.sort();
        found.sort();
      }
      const different = firstDifference(expected, found);
      if (different !== null) return `${name} as a whole, ${different.at} of ${size}: ${different.text}`;
    }
    return null;
  }
}

const range = (n) => Array.from({ length: n }, (_, i) => i);
const changedBy = ({ size }, n) => modulo(n * JUMP, size);

/** The last of the steps up to n that has changed element i; 0 when none has. */
function versionOf({ size, inverse }, i, n) {
  const first = (i * inverse) % size;
  return Math.max(0, n - modulo(n - first, size));
}

function firstDifference(expected, found) {
  for (let at = 0; at < Math.max(expected.length, found.length); at++) {
    if (expected[at] !== found[at])
      return { at, text: `expected ${shown(expected[at])}, found ${shown(found[at])}` };
  }
  return null;
}

const shown = (value) => JSON.stringify(value)?.slice(0, 60);

/** Runs `send` for each item, some at a time; resolves to the results in order. */
async function pipelined(items, send) {
  const results = [];
  const waiting = [];
  for (const item of items) {
    if (waiting.length >= OUTSTANDING) results.push(await waiting.shift());
    const reply = send(item);
    reply.catch(() => undefined); // awaited in its turn
    waiting.push(reply);
  }
  return results.concat(await Promise.all(waiting));
}
