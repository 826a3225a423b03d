/**
 * Replies as a client receives them, RESP2 and RESP3: counted in place on the hot path, decoded where
 * their content matters.
 */

const CR = 13;

/** Result of `countReplies`; one object, overwritten by the next call. */
export interface ReplyCount {
  /** Complete replies found. */
  count: number;
  /** Position after the last of them. */
  end: number;
  /** Replies among them that are errors. */
  errors: number;
  /** Replies among them that are null. */
  nulls: number;
}

const counted: ReplyCount = { count: 0, end: 0, errors: 0, nulls: 0 };

/** How many complete replies, `max` at most, stand in [pos, end). Pushes and attributes count as replies. */
export function countReplies(u8: Buffer, pos: number, end: number, max = Infinity): ReplyCount {
  counted.count = 0;
  counted.errors = 0;
  counted.nulls = 0;
  while (counted.count < max) {
    const next = skipReply(u8, pos, end);
    if (next < 0) break;
    const type = u8[pos];
    if (type === 45 || type === 33) counted.errors++;
    else if (type === 95 || ((type === 36 || type === 42) && u8[pos + 1] === 45)) counted.nulls++;
    counted.count++;
    pos = next;
  }
  counted.end = pos;
  return counted;
}

/** The position after the reply at `pos`, -1 when it is not complete. */
export function skipReply(u8: Buffer, pos: number, end: number): number {
  // Elements that are still to be skipped; aggregates add theirs.
  let left = 1;
  while (left > 0) {
    if (pos >= end) return -1;
    const type = u8[pos++];
    left--;
    switch (type) {
      case 36: // $
      case 33: // !
      case 61: {
        // =
        let length = 0;
        let negative = false;
        let byte = 0;
        while (pos < end && (byte = u8[pos]) !== CR) {
          if (byte === 45) negative = true;
          else length = length * 10 + byte - 48;
          pos++;
        }
        pos += 2;
        if (!negative) pos += length + 2;
        if (pos > end) return -1;
        break;
      }
      case 42: // *
      case 126: // ~
      case 62: // >
      case 37: // %
      case 124: {
        // |
        let count = 0;
        let negative = false;
        let byte = 0;
        while (pos < end && (byte = u8[pos]) !== CR) {
          if (byte === 45) negative = true;
          else count = count * 10 + byte - 48;
          pos++;
        }
        pos += 2;
        if (pos > end) return -1;
        if (!negative) left += type === 37 || type === 124 ? count * 2 : count;
        // An attribute precedes the reply that it describes.
        if (type === 124) left++;
        break;
      }
      default:
        while (pos < end && u8[pos] !== CR) pos++;
        pos += 2;
        if (pos > end) return -1;
    }
  }
  return pos;
}
