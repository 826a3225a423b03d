/** SSCAN, HSCAN, ZSCAN: a key, a cursor, `MATCH pattern`, `COUNT count`. */
import { matchesEverything, matchGlob } from '../../bytes/glob.ts';
import { formatDouble } from '../../bytes/number.ts';
import type { Slice } from '../../bytes/slice.ts';
import { RespWriter } from '../../resp/writer.ts';
import type { Visitor } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { Encoding } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { clampedInteger, scanCursor } from './arguments.ts';

/** What sets, hashes and sorted sets have in common here. */
interface Scannable {
  readonly size: number;
  scan(cursor: number, count: number, visit: Visitor): number;
}

const DEFAULT_COUNT = 10;
/** Bytes kept from one scan to the next. */
const KEPT_MAX = 1 << 20;

/** The elements, written before the cursor that precedes them in the reply is known. */
let found = new RespWriter();

/** What is replied beside each element. */
export type Beside = 'nothing' | 'value' | 'score';

/** `open` gives the collection at a key, null when there is none. */
export function scanCollection(
  context: Context,
  open: (key: Slice) => Scannable | null,
  beside: Beside,
): void {
  const { args, argc, db, reply } = context;
  let cursor = scanCursor(context, 2);
  const collection = open(args[1]);
  if (collection === null) {
    reply.array(2);
    reply.bulkString('0');
    return reply.array(0);
  }
  let count = DEFAULT_COUNT;
  let pattern: Slice | null = null;
  for (let i = 3; i < argc; i += 2) {
    if (i + 1 === argc) throw syntaxError();
    if (context.is(i, 'count')) {
      count = clampedInteger(context, i + 1);
      if (count < 1) throw syntaxError();
    } else if (context.is(i, 'match')) {
      pattern = matchesEverything(args[i + 1]) ? null : args[i + 1];
    } else {
      throw syntaxError();
    }
  }
  // What Redis keeps in a compact form it gives whole, whatever the cursor and the count.
  if (db.encoding(args[1]) === Encoding.Compact) {
    cursor = 0;
    count = collection.size;
  }

  if (found.u8.length > KEPT_MAX) found = new RespWriter();
  else found.clear();
  let elements = 0;
  const next = collection.scan(cursor, count, (element, value, score) => {
    if (pattern !== null && !matchGlob(pattern, element)) return;
    elements++;
    found.bulk(element);
    if (beside === 'value') found.bulk(value!);
    else if (beside === 'score') found.bulkString(formatDouble(score));
  });
  reply.array(2);
  reply.bulkString(String(next));
  reply.array(beside === 'nothing' ? elements : elements * 2);
  reply.raw(found.written());
}
