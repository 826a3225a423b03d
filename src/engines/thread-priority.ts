import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';

/**
 * Niceness of a thread that writes to the engine: where processors are scarce it gets about a third of
 * what the event loop gets. Write-back has time; ceilings slow the writers down if it falls behind.
 */
const WRITER_NICENESS = 5;

/**
 * Lets the calling thread, and the threads that it starts from now on, step back behind the others of
 * the process. Linux only, where a thread has a priority of its own; elsewhere nothing happens.
 */
export function stepBack(): void {
  if (process.platform !== 'linux') return;
  try {
    // The link reads <process>/task/<thread>.
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, WRITER_NICENESS);
  } catch {
    // Without /proc, or where priorities may not be set: the thread keeps its own.
  }
}
