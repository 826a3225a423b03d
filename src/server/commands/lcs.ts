/** LCS: the longest common subsequence, by the usual table of the lengths for all pairs of prefixes. */
import { Slice } from '../../bytes/slice.ts';
import { WrongTypeError } from '../../store/api.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { lookedUp } from './announce.ts';
import { clampedInteger } from './arguments.ts';

const NOT_STRINGS = 'ERR The specified keys must contain string values';
const LEN_AND_IDX = 'ERR If you want both the length and indexes, please just use IDX.';
const TABLE_TOO_LARGE = 'ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len';

interface Match {
  /** First position in each of the strings. */
  a: number;
  b: number;
  length: number;
}

function stringAt(context: Context, i: number): Buffer {
  const bytes = new Slice();
  try {
    const found = context.db.getString(context.args[i], bytes);
    lookedUp(context, context.args[i], found);
    return found ? bytes.toBuffer() : Buffer.alloc(0);
  } catch (error) {
    if (error instanceof WrongTypeError) throw new CommandError(NOT_STRINGS);
    throw error;
  }
}

/** `table[i * (b.length + 1) + j]` is the length for the first i bytes of `a` and the first j of `b`. */
function lengthTable(a: Buffer, b: Buffer): Uint32Array {
  const width = b.length + 1;
  const table = new Uint32Array((a.length + 1) * width);
  for (let i = 1; i <= a.length; i++) {
    const byte = a[i - 1];
    let at = i * width + 1;
    for (let j = 1; j <= b.length; j++, at++) {
      if (byte === b[j - 1]) {
        table[at] = table[at - width - 1] + 1;
      } else {
        const up = table[at - width];
        const left = table[at - 1];
        table[at] = up > left ? up : left;
      }
    }
  }
  return table;
}

/** The runs that the subsequence consists of, from the end of the strings to their beginning. */
function matches(a: Buffer, b: Buffer, table: Uint32Array): Match[] {
  const width = b.length + 1;
  const found: Match[] = [];
  let run: Match | null = null;
  let i = a.length;
  let j = b.length;
  while (i > 0 && j > 0) {
    if (a[i - 1] === b[j - 1]) {
      i--;
      j--;
      // One step back in both strings since the last common byte: the same run.
      if (run === null) found.push((run = { a: i, b: j, length: 0 }));
      run.a = i;
      run.b = j;
      run.length++;
    } else {
      run = null;
      if (table[(i - 1) * width + j] > table[i * width + j - 1]) i--;
      else j--;
    }
  }
  return found;
}

export function longestCommonSubsequence(context: Context): void {
  const { reply } = context;
  const a = stringAt(context, 1);
  const b = stringAt(context, 2);
  let lengthOnly = false;
  let indexes = false;
  let withLength = false;
  let lengthMin = 0;
  for (let i = 3; i < context.argc; i++) {
    if (context.is(i, 'idx')) indexes = true;
    else if (context.is(i, 'len')) lengthOnly = true;
    else if (context.is(i, 'withmatchlen')) withLength = true;
    else if (context.is(i, 'minmatchlen') && i + 1 < context.argc) lengthMin = clampedInteger(context, ++i);
    else throw syntaxError();
  }
  if (lengthOnly && indexes) throw new CommandError(LEN_AND_IDX);
  const tableBytes = (a.length + 1) * (b.length + 1) * Uint32Array.BYTES_PER_ELEMENT;
  if (tableBytes > context.server.requestLimits.bulkLengthMax) throw new CommandError(TABLE_TOO_LARGE);

  const table = lengthTable(a, b);
  const length = table[table.length - 1];
  if (indexes) {
    const shown = matches(a, b, table).filter((match) => match.length >= lengthMin);
    reply.map(2);
    reply.bulkString('matches');
    reply.array(shown.length);
    for (const match of shown) {
      reply.array(withLength ? 3 : 2);
      for (const start of [match.a, match.b]) {
        reply.array(2);
        reply.integer(start);
        reply.integer(start + match.length - 1);
      }
      if (withLength) reply.integer(match.length);
    }
    reply.bulkString('len');
    reply.integer(length);
  } else if (lengthOnly) {
    reply.integer(length);
  } else {
    const runs = matches(a, b, table).reverse();
    reply.beginBulk(length);
    for (const run of runs) reply.copy(a, run.a, run.a + run.length);
    reply.endBulk();
  }
}
