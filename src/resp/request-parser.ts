/**
 * Requests of a client, parsed in place. `parseRequest` is the hot path: a whole, well-formed
 * multibulk request in one buffer. Whatever else there is (requests in pieces, inline commands,
 * limits, errors) goes through a connection's `RequestReader`.
 */
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';

/** Where a parsed request is put. Entries of `args` from `argc` on are stale. */
export interface RequestTarget {
  readonly args: Slice[];
  argc: number;
  /** The request's own bytes, when it came as a multibulk; `requestStart` is -1 for inline commands. */
  requestMemory: Buffer;
  requestStart: number;
  requestEnd: number;
}

export interface RequestLimits {
  /** Longest bulk string, bytes (`proto-max-bulk-len`). */
  bulkLengthMax: number;
}

/** What the peer sent is no request; `message` is Redis's own text. The connection must be closed. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';
}

/** Most digits of a count or length on the hot path; longer ones take the careful way. */
const FAST_DIGITS_MAX = 8;
/** Longest inline request, and longest line that announces a count or length, bytes. */
const INLINE_MAX = 64 * 1024;
/** Most arguments of one request, Redis's limit. */
const MULTIBULK_LENGTH_MAX = 0x7fffffff;
/** Limits before authentication. */
const UNAUTHENTICATED_MULTIBULK_MAX = 10;
const UNAUTHENTICATED_BULK_MAX = 16 * 1024;

const CR = 13;
const LF = 10;

/**
 * Parses the request at `pos`. Returns the position after it, or -1 when it is not complete before
 * `end` or not a plain multibulk request; then nothing is consumed.
 */
export function parseRequest(
  target: RequestTarget,
  u8: Buffer,
  view: DataView,
  pos: number,
  end: number,
): number {
  if (u8[pos] !== 42 || pos + 4 > end) return -1; // *
  const start = pos++;
  let argc = u8[pos++] - 48;
  if (argc <= 0 || argc > 9) return -1;
  let digit = u8[pos];
  let bound = pos + FAST_DIGITS_MAX;
  if (bound > end) bound = end;
  while (digit !== CR) {
    digit -= 48;
    if (digit < 0 || digit > 9 || pos >= bound) return -1;
    argc = argc * 10 + digit;
    digit = u8[++pos];
  }
  pos += 2;
  const args = target.args;
  if (argc > args.length) return -1;
  for (let i = 0; i < argc; i++) {
    if (pos + 3 >= end || u8[pos] !== 36) return -1; // $
    let length = u8[pos + 1] - 48;
    if (length < 0 || length > 9) return -1;
    pos += 2;
    bound = pos + FAST_DIGITS_MAX;
    if (bound > end) bound = end;
    digit = u8[pos];
    // A length with a leading zero is none, which the careful way says.
    if (length === 0 && digit !== CR) return -1;
    while (digit !== CR) {
      digit -= 48;
      if (digit < 0 || digit > 9 || pos >= bound) return -1;
      length = length * 10 + digit;
      digit = u8[++pos];
    }
    pos += 2;
    const stop = pos + length;
    if (stop + 2 > end) return -1;
    const slice = args[i];
    slice.u8 = u8;
    slice.view = view;
    slice.start = pos;
    slice.end = stop;
    pos = stop + 2;
  }
  target.argc = argc;
  target.requestMemory = u8;
  target.requestStart = start;
  target.requestEnd = pos;
  return pos;
}

/** Makes `args` hold at least `count` slices. */
function growArgs(args: Slice[], count: number): void {
  while (args.length < count) args.push(new Slice());
}

const NO_MEMORY = allocatePadded(0);

/** Requests of one connection that come in pieces or are not plain: a buffer and a resumable parser. */
export class RequestReader {
  private readonly limits: RequestLimits;
  /** Before authentication only small requests are taken. */
  authenticated = true;
  memory: Buffer = NO_MEMORY;
  view: DataView = viewOf(NO_MEMORY.buffer);
  /** Bytes [at, end) of `memory` are not consumed yet; of a request in progress, not parsed yet. */
  at = 0;
  end = 0;

  /** Where the request in progress begins. */
  private requestStart = 0;
  /** Arguments that the request in progress has; -1: not known yet. */
  private expected = -1;
  private found = 0;
  /** Length of the argument in progress; -1: not known yet. */
  private bulkLength = -1;
  /** Start and end of each argument found, relative to `requestStart`. */
  private offsets: number[] = [];

