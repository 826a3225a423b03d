/** The process's resident memory as Linux counts it, see proc_pid_status(5). */
import { readFileSync } from 'node:fs';

export interface ResidentMemory {
  /** Bytes that belong to the process alone: heaps, buffers, stacks. */
  anonymous: number;
  /** Bytes of mapped files: the system can take them back at any time. */
  fileBacked: number;
}

/** Null where the system does not tell. */
export function residentMemory(): ResidentMemory | null {
  if (process.platform !== 'linux') return null;
  const status = readFileSync('/proc/self/status', 'latin1');
  const bytes = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
  return { anonymous: bytes('RssAnon') + bytes('RssShmem'), fileBacked: bytes('RssFile') };
}
