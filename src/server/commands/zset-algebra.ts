/** Unions, intersections and differences of sorted sets; sets take part with a score of 1 for each member. */
import { parseDouble } from '../../bytes/number.ts';
import { Scratch } from '../../bytes/scratch.ts';
import type { Slice } from '../../bytes/slice.ts';
import { Type, WrongTypeError, type SetValue, type ZSet } from '../../store/api.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { zsetMemberAdded } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { lookedUp } from './announce.ts';
import { clampedInteger, integerFrom } from './arguments.ts';
import { replyScore } from './scores.ts';
import { storeTemporary, temporaryKey, withTemporary } from './temporary.ts';

export type Operation = 'union' | 'inter' | 'diff';

type Visit = (member: Slice, score: number) => boolean;

/** A key that takes part: a set or a sorted set; an absent one is empty. */
class Operand {
  weight = 1;
  private readonly set: SetValue | null;
  private readonly zset: ZSet | null;

  constructor(context: Context, key: Slice) {
    const type = context.db.type(key);
    if (type !== Type.None && type !== Type.Set && type !== Type.ZSet) throw new WrongTypeError();
    lookedUp(context, key, type !== Type.None);
    this.set = type === Type.Set ? context.db.set(key) : null;
    this.zset = type === Type.ZSet ? context.db.zset(key) : null;
  }

  get size(): number {
    return this.set?.size ?? this.zset?.size ?? 0;
  }

  /** Undefined when the member is absent. */
  score(member: Slice): number | undefined {
    if (this.set !== null) return this.set.has(member) ? 1 : undefined;
    return this.zset?.score(member);
  }

  forEach(visit: Visit): void {
    if (this.set !== null) this.set.forEachFrom(0, (member) => visit(member, 1));
    else this.zset?.forEachFrom(0, 1, visit);
  }
}

type Aggregate = (a: number, b: number) => number;

/** The sum of opposite infinities counts as 0. */
function sum(a: number, b: number): number {
  const total = a + b;
  return Number.isNaN(total) ? 0 : total;
}

/** Not Math.min: a weight of infinity may have made `b` NaN, which leaves `a`. */
function minimum(a: number, b: number): number {
  return b < a ? b : a;
}

function maximum(a: number, b: number): number {
  return b > a ? b : a;
}

interface Query {
  operation: Operation;
  operands: Operand[];
  aggregate: Aggregate;
  withScores: boolean;
}

const scratch = new Scratch();

/** The keys that follow `numkeys` at index `at`. */
function operandsAt(context: Context, at: number, name: string): Operand[] {
  const { args, argc } = context;
  const count = clampedInteger(context, at);
  if (count < 1) throw new CommandError(`ERR at least 1 input key is needed for '${name}' command`);
  if (count > argc - at - 1) throw syntaxError();
  const operands: Operand[] = [];
  for (let i = at + 1; i <= at + count; i++) operands.push(new Operand(context, args[i]));
  return operands;
}

function queryAt(context: Context, at: number, operation: Operation, name: string, storing: boolean): Query {
  const { args, argc } = context;
  const operands = operandsAt(context, at, name);
  let aggregate: Aggregate = sum;
  let withScores = false;
  let i = at + 1 + operands.length;
  while (i < argc) {
    if (operation !== 'diff' && argc - i > operands.length && context.is(i, 'weights')) {
      i++;
      for (const operand of operands) {
        operand.weight = parseDouble(args[i++]);
        if (Number.isNaN(operand.weight)) throw new CommandError('ERR weight value is not a float');
      }
    } else if (operation !== 'diff' && argc - i >= 2 && context.is(i, 'aggregate')) {
      if (context.is(i + 1, 'sum')) aggregate = sum;
      else if (context.is(i + 1, 'min')) aggregate = minimum;
      else if (context.is(i + 1, 'max')) aggregate = maximum;
      else throw syntaxError();
      i += 2;
    } else if (!storing && context.is(i, 'withscores')) {
      withScores = true;
      i++;
    } else {
      throw syntaxError();
    }
  }
  // From the smallest on: an intersection has least to look at, and sums of floats come out as Redis's.
  if (operation !== 'diff') operands.sort((a, b) => a.size - b.size);
  return { operation, operands, aggregate, withScores };
}

function weighted(operand: Operand, score: number): number {
  const product = operand.weight * score;
  return Number.isNaN(product) ? 0 : product;
}

function intersect(operands: readonly Operand[], aggregate: Aggregate, visit: Visit): void {
  const [smallest, ...others] = operands;
  smallest.forEach((member, score) => {
    let total = weighted(smallest, score);
    for (const other of others) {
      const found = other.score(member);
      if (found === undefined) return true;
      total = aggregate(total, found * other.weight);
    }
    return visit(member, total);
  });
}

function subtract(operands: readonly Operand[], visit: Visit): void {
  const [first, ...others] = operands;
  first.forEach((member, score) => {
    for (const other of others) if (other.score(member) !== undefined) return true;
    return visit(member, score);
  });
}

/** Builds the result under the temporary key and returns how many members it has. */
function build(context: Context, { operation, operands, aggregate }: Query): number {
  const result = context.db.zset(temporaryKey, true);
  let size = 0;
  const add = (member: Slice, score: number): boolean => {
    const copy = scratch.keep(member);
    result.set(copy, score);
    zsetMemberAdded(context, temporaryKey, ++size, copy);
    return true;
  };
  if (operation === 'inter') {
    intersect(operands, aggregate, add);
  } else if (operation === 'diff') {
    subtract(operands, add);
  } else {
    for (const operand of operands) {
      operand.forEach((member, plain) => {
        const score = weighted(operand, plain);
        const old = result.score(member);
        if (old === undefined) return add(member, score);
        const total = aggregate(old, score);
        if (total !== old) result.set(scratch.keep(member), total);
        return true;
      });
    }
  }
  return size;
}

/** ZUNION, ZINTER, ZDIFF. */
export function replyWithResult(context: Context, operation: Operation, name: string): void {
  const { db, reply } = context;
  const query = queryAt(context, 1, operation, name, false);
  const nested = query.withScores && reply.protocol === 3;
  withTemporary(context, () => {
    const size = build(context, query);
    reply.array(query.withScores && !nested ? size * 2 : size);
    db.zset(temporaryKey)?.forEachFrom(0, 1, (member, score) => {
      if (nested) reply.array(2);
      reply.bulk(member);
      if (query.withScores) replyScore(reply, score);
      return true;
    });
  });
}

/** ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE. */
export function storeResult(context: Context, operation: Operation, name: string): void {
  const query = queryAt(context, 2, operation, name, true);
  withTemporary(context, () => {
    const size = build(context, query);
    storeTemporary(context, context.args[1], size, 'z', name);
  });
}

export function zintercard(context: Context): void {
  const { argc } = context;
  const operands = operandsAt(context, 1, 'zintercard');
  let limit = 0;
  for (let i = 2 + operands.length; i < argc; i += 2) {
    if (!context.is(i, 'limit') || i + 1 === argc) throw syntaxError();
    limit = integerFrom(context, i + 1, 0, "ERR LIMIT can't be negative");
  }
  operands.sort((a, b) => a.size - b.size);
  let size = 0;
  intersect(operands, sum, () => ++size !== limit);
  context.reply.integer(size);
}
