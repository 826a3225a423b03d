// What commands cost without a network and a log: parsed, read ahead, run on the tier, replied to.
// node bench-micro/commands.mjs [--keys 1000000] [--pipeline 16]
// Build first. CPU time, best of several rounds; so many requests at a time as --pipeline says.
import { Client } from '../dist/server/client.js';
import { Server } from '../dist/server/server.js';
import { Tier } from '../dist/store/tier.js';

const at = process.argv.indexOf('--keys');
const KEYS = at < 0 ? 1_000_000 : Number(process.argv[at + 1]);
const pipelineAt = process.argv.indexOf('--pipeline');
const PIPELINE = pipelineAt < 0 ? 16 : Number(process.argv[pipelineAt + 1]);
const REQUESTS = 32_768;
/** Inputs after which a turn ends. */
const INPUTS_A_TURN = 50;
const ROUNDS = 5;

const server = new Server({ store: new Tier({ limit: 4e9 }) });
server.store.memory.limit = 4e9;
const client = new Client(server, 1, null);
const value = 'x'.repeat(100);
const key = () => `key:${String(Math.floor(Math.random() * KEYS)).padStart(12, '0')}`;

function encode(parts) {
  return `*${parts.length}\r\n${parts.map((part) => `$${part.length}\r\n${part}\r\n`).join('')}`;
}

/** Inputs of requests, as they come from a socket. */
function requests(make) {
  const buffers = [];
  for (let count = 0; count < REQUESTS; count += PIPELINE) {
    buffers.push(Buffer.from(Array.from({ length: PIPELINE }, () => encode(make())).join(''), 'latin1'));
  }
  return { buffers, count: buffers.length * PIPELINE };
}

function run(buffers) {
  buffers.forEach((bytes, i) => {
    bytes.copy(server.input.memory);
    server.input.receive(client, bytes.length);
    if (i % INPUTS_A_TURN === 0) server.turns.end();
  });
  server.turns.end();
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
