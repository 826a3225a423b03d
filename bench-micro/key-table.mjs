// Strings in the memory tier against Map<string, Buffer>: nanoseconds an operation and their ratio,
// alternating, medians. Run after `npm run build`:
//   node bench-micro/key-table.mjs [keys=1000000] [value bytes=100] [rounds=3]
import { Slice, viewOf, allocatePadded } from '../dist/bytes/slice.js';
import { ByteSink } from '../dist/bytes/sink.js';
import { Tier } from '../dist/store/tier.js';

const keys = Number(process.argv[2] ?? 1_000_000);
const valueBytes = Number(process.argv[3] ?? 100);
const rounds = Number(process.argv[4] ?? 3);

/** Keys are laid out, as from a socket, a batch at a time in a small buffer; only the operations are timed. */
const BATCH = 4096;
const KEY_BYTES = 16;
const input = allocatePadded(BATCH * (KEY_BYTES + 4));
const view = viewOf(input.buffer);
const key = new Slice();
const value = Slice.from(Buffer.alloc(valueBytes, 120));
const into = new Slice();

let state = 0;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return (t ^ (t >>> 14)) >>> 0;
}

function layOut(i, number) {
  const at = i * (KEY_BYTES + 4);
  input.write('key:' + String(number).padStart(12, '0'), at, 'latin1');
  return at;
}

/** CPU time of this process in microseconds: other work on the machine counts less than in elapsed time. */
function cpu() {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Times `operation(at)` for `count` keys, in order or at random; nanoseconds an operation. */
function time(count, pick, operation) {
  let elapsed = 0;
  for (let done = 0; done < count; done += BATCH) {
    const n = Math.min(BATCH, count - done);
    for (let i = 0; i < n; i++) layOut(i, pick(done + i));
    const begin = cpu();
    for (let i = 0; i < n; i++) operation(i * (KEY_BYTES + 4));
    elapsed += cpu() - begin;
  }
  return (elapsed * 1000) / count;
}

const shuffled = new Uint32Array(keys).map((_, i) => i);
for (let i = keys - 1; i > 0; i--) {
  const j = random() % (i + 1);
  const swap = shuffled[i];
  shuffled[i] = shuffled[j];
  shuffled[j] = swap;
}
const inOrder = (i) => shuffled[i];
const anywhere = () => random() % keys;
const absent = () => keys + (random() % keys);

function tierRun(cutEvery = false) {
  const tier = new Tier({ hashKey: [1, 2] });
  tier.now = Date.now();
  const db = tier.database(0);
  const set = (at) => {
    key.set(input, view, at, at + KEY_BYTES);
    db.setString(key, value);
  };
  const get = (at) => {
    key.set(input, view, at, at + KEY_BYTES);
    if (db.getString(key, into)) sum += into.end;
  };
  const remove = (at) => {
    key.set(input, view, at, at + KEY_BYTES);
    db.remove(key);
  };
  let sum = 0;
  const result = {};
  result['set new'] = time(keys, inOrder, set);
  result.bytes = (tier.memory.used / keys).toFixed(1);
  result.get = time(keys, anywhere, get);
  result.miss = time(keys, absent, get);
  result.overwrite = time(keys, anywhere, set);
  if (cutEvery) {
    const sink = new ByteSink(1 << 20);
    tier.beginCut(sink);
    result['overwrite in a cut'] = time(keys, anywhere, (at) => {
      if (sink.pos > 1 << 19) sink.clear();
      set(at);
    });
    const begin = cpu();
    const before = tier.cutRows;
    while (!tier.copyCut(8, 1 << 19)) sink.clear();
    result['row copied out'] = ((cpu() - begin) * 1000) / (tier.cutRows - before);
    tier.endCut(true);
  }
  result.remove = time(keys, inOrder, remove);
  if (sum === 0) throw new Error('nothing was read');
  return result;
}

function mapRun() {
  const map = new Map();
  let sum = 0;
  const set = (at) => {
    map.set(input.latin1Slice(at, at + KEY_BYTES), Buffer.from(value.u8.subarray(value.start, value.end)));
  };
  const get = (at) => {
    const found = map.get(input.latin1Slice(at, at + KEY_BYTES));
    if (found !== undefined) sum += found.length;
  };
  const result = {};
  result['set new'] = time(keys, inOrder, set);
  result.get = time(keys, anywhere, get);
  result.miss = time(keys, absent, get);
  result.overwrite = time(keys, anywhere, set);
  result.remove = time(keys, inOrder, (at) => map.delete(input.latin1Slice(at, at + KEY_BYTES)));
  if (sum === 0) throw new Error('nothing was read');
  return result;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];
const runs = { tier: [], map: [] };
tierRun(true); // compiles; not counted
for (let round = 0; round < rounds; round++) {
  globalThis.gc?.();
  runs.tier.push(tierRun(true));
  runs.map.push(mapRun());
}
console.log(
  `${keys} keys of 16 B, values of ${valueBytes} B; tier ${runs.tier[0].bytes} B a key; ns an operation, medians of ${rounds}`,
);
for (const name of Object.keys(runs.tier[0])) {
  if (name === 'bytes') continue;
  const ours = median(runs.tier.map((run) => run[name]));
  const theirs = runs.map[0][name] === undefined ? undefined : median(runs.map.map((run) => run[name]));
  console.log(
    name.padEnd(20),
    ours.toFixed(0).padStart(6),
    theirs === undefined ? '' : `Map ${theirs.toFixed(0).padStart(6)}  ratio ${(ours / theirs).toFixed(2)}`,
  );
}
