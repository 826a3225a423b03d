/**
 * Counts the replies in a stream of RESP2 or RESP3 without building them: what a load generator needs
 * to know of a reply is where it ends and whether it is an error, a null or empty. One scanner a
 * connection; a reply may be cut anywhere.
 */

export const ReplyKind = { Value: 0, Error: 1, Null: 2, Empty: 3 } as const;
export type ReplyKind = (typeof ReplyKind)[keyof typeof ReplyKind];

const LF = 10;
/** The shortest reply is `+\r\n`. */
const SHORTEST_REPLY = 3;

/** Where `ReplyScanner.scan` writes what it found; shared by the connections of a thread. */
export class ScannedReplies {
  readonly kinds: Uint8Array;
  /** Offset after the last byte of each reply. */
  readonly ends: Int32Array;

  /** @param chunkBytes the largest chunk that will be scanned */
  constructor(chunkBytes: number) {
    const capacity = Math.ceil(chunkBytes / SHORTEST_REPLY) + 1;
    this.kinds = new Uint8Array(capacity);
    this.ends = new Int32Array(capacity);
  }
}

export class ReplyScanner {
  private readonly found: ScannedReplies;
  /** Replies of the last chunk that are not plain values. */
  unusual = 0;
  /** Offset of the first error's text in the last chunk; -1 when there was none. */
  errorAt = -1;
  /** Items that the reply under way still lacks; 0 between replies. */
  private lacking = 0;
  private kind: ReplyKind = ReplyKind.Value;
  /** The header line under way begins a reply: it is no item of an aggregate. */
  private top = false;
  /** Bytes of a bulk still to be passed over, its line end included. */
  private skip = 0;
  /** First byte of the header line under way; 0 when none is. */
  private type = 0;
  private value = 0;
  private negative = false;

  constructor(found: ScannedReplies) {
    this.found = found;
  }

  /** True between two replies. */
  get idle(): boolean {
    return this.lacking === 0 && this.type === 0 && this.skip === 0;
  }

  /** Scans bytes [start, end) and returns how many replies ended there, told in the ScannedReplies. */
  scan(u8: Uint8Array, start: number, end: number): number {
    const { kinds, ends } = this.found;
    let replies = 0;
    let unusual = 0;
    let { lacking, kind, top, skip, type, value, negative } = this;
    let pos = start;
    this.errorAt = -1;

    for (;;) {
      if (skip > 0) {
        if (pos + skip > end) {
          skip -= end - pos;
          break;
        }
        pos += skip;
        skip = 0;
        if (--lacking === 0) {
          if (kind !== ReplyKind.Value) unusual++;
          kinds[replies] = kind;
          ends[replies++] = pos;
        }
      }
      if (pos === end) break;
      if (type === 0) {
        type = u8[pos++];
        value = 0;
        negative = false;
        top = lacking === 0;
        if (top) {
          lacking = 1;
          kind = ReplyKind.Value;
          if (type === 45 || type === 33) {
            kind = ReplyKind.Error; // - !
            if (this.errorAt < 0) this.errorAt = pos;
          } else if (type === 95) kind = ReplyKind.Null; // _
        }
      }
      let c = 0;
      if (type === 43 || type === 45 || type === 58) {
        // A line whose content does not matter: + - :
        while (pos < end && (c = u8[pos++]) !== LF);
      } else {
        while (pos < end && (c = u8[pos++]) !== LF) {
          if (c >= 48 && c <= 57) value = value * 10 + c - 48;
          else if (c === 45) negative = true;
        }
      }
      if (c !== LF) break;

      const header = type;
      type = 0;
      switch (header) {
        case 36: // $
        case 61: // =
        case 33: // !
          if (negative) {
            if (top) kind = ReplyKind.Null;
          } else {
            skip = value + 2;
            continue;
          }
          break;
        case 42: // *
        case 126: // ~
        case 62: // >
          if (negative) {
            if (top) kind = ReplyKind.Null;
          } else {
            if (value === 0 && top) kind = ReplyKind.Empty;
            lacking += value;
          }
          break;
        case 37: // %
          if (value === 0 && top) kind = ReplyKind.Empty;
          lacking += value * 2;
          break;
        case 124: // | an attribute comes before its reply and is none
          lacking += value * 2 + 1;
          break;
      }
      if (--lacking === 0) {
        if (kind !== ReplyKind.Value) unusual++;
        kinds[replies] = kind;
        ends[replies++] = pos;
      }
    }

    this.lacking = lacking;
    this.kind = kind;
    this.top = top;
    this.skip = skip;
    this.type = type;
    this.value = value;
    this.negative = negative;
    this.unusual = unusual;
    return replies;
  }
}
