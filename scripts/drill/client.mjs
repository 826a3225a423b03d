/** A client of one connection: requests are pipelined, replies come in order, bytes are latin1 text. */
import net from 'node:net';
import { ReplyError, ReplyParser, Status } from '../../dist/resp/reply-parser.js';

export class Client {
  parser = new ReplyParser();
  waiting = [];
  closed = false;

  static connect(port) {
    return new Promise((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.setNoDelay();
      socket.once('error', reject);
      socket.once('connect', () => resolve(new Client(socket)));
    });
  }

  constructor(socket) {
    this.socket = socket;
    socket.on('error', () => undefined); // the close that follows tells
    socket.on('close', () => {
      this.closed = true;
      for (const { reject } of this.waiting.splice(0)) reject(new Error('connection closed'));
    });
    socket.on('data', (chunk) => {
      for (const reply of this.parser.push(chunk)) {
        const { resolve, reject } = this.waiting.shift();
        if (reply instanceof ReplyError) reject(reply);
        else resolve(plain(reply));
      }
    });
  }

  call(...args) {
    const parts = args.map(String);
    return new Promise((resolve, reject) => {
      if (this.closed) {
        reject(new Error('connection closed'));
        return;
      }
      this.waiting.push({ resolve, reject });
      this.socket.write(
        `*${parts.length}\r\n${parts.map((p) => `$${Buffer.byteLength(p, 'latin1')}\r\n${p}\r\n`).join('')}`,
        'latin1',
      );
    });
  }

  close() {
    this.socket.destroy();
  }
}

/** Bulk strings and statuses as text, byte by byte; errors stay errors. */
function plain(value) {
  if (Buffer.isBuffer(value)) return value.toString('latin1');
  if (value instanceof Status) return value.text;
  return Array.isArray(value) ? value.map(plain) : value;
}
