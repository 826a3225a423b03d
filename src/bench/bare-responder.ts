#!/usr/bin/env node
/**
 * The floor of any Redis-compatible server in Node: parses requests and answers each with +OK, keeps
 * nothing. What a client reaches against it is the client's ceiling (see ceiling.ts), and what a server
 * of ours can at most reach. Requests of up to 128 KB.
 *
 *   node dist/bench/bare-responder.js [port]     prints `listening on port N`; without a port a free one
 */
import { createServer, type AddressInfo } from 'node:net';
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';
import { parseRequest } from '../resp/request-parser.ts';

const OK = Buffer.from('+OK\r\n');
const REPLIES = 4096;
const replies = Buffer.alloc(OK.length * REPLIES, OK);
const input = allocatePadded(256 * 1024);
const view = viewOf(input.buffer);
const request = {
  args: Array.from({ length: 1024 }, () => new Slice()),
  argc: 0,
  requestMemory: input,
  requestStart: 0,
  requestEnd: 0,
};

const server = createServer({ noDelay: true }, (socket) => {
  let rest = Buffer.alloc(0);
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk) => {
    rest.copy(input);
    chunk.copy(input, rest.length);
    const end = rest.length + chunk.length;
    let pos = 0;
    let count = 0;
    while (pos < end) {
      const next = parseRequest(request, input, view, pos, end);
      if (next < 0) break;
      pos = next;
      count++;
    }
    rest = pos < end ? Buffer.from(input.subarray(pos, end)) : rest.subarray(0, 0);
    for (; count > 0; count -= REPLIES)
      socket.write(replies.subarray(0, OK.length * Math.min(count, REPLIES)));
  });
}).listen(Number(process.argv[2] ?? 0), '127.0.0.1', () =>
  console.log(`listening on port ${(server.address() as AddressInfo).port}`),
);
