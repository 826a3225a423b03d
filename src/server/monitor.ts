/** MONITOR: every command, as it is run, to those who watch. */
import type { Slice } from '../bytes/slice.ts';
import type { Client } from './client.ts';
import { Flag, type CommandEntry } from './command-entry.ts';
import type { Server } from './server.ts';

const ESCAPES: Record<number, string> = {
  34: '\\"',
  92: '\\\\',
  10: '\\n',
  13: '\\r',
  9: '\\t',
  7: '\\a',
  8: '\\b',
};

/** Bytes in quotes, as Redis shows them. */
export function quoted(bytes: Buffer): string {
  let text = '"';
  for (const byte of bytes) {
    const escape = ESCAPES[byte];
    if (escape !== undefined) text += escape;
    else if (byte >= 32 && byte < 127) text += String.fromCharCode(byte);
    else text += `\\x${byte.toString(16).padStart(2, '0')}`;
  }
  return `${text}"`;
}

export function feedMonitors(
  server: Server,
  client: Client,
  entry: CommandEntry,
  args: readonly Slice[],
  argc: number,
): void {
  const line = monitorLine(server, client, entry, args, argc);
  if (line !== null) showMonitors(server, line);
}

/** What MONITOR shows of a command; null when it is not shown. */
export function monitorLine(
  server: Server,
  client: Client,
  entry: CommandEntry,
  args: readonly Slice[],
  argc: number,
): string | null {
  if ((entry.flags & (Flag.SkipMonitor | Flag.Admin)) !== 0) return null;
  const micros = Math.floor((performance.timeOrigin + performance.now()) * 1000);
  const time = `${Math.floor(micros / 1e6)}.${String(micros % 1e6).padStart(6, '0')}`;
  const from = client.unix ? `unix:${client.address.replace(/:0$/, '')}` : client.address;
  const shown: string[] = [];
  for (let i = 0; i < argc; i++)
    shown.push(server.isSecret(entry, args, i) ? '"(redacted)"' : quoted(args[i].toBuffer()));
  return `${time} [${client.db.index} ${from}] ${shown.join(' ')}`;
}

export function showMonitors(server: Server, line: string): void {
  server.output.pushToAll(server.monitors, (reply) => reply.simple(line));
}
