/**
 * Collections against what plain JavaScript would use for them, in one process: nanoseconds an
 * operation and the ratio (below 1: ours is faster). `npm run build && node bench-micro/tree.mjs [sizes…]`
 *
 * Input lies in a small buffer, as a socket's read would leave it; the JavaScript side makes a string of
 * it (latin1Slice), as it would have to. After a warm-up three rounds, alternating; medians. CPU time of
 * the process, so that a busy machine disturbs less; that charges JavaScript its collector's threads.
 */
import { ByteSink } from '../dist/bytes/sink.js';
import { allocatePadded, Slice, viewOf } from '../dist/bytes/slice.js';
import { Tier } from '../dist/store/tier.js';

const sizes = process.argv.slice(2).map(Number);
if (sizes.length === 0) sizes.push(10_000, 100_000, 1_000_000);
const ROUNDS = 3;
const BATCH = 2048;
const SLOT = 24;

const memory = allocatePadded(BATCH * SLOT);
const view = viewOf(memory.buffer);
const ends = new Int32Array(BATCH);
const slice = new Slice();

function cpuNow() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

let state = 1;
function random(n) {
  state ^= state << 13;
  state ^= state >>> 17;
  state ^= state << 5;
  return Math.floor(((state >>> 0) / 2 ** 32) * n);
}

