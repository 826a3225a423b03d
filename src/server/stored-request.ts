/** A copy of a request that outlives the input buffer: queued by MULTI, or waiting for a key. */
import { allocatePadded, Slice, viewOf } from '../bytes/slice.ts';
import type { CommandEntry } from './command-entry.ts';
import type { Context } from './context.ts';

export interface StoredRequest {
  entry: CommandEntry;
  args: Slice[];
  /** The request's own bytes lie at [start, end) of the arguments' memory; start is -1 when there are none. */
  start: number;
  end: number;
  /** Bytes of memory it takes. */
  bytes: number;
}

export function storeRequest(context: Context, entry: CommandEntry): StoredRequest {
  const { args, argc, requestMemory, requestStart, requestEnd } = context;
  if (requestStart < 0) {
    const copies = args.slice(0, argc).map((argument) => argument.clone());
    return { entry, args: copies, start: -1, end: -1, bytes: copies.reduce((sum, a) => sum + a.length, 0) };
  }
  const length = requestEnd - requestStart;
  const memory = allocatePadded(length);
  requestMemory.copy(memory, 0, requestStart, requestEnd);
  const view = viewOf(memory.buffer);
  const copies: Slice[] = [];
  for (let i = 0; i < argc; i++) {
    const copy = new Slice();
    copy.set(memory, view, args[i].start - requestStart, args[i].end - requestStart);
    copies.push(copy);
  }
  return { entry, args: copies, start: 0, end: length, bytes: length };
}

/** Makes the stored request the context's. */
export function loadRequest(context: Context, request: StoredRequest): void {
  const { args } = context;
  while (args.length < request.args.length) args.push(new Slice());
  for (let i = 0; i < request.args.length; i++) args[i].setSlice(request.args[i]);
  context.argc = request.args.length;
  context.requestMemory = request.args[0].u8;
  context.requestStart = request.start;
  context.requestEnd = request.end;
}
