/**
 * The command table is data: each command is declared once, in the file of its family, with all that
 * the server, COMMAND and the client libraries know of it.
 */
import type { Slice } from '../bytes/slice.ts';
import type { Client } from './client.ts';
import type { Context } from './context.ts';
import type { Server } from './server.ts';

/** Flags of a command, by the names that COMMAND INFO reports. */
export type CommandFlag =
  | 'write'
  | 'readonly'
  | 'denyoom'
  | 'admin'
  | 'pubsub'
  | 'noscript'
  | 'blocking'
  | 'loading'
  | 'stale'
  | 'skip_monitor'
  | 'skip_slowlog'
  | 'asking'
  | 'fast'
  | 'no_auth'
  | 'may_replicate'
  | 'no_async_loading'
  | 'no_multi'
  | 'movablekeys'
  | 'allow_busy';

/**
 * Where keys stand among the arguments (key specs of COMMAND INFO). `access` is what the command does
 * with them, by Redis's flag names (RO, RW, OW, RM, access, update, insert, delete, …).
 */
export interface KeySpec {
  access: readonly string[];
  /** First key: a fixed index, or the first argument after a keyword searched from an index on; or no spec can tell. */
  begin: { index: number } | { keyword: string; startFrom: number } | { unknown: true };
  /** Keys that follow: up to `last` (negative: from the end; relative to the first) in steps; or a count argument. */
  find:
    | { last: number; step: number; limit?: number }
    | { keynum: number; first: number; step: number }
    | { unknown: true };
}

/** An argument that is a key, and what the command does with it (as in KeySpec). */
export interface KeyPosition {
  index: number;
  access: readonly string[];
}

export interface Command {
  /** Lower case; for a subcommand only its own word. */
  name: string;
  /** Number of arguments with the name; negative: at least that many. */
  arity: number;
  flags: readonly CommandFlag[];
  /** ACL categories beyond those that follow from the flags, e.g. 'string', 'dangerous'. */
  categories: readonly string[];
  keys?: readonly KeySpec[];
  /** The keys of a request, for commands where key specs alone cannot tell which they are or what is done with them. */
  getKeys?: (args: readonly Slice[], argc: number) => KeyPosition[];
  /** For COMMAND DOCS. */
  group: string;
  since: string;
  complexity?: string;
  /** Version since which another should be used, and which, in Markdown. */
  deprecated?: { since: string; use: string };
  /** For tests and tools of the server itself, not for applications. */
  internal?: true;
  /** Hints for clients and proxies, by Redis's words: nondeterministic_output, request_policy:…. */
  tips?: readonly string[];
  summary: string;
  /** The arguments, in the notation of syntax.ts; absent when there are none. */
  syntax?: string;
  subcommands?: readonly Command[];
  /** Asked before anything else whether this client may run it at all; returns the error if not. */
  guard?: (server: Server, client: Client) => string | undefined;
  /** Indexes of arguments that logs and MONITOR must not show. */
  secrets?: (args: readonly Slice[], argc: number) => number[];
  /** Absent for a pure container of subcommands. */
  run?: (context: Context) => void;
}

/**
 * An error that is the command's reply: `message` is sent after `-` as it is, code word first, and
 * what the command did before it threw is not undone (throw before the first change).
 */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
