/** One connection that asks for a random key every few milliseconds, and sorts latencies by what goes on. */
import { connect } from 'node:net';
import { LatencyCounts } from '../../dist/bench/latency.js';

const PAUSE_MS = 1;

export class Probe {
  counts = new Map();
  /** What latencies are counted under. */
  label = 'idle';
  stopped = false;

  constructor(port, keys) {
    this.keys = keys;
    this.socket = connect(port, '127.0.0.1').setNoDelay();
    this.socket.on('error', () => this.stop());
    this.socket.on('data', () => this.received());
    this.ask();
  }

  ask() {
    if (this.stopped) return;
    const key = `key:${String(Math.floor(Math.random() * this.keys)).padStart(12, '0')}`;
    this.sentAt = performance.now();
    this.sentUnder = this.label;
    this.socket.write(`*2\r\n$3\r\nGET\r\n$${key.length}\r\n${key}\r\n`);
  }

  /** A value of 100 bytes comes in one piece; the rest of a longer one is not waited for. */
  received() {
    const took = performance.now() - this.sentAt;
    // A checkpoint that began or ended meanwhile counts as one.
    const label = this.sentUnder === this.label ? this.label : 'checkpoint';
    let counts = this.counts.get(label);
    if (counts === undefined) this.counts.set(label, (counts = new LatencyCounts()));
    counts.record(took, 1);
    setTimeout(() => this.ask(), PAUSE_MS);
  }

  stop() {
    this.stopped = true;
    this.socket.destroy();
  }

  /** Milliseconds by label. */
  summary() {
    return Object.fromEntries(
      [...this.counts].map(([label, counts]) => [
        label,
        {
          count: counts.total,
          p50: counts.percentileUs(0.5) / 1000,
          p99: counts.percentileUs(0.99) / 1000,
          p999: counts.percentileUs(0.999) / 1000,
          max: counts.maxTicks / 10_000,
        },
      ]),
    );
  }
}