  constructor(limits: RequestLimits) {
    this.limits = limits;
  }

  /** Bytes that wait here, those of the request in progress included. */
  get pending(): number {
    return this.end - (this.expected >= 0 ? this.requestStart : this.at);
  }

  /** Bytes of memory that the buffer takes. */
  get capacity(): number {
    return this.memory.length;
  }

  /** True between two requests: `parseRequest` may be used on [at, end). */
  get between(): boolean {
    return this.expected < 0;
  }

  /** Appends bytes [start, end) of `from`. */
  push(from: Buffer, start: number, end: number): void {
    const length = end - start;
    if (this.end + length > this.memory.length) this.makeRoom(length);
    from.copy(this.memory, this.end, start, end);
    this.end += length;
  }

  /** Forgets consumed bytes; the memory is kept when it is small. */
  release(): void {
    if (this.pending > 0) return;
    this.at = 0;
    this.end = 0;
    if (this.memory.length > SMALL_MEMORY) this.adopt(NO_MEMORY);
  }

  /** Drops everything. */
  clear(): void {
    this.expected = -1;
    this.bulkLength = -1;
    this.at = 0;
    this.end = 0;
    this.adopt(NO_MEMORY);
  }

  private adopt(memory: Buffer): void {
    this.memory = memory;
    this.view = viewOf(memory.buffer);
  }

  private makeRoom(length: number): void {
    const base = this.expected >= 0 ? this.requestStart : this.at;
    const used = this.end - base;
    let needed = used + length;
    if (this.bulkLength >= 0) needed = Math.max(needed, this.at - base + this.bulkLength + 2);
    let memory = this.memory;
    // Moving the rest to the front is enough only where that frees at least half, else the moves add up.
    if (needed > memory.length / 2) {
      const doubled = this.bulkLength >= 0 && this.bulkLength >= used ? needed : Math.max(needed, used * 2);
      memory = allocatePadded(Math.max(MEMORY_MIN, doubled));
    }
    this.memory.copy(memory, 0, base, this.end);
    if (memory !== this.memory) this.adopt(memory);
    this.at -= base;
    this.end = used;
    this.requestStart = 0;
  }

  /**
   * Parses on. True when a request is complete in `target` (`argc` 0: an empty one, to be skipped),
   * false when more bytes are needed. Throws ProtocolError.
   */
  next(target: RequestTarget): boolean {
    if (this.expected < 0) {
      if (this.at >= this.end) return false;
      if (this.memory[this.at] !== 42) return this.inline(target);
      const line = this.line('too big mbulk count string');
      if (line < 0) return false;
      const count = this.number(this.at + 1, line);
      if (count === undefined || count > MULTIBULK_LENGTH_MAX)
        throw new ProtocolError('invalid multibulk length');
      if (count > UNAUTHENTICATED_MULTIBULK_MAX && !this.authenticated)
        throw new ProtocolError('unauthenticated multibulk length');
      if (count <= 0) {
        this.at = line + 2;
        target.argc = 0;
        return true;
      }
      this.requestStart = this.at;
      this.at = line + 2;
      this.expected = count;
      this.found = 0;
      this.bulkLength = -1;
    }
    while (this.found < this.expected) {
      if (this.bulkLength < 0) {
        const line = this.line('too big bulk count string');
        if (line < 0) return false;
        const type = this.memory[this.at];
        if (type !== 36) throw new ProtocolError(`expected '$', got '${String.fromCharCode(type)}'`);
        const length = this.number(this.at + 1, line);
        if (length === undefined || length < 0 || length > this.limits.bulkLengthMax)
          throw new ProtocolError('invalid bulk length');
        if (length > UNAUTHENTICATED_BULK_MAX && !this.authenticated)
          throw new ProtocolError('unauthenticated bulk length');
        this.at = line + 2;
        this.bulkLength = length;
        const missing = this.at + length + 2 - this.memory.length;
        if (missing > 0 && length >= LARGE_BULK) this.makeRoom(0);
      }
      if (this.at + this.bulkLength + 2 > this.end) return false;
      const begin = this.at - this.requestStart;
      this.offsets[this.found * 2] = begin;
      this.offsets[this.found * 2 + 1] = begin + this.bulkLength;
      this.found++;
      this.at += this.bulkLength + 2;
      this.bulkLength = -1;
    }
    const args = target.args;
    growArgs(args, this.expected);
    for (let i = 0; i < this.expected; i++) {
      args[i].set(
        this.memory,
        this.view,
        this.requestStart + this.offsets[i * 2],
        this.requestStart + this.offsets[i * 2 + 1],
      );
    }
    target.argc = this.expected;
    target.requestMemory = this.memory;
    target.requestStart = this.requestStart;
    target.requestEnd = this.at;
    this.expected = -1;
    if (this.offsets.length > OFFSETS_KEPT) this.offsets = [];
    return true;
  }