/** Numbers below n, each once, scattered. */
function shuffled(n) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = random(i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** 10 to 20 bytes that belong to a number. */
function writeMember(number, at) {
  let x = Math.imul(number + 1, 0x9e3779b1) >>> 0;
  const length = 10 + (x % 11);
  memory.latin1Write(number.toString(36).padStart(6, '0'), at);
  for (let i = 6; i < length; i++) memory[at + i] = 97 + (((x = Math.imul(x, 0x2545f491) >>> 0) >>> 24) % 26);
  return at + length;
}

/** Time of `body(i, number)` for every number of the order, its member in the buffer at i; ns an operation. */
function timed(order, body) {
  let elapsed = 0;
  for (let from = 0; from < order.length; from += BATCH) {
    const count = Math.min(BATCH, order.length - from);
    for (let i = 0; i < count; i++) ends[i] = writeMember(order[from + i], i * SLOT);
    const start = cpuNow();
    for (let i = 0; i < count; i++) body(i, order[from + i]);
    elapsed += cpuNow() - start;
  }
  return (elapsed * 1e3) / order.length;
}

/** Time of `body()`, `times` times. */
function repeated(times, body) {
  const start = cpuNow();
  for (let i = 0; i < times; i++) body(i);
  return ((cpuNow() - start) * 1e3) / times;
}

function member(i) {
  slice.set(memory, view, i * SLOT, ends[i]);
  return slice;
}

const text = (i) => memory.latin1Slice(i * SLOT, ends[i]);

function tierOf() {
  return new Tier({ hashKey: [1, 2] });
}

const rows = {
  sets(n, order, lookups) {
    const tier = tierOf();
    const set = tier.database(0).set(Slice.from('s'), true);
    const into = new Slice();
    const ours = {};
    ours['SADD new'] = timed(order, (i) => set.add(member(i)));
    ours.SISMEMBER = timed(lookups, (i) => set.has(member(i)));
    ours['SADD again'] = timed(lookups, (i) => set.add(member(i)));
    ours.SPOP = repeated(n - 1, () => {
      const rank = random(set.size);
      set.at(rank, into);
      set.removeAt(rank);
    });
    const js = {};
    const theirs = new Set();
    js['SADD new'] = timed(order, (i) => theirs.add(text(i)));
    js.SISMEMBER = timed(lookups, (i) => theirs.has(text(i)));
    js['SADD again'] = timed(lookups, (i) => theirs.add(text(i)));
    // A Set has no random member: a Map to places in an array is needed.
    const places = new Map();
    const array = [...theirs];
    array.forEach((m, i) => places.set(m, i));
    js.SPOP = repeated(n - 1, () => {
      const at = random(array.length);
      const last = array.pop();
      places.delete(at < array.length ? array[at] : last);
      if (at < array.length) {
        array[at] = last;
        places.set(last, at);
      }
    });
    return [ours, js];
  },

  zsets(n, order, lookups) {
    const zset = tierOf().database(0).zset(Slice.from('z'), true);
    const ours = {};
    const score = (number) => Math.imul(number, 0x9e3779b1) >>> 8;
    ours['ZADD new'] = timed(order, (i, number) => zset.set(member(i), score(number)));
    ours.ZSCORE = timed(lookups, (i) => zset.score(member(i)));
    ours.ZRANK = timed(lookups, (i) => zset.rank(member(i)));
    ours['ZADD again'] = timed(lookups, (i, number) => zset.set(member(i), score(number) + 1e6));
    const into = new Slice();
    ours.ZPOPMIN = repeated(n - 1, () => {
      zset.at(0, into);
      zset.removeRange(0, 1);
    });
    // No ordered structure in the language: the member map alone is what is compared.
    const js = {};
    const theirs = new Map();
    js['ZADD new'] = timed(order, (i, number) => theirs.set(text(i), score(number)));
    js.ZSCORE = timed(lookups, (i) => theirs.get(text(i)));
    js['ZADD again'] = timed(lookups, (i, number) => theirs.set(text(i), score(number) + 1e6));
    return [ours, js];
  },

  lists(n, order) {
    const list = tierOf().database(0).list(Slice.from('l'), true);
    const out = new ByteSink(64 * 1024);
    const ours = {};
    ours.LPUSH = timed(order, (i) => list.pushLeft(member(i)));
    const starts = 20_000;
    for (const count of [100, 600]) {
      ours[`LRANGE_${count}`] = repeated(starts, () => {
        out.clear();
        list.copyFramed(0, count, out);
      });
    }
    const into = new Slice();
    ours.LINDEX = repeated(starts, () => list.at(random(n), into));
    ours.LPOP = repeated(n - 1, () => {
      list.at(0, into);
      list.remove(0, 1);
    });
    // An array as a stack, the best case of LPUSH and LPOP; elements as Buffers, encoded in a loop.
    const js = {};
    const theirs = [];
    js.LPUSH = timed(order, (i) => theirs.push(Buffer.from(memory.subarray(i * SLOT, ends[i]))));
    for (const count of [100, 600]) {
      js[`LRANGE_${count}`] = repeated(starts / 10, () => {
        out.clear();
        for (let i = 1; i <= count; i++) {
          const element = theirs[theirs.length - i];
          out.byte(36);
          out.decimal(element.length);
          out.ascii('\r\n');
          out.copy(element, 0, element.length);
          out.ascii('\r\n');
        }
      });
    }
    js.LINDEX = repeated(starts, () => theirs[random(n)]);
    js.LPOP = repeated(n - 1, () => theirs.pop());
    return [ours, js];
  },
};

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}

for (const run of Object.values(rows)) {
  const order = Uint32Array.from({ length: 30_000 }, (_, i) => i);
  for (let i = 0; i < 3; i++) run(order.length, order, shuffled(order.length));
}

for (const n of sizes) {
  const order = Uint32Array.from({ length: n }, (_, i) => i);
  const lookups = shuffled(n);
  for (const run of Object.values(rows)) {
    const rounds = Array.from({ length: ROUNDS }, () => run(n, order, lookups));
    for (const name of Object.keys(rounds[0][0])) {
      const ours = median(rounds.map(([row]) => row[name]));
      const js = median(rounds.map(([, row]) => row[name] ?? NaN));
      const ratio = Number.isNaN(js)
        ? ''
        : `  js ${js.toFixed(0).padStart(6)}  ratio ${(ours / js).toFixed(2)}`;
      console.log(`${String(n).padStart(8)} ${name.padEnd(12)} ${ours.toFixed(0).padStart(6)} ns${ratio}`);
    }
  }
}
