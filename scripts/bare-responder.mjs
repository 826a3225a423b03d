#!/usr/bin/env node
/** The floor of a Node server: parses RESP requests and answers +OK to each; stores nothing. bare-responder.mjs PORT */
import net from 'node:net';

const OK = Buffer.from('+OK\r\n'.repeat(4096), 'latin1');
const STAR = 42;

/** Counts complete requests in `bytes` from `state.pos` on; multi-bulk by their lengths, inline by the line. */
function scan(bytes, state) {
  let complete = 0;
  let at = 0;
  outer: while (at < bytes.length) {
    let end = bytes.indexOf(10, at);
    if (end < 0) break;
    if (bytes[at] === STAR) {
      let left = 0;
      for (let i = at + 1; bytes[i] !== 13; i++) left = left * 10 + bytes[i] - 48;
      for (; left > 0; left--) {
        const head = end + 1;
        if ((end = bytes.indexOf(10, head)) < 0) break outer;
        let length = 0;
        for (let i = head + 1; bytes[i] !== 13; i++) length = length * 10 + bytes[i] - 48;
        end += length + 2;
        if (end >= bytes.length) break outer;
      }
    }
    at = end + 1;
    complete++;
  }
  state.rest = at < bytes.length ? bytes.subarray(at) : null;
  return complete;
}

net
  .createServer({ noDelay: true }, (socket) => {
    const state = { rest: null };
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      let count = scan(state.rest ? Buffer.concat([state.rest, bytes]) : bytes, state);
      for (; count > 0; count -= 4096) socket.write(OK.subarray(0, Math.min(count, 4096) * 5));
    });
  })
  .listen(Number(process.argv[2]), '127.0.0.1');
