/** List commands that wait for an element. They are logged as the plain command that took it. */
import { Type } from '../../store/api.ts';
import type { Context } from '../context.ts';
import { blockingTimeout, keyArguments } from './arguments.ts';
import { endName, leftEnd, listMultiPop, move, takeMany, takeOne } from './list-ends.ts';
import { firstOfType, nullArray } from './waiting.ts';

function pop(context: Context, left: boolean): void {
  const { argc, reply } = context;
  const timeoutMs = blockingTimeout(context, argc - 1);
  const keys = keyArguments(context, 1, argc - 2);
  const key = firstOfType(context, keys, Type.List);
  if (key === null) return context.block({ keys, timeoutMs, onTimeout: nullArray });
  reply.array(2);
  reply.bulk(key);
  takeOne(context, key, context.db.list(key)!, left);
  context.effect(left ? 'LPOP' : 'RPOP', key);
}

export function blpop(context: Context): void {
  pop(context, true);
}

export function brpop(context: Context): void {
  pop(context, false);
}

export function blmpop(context: Context): void {
  const { keyCount, left, count } = listMultiPop(context, 2);
  const timeoutMs = blockingTimeout(context, 1);
  const keys = keyArguments(context, 3, keyCount);
  const key = firstOfType(context, keys, Type.List);
  if (key === null) return context.block({ keys, timeoutMs, onTimeout: nullArray });
  context.reply.array(2);
  context.reply.bulk(key);
  const taken = takeMany(context, key, context.db.list(key)!, left, count);
  context.effect(left ? 'LPOP' : 'RPOP', key, taken);
}

/** Moves an element, or waits for one. False when it waits. */
function moveOrWait(context: Context, fromLeft: boolean, toLeft: boolean, timeoutMs: number): boolean {
  const [, from, to] = context.args;
  const key = firstOfType(context, [from], Type.List);
  if (key === null) {
    if (context.mayBlock) context.block({ keys: [from], timeoutMs, onTimeout: nullArray });
    else context.reply.null();
    return false;
  }
  move(context, from, context.db.list(from)!, to, fromLeft, toLeft);
  return true;
}

export function blmove(context: Context): void {
  const { args } = context;
  const fromLeft = leftEnd(context, 3);
  const toLeft = leftEnd(context, 4);
  if (moveOrWait(context, fromLeft, toLeft, blockingTimeout(context, 5))) {
    context.effect('LMOVE', args[1], args[2], endName(fromLeft), endName(toLeft));
  }
}

export function brpoplpush(context: Context): void {
  const { args } = context;
  if (moveOrWait(context, false, true, blockingTimeout(context, 3))) {
    context.effect('RPOPLPUSH', args[1], args[2]);
  }
}
