// What commands cost without a network: parsed, dispatched, run on the tier, replied to.
// node bench-micro/commands.mjs [--keys 1000000]
// Build first. CPU time, best of several rounds; requests stand in buffers of 64 KB, as they come from a socket.
import { allocatePadded, viewOf } from '../dist/bytes/slice.js';
import { parseRequest } from '../dist/resp/request-parser.js';
import { Client } from '../dist/server/client.js';
import { dispatch } from '../dist/server/dispatch.js';
import { Server } from '../dist/server/server.js';
import { Tier } from '../dist/store/tier.js';

const at = process.argv.indexOf('--keys');
const KEYS = at < 0 ? 1_000_000 : Number(process.argv[at + 1]);
const BUFFER_BYTES = 64 * 1024;
const BUFFERS = 64;
const ROUNDS = 5;

const server = new Server({ store: new Tier({ limit: 4e9 }) });
server.store.memory.limit = 4e9;
const client = new Client(server, 1, null);
const value = 'x'.repeat(100);
const key = () => `key:${String(Math.floor(Math.random() * KEYS)).padStart(12, '0')}`;

function encode(parts) {
  return `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`;
}

/** Buffers full of requests, and how many there are in them. */
function requests(make) {
  const buffers = [];
  let count = 0;
  for (let i = 0; i < BUFFERS; i++) {
    let text = '';
    for (;;) {
      const next = encode(make());
      if (text.length + next.length > BUFFER_BYTES) break;
      text += next;
      count++;
    }
    const memory = allocatePadded(text.length);
    memory.latin1Write(text);
    buffers.push(memory);
  }
  return { buffers, count };
}

function run(buffers) {
  const { context } = server;
  context.reply = server.turn.writer;
  for (const memory of buffers) {
    const view = viewOf(memory.buffer);
    for (let pos = 0; pos < memory.length;) {
      pos = parseRequest(context, memory, view, pos, memory.length);
      context.client = client;
      context.db = client.db;
      dispatch(server, context, client);
    }
    context.reply.pos = 0;
    server.store.now = Date.now();
  }
}

for (const [name, make] of [
  ['PING', () => ['PING']],
  ['SET', () => ['SET', key(), value]],
  ['GET', () => ['GET', key()]],
  ['SET EX', () => ['SET', key(), value, 'EX', '1000']],
  ['INCR', () => ['INCR', `n:${key()}`]],
  ['MSET (10 keys)', () => ['MSET', ...Array.from({ length: 10 }, () => [key(), value]).flat()]],
  ['MGET (10 keys)', () => ['MGET', ...Array.from({ length: 10 }, key)]],
  ['EXPIRE', () => ['EXPIRE', key(), '1000']],
  ['TTL', () => ['TTL', key()]],
  ['DEL, of an absent key', () => ['DEL', `absent:${key()}`]],
  ['GETRANGE', () => ['GETRANGE', key(), '10', '20']],
  ['APPEND', () => ['APPEND', `a:${Math.floor(Math.random() * 1000)}`, 'x']],
  ['SETBIT', () => ['SETBIT', 'bits', String(Math.floor(Math.random() * 1e7)), '1']],
  ['GETBIT', () => ['GETBIT', 'bits', String(Math.floor(Math.random() * 1e7))]],
]) {
  const { buffers, count } = requests(make);
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = process.cpuUsage();
    run(buffers);
    const { user, system } = process.cpuUsage(start);
    times.push(((user + system) * 1000) / count);
  }
  console.log(
    `${name.padEnd(24)} ${Math.min(...times)
      .toFixed(0)
      .padStart(8)} ns`,
  );
}
process.exit();
