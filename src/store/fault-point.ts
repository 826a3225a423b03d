/**
 * Named steps at which a test kills the process, so that recovery can be tried after each of them.
 *
 * `ARDENT_FAULT=log-append:3` in the environment kills this process with SIGKILL when the third
 * append begins. Without it a fault point costs one comparison.
 */

/** Every step of the store that reaches the disk. */
export type FaultPoint =
  | 'log-append'
  | 'log-appended'
  | 'log-roll'
  | 'log-sync'
  | 'log-delete'
  | 'cut'
  | 'redo-write'
  | 'redo-fsync'
  | 'redo-rename'
  | 'redo-committed'
  | 'redo-apply'
  | 'redo-applied'
  | 'redo-delete'
  | 'purge'
  | 'close';

export const FAULT_POINTS: readonly FaultPoint[] = [
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
];

let armed = '';
let remaining = 0;

const setting = process.env['ARDENT_FAULT'];
if (setting !== undefined) {
  const [name, count] = setting.split(':');
  armed = name;
  remaining = Number(count ?? 1);
}

/** Does nothing, unless the environment names this point. */
export function faultPoint(name: FaultPoint): void {
  if (remaining === 0 || name !== armed) return;
  if (--remaining === 0) process.kill(process.pid, 'SIGKILL');
}
