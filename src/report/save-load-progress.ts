/** What goes on while files are loaded and saved: a live picture on a terminal, plain lines elsewhere. */
import { createLogUpdate } from 'log-update';
import pc from 'picocolors';
import { sampleProcess } from '../bench/process-sample.ts';
import type { SaveLoadWatcher } from '../bench/save-load/run.ts';
import type { SaveLoadRecord } from '../results/save-load-results.ts';
import { formatBytes, formatDuration } from './format.ts';
import { formatSaveLoad } from './save-load.ts';

const REDRAW_MS = 200;
const BAR_CELLS = 28;
/** Finished lines that stay in the picture. */
const SHOWN = 12;

export interface SaveLoadProgress extends SaveLoadWatcher {
  end(): void;
}

function lineOf(record: SaveLoadRecord, dataSet: string): string {
  const time = (seconds: number | null): string =>
    seconds === null ? '–' : formatSaveLoad('loadTimeSec', seconds);
  return [
    `${dataSet}, ${record.db}:`,
    ...(record.fillTimeSec === null ? [] : [`fill ${time(record.fillTimeSec)},`]),
    `load ${time(record.loadTimeSec)}, save ${time(record.saveTimeSec)}`,
    ...(record.rdbSizeMB === null ? [] : [`(${formatSaveLoad('rdbSizeMB', record.rdbSizeMB)})`]),
    ...(record.usedMemoryMB === null
      ? []
      : [`memory ${formatSaveLoad('usedMemoryMB', record.usedMemoryMB)}`]),
    ...(record.error === undefined ? [] : [`FAILED: ${record.error}`]),
  ].join(' ');
}

/** Notes only. */
export class QuietSaveLoadProgress implements SaveLoadProgress {
  protected position = 0;
  protected of = 0;
  protected dataSet = '';
  protected server = '';

  life(position: number, of: number, server: string, dataSet: string): void {
    Object.assign(this, { position, of, server, dataSet });
  }
  phase(_text: string, _pid: number | null): void {}
  finished(_record: SaveLoadRecord): void {}
  note(text: string): void {
    process.stderr.write(`${text}\n`);
  }
  end(): void {}
}

/** A line for each record, with what is left. */
export class PlainSaveLoadProgress extends QuietSaveLoadProgress {
  private readonly began = performance.now();

  override finished(record: SaveLoadRecord): void {
    const elapsed = (performance.now() - this.began) / 1000;
    const left = (elapsed / this.position) * (this.of - this.position);
    this.note(
      `[${this.position}/${this.of}] ${lineOf(record, this.dataSet)}${left >= 1 ? `; about ${formatDuration(left)} left` : ''}`,
    );
  }
}

/** A picture that is redrawn in place. */
export class LiveSaveLoadProgress extends QuietSaveLoadProgress {
  private readonly log = createLogUpdate(process.stderr);
  private readonly timer: NodeJS.Timeout;
  private readonly title: string;
  private readonly began = performance.now();
  private readonly lines: string[] = [];
  private text = '';
  private pid: number | null = null;
  private phaseBegan = performance.now();

  constructor(title: string) {
    super();
    this.title = title;
    this.timer = setInterval(() => this.draw(), REDRAW_MS);
  }

  override phase(text: string, pid: number | null): void {
    this.text = text;
    this.pid = pid;
    this.phaseBegan = performance.now();
  }

  override finished(record: SaveLoadRecord): void {
    const line = lineOf(record, this.dataSet);
    this.lines.push(record.error === undefined ? line : pc.red(line));
  }

  override note(text: string): void {
    this.log.clear();
    super.note(text);
  }

  override end(): void {
    clearInterval(this.timer);
    this.log.clear();
  }

  private draw(): void {
    const width = (process.stderr.columns || 80) - 1;
    const share = this.of === 0 ? 0 : Math.max(0, this.position - 1) / this.of;
    const elapsed = (performance.now() - this.began) / 1000;
    const left = share > 0.02 ? `${formatDuration((elapsed / share) * (1 - share))} left` : '';
    const filled = Math.round(share * BAR_CELLS);
    const sample = this.pid === null ? null : sampleProcess(this.pid);
    const memory = sample === null ? '' : `  memory ${formatBytes(sample.rssAnonBytes)}`;
    const phase = (performance.now() - this.phaseBegan) / 1000;
    const plain = [
      ...this.lines.slice(-SHOWN).map((line) => pc.dim(line.slice(0, width))),
      `${pc.bold(this.title)}  ${pc.cyan('━'.repeat(filled))}${pc.dim('━'.repeat(BAR_CELLS - filled))}  ${formatDuration(elapsed)}  ${pc.dim(left)}`,
      `${pc.bold(this.server)} ${pc.dim(`${this.position} of ${this.of}`)}  ${`${this.dataSet}: ${this.text} ${formatDuration(phase)}${memory}`.slice(0, Math.max(20, width - this.server.length - 12))}`,
    ];
    this.log(plain.join('\n'));
  }
}
