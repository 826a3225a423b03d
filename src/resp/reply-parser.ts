/** Replies as a client receives them, RESP2 and RESP3, as values. */

const CR = 13;

/** An error reply; the message begins with its code word. */
export class ReplyError extends Error {
  override readonly name = 'ReplyError';

  get code(): string {
    return this.message.split(' ', 1)[0];
  }
}

/** A status reply, `+OK`. */
export class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Data that the server sends on its own. */
export class Push {
  readonly values: ReplyValue[];

  constructor(values: ReplyValue[]) {
    this.values = values;
  }
}

/** Text with a format of three letters: `txt`, `mkd`. */
export class Verbatim {
  readonly format: string;
  readonly text: Buffer;

  constructor(format: string, text: Buffer) {
    this.format = format;
    this.text = text;
  }
}

/**
 * Bulk strings are Buffers, nulls of all kinds null, integers beyond the safe range and big numbers
 * bigint. Attributes are dropped.
 */
export type ReplyValue =
  | Buffer
  | Status
  | ReplyError
  | Verbatim
  | Push
  | number
  | bigint
  | boolean
  | null
  | ReplyValue[]
  | Map<ReplyValue, ReplyValue>
  | Set<ReplyValue>;

/** What was received is not RESP. */
export class ReplyFormatError extends Error {
  override readonly name = 'ReplyFormatError';
}

/** The position after the reply at `pos`, attributes before it included; -1 when it is not complete. */
export function skipReply(u8: Buffer, pos: number, end: number): number {
  const cursor = { pos, left: 1 };
  return skipElements(cursor, u8, end) ? cursor.pos : -1;
}

/** How far a reply has been passed over, and how many elements are still to be; aggregates add theirs. */
interface SkipCursor {
  pos: number;
  left: number;
}

/** Passes over the elements that are complete; true when none is left. */
function skipElements(cursor: SkipCursor, u8: Buffer, end: number): boolean {
  let { pos, left } = cursor;
  while (left > 0) {
    cursor.pos = pos;
    cursor.left = left;
    if (pos >= end) return false;
    const type = u8[pos];
    const line = u8.indexOf(CR, pos);
    if (line < 0 || line + 2 > end) return false;
    left--;
    switch (type) {
      case 36: // $
      case 33: // !
      case 61: {
        // =
        const length = headerNumber(u8, pos, line);
        pos = line + 2 + (length < 0 ? 0 : length + 2);
        if (pos > end) return false;
        break;
      }
      case 42: // *
      case 126: // ~
      case 62: // >
        left += Math.max(0, headerNumber(u8, pos, line));
        pos = line + 2;
        break;
      case 37: // %
        left += headerNumber(u8, pos, line) * 2;
        pos = line + 2;
        break;
      case 124: // | precedes the reply that it describes
        left += headerNumber(u8, pos, line) * 2 + 1;
        pos = line + 2;
        break;
      default:
        pos = line + 2;
    }
  }
  cursor.pos = pos;
  cursor.left = left;
  return true;
}

function headerNumber(u8: Buffer, pos: number, line: number): number {
  const text = u8.latin1Slice(pos + 1, line);
  if (!/^-?[0-9]{1,15}$/.test(text)) throw new ReplyFormatError(`'${text}' is no length`);
  return Number(text);
}

/** Turns the bytes of a connection into values, in whatever pieces they come. */
export class ReplyParser {
  private memory: Buffer = Buffer.alloc(0);
  /** Bytes [pos, end) of `memory` are not read yet. */
  private pos = 0;
  private end = 0;
  /** Of the reply at `pos`: what has come of a long one is passed over once. */
  private readonly skipped: SkipCursor = { pos: 0, left: 1 };

  /** Appends bytes; returns the replies that are complete now. Throws ReplyFormatError. */
  push(chunk: Buffer): ReplyValue[] {
    this.append(chunk);
    const values: ReplyValue[] = [];
    while (this.pos < this.end) {
      if (!skipElements(this.skipped, this.memory, this.end)) break;
      values.push(this.value());
      this.skipped.pos = this.pos;
      this.skipped.left = 1;
    }
    return values;
  }

  /** The memory doubles as a long reply comes in, so that its pieces are copied a few times only. */
  private append(chunk: Buffer): void {
    if (this.end + chunk.length > this.memory.length) this.makeRoom(this.pending + chunk.length);
    this.end += chunk.copy(this.memory, this.end);
  }

  /** Moves what is pending to the front of a memory that has room for `bytes`. */
  private makeRoom(bytes: number): void {
    const memory =
      2 * bytes > this.memory.length
        ? Buffer.allocUnsafe(Math.max(bytes, 2 * this.memory.length))
        : this.memory;
    this.memory.copy(memory, 0, this.pos, this.end);
    this.memory = memory;
    this.end -= this.pos;
    this.skipped.pos -= this.pos;
    this.pos = 0;
  }

  /** Bytes of a reply that is not complete. */
  get pending(): number {
    return this.end - this.pos;
  }

  /** The value at `pos`, which is complete. */
  private value(): ReplyValue {
    const type = String.fromCharCode(this.memory[this.pos]);
    const text = this.line();
    switch (type) {
      case '+':
        return new Status(text);
      case '-':
        return new ReplyError(text);
      case ':': {
        const value = Number(text);
        return Number.isSafeInteger(value) ? value : BigInt(text);
      }
      case '$':
        return text.startsWith('-') ? null : this.bytes(Number(text));
      case '!':
        return new ReplyError(this.bytes(Number(text)).latin1Slice());
      case '=': {
        const content = this.bytes(Number(text));
        return new Verbatim(content.latin1Slice(0, 3), content.subarray(4));
      }
      case '*':
        return text.startsWith('-') ? null : this.values(Number(text));
      case '~':
        return new Set(this.values(Number(text)));
      case '>':
        return new Push(this.values(Number(text)));
      case '%':
        return this.pairs(Number(text));
      case '|':
        this.pairs(Number(text));
        return this.value();
      case '_':
        return null;
      case '#':
        return text === 't';
      case ',':
        return text === 'inf' ? Infinity : text === '-inf' ? -Infinity : Number(text);
      case '(':
        return BigInt(text);
      default:
        throw new ReplyFormatError(`'${type}' is no type of reply`);
    }
  }

  private line(): string {
    const cr = this.memory.indexOf(CR, this.pos);
    const text = this.memory.latin1Slice(this.pos + 1, cr);
    this.pos = cr + 2;
    return text;
  }

  /** A copy: what is received later reuses nothing of it. */
  private bytes(length: number): Buffer {
    const bytes = Buffer.from(this.memory.subarray(this.pos, this.pos + length));
    this.pos += length + 2;
    return bytes;
  }

  private values(count: number): ReplyValue[] {
    return Array.from({ length: count }, () => this.value());
  }

  private pairs(count: number): Map<ReplyValue, ReplyValue> {
    const pairs = new Map<ReplyValue, ReplyValue>();
    for (let i = 0; i < count; i++) {
      const key = this.value();
      pairs.set(key, this.value());
    }
    return pairs;
  }
}
