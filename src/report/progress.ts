/**
 * What goes on, while it goes on: a live picture on a terminal, plain lines elsewhere. All of it goes to
 * stderr or to a terminal; stdout is for results.
 */
import { createLogUpdate } from 'log-update';
import pc from 'picocolors';
import type { LiveLoad } from '../bench/control.ts';
import type { Sampler } from '../bench/sampler.ts';
import type { Watcher } from '../bench/session.ts';
import { formatBytes, formatCount, formatDuration, formatMicroseconds } from './format.ts';
import type { Run } from '../results/document.ts';

const REDRAW_MS = 200;
const BAR_CELLS = 28;
const SPARKS = '▁▂▃▄▅▆▇█';
const SPARK_CELLS = 24;
/** Client busier than this: the figures may be its own limit. */
const CLIENT_RED = 0.9;

function sparkline(values: readonly number[], cells = SPARK_CELLS): string {
  const shown = values.slice(-cells);
  const top = Math.max(...shown, 1e-9);
  if (cells === 0) return '';
  return shown.map((value) => SPARKS[Math.min(7, Math.floor((value / top) * 7.999))]).join('');
}

export interface Progress extends Watcher {
  note(text: string): void;
  end(): void;
}

/** Says nothing but notes. */
export class QuietProgress implements Progress {
  session(): void {}
  phase(_text: string): void {}
  running(): void {}
  finished(run: Run): void {
    if (run.state === 'failed') this.note(`${run.target} ${run.workload}: failed: ${run.error}`);
  }
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }
  end(): void {}
}

/** One line a session and one a failure. */
export class PlainProgress extends QuietProgress {
  private readonly sessions: number;
  private readonly began = performance.now();
  private sessionNumber = 0;
  private current = '';
  private runs = 0;
  private sessionBegan = 0;

  constructor(sessions: number) {
    super();
    this.sessions = sessions;
  }

  override session(target?: string, repeat?: number): void {
    this.flush();
    this.sessionNumber++;
    this.sessionBegan = performance.now();
    this.current = `${target}, run ${repeat}`;
  }

  override finished(run: Run): void {
    this.runs++;
    super.finished(run);
  }

  private flush(): void {
    if (this.current === '') return;
    const elapsed = (performance.now() - this.began) / 1000;
    const left = (elapsed / this.sessionNumber) * Math.max(0, this.sessions - this.sessionNumber);
    const took = (performance.now() - this.sessionBegan) / 1000;
    this.note(
      `[${this.sessionNumber}/${this.sessions}] ${this.current}: ${this.runs} ${this.runs === 1 ? 'row' : 'rows'} in ${formatDuration(took)}` +
        (left >= 1 ? `, about ${formatDuration(left)} left` : ''),
    );
    this.current = '';
    this.runs = 0;
  }

  override end(): void {
    this.flush();
  }
}

/** How many finished rows stay in the picture. */
const FINISHED_SHOWN = 4;
const ROW_CELLS = 20;

/** A picture that is redrawn in place. */
export class LiveProgress implements Progress {
  private readonly log = createLogUpdate(process.stderr);
  private readonly timer: NodeJS.Timeout;
  private readonly sessions: number;
  private readonly rows: number;
  private readonly title: string;
  private readonly began = performance.now();
  private sessionNumber = 0;
  private target = '';
  private repeat = 0;
  private rowsDone = 0;
  private phaseText = '';
  private load: LiveLoad | null = null;
  private sampler: Sampler | null = null;
  private last = { time: 0, requests: 0 };
  private rates: number[] = [];
  private readonly finishedRows: string[] = [];

  constructor(title: string, sessions: number, rows: number) {
    this.title = title;
    this.sessions = sessions;
    this.rows = rows;
    this.timer = setInterval(() => this.draw(), REDRAW_MS);
  }

  session(target: string, repeat: number): void {
    this.sessionNumber++;
    this.target = target;
    this.repeat = repeat;
    this.rowsDone = 0;
  }

  phase(text: string): void {
    this.phaseText = text;
    this.load = null;
    this.sampler = null;
  }

  running(load: LiveLoad | null, sampler: Sampler): void {
    this.load = load;
    this.sampler = sampler;
    this.rates = [];
    this.last = { time: performance.now(), requests: 0 };
  }

