/**
 * Requests of one connection that have arrived together: they are parsed together, and the store reads
 * their keys ahead, before the first of them runs.
 */
import { Slice } from '../bytes/slice.ts';
import { parseRequest, type RequestTarget } from '../resp/request-parser.ts';
import { PREFETCH_KEYS_MAX } from '../store/api.ts';
import type { Context } from './context.ts';

/** A request with more arguments is not parsed ahead. */
const ARGUMENTS_MAX = 8;

/** Members of fewer requests are not read ahead. */
const MEMBERS_MIN = 4;

/** As `equals`, beginning with the last byte, which differs most. */
function same(a: Slice, b: Slice): boolean {
  return a.u8[a.end - 1] === b.u8[b.end - 1] && a.equals(b);
}

class ParsedRequest implements RequestTarget {
  readonly args = Array.from({ length: ARGUMENTS_MAX }, () => new Slice());
  argc = 0;
  requestMemory: Buffer = Buffer.alloc(0);
  requestStart = 0;
  requestEnd = 0;
}

export class Pipeline {
  private readonly requests = Array.from({ length: PREFETCH_KEYS_MAX }, () => new ParsedRequest());
  /** First arguments of the requests, which nearly always are keys. */
  private readonly keys: Slice[] = [];
  /** Second arguments, which in requests for hashes and sets are members. */
  private readonly members: Slice[] = [];

  /** Parses the requests from `pos` on; returns how many there are now, 0 when the first is no simple one. */
  parse(memory: Buffer, view: DataView, pos: number, end: number): number {
    const { requests } = this;
    let count = 0;
    while (count < PREFETCH_KEYS_MAX && pos < end) {
      const next = parseRequest(requests[count], memory, view, pos, end);
      if (next < 0) break;
      pos = next;
      count++;
    }
    return count;
  }

  /** Lets the store know the keys of the first `count` requests. */
  prefetch(context: Context, count: number): void {
    const { requests, keys } = this;
    let found = 0;
    for (let i = 0; i < count; i++) {
      if (requests[i].argc === 1) continue;
      const key = requests[i].args[1];
      // Requests for one key, as for a large collection, need no help with it.
      if (found === 0 || !same(key, keys[found - 1])) keys[found++] = key;
    }
    if (found > 1) context.db.prefetch(keys, found);
    else if (found === 1 && count >= MEMBERS_MIN) this.prefetchMembers(context, count);
  }

  /** The same for what the requests name of a collection whose key they all have. */
  private prefetchMembers(context: Context, count: number): void {
    const { requests, keys, members } = this;
    let found = 0;
    for (let i = 0; i < count; i++) if (requests[i].argc > 2) members[found++] = requests[i].args[2];
    if (found > 0) context.db.prefetchMembers(keys[0], members, found);
  }

  /** Makes request `i` the context's; returns the position after it. */
  load(i: number, context: Context): number {
    const request = this.requests[i];
    const { args, argc } = request;
    for (let k = 0; k < argc; k++) {
      const to = context.args[k];
      const from = args[k];
      to.start = from.start;
      to.end = from.end;
      if (to.u8 !== from.u8) {
        to.u8 = from.u8;
        to.view = from.view;
      }
    }
    context.argc = argc;
    context.requestMemory = request.requestMemory;
    context.requestStart = request.requestStart;
    context.requestEnd = request.requestEnd;
    return request.requestEnd;
  }
}
