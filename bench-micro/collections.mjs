/**
 * CPU time of the hot commands on collections, from the request's bytes to the reply's, without
 * sockets and log:  npm run build && node bench-micro/collections.mjs [millions of elements]
 */
import { allocatePadded, viewOf } from '../dist/bytes/slice.js';
import { parseRequest } from '../dist/resp/request-parser.js';
import { Client } from '../dist/server/client.js';
import { dispatch } from '../dist/server/dispatch.js';
import { Server } from '../dist/server/server.js';
import { Tier } from '../dist/store/tier.js';

const elements = Math.round(Number(process.argv[2] ?? 0.3) * 1e6);
/** Requests whose replies are kept together, as those of a turn are. */
const BATCH = 200;
const VALUE = 'v'.repeat(100);

const server = new Server({ store: new Tier() });
const client = new Client(server, 1, null);
const { context } = server;
const random = () => String(Math.floor(Math.random() * 1e6)).padStart(12, '0');

/** Runs `count` requests; `words(i)` are those of the i-th. Returns microseconds of CPU for one. */
function run(count, words) {
  let used = 0;
  for (let done = 0; done < count; done += BATCH) {
    const size = Math.min(BATCH, count - done);
    const requests = [];
    for (let i = 0; i < size; i++) {
      const parts = words(done + i).map(String);
      requests.push(`*${parts.length}\r\n`, ...parts.map((part) => `$${part.length}\r\n${part}\r\n`));
    }
    const text = Buffer.from(requests.join(''), 'latin1');
    const memory = allocatePadded(text.length);
    text.copy(memory);
    const view = viewOf(memory.buffer);
    server.store.now = Date.now();
    const before = process.cpuUsage();
    server.openOutput(client);
    for (let pos = 0; pos < memory.length;) {
      pos = parseRequest(context, memory, view, pos, memory.length);
      dispatch(server, context, client);
    }
    const { user, system } = process.cpuUsage(before);
    used += user + system;
    const { writer } = server.turn;
    if (writer.u8[0] === 45) throw new Error(writer.written().subarray(0, 100).toString('latin1'));
    writer.clear();
  }
  return used / count;
}

const rows = [
  ['LPUSH', elements, () => ['LPUSH', 'list', VALUE]],
  ['RPUSH', elements, () => ['RPUSH', 'list', VALUE]],
  ['LRANGE 0 99', elements / 20, () => ['LRANGE', 'list', 0, 99]],
  ['LRANGE 0 599', elements / 100, () => ['LRANGE', 'list', 0, 599]],
  ['LPOP', elements, () => ['LPOP', 'list']],
  ['RPOP', elements, () => ['RPOP', 'list']],
  ['SADD', elements, () => ['SADD', 'set', `element:${random()}`]],
  ['SADD again', elements, () => ['SADD', 'set', `element:${random()}`]],
  ['SISMEMBER', elements, () => ['SISMEMBER', 'set', `element:${random()}`]],
  ['SPOP', elements / 5, () => ['SPOP', 'set']],
  ['HSET', elements, () => ['HSET', 'hash', `element:${random()}`, VALUE]],
  ['HGET', elements, () => ['HGET', 'hash', `element:${random()}`]],
  ['ZADD', elements, () => ['ZADD', 'zset', 0, `element:${random()}`]],
  ['ZADD again', elements, () => ['ZADD', 'zset', 0, `element:${random()}`]],
  ['ZADD moving', elements, () => ['ZADD', 'zset', random(), `element:${random()}`]],
  ['ZRANK', elements, () => ['ZRANK', 'zset', `element:${random()}`]],
  ['ZPOPMIN', elements / 5, () => ['ZPOPMIN', 'zset']],
  ['LPUSH to many', elements, () => ['LPUSH', `list:${random()}`, 'v']],
  ['HSET of small', elements, () => ['HSET', `hash:${random()}`, 'a', '1', 'b', '2']],
];
run(20_000, () => ['SADD', 'warm', random()]);
console.log(`${elements} elements, CPU microseconds a command`);
for (const [name, count, words] of rows) console.log(name.padEnd(16), run(count, words).toFixed(2));
server.close();