  finished(run: Run): void {
    this.rowsDone++;
    if (run.state === 'failed') {
      this.note(pc.red(`${run.target} ${run.workload}: failed: ${run.error}`));
      return;
    }
    const latency = run.intendedLatency ?? run.latency;
    const figures =
      run.state === 'unsupported'
        ? 'unsupported'
        : `${formatCount(run.opsPerSecond).padStart(11)} ops/s${latency === null ? '' : `  p99 ${formatMicroseconds(latency.p99Us)}`}`;
    this.finishedRows.push(
      `  ${run.workload.slice(0, ROW_CELLS).padEnd(ROW_CELLS)} ${figures}  ${run.target}`,
    );
    if (this.finishedRows.length > FINISHED_SHOWN) this.finishedRows.shift();
  }

  note(text: string): void {
    this.log.clear();
    process.stderr.write(`${text}\n`);
  }

  end(): void {
    clearInterval(this.timer);
    this.log.clear();
  }

  private draw(): void {
    const done =
      (this.sessionNumber - 1 + this.rowsDone / Math.max(1, this.rows)) / Math.max(1, this.sessions);
    const share = Math.min(1, Math.max(0, done));
    const elapsed = (performance.now() - this.began) / 1000;
    const left = share > 0.02 ? `${formatDuration((elapsed / share) * (1 - share))} left` : '';
    const columns = process.stderr.columns ?? 80;
    const times = `${formatDuration(elapsed)}  ${left}`;
    // The bar takes what the words leave of the line, and gives way to them.
    const cells = Math.min(BAR_CELLS, columns - this.title.length - times.length - 5);
    const filled = Math.round(share * cells);
    const bar = cells < 4 ? '' : `${'━'.repeat(filled)}${pc.dim('━'.repeat(cells - filled))}  `;
    const where =
      this.sessionNumber === 0
        ? this.phaseText
        : `${this.target} ${pc.dim(`run ${this.repeat}, ${this.sessionNumber} of ${this.sessions}`)}  ${this.phaseText}`;
    const lines = [`${pc.bold(this.title)}  ${pc.cyan(bar)}${pc.dim(times)}`, where];
    lines.push(this.load === null ? '' : this.loadLine(this.load, columns));
    lines.push(this.sampler === null ? '' : this.targetLine(this.sampler));
    lines.push(...this.finishedRows.map((row) => pc.dim(row)));
    this.log(lines.map((line) => clip(line, columns)).join('\n'));
  }

  private loadLine(load: LiveLoad, columns: number): string {
    const now = performance.now();
    const { requests } = load;
    if (now > this.last.time && requests > this.last.requests) {
      this.rates.push(((requests - this.last.requests) * 1000) / (now - this.last.time));
      this.last = { time: now, requests };
    }
    const rate = this.rates.at(-1);
    if (rate === undefined) return pc.dim('  warming up');
    const text = `  ${formatCount(rate).padStart(9)} ops/s  p99 ${formatMicroseconds(load.p99Us)}`;
    return `${text}  ${pc.cyan(sparkline(this.rates, Math.max(0, Math.min(SPARK_CELLS, columns - text.length - 3))))}`;
  }

  private targetLine(sampler: Sampler): string {
    const [before, sample] = sampler.samples.slice(-2);
    if (sample?.process == null || before.process === null) return '';
    const seconds = (sample.time - before.time) / 1000;
    const cores = (sample.process.cpuSeconds - before.process.cpuSeconds) / seconds;
    const client = (sample.clientCpuSeconds - before.clientCpuSeconds) / seconds;
    const clientText = `client ${client.toFixed(2)}`;
    return (
      `  server ${cores.toFixed(2)} CPU  ${client > CLIENT_RED ? pc.red(clientText) : clientText} CPU` +
      `  memory ${formatBytes(sample.process.rssAnonBytes)}` +
      (sample.diskBytes === null ? '' : `  disk ${formatBytes(sample.diskBytes)}`)
    );
  }
}

/** A change of colour; splitting at it leaves the sequences in the odd places. */
const ESCAPE = new RegExp(`(${String.fromCharCode(27)}\\[[\\d;]*m)`);

/** The first `columns` characters of a line, escape sequences not counted: a terminal must not wrap it. */
function clip(line: string, columns: number): string {
  let left = columns;
  return line
    .split(ESCAPE)
    .map((part, index) => {
      if (index % 2 === 1) return part;
      const shown = [...part].slice(0, left).join('');
      left -= [...shown].length;
      return shown;
    })
    .join('');
}
