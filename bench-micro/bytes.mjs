// What the byte-level routines of the hot paths cost: node bench-micro/bytes.mjs
// Build first. CPU time, best of several rounds; the loops add what they compute, so that none is optimised away.
import { copyBetween } from '../dist/bytes/copy.js';
import { allocatePadded, Slice, viewOf } from '../dist/bytes/slice.js';
import { parseInteger, parseDouble, formatDouble } from '../dist/bytes/number.js';
import { matchGlob } from '../dist/bytes/glob.js';
import { addExtended, formatExtended, parseExtended } from '../dist/bytes/extended.js';
import { countBits, findBit } from '../dist/server/commands/bit-runs.js';

const ROUNDS = 7;

function measure(name, count, run) {
  const times = [];
  let sum = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.cpuUsage();
    for (let i = 0; i < count; i++) sum += run(i);
    times.push((process.cpuUsage(start).user * 1000) / count);
  }
  times.sort((a, b) => a - b);
  console.log(`${name.padEnd(44)} ${times[0].toFixed(1).padStart(12)} ns   (${sum % 10})`);
}

const source = allocatePadded(1 << 16);
const target = allocatePadded(1 << 20);
const sourceView = viewOf(source.buffer);
const targetView = viewOf(target.buffer);
for (const length of [16, 100, 160, 256, 1024]) {
  measure(`copyBetween, ${length} B`, 1e6, (i) => {
    const at = (i * 148) & 0x7ffff;
    copyBetween(source, sourceView, i & 0x3fff, target, targetView, at, length);
    return target[at];
  });
  measure(`Buffer.copy, ${length} B`, 1e6, (i) => {
    const at = (i * 148) & 0x7ffff;
    const start = i & 0x3fff;
    return source.copy(target, at, start, start + length);
  });
}
const slices = (make) => Array.from({ length: 1024 }, (_, i) => Slice.from(make(i)));

const small = slices((i) => String(i * 7));
const large = slices((i) => String(9007199254740000 + i));
measure('parseInteger, up to 4 digits', 2e6, (i) => {
  const { u8, start, end } = small[i & 1023];
  return parseInteger(u8, start, end);
});
measure('parseInteger, 16 digits', 2e6, (i) => {
  const { u8, start, end } = large[i & 1023];
  return parseInteger(u8, start, end);
});
const doubles = slices((i) => String(i / 7));
measure('parseDouble, integers', 1e6, (i) => parseDouble(small[i & 1023]));
measure('parseDouble, 17 digits', 3e5, (i) => parseDouble(doubles[i & 1023]));
measure('formatDouble, integers', 1e6, (i) => formatDouble(i).length);
measure('formatDouble, fractions', 3e5, (i) => formatDouble(i / 7).length);
measure('parse, add and format long doubles', 3e4, (i) => {
  const sum = addExtended(parseExtended(doubles[i & 1023]), parseExtended(small[i & 1023]));
  return formatExtended(sum).length;
});

const keys = slices((i) => `user:${i * 7919}:profile`);
for (const pattern of ['user:*', 'user:[1-5]*:prof?le', '*profile', '*1*2*3*']) {
  const compiled = Slice.from(pattern);
  measure(`matchGlob ${pattern}`, 1e6, (i) => (matchGlob(compiled, keys[i & 1023]) ? 1 : 0));
}

const megabyte = Slice.from(Buffer.alloc(1 << 20));
const value = {
  length: megabyte.length,
  byteAt: (offset) => megabyte.u8[megabyte.start + offset],
  forEachRun: (start, end, visit) => {
    const run = new Slice();
    run.set(megabyte.u8, megabyte.view, megabyte.start + start, megabyte.start + end);
    visit(run);
  },
};
measure('countBits, 1 MB', 200, () => countBits(value, 0, (1 << 23) - 1));
measure('findBit, absent from 1 MB', 200, () => findBit(value, 1, 0, (1 << 23) - 1));
