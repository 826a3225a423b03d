/** Which arguments of a request are keys, by the command's key specs. */
import type { Slice } from '../bytes/slice.ts';
import type { Command, KeyPosition, KeySpec } from './command.ts';
import { sliceInteger } from '../bytes/number.ts';

/** Positions in argument order of the specs; undefined when the arguments contradict a spec. */
export function keyPositions(
  command: Command,
  args: readonly Slice[],
  argc: number,
): KeyPosition[] | undefined {
  if (command.getKeys !== undefined) return command.getKeys(args, argc);
  const positions: KeyPosition[] = [];
  for (const spec of command.keys ?? []) {
    if (!addSpec(spec, args, argc, positions)) return undefined;
  }
  return positions;
}

function addSpec(spec: KeySpec, args: readonly Slice[], argc: number, positions: KeyPosition[]): boolean {
  if (spec.access.includes('not_key')) return true;
  if ('unknown' in spec.begin || 'unknown' in spec.find) return true;
  const first = 'index' in spec.begin ? spec.begin.index : afterKeyword(spec.begin, args, argc);
  // A keyword that is absent: these keys are not given.
  if (first < 0) return true;
  if (first >= argc) return 'keyword' in spec.begin;
  const { find } = spec;
  let from = first;
  let last: number;
  if ('keynum' in find) {
    const count = first + find.keynum < argc ? sliceInteger(args[first + find.keynum]) : NaN;
    if (!(count >= 1)) return false;
    from = first + find.first;
    last = from + (count - 1) * find.step;
  } else if (find.last >= 0) {
    last = first + find.last;
  } else if ((find.limit ?? 0) > 1) {
    // Only the first part of the rest are keys: as XREAD's streams before their ids.
    last = first + Math.floor((argc - first) / find.limit!) - 1;
  } else {
    last = argc + find.last;
  }
  if (last >= argc) return false;
  for (let index = from; index <= last; index += find.step) positions.push({ index, access: spec.access });
  return true;
}

function afterKeyword(
  begin: { keyword: string; startFrom: number },
  args: readonly Slice[],
  argc: number,
): number {
  const keyword = begin.keyword.toLowerCase();
  const backwards = begin.startFrom < 0;
  let at = backwards ? argc + begin.startFrom : begin.startFrom;
  for (; at > 0 && at < argc; at += backwards ? -1 : 1) {
    if (args[at].length === keyword.length && args[at].latin1().toLowerCase() === keyword) return at + 1;
  }
  return -1;
}
