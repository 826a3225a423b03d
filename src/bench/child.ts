/**
 * Servers and tools that the bench starts: each in a process group of its own, so that a Ctrl-C at the
 * terminal reaches the bench alone and a group can be ended with all that it started; each directory
 * fresh, and gone afterwards. `reaper.ts` sees to both even if the bench is killed.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const TERMINATION_PATIENCE_MS = 5_000;
const LOG_TAIL_BYTES = 2_000;

let reaper: ChildProcess | null = null;

/** The reaper lives as long as this process, whose end it notices by the end of its input. */
function tellReaper(line: { add: boolean; pid?: number; directory?: string }): void {
  if (reaper === null) {
    reaper = spawn(process.execPath, [fileURLToPath(new URL('./reaper.js', import.meta.url))], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
    });
    reaper.unref();
    // Should it die, what it was for is done here all the same.
    reaper.stdin!.on('error', () => {});
    (reaper.stdin as Socket).unref();
  }
  reaper.stdin!.write(`${JSON.stringify(line)}\n`);
}

/** A fresh directory for one life of a target. */
export function freshDirectory(label: string, below = tmpdir()): string {
  const directory = mkdtempSync(join(below, `ardent-bench-${label.replace(/[^\w.-]+/g, '-')}-`));
  tellReaper({ add: true, directory });
  return directory;
}

export function removeDirectory(directory: string): void {
  rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  tellReaper({ add: false, directory });
}

/** Sees to it that a process group led by `child` does not outlive the bench. */
export function guardProcess(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  tellReaper({ add: true, pid });
  child.on('exit', () => tellReaper({ add: false, pid }));
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export class Child {
  readonly pid: number;
  private readonly process: ChildProcess;
  private readonly log: string;
  private ended: { code: number | null; signal: NodeJS.Signals | null } | null = null;

  private constructor(process: ChildProcess, log: string) {
    this.process = process;
    this.pid = process.pid!;
    this.log = log;
    process.on('exit', (code, signal) => {
      this.ended = { code, signal };
      tellReaper({ add: false, pid: this.pid });
    });
  }

  /** @param log file for what it prints */
  static async start(
    command: string,
    args: readonly string[],
    directory: string,
    log: string,
  ): Promise<Child> {
    const output = openSync(log, 'a');
    const process = spawn(command, args, {
      cwd: directory,
      stdio: ['ignore', output, output],
      detached: true,
    });
    closeSync(output);
    await new Promise<void>((resolve, reject) => {
      process.once('spawn', resolve);
      process.once('error', reject);
    });
    tellReaper({ add: true, pid: process.pid! });
    return new Child(process, log);
  }

  get running(): boolean {
    return this.ended === null;
  }

  /** How it ended, with its last words. */
  obituary(): string {
    if (this.ended === null) return 'it still runs';
    const { code, signal } = this.ended;
    const how = signal === null ? `exit code ${code}` : signal;
    const words = this.lastWords();
    return words === '' ? how : `${how}: ${words}`;
  }

  private lastWords(): string {
    let text: string;
    try {
      text = readFileSync(this.log, 'utf8').slice(-LOG_TAIL_BYTES);
    } catch {
      return '';
    }
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    const telling = lines.findLast((line) => /error|fatal|cannot|fail|unknown/i.test(line));
    return (telling ?? lines.at(-1) ?? '').trim().slice(0, 300);
  }

  /** Ends the whole group; at once, or after a chance to end by itself. */
  async stop(how: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.signal(how);
    if (how === 'SIGTERM') {
      const deadline = performance.now() + TERMINATION_PATIENCE_MS;
      while (this.ended === null && performance.now() < deadline) await sleep(10);
      this.signal('SIGKILL');
    }
    if (this.ended === null) await once(this.process, 'exit');
  }

  private signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}
