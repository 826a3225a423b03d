/** Random elements of collections that are reachable by rank. */
import { parseInt64 } from '../../bytes/number.ts';
import { CommandError } from '../command.ts';
import type { Context } from '../context.ts';
import { NOT_INTEGER, OUT_OF_RANGE, syntaxError } from '../errors.ts';

/** When more than a third is wanted, walking over all ranks costs less than remembering those chosen. */
const WALK_SHARE = 3;

/** Bytes that a reply with repeated elements may grow to: beyond them it is refused, lest it fill the memory. */
const REPEATED_BYTES_MAX = 512 * 1024 * 1024;
/** Bytes of the shortest element in a reply: `$0`, and the ends of two lines. */
const ELEMENT_BYTES_MIN = 6;
/** Elements between two looks at how long the reply has become. */
const ELEMENTS_A_LOOK = 256;

const LONG_MAX = 0x7fffffffffffffffn;

export function randomRank(context: Context, size: number): number {
  return Math.floor(context.random() * size);
}

/**
 * Calls `emit` with `count` different ranks below `size`; every selection is equally likely, their
 * order is not random. Selection sampling (Knuth, The Art of Computer Programming 2, 3.4.2 S) or
 * Floyd's algorithm (Bentley, Communications of the ACM 30/9, 1987).
 */
function sampleRanks(context: Context, size: number, count: number, emit: (rank: number) => void): void {
  if (count * WALK_SHARE > size) {
    for (let rank = 0, wanted = count; wanted > 0; rank++) {
      if (context.random() * (size - rank) >= wanted) continue;
      emit(rank);
      wanted--;
    }
    return;
  }
  const chosen = new Set<number>();
  for (let bound = size - count; bound < size; bound++) {
    let rank = randomRank(context, bound + 1);
    if (chosen.has(rank)) rank = bound;
    chosen.add(rank);
    emit(rank);
  }
}

/**
 * The count at args[2] of SRANDMEMBER, HRANDFIELD and ZRANDMEMBER: negative for elements that may
 * repeat. `pairOption` is the word that may follow, which asks for pairs and halves the range.
 */
export function sampleCount(context: Context, pairOption: string): number {
  const count = parseInt64(context.args[2]);
  if (count === undefined) throw new CommandError(NOT_INTEGER);
  if (count < -LONG_MAX) {
    throw new CommandError(`${OUT_OF_RANGE}, value must between ${-LONG_MAX} and ${LONG_MAX}`);
  }
  if (context.argc > 4 || (context.argc === 4 && !context.is(3, pairOption))) throw syntaxError();
  const limit = context.argc === 4 ? LONG_MAX / 2n : LONG_MAX;
  if (count < -limit || count > limit) throw new CommandError(OUT_OF_RANGE);
  return Number(count);
}

/** Runs `emit` with the ranks of a sample as `count` asks for it (see `sampleCount`; not 0). */
export function forEachSampled(
  context: Context,
  size: number,
  count: number,
  emit: (rank: number) => void,
): void {
  if (count > 0) {
    sampleRanks(context, size, Math.min(count, size), emit);
    return;
  }
  checkLength(context, -count * ELEMENT_BYTES_MIN);
  for (let i = 0; i < -count; i++) {
    emit(randomRank(context, size));
    if (i % ELEMENTS_A_LOOK === 0) checkLength(context, context.reply.pos - context.replyFrom);
  }
}

/** A client that may not be sent so much is closed at once, as in Redis, and not when the reply is complete. */
function checkLength({ server, client }: Context, bytes: number): void {
  if (!server.outputLimits.mayTake(client, bytes) || bytes > REPEATED_BYTES_MAX)
    throw new CommandError(OUT_OF_RANGE);
}

/** How many ranks `forEachSampled` gives. */
export function sampledCount(size: number, count: number): number {
  return count > 0 ? Math.min(count, size) : -count;
}
