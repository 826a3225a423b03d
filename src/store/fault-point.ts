/**
 * Named steps at which a test kills the process, so that recovery can be tried after each of them.
 *
 * `ARDENT_FAULT=log-append:3` in the environment kills this process with SIGKILL when the third
 * append begins, and `redo-apply:1:5` 5 ms after the first redo file was given to the engine. Without
 * it a fault point costs one comparison.
 */

/** Every step of the store that reaches the disk. */
export const FAULT_POINTS = [
  'log-append',
  'log-appended',
  'log-roll',
  'log-sync',
  'log-delete',
  'cut',
  'redo-write',
  'redo-fsync',
  'redo-rename',
  'redo-committed',
  'redo-apply',
  'redo-applied',
  'redo-delete',
  'purge',
  'close',
] as const;

/** Steps of an import: what was loaded is in the engine, and the log does not say yet that it is the databases'; the log does. */
export const IMPORT_FAULT_POINTS = ['import-checkpointed', 'import-logged'] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number] | (typeof IMPORT_FAULT_POINTS)[number];

let armed = '';
let remaining = 0;
let delayMs = 0;

const setting = process.env['ARDENT_FAULT'];
if (setting !== undefined) {
  const [name, count, delay] = setting.split(':');
  armed = name;
  remaining = Number(count ?? 1);
  delayMs = Number(delay ?? 0);
}

/** Does nothing, unless the environment names this point. */
export function faultPoint(name: FaultPoint): void {
  if (remaining === 0 || name !== armed) return;
  if (--remaining > 0) return;
  if (delayMs > 0) setTimeout(kill, delayMs);
  else kill();
}

function kill(): void {
  process.kill(process.pid, 'SIGKILL');
}
