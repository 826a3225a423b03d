/**
 * The last resort against servers and directories left behind: a process that outlives the bench by the
 * time of cleaning up. It is told, one JSON line each, what to remove; when its input ends, however the
 * bench ended, it kills the process groups and deletes the directories that were not taken back.
 */
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';

type Line =
  { add: true; pid?: number; directory?: string } | { add: false; pid?: number; directory?: string };

const pids = new Set<number>();
const directories = new Set<string>();

// A Ctrl-C at the terminal is the bench's to answer.
process.on('SIGINT', () => {});

const lines = createInterface({ input: process.stdin });
lines.on('line', (text) => {
  const { add, pid, directory } = JSON.parse(text) as Line;
  if (pid !== undefined) pids[add ? 'add' : 'delete'](pid);
  if (directory !== undefined) directories[add ? 'add' : 'delete'](directory);
});
lines.on('close', () => {
  for (const pid of pids) {
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended already.
    }
  }
  for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});
