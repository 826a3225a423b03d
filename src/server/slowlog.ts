/** The latest slow commands. */
import type { Slice } from '../bytes/slice.ts';
import type { Client } from './client.ts';

/** Arguments and bytes of an argument that an entry keeps. */
const ARGUMENTS_MAX = 32;
const ARGUMENT_BYTES_MAX = 128;

export interface SlowEntry {
  id: number;
  /** Unix seconds. */
  time: number;
  microseconds: number;
  args: Buffer[];
  address: string;
  name: string;
}

export class Slowlog {
  /** Newest first. */
  entries: SlowEntry[] = [];
  private nextId = 0;

  add(
    client: Client,
    args: readonly Buffer[],
    microseconds: number,
    timeMs: number,
    lengthMax: number,
  ): void {
    this.entries.unshift({
      id: this.nextId++,
      time: Math.floor(timeMs / 1000),
      microseconds,
      args: [...args],
      address: client.address,
      name: client.name,
    });
    this.trim(lengthMax);
  }

  trim(lengthMax: number): void {
    if (this.entries.length > lengthMax) this.entries.length = lengthMax;
  }

  reset(): void {
    this.entries = [];
  }
}

/** Arguments as an entry shows them: cut to a readable size. */
export function abridge(args: readonly Slice[], argc: number): Buffer[] {
  const shown = Math.min(argc, ARGUMENTS_MAX);
  const result: Buffer[] = [];
  for (let i = 0; i < shown; i++) {
    if (shown !== argc && i === shown - 1) {
      result.push(Buffer.from(`... (${argc - shown + 1} more arguments)`));
    } else if (args[i].length > ARGUMENT_BYTES_MAX) {
      const rest = args[i].length - ARGUMENT_BYTES_MAX;
      const head = Buffer.from(args[i].u8.subarray(args[i].start, args[i].start + ARGUMENT_BYTES_MAX));
      result.push(Buffer.concat([head, Buffer.from(`... (${rest} more bytes)`)]));
    } else {
      result.push(args[i].toBuffer());
    }
  }
  return result;
}