  /** Position of the CR that ends the line at `at`, -1 while it is not there with its line feed. */
  private line(tooLong: string): number {
    const cr = this.memory.indexOf(CR, this.at);
    if (cr < 0 || cr >= this.end) {
      if (this.end - this.at > INLINE_MAX) throw new ProtocolError(tooLong);
      return -1;
    }
    return cr + 1 < this.end ? cr : -1;
  }

  private number(start: number, end: number): number | undefined {
    const text = this.memory.latin1Slice(start, end);
    return /^(?:0|-?[1-9][0-9]{0,14})$/.test(text) ? Number(text) : undefined;
  }

  /** Words of the last inline request: what its arguments show. */
  private words = NO_MEMORY;

  private inline(target: RequestTarget): boolean {
    const lf = this.memory.indexOf(LF, this.at);
    if (lf < 0 || lf >= this.end) {
      if (this.end - this.at > INLINE_MAX) throw new ProtocolError('too big inline request');
      return false;
    }
    const stop = lf > this.at && this.memory[lf - 1] === CR ? lf - 1 : lf;
    const words = splitWords(this.memory.latin1Slice(this.at, stop));
    if (words === undefined) throw new ProtocolError('unbalanced quotes in request');
    growArgs(target.args, words.length);
    // Words without their quotes are never longer than the line.
    if (this.words.length < lf - this.at + 1) this.words = allocatePadded(lf - this.at + 1);
    const view = viewOf(this.words.buffer);
    let start = 0;
    words.forEach((word, i) => {
      const end = start + this.words.write(word, start, 'latin1');
      target.args[i].set(this.words, view, start, end);
      start = end;
    });
    this.at = lf + 1;
    target.argc = words.length;
    target.requestStart = -1;
    return true;
  }
}

/** Least memory that a buffer is given. */
const MEMORY_MIN = 1024;
/** Memory up to this size stays with an idle connection. */
const SMALL_MEMORY = 16 * 1024;
/** From this length on an announced bulk string gets its whole memory at once. */
const LARGE_BULK = 32 * 1024;
/** Offsets kept for the next request. */
const OFFSETS_KEPT = 4096;

const ESCAPES: Record<string, string> = { n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' };
const isBlank = (character: string | undefined): boolean =>
  character !== undefined && ' \n\r\t\v\f\0'.includes(character);

/**
 * Words of a line by Redis's quoting rules (inline commands, configuration files): "…" with escapes
 * \n \r \t \b \a \xHH, '…' with \'. Undefined when quotes do not balance. One character is one byte.
 */
export function splitWords(line: string): string[] | undefined {
  const words: string[] = [];
  let at = 0;
  while (true) {
    while (at < line.length && isBlank(line[at])) at++;
    if (at >= line.length) return words;
    let word = '';
    let quote = '';
    while (true) {
      const character = line[at];
      if (quote !== '') {
        if (character === undefined) return undefined;
        if (character === quote) {
          if (line[at + 1] !== undefined && !isBlank(line[at + 1])) return undefined;
          at++;
          break;
        }
        if (quote === '"' && character === '\\' && line[at + 1] !== undefined) {
          const code = /^x([0-9a-fA-F]{2})/.exec(line.slice(at + 1, at + 4));
          if (code !== null) {
            word += String.fromCharCode(parseInt(code[1], 16));
            at += 4;
          } else {
            word += ESCAPES[line[at + 1]] ?? line[at + 1];
            at += 2;
          }
        } else if (quote === "'" && character === '\\' && line[at + 1] === "'") {
          word += "'";
          at += 2;
        } else {
          word += character;
          at++;
        }
      } else if (character === undefined || isBlank(character)) {
        break;
      } else if (character === '"' || character === "'") {
        quote = character;
        at++;
      } else {
        word += character;
        at++;
      }
    }
    words.push(word);
  }
}
