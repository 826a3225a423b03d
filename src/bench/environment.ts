/** The machine and the software that a result was made with. */
import { execFileSync } from 'node:child_process';
import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, cpus, hostname, loadavg, release, tmpdir, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Environment } from '../results/document.ts';

/** Load per processor at the start above which the machine is not quiet. */
const QUIET_LOAD = 0.5;

function readText(path: string): string {
  try {
    return readFileSync(path, 'latin1').trim();
  } catch {
    return '';
  }
}

/** Type of the file system that holds `directory`: the longest mount point that contains it. */
function filesystemOf(directory: string): string {
  const mounts = readText('/proc/mounts')
    .split('\n')
    .map((line) => line.split(' '))
    .filter(
      ([, point]) => point !== undefined && `${directory}/`.startsWith(point === '/' ? '/' : `${point}/`),
    )
    .sort((a, b) => b[1].length - a[1].length);
  return mounts[0]?.[2] ?? 'unknown';
}

const root = fileURLToPath(new URL('../..', import.meta.url));

export function packageVersion(): string {
  return (JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as { version: string }).version;
}

function commit(): string {
  try {
    const git = (...args: string[]): string =>
      execFileSync('git', ['-C', root, ...args], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      }).trim();
    return (
      git('rev-parse', '--short=12', 'HEAD') + (git('status', '--porcelain', 'src') === '' ? '' : '+changes')
    );
  } catch {
    return '';
  }
}

/** CPU quota of the control group in processors; null when there is none. */
function cpuQuota(): number | null {
  const [quota, period] = readText('/sys/fs/cgroup/cpu.max').split(' ').map(Number);
  return quota > 0 && period > 0 ? quota / period : null;
}

/** @param directory where targets keep their data */
export function describeEnvironment(directory: string = tmpdir(), sharesMachine = true): Environment {
  const cpuCount = availableParallelism();
  const [load] = loadavg();
  const warnings: string[] = [];
  if (load > cpuCount * QUIET_LOAD) {
    warnings.push(
      `load average ${load.toFixed(2)} on ${cpuCount} processors at the start: the machine was not quiet`,
    );
  }
  const quota = cpuQuota();
  if (quota !== null && quota < cpuCount)
    warnings.push(`a control group allows ${quota} of ${cpuCount} processors`);
  if (sharesMachine) {
    warnings.push(`client and servers share ${cpuCount} processors: each takes time from the other`);
  }
  let diskFreeBytes: number | null = null;
  try {
    const { bavail, bsize } = statfsSync(directory);
    diskFreeBytes = bavail * bsize;
  } catch {
    // Unknown.
  }
  return {
    hostname: hostname(),
    kernel: `Linux ${release()}`,
    cpuModel: cpus()[0]?.model.trim() ?? 'unknown',
    cpuCount,
    memoryBytes: totalmem(),
    nodeVersion: process.version,
    ardentVersion: packageVersion(),
    commit: commit(),
    filesystem: filesystemOf(directory),
    diskFreeBytes,
    loadAverage: loadavg(),
    cpuGovernor: readText('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor') || 'not visible',
    clientSharesMachine: sharesMachine,
    transport: sharesMachine ? 'TCP over loopback' : 'TCP',
    warnings,
  };
}
