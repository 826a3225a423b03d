#!/usr/bin/env node
/**
 * The floor of any Redis-compatible server in Node: parses requests and answers each with +OK (PING
 * with +PONG), keeps nothing. Usage: bare-responder.mjs [port] (after npm run build; default 6400).
 * Requests of up to 128 KB.
 */
import net from 'node:net';
import { allocatePadded, Slice, viewOf } from '../dist/bytes/slice.js';
import { parseRequest } from '../dist/resp/request-parser.js';

const port = Number(process.argv[2] ?? 6400);
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

net
  .createServer({ noDelay: true }, (socket) => {
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
  })
  .listen(port, '127.0.0.1', () => console.log(`listening on port ${port}`));
