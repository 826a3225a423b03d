/** Unions, intersections and differences of sets. */
import { Scratch } from '../../bytes/scratch.ts';
import type { Slice } from '../../bytes/slice.ts';
import type { SetValue } from '../../store/api.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { setMemberAdded } from '../encoding.ts';
import { NUMKEYS_NOT_POSITIVE, syntaxError } from '../errors.ts';
import { integerFrom } from './arguments.ts';
import { storeTemporary, temporaryKey, withTemporary } from './temporary.ts';
import { readSet } from './lookups.ts';

type Visit = (member: Slice) => boolean;
/** Visits the members of the result, each once, until `visit` returns false. An absent key is null. */
type Operation = (sets: readonly (SetValue | null)[], visit: Visit) => void;

const scratch = new Scratch();

/** Filters the smallest set by all others. */
function intersection(sets: readonly (SetValue | null)[], visit: Visit): void {
  if (sets.includes(null)) return;
  const [smallest, ...others] = (sets as SetValue[]).toSorted((a, b) => a.size - b.size);
  smallest.forEachFrom(0, (member) => {
    for (const other of others) if (!other.has(member)) return true;
    return visit(member);
  });
}

/** Goes through the sets in turn and leaves out what an earlier one has: nothing needs to be remembered. */
function union(sets: readonly (SetValue | null)[], visit: Visit): void {
  const earlier: SetValue[] = [];
  for (const set of sets) {
    if (set === null) continue;
    set.forEachFrom(0, (member) => {
      for (const other of earlier) if (other.has(member)) return true;
      return visit(member);
    });
    earlier.push(set);
  }
}

function difference(sets: readonly (SetValue | null)[], visit: Visit): void {
  // The larger a set, the likelier that it has a member to leave out.
  const [first, ...others] = sets;
  if (first === null) return;
  const subtracted = others.filter((set) => set !== null).sort((a, b) => b.size - a.size);
  first.forEachFrom(0, (member) => {
    for (const other of subtracted) if (other.has(member)) return true;
    return visit(member);
  });
}

function openSets(context: Context, first: number, end: number): (SetValue | null)[] {
  const sets: (SetValue | null)[] = [];
  for (let i = first; i < end; i++) sets.push(readSet(context, context.args[i]));
  return sets;
}

function replyWith(context: Context, operation: Operation): void {
  const { reply } = context;
  const sets = openSets(context, 1, context.argc);
  let size = 0;
  const mark = reply.beginDeferred();
  operation(sets, (member) => {
    reply.bulk(member);
    size++;
    return true;
  });
  reply.endDeferred(mark, 'set', size);
}

function store(context: Context, operation: Operation, event: string): void {
  const sets = openSets(context, 2, context.argc);
  withTemporary(context, () => {
    const result = context.db.set(temporaryKey, true);
    let size = 0;
    operation(sets, (member) => {
      const copy = scratch.keep(member);
      result.add(copy);
      setMemberAdded(context, temporaryKey, ++size, copy);
      return true;
    });
    storeTemporary(context, context.args[1], size, 's', event);
  });
}

export function sinter(context: Context): void {
  replyWith(context, intersection);
}

export function sunion(context: Context): void {
  replyWith(context, union);
}

export function sdiff(context: Context): void {
  replyWith(context, difference);
}

export function sinterstore(context: Context): void {
  store(context, intersection, 'sinterstore');
}

export function sunionstore(context: Context): void {
  store(context, union, 'sunionstore');
}

export function sdiffstore(context: Context): void {
  store(context, difference, 'sdiffstore');
}

export function sintercard(context: Context): void {
  const { argc } = context;
  const keyCount = integerFrom(context, 1, 1, NUMKEYS_NOT_POSITIVE);
  if (keyCount > argc - 2) {
    throw new CommandError("ERR Number of keys can't be greater than number of args");
  }
  let limit = 0;
  for (let i = 2 + keyCount; i < argc; i += 2) {
    if (!context.is(i, 'limit') || i + 1 === argc) throw syntaxError();
    limit = integerFrom(context, i + 1, 0, "ERR LIMIT can't be negative");
  }
  let size = 0;
  intersection(openSets(context, 2, 2 + keyCount), () => ++size !== limit);
  context.reply.integer(size);
}
