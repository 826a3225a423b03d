#!/usr/bin/env node
/**
 * Cost of RESP on the hot path, nanoseconds each, medians of rounds: parsing requests in place, the
 * same in pieces, looking commands up, writing replies. Usage: resp.mjs (after npm run build)
 */
import { allocatePadded, Slice, viewOf } from '../dist/bytes/slice.js';
import { parseRequest, RequestReader } from '../dist/resp/request-parser.js';
import { RespWriter } from '../dist/resp/writer.js';
import { CommandLookup } from '../dist/server/command-entry.js';
import { commandTable } from '../dist/server/command-table.js';

const ROUNDS = 15;
const REQUESTS = 400;

const request = (...words) =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`;
const target = {
  args: Array.from({ length: 1024 }, () => new Slice()),
  argc: 0,
  requestMemory: Buffer.alloc(0),
  requestStart: 0,
  requestEnd: 0,
};

/** Median nanoseconds of one of `count` operations that `run` does. */
function measure(name, count, run) {
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    const begin = performance.now();
    for (let i = 0; i < 50; i++) run();
    times.push(((performance.now() - begin) * 1e6) / (50 * count));
  }
  times.sort((a, b) => a - b);
  console.log(`${name.padEnd(44)} ${times[ROUNDS >> 1].toFixed(1).padStart(8)} ns`);
}

for (const [name, words] of [
  ['GET, 16 B key', ['GET', 'key:000000000012']],
  ['SET, 16 B key, 100 B value', ['SET', 'key:000000000012', 'x'.repeat(100)]],
  ['MSET of 10', ['MSET', ...Array.from({ length: 20 }, (_, i) => `word:${i}`)]],
]) {
  const bytes = Buffer.from(request(...words).repeat(REQUESTS));
  const memory = allocatePadded(bytes.length);
  bytes.copy(memory);
  const view = viewOf(memory.buffer);
  measure(`parse ${name}`, REQUESTS, () => {
    for (let pos = 0; pos < bytes.length;) pos = parseRequest(target, memory, view, pos, bytes.length);
  });
  const reader = new RequestReader({ bulkLengthMax: 1 << 29 });
  measure(`parse ${name}, resumable`, REQUESTS, () => {
    reader.push(bytes, 0, bytes.length);
    while (reader.next(target));
    reader.release();
  });
}

const lookup = new CommandLookup(commandTable);
const names = ['GET', 'set', 'ZRANGEBYSCORE', 'nosuch'].map((name) => Slice.from(name));
measure('find a command', names.length * 100, () => {
  for (let i = 0; i < 100; i++) for (const name of names) lookup.find(name);
});

const writer = new RespWriter(1 << 20);
const value = Slice.from('x'.repeat(100));
for (const [name, write] of [
  ['write +OK', () => writer.ok()],
  ['write an integer', () => writer.integer(123456)],
  ['write a bulk string of 100 B', () => writer.bulk(value)],
]) {
  measure(name, REQUESTS, () => {
    writer.clear();
    for (let i = 0; i < REQUESTS; i++) write();
  });
}
