/** The servers of a drill: each in a directory that outlives its process, so that it can be started again. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import { Child, freePort, freshDirectory, removeDirectory } from '../../dist/bench/child.js';
import { ControlConnection } from '../../dist/bench/control-connection.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const HOST = '127.0.0.1';
const START_MS_MAX = 600_000;
const ANSWER_MS_MAX = 2000;
const CHECK_BYTES_MAX = 64 * 1024 ** 2;

export class DrillServer {
  /** @param {string} name @param {string} command @param {(port: number, directory: string) => string[]} args */
  constructor(name, command, args, nodeOptions = []) {
    this.name = name;
    this.command = command;
    this.args = args;
    this.nodeOptions = nodeOptions;
    this.directory = freshDirectory(name);
  }

  static ardent(engine, settings, nodeOptions = []) {
    const words = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    return new DrillServer(
      engine,
      process.execPath,
      (port, directory) => [
        MAIN,
        'server',
        '--engine',
        engine,
        '--bind',
        HOST,
        '--port',
        String(port),
        '--dir',
        `${directory}/data`,
        ...words,
      ],
      nodeOptions,
    );
  }

  static redis() {
    return new DrillServer('redis', 'redis-server', (port, directory) => [
      '--port',
      String(port),
      '--dir',
      directory,
      '--save',
      '',
      '--appendonly',
      'yes',
      '--appendfsync',
      'everysec',
    ]);
  }

  get pid() {
    return this.child.pid;
  }

  get dataDirectory() {
    return `${this.directory}/data`;
  }

  /** Starts the process without waiting for it. */
  async spawn() {
    this.port = await freePort();
    this.address = { host: HOST, port: this.port };
    this.spawnedAt = performance.now();
    const args = this.args(this.port, this.directory);
    this.child = await Child.start(
      this.command,
      [...this.nodeOptions, ...args],
      this.directory,
      `${this.directory}/output.log`,
    );
  }

  /**
   * Waits until it serves. Resolves to milliseconds since `spawn`: of the first answer of any kind, and
   * of the first reply to `request` that is not -LOADING.
   */
  async serving(request = ['PING']) {
    let answered = null;
    while (performance.now() - this.spawnedAt < START_MS_MAX) {
      if (!this.child.running) throw new Error(`${this.name} ended: ${this.child.obituary()}`);
      const reply = await ask(this.port, request).catch(() => null);
      if (reply !== null) {
        const at = performance.now() - this.spawnedAt;
        answered ??= at;
        if (!reply.startsWith('-LOADING')) {
          this.control = await ControlConnection.open(this.address);
          return { answered, served: at, reply };
        }
      }
      await sleep(reply === null ? 5 : 20);
    }
    throw new Error(`${this.name} did not serve within ${START_MS_MAX} ms`);
  }

  async start() {
    await this.spawn();
    return this.serving();
  }

  /**
   * Waits until the engine has everything, `purged` also nothing of what was dropped; resolves to milliseconds. INFO goes
   * on being answered meanwhile.
   */
  async checkpointed(msMax, purged = false) {
    const began = performance.now();
    await this.control.call('BGREWRITEAOF');
    for (;;) {
      const info = await this.control.info();
      const settled = info.checkpoint_state === 'idle' && info.checkpoint_log_bytes === '0';
      if (settled && (!purged || info.checkpoint_purging === '0')) return performance.now() - began;
      if (performance.now() - began > msMax) throw new Error(`no checkpoint: ${JSON.stringify(info)}`);
      await sleep(20);
    }
  }

  /** Rows in the engine of a server that has ended. */
  engineRows() {
    const check = spawnSync(process.execPath, [MAIN, 'check', this.dataDirectory, '--json'], {
      encoding: 'utf8',
      maxBuffer: CHECK_BYTES_MAX,
    });
    if (check.status !== 0) throw new Error(`ardent check: ${check.stdout}${check.stderr}`);
    return JSON.parse(check.stdout).engine.rows;
  }

  async kill() {
    this.control?.close();
    await this.child.stop('SIGKILL');
  }

  /** Ends it in order; resolves to milliseconds. */
  async end() {
    this.control.close();
    const began = performance.now();
    process.kill(this.pid, 'SIGTERM');
    while (this.child.running) await sleep(10);
    return performance.now() - began;
  }

  async remove() {
    if (this.child?.running) await this.kill();
    removeDirectory(this.directory);
  }
}

/** Sends one request on a connection of its own; resolves to the first line of the reply. */
function ask(port, request) {
  return new Promise((resolve, reject) => {
    const socket = connect(port, HOST);
    socket.setTimeout(ANSWER_MS_MAX, () => socket.destroy(new Error('no answer')));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
    socket.once('data', (bytes) => {
      resolve(bytes.toString('latin1', 0, bytes.indexOf(13)));
      socket.destroy();
    });
    socket.write(`*${request.length}\r\n${request.map((word) => `$${word.length}\r\n${word}\r\n`).join('')}`);
  });
}
