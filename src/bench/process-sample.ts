/** What the kernel says of a process: /proc/<pid>, see proc(5). Every read is a few small files. */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ProcessSample {
  /** All threads that live, in seconds. */
  cpuSeconds: number;
  /** Time that its threads were ready to run and had no processor; null where the kernel does not tell. */
  cpuWaitSeconds: number | null;
  rssAnonBytes: number;
  rssFileBytes: number;
  rssPeakBytes: number;
  /** Reached the storage layer; writes are counted when pages become dirty. Null without permission. */
  readBytes: number | null;
  writeBytes: number | null;
  majorFaults: number;
  threads: number;
}

/** USER_HZ, which Linux fixes at 100 for user space. */
const TICKS_PER_SECOND = 100;
const KIB = 1024;
const BLOCK_BYTES = 512;

function field(text: string, name: string): number {
  const match = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text);
  return match === null ? 0 : Number(match[1]);
}

/** Null when there is no such process. */
export function sampleProcess(pid: number): ProcessSample | null {
  try {
    const directory = `/proc/${pid}`;
    const stat = readFileSync(`${directory}/stat`, 'latin1');
    // The command name in parentheses may hold anything; fields count from after it, "state" being 3.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const at = (number: number): number => Number(fields[number - 3]);
    if (fields[0] === 'Z' || fields[0] === 'X') return null;
    const status = readFileSync(`${directory}/status`, 'latin1');
    const threads = threadSeconds(directory);
    let io: string | null = null;
    try {
      io = readFileSync(`${directory}/io`, 'latin1');
    } catch {
      // Another user's process: its I/O is not ours to see.
    }
    return {
      cpuSeconds: threads?.running ?? (at(14) + at(15)) / TICKS_PER_SECOND,
      cpuWaitSeconds: threads?.waiting ?? null,
      rssAnonBytes: field(status, 'RssAnon') * KIB,
      rssFileBytes: field(status, 'RssFile') * KIB,
      rssPeakBytes: field(status, 'VmHWM') * KIB,
      readBytes: io === null ? null : field(io, 'read_bytes'),
      writeBytes: io === null ? null : field(io, 'write_bytes'),
      majorFaults: at(12),
      threads: at(20),
    };
  } catch {
    return null;
  }
}

/**
 * Running and waiting, to the nanosecond, where the kernel keeps it (schedstat); ticks of 10 ms are coarse
 * for short runs.
 */
function threadSeconds(directory: string): { running: number; waiting: number } | null {
  try {
    let running = 0;
    let waiting = 0;
    for (const thread of readdirSync(`${directory}/task`)) {
      const fields = readFileSync(`${directory}/task/${thread}/schedstat`, 'latin1').split(' ');
      running += Number(fields[0]);
      waiting += Number(fields[1]);
    }
    return running > 0 ? { running: running / 1e9, waiting: waiting / 1e9 } : null;
  } catch {
    return null;
  }
}

/** Bytes that the files below `directory` take on disk (holes do not count). Files may vanish meanwhile. */
export function diskBytes(directory: string): number {
  let bytes = 0;
  let entries: string[];
  try {
    entries = readdirSync(directory);
  } catch {
    return 0;
  }
  for (const name of entries) {
    const path = join(directory, name);
    try {
      const stat = lstatSync(path);
      bytes += stat.isDirectory() ? diskBytes(path) : stat.blocks * BLOCK_BYTES;
    } catch {
      // Deleted since the directory was read.
    }
  }
  return bytes;
}
