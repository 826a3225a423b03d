/** The command table in the form that dispatch uses: flags as bits, statistics, lookup by bytes. */
import type { Slice } from '../bytes/slice.ts';
import type { Histogram } from './clock.ts';
import type { Command, CommandFlag } from './command.ts';
import type { Context } from './context.ts';

const FLAG_NAMES: readonly CommandFlag[] = [
  'write',
  'readonly',
  'denyoom',
  'admin',
  'pubsub',
  'noscript',
  'blocking',
  'loading',
  'stale',
  'skip_monitor',
  'skip_slowlog',
  'asking',
  'fast',
  'no_auth',
  'may_replicate',
  'no_async_loading',
  'no_multi',
  'movablekeys',
  'allow_busy',
];

/** Bits of `CommandEntry.flags`, in the order of FLAG_NAMES. */
export const Flag = {
  Write: 1 << 0,
  ReadOnly: 1 << 1,
  DenyOom: 1 << 2,
  Admin: 1 << 3,
  PubSub: 1 << 4,
  NoScript: 1 << 5,
  Blocking: 1 << 6,
  Loading: 1 << 7,
  Stale: 1 << 8,
  SkipMonitor: 1 << 9,
  SkipSlowlog: 1 << 10,
  Asking: 1 << 11,
  Fast: 1 << 12,
  NoAuth: 1 << 13,
  MayReplicate: 1 << 14,
  NoAsyncLoading: 1 << 15,
  NoMulti: 1 << 16,
  MovableKeys: 1 << 17,
  AllowBusy: 1 << 18,
} as const;

/** A command or subcommand with what is counted about it (INFO commandstats, LATENCY HISTOGRAM). */
export class CommandEntry {
  readonly command: Command;
  /** `name`, or `container|name` for a subcommand. */
  readonly fullName: string;
  readonly parent: CommandEntry | null;
  readonly arity: number;
  readonly flags: number;
  readonly run: ((context: Context) => void) | undefined;
  readonly subcommands: ReadonlyMap<string, CommandEntry> | null;
  /** Runs by itself: no container of subcommands, no guard. */
  readonly plain: boolean;
  /** Ends within microseconds whatever the data: its time need not be measured apart. */
  readonly quick: boolean;
  readonly guard: Command['guard'];
  /** The name in lower-case bytes, for lookup. */
  readonly nameBytes: Buffer;

  calls = 0;
  /** Calls whose time the clock has not shared out yet. */
  unattributed = 0;
  microseconds = 0;
  /** Refused before it ran. */
  rejected = 0;
  /** Ran and replied with an error. */
  failed = 0;
  /** Null until a call was recorded. */
  histogram: Histogram | null = null;

  constructor(command: Command, parent: CommandEntry | null = null) {
    this.command = command;
    this.parent = parent;
    this.fullName = parent === null ? command.name : `${parent.fullName}|${command.name}`;
    this.arity = command.arity;
    this.flags = command.flags.reduce((bits, flag) => bits | (1 << FLAG_NAMES.indexOf(flag)), 0);
    this.run = command.run;
    this.guard = command.guard;
    this.plain =
      command.run !== undefined && command.subcommands === undefined && command.guard === undefined;
    // SET has no `fast` flag in Redis, for the length of its value; copying that is quick enough.
    this.quick = (this.flags & Flag.Fast) !== 0 || this.fullName === 'set';
    this.nameBytes = Buffer.from(command.name);
    this.subcommands =
      command.subcommands === undefined
        ? null
        : new Map(command.subcommands.map((sub) => [sub.name, new CommandEntry(sub, this)]));
  }

  resetStatistics(): void {
    this.calls = 0;
    this.microseconds = 0;
    this.rejected = 0;
    this.failed = 0;
    this.histogram = null;
    if (this.subcommands !== null) for (const sub of this.subcommands.values()) sub.resetStatistics();
  }
}

/** Finds commands by name bytes, in any case: an open-addressed table, no strings. */
export class CommandLookup {
  readonly entries: readonly CommandEntry[];
  private readonly slots: (CommandEntry | undefined)[];
  private readonly mask: number;

  constructor(commands: readonly Command[]) {
    this.entries = commands.map((command) => new CommandEntry(command));
    // At most a quarter full: most lookups end at the first slot.
    const size = 1 << Math.ceil(Math.log2(Math.max(commands.length, 1) * 4));
    this.mask = size - 1;
    this.slots = new Array<CommandEntry | undefined>(size).fill(undefined);
    for (const entry of this.entries) {
      const name = entry.nameBytes;
      let slot = hash(name, 0, name.length) & this.mask;
      while (this.slots[slot] !== undefined) {
        if (this.slots[slot]!.nameBytes.equals(name)) throw new Error(`two commands '${entry.fullName}'`);
        slot = (slot + 1) & this.mask;
      }
      this.slots[slot] = entry;
    }
  }

  find(name: Slice): CommandEntry | undefined {
    const { u8, start, end } = name;
    let slot = hash(u8, start, end) & this.mask;
    while (true) {
      const entry = this.slots[slot];
      if (entry === undefined || sameName(entry.nameBytes, u8, start, end)) return entry;
      slot = (slot + 1) & this.mask;
    }
  }

  /** All commands and subcommands. */
  *all(): Generator<CommandEntry> {
    for (const entry of this.entries) {
      yield entry;
      if (entry.subcommands !== null) yield* entry.subcommands.values();
    }
  }

  /** By name, `container|subcommand` for a subcommand, in any case. */
  get(name: string): CommandEntry | undefined {
    const [container, sub, more] = name.toLowerCase().split('|');
    if (more !== undefined) return undefined;
    const entry = this.entries.find((candidate) => candidate.fullName === container);
    return sub === undefined ? entry : entry?.subcommands?.get(sub);
  }
}

function hash(u8: Buffer, start: number, end: number): number {
  let h = end - start;
  for (let i = start; i < end; i++) h = (Math.imul(h, 31) + (u8[i] | 32)) | 0;
  return h ^ (h >>> 7);
}

function sameName(name: Buffer, u8: Buffer, start: number, end: number): boolean {
  const length = name.length;
  if (length !== end - start) return false;
  for (let i = 0; i < length; i++) {
    let byte = u8[start + i];
    if (byte >= 65 && byte <= 90) byte |= 32;
    if (byte !== name[i]) return false;
  }
  return true;
}
