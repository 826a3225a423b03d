/**
 * A connection that costs the client as little as Node.js allows, so that it is the server that is
 * measured: requests are bytes made beforehand, one write for a whole pipeline; all connections of a
 * thread read into one buffer; replies are counted where they lie.
 */
import { connect, type Socket } from 'node:net';
import { ReplyKind, ReplyScanner, ScannedReplies } from '../resp/reply-scanner.ts';
import type { RequestSource } from '../workloads/request-source.ts';
import type { Lane, LaneEvents } from './lane.ts';
import type { Address } from './load-spec.ts';

const READ_BUFFER_BYTES = 256 * 1024;
const CONNECT_TIMEOUT_MS = 5_000;
const LONGEST_ERROR_TEXT = 200;

/** What the lanes of one thread share: the buffer that they read into, and where replies are told. */
export class ReadBuffer {
  readonly bytes = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  readonly found = new ScannedReplies(READ_BUFFER_BYTES);
}

function encode(args: string[]): string {
  return `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`;
}

/** What to send after connecting, for `address`. */
export function greeting(address: Address): string[][] {
  const commands: string[][] = [];
  if (address.password !== undefined) {
    commands.push(
      address.user === undefined ? ['AUTH', address.password] : ['AUTH', address.user, address.password],
    );
  }
  if (address.database) commands.push(['SELECT', String(address.database)]);
  return commands;
}

export class RawLane implements Lane {
  readonly source: RequestSource;
  private readonly socket: Socket;
  private readonly index: number;
  private readonly events: LaneEvents;
  private readonly shared: ReadBuffer;
  private readonly scanner: ReplyScanner;
  private readonly verify: boolean;
  /** Beginning of a reply whose rest has not arrived; only when verifying. */
  private begun: Buffer = Buffer.alloc(0);
  /** Operation and key number of each request without reply; only when verifying. */
  private readonly asked: number[] = [];
  private closing = false;
  /** Replies to the greeting that are awaited. */
  private greetings: ((error: string | null) => void) | null = null;

  private constructor(
    address: Address,
    index: number,
    source: RequestSource,
    events: LaneEvents,
    shared: ReadBuffer,
    verify: boolean,
  ) {
    this.index = index;
    this.source = source;
    this.events = events;
    this.shared = shared;
    this.verify = verify;
    this.scanner = new ReplyScanner(shared.found);
    const onread = {
      buffer: shared.bytes,
      callback: (length: number): boolean => {
        this.received(length);
        return true;
      },
    };
    const to =
      address.path === undefined ? { host: address.host, port: address.port } : { path: address.path };
    this.socket = connect({ ...to, noDelay: true, onread } as Parameters<typeof connect>[0] & object);
  }

  /** A lane whose connection stands. */
  static open(
    address: Address,
    index: number,
    source: RequestSource,
    events: LaneEvents,
    shared: ReadBuffer,
    verify: boolean,
  ): Promise<RawLane> {
    return new Promise((resolve, reject) => {
      const lane = new RawLane(address, index, source, events, shared, verify);
      const { socket } = lane;
      const fail = (error: Error): void => {
        socket.destroy();
        reject(error);
      };
      socket.once('error', fail);
      socket.setTimeout(CONNECT_TIMEOUT_MS, () => fail(new Error('no answer to the connection request')));
      const stand = (): void => {
        socket.setTimeout(0);
        socket.removeListener('error', fail);
        lane.watch();
        resolve(lane);
      };
      socket.once('connect', () => {
        const commands = greeting(address);
        if (commands.length === 0) {
          stand();
          return;
        }
        let left = commands.length;
        lane.greetings = (error) => {
          if (error !== null) fail(new Error(error));
          else if (--left === 0) {
            lane.greetings = null;
            stand();
          }
        };
        socket.write(commands.map(encode).join(''));
      });
    });
  }

  private watch(): void {
    let reason = 'the server closed the connection';
    this.socket.on('error', (error: NodeJS.ErrnoException) => (reason = error.code ?? error.message));
    this.socket.on('close', () => {
      if (!this.closing) this.events.closed(this.index, reason);
    });
  }

  send(count: number): void {
    if (this.socket.writableLength > 0) this.source.keep();
    const { source } = this;
    this.socket.write(source.next(count));
    if (this.verify) for (let i = 0; i < count; i++) this.asked.push(source.operations[i], source.keys[i]);
  }

  private received(length: number): void {
    const { scanner, shared, events } = this;
    if (this.verify && this.greetings === null) {
      this.receivedToVerify(length);
      return;
    }
    const replies = scanner.scan(shared.bytes, 0, length);
    if (scanner.errorAt >= 0) this.errorText(shared.bytes, length);
    if (this.greetings !== null) {
      for (let i = 0; i < replies; i++) {
        const failed = shared.found.kinds[i] === ReplyKind.Error;
        this.greetings?.(failed ? this.textAt(shared.bytes, length) : null);
      }
      return;
    }
    if (replies > 0) events.replies(this.index, replies, shared.found.kinds, scanner.unusual);
  }

  private textAt(bytes: Buffer, length: number): string {
    const start = this.scanner.errorAt;
    const lineEnd = bytes.indexOf(13, start);
    const end = lineEnd < 0 || lineEnd > length ? length : lineEnd;
    return bytes.toString('latin1', start, Math.min(end, start + LONGEST_ERROR_TEXT));
  }

  private errorText(bytes: Buffer, length: number): void {
    if (this.greetings === null) this.events.error(this.textAt(bytes, length));
  }

  /** As `received`, but replies are kept together until they are complete, and handed on. */
  private receivedToVerify(length: number): void {
    const { shared, events } = this;
    const arrived = shared.bytes.subarray(0, length);
    const bytes = this.begun.length === 0 ? arrived : Buffer.concat([this.begun, arrived]);
    const found = this.begun.length === 0 ? shared.found : new ScannedReplies(bytes.length);
    const scanner = new ReplyScanner(found);
    const replies = scanner.scan(bytes, 0, bytes.length);
    if (scanner.errorAt >= 0) {
      const lineEnd = bytes.indexOf(13, scanner.errorAt);
      events.error(bytes.toString('latin1', scanner.errorAt, lineEnd < 0 ? bytes.length : lineEnd));
    }
    let start = 0;
    for (let i = 0; i < replies; i++) {
      const [operation, key] = this.asked.splice(0, 2);
      events.payload(operation, key, found.kinds[i] as ReplyKind, bytes.subarray(start, found.ends[i]));
      start = found.ends[i];
    }
    this.begun = Buffer.from(bytes.subarray(start));
    if (replies > 0) events.replies(this.index, replies, found.kinds, scanner.unusual);
  }

  close(): void {
    this.closing = true;
    this.socket.destroy();
  }
}
