/**
 * What the raw driver spends on a request: making its bytes, scanning its reply, counting its latency.
 * All together must stay far below what a server spends on it (some microseconds).
 *
 *   npm run build && node bench-micro/driver.mjs
 */
import { LatencyCounts } from '../dist/bench/latency.js';
import { ReplyScanner, ScannedReplies } from '../dist/resp/reply-scanner.js';
import { parseDistribution } from '../dist/workloads/distribution.js';
import { createRequestSource, KeyDraws } from '../dist/workloads/request-source.js';
import { parseSizes, ValuePool } from '../dist/workloads/values.js';

/** Nanoseconds for one of the `per` items that `work` handles: the best of several rounds. */
function measure(name, per, work, rounds = 7, calls = 20_000) {
  let best = Infinity;
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    for (let call = 0; call < calls; call++) work(call);
    best = Math.min(best, ((performance.now() - began) * 1e6) / (calls * per));
  }
  console.log(name.padEnd(44), `${best.toFixed(1).padStart(8)} ns`);
}

const BATCH = 16;
const source = (line, distribution = 'uniform') =>
  createRequestSource({
    mix: [{ line, weight: 1, access: 'write', name: line }],
    defaults: {
      distribution: parseDistribution(distribution),
      keyspace: 1_000_000,
      values: parseSizes('100'),
    },
    pool: new ValuePool(1, 0, 1024),
    seed: 1,
    batch: BATCH,
    draws: new KeyDraws(1),
    verifiable: false,
  });

for (const [line, distribution] of [
  ['SET key:__rand_int__ {value}'],
  ['GET {key}', 'zipfian'],
  ['SET {key} {value 50-150}'],
]) {
  const requests = source(line, distribution);
  measure(`request: ${line} ${distribution ?? ''}`, BATCH, () => requests.next(BATCH));
}

const reply = (text, count) => Buffer.from(text.repeat(count));
const element = `$100\r\n${'x'.repeat(100)}\r\n`;
for (const [name, bytes, count, calls] of [
  ['+OK', reply('+OK\r\n', BATCH), BATCH, 20_000],
  ['100 bytes', reply(element, BATCH), BATCH, 20_000],
  ['LRANGE_600 of 3 bytes', reply(`*600\r\n${'$3\r\nxxx\r\n'.repeat(600)}`, 1), 1, 2_000],
]) {
  const scanner = new ReplyScanner(new ScannedReplies(bytes.length));
  measure(`reply: ${name}`, count, () => scanner.scan(bytes, 0, bytes.length), 7, calls);
}

const latencies = new LatencyCounts();
measure('latency', 1, (call) => latencies.record(0.1 + (call & 0xffff) / 1e5, 1), 7, 200_000);
