/** Once a second: what the kernel says of the server, and what the server says of itself; is the account kept? */
import { readFileSync } from 'node:fs';
import { sampleProcess } from '../../dist/bench/process-sample.js';

const INTERVAL_MS = 1000;
/** How often the state of the checkpoint is asked for, so that latencies can be told apart. */
const STATE_MS = 50;

export class Watch {
  samples = [];
  /** Longest slice of each kind in milliseconds, over all lives of the server: of the clock, and of CPU. */
  slices = {};
  sliceCpu = {};
  checkpoints = 0;
  probe = null;
  server = null;
  phase = '';
  /** Lines of INFO's memory account in bytes, `total` among them. */
  account = null;
  info = {};
  usedBytes = 0;
  #timers = [];
  #asking = false;

  /** @param onSample called with each sample */
  constructor(onSample = () => {}) {
    this.onSample = onSample;
  }

  follow(server) {
    this.server = server;
    this.#timers.push(setInterval(() => void this.take(), INTERVAL_MS));
    this.#timers.push(setInterval(() => void this.state(), STATE_MS));
  }

  unfollow() {
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    this.server = null;
  }

  async state() {
    if (this.#asking || this.server?.control === undefined) return;
    this.#asking = true;
    try {
      const text = String(await this.server.control.call('INFO checkpoint'));
      const state = /checkpoint_state:(\w+)/.exec(text)?.[1] ?? 'idle';
      if (this.probe !== null) this.probe.label = state === 'idle' ? 'idle' : 'checkpoint';
    } catch {
      // It is being stopped.
    } finally {
      this.#asking = false;
    }
  }

  async take() {
    const { server, phase } = this;
    if (server === null) return;
    const kernel = sampleProcess(server.pid);
    if (kernel === null) return;
    const rollup = readRollup(server.pid);
    if (server.control !== undefined) this.read(await server.control.info());
    const { account, info } = this;
    const anonymous = kernel.rssAnonBytes;
    const sample = {
      at: Date.now(),
      phase,
      anonymous,
      anonymousMapped: rollup.Anonymous ?? null,
      fileBacked: kernel.rssFileBytes,
      tierUsed: this.usedBytes,
      account: account?.total ?? null,
      checkpoint: info.checkpoint_state ?? 'loading',
      dirty: Number(info.checkpoint_dirty_bytes ?? 0),
      pressure: Number(info.checkpoint_pressure ?? 0),
      writeBytes: kernel.writeBytes,
      cpuSeconds: kernel.cpuSeconds,
    };
    this.samples.push(sample);
    this.onSample(sample);
  }

  /** Keeps what INFO tells. While it loads, the server tells little: the account is that of before. */
  read(info) {
    this.info = info;
    for (const [name, value] of Object.entries(info)) {
      const wall = /^longest_slice_usec_(.+)$/.exec(name)?.[1];
      const cpu = /^longest_slice_cpu_usec_(.+)$/.exec(name)?.[1];
      if (wall !== undefined) this.slices[wall] = Math.max(this.slices[wall] ?? 0, Number(value) / 1000);
      if (cpu !== undefined) this.sliceCpu[cpu] = Math.max(this.sliceCpu[cpu] ?? 0, Number(value) / 1000);
    }
    if (info.memory_account_total === undefined) return;
    this.usedBytes = Number(info.used_memory);
    const lines = Object.entries(info).flatMap(([field, value]) => {
      const name = /^memory_account_(.+)$/.exec(field)?.[1];
      return name === undefined ? [] : [[name, Number(value)]];
    });
    this.account = Object.fromEntries(lines);
  }

  /** The samples against the account, by phase; `beyond` is what is held beside the tier's own use. */
  verdicts() {
    const phases = new Map();
    for (const sample of this.samples) {
      const { total = 0, tier = 0 } = this.account ?? {};
      let phase = phases.get(sample.phase);
      if (phase === undefined) {
        phase = { samples: 0, broken: 0, anonymous: 0, fileBacked: 0, beyond: 0, writeBytes: 0 };
        phases.set(sample.phase, phase);
      }
      phase.samples++;
      if (sample.account !== null && sample.anonymous > sample.account) phase.broken++;
      phase.anonymous = Math.max(phase.anonymous, sample.anonymous);
      phase.fileBacked = Math.max(phase.fileBacked, sample.fileBacked);
      phase.beyond = Math.max(phase.beyond, sample.anonymous - sample.tierUsed);
      phase.allowedBeyond = total - tier;
    }
    return Object.fromEntries(phases);
  }
}

function readRollup(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    return Object.fromEntries(
      [...text.matchAll(/^(\w+):\s+(\d+) kB/gm)].map(([, name, kb]) => [name, Number(kb) * 1024]),
    );
  } catch {
    return {}; // not every kernel has it
  }
}
