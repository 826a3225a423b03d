/** From a plan to files, tables and an exit code: common to `ardent bench` and `ardent matrix`. */
import { tmpdir } from 'node:os';
import { LoadPool } from '../bench/load.ts';
import { repeatsOf, type Plan } from '../bench/plan.ts';
import { ResultsDirectory } from '../bench/results-directory.ts';
import { runPlan } from '../bench/run-plan.ts';
import { toBenchmarkCsv, toCsv } from '../report/csv.ts';
import { latencyBelowKnee } from '../bench/capacity.ts';
import { formatCount, formatDuration, formatMicroseconds } from '../report/format.ts';
import { LiveProgress, PlainProgress, QuietProgress, type Progress } from '../report/progress.ts';
import type { Cell, Results, Run } from '../results/document.ts';
import { renderHtml } from '../report/html/page.ts';
import { matrixTables, renderText, targetTable } from '../report/table.ts';
import type { OutputArguments } from './bench-options.ts';
import { EXIT } from './exit-codes.ts';
import { onInterrupt } from './interrupt.ts';

export interface BenchRun {
  tool: 'matrix' | 'bench' | 'engines';
  title: string;
  plan: Plan;
  options: Results['options'];
  notes: string[];
}

/** Files of one result set. A full disk costs the files, not the tables. */
export function writeResults(
  directory: ResultsDirectory,
  results: Results,
  progress: Pick<Progress, 'note'>,
): string[] {
  const written: string[] = [];
  const files: [string, () => string][] = [
    ['results.json', () => JSON.stringify(results)],
    ['results.csv', () => toCsv(results)],
    ['report.html', () => renderHtml(results)],
  ];
  for (const [name, content] of files) {
    try {
      written.push(directory.write(name, content()));
    } catch (error) {
      progress.note(`ardent: ${name} could not be written: ${(error as Error).message}`);
    }
  }
  return written;
}

function progressFor(args: OutputArguments, title: string, sessions: number, rows: number): Progress {
  if (args.quiet || args.json) return new QuietProgress();
  if (args.tui && process.stderr.isTTY) return new LiveProgress(title, sessions, rows);
  return new PlainProgress(sessions);
}

/** Prints a line of JSON for each run as it ends. */
function printing(progress: Progress): Progress {
  return Object.assign(Object.create(progress) as Progress, {
    finished(run: Run) {
      progress.finished(run);
      const { series: _series, ...rest } = run;
      process.stdout.write(`${JSON.stringify({ type: 'run', ...rest })}\n`);
    },
  });
}

/** What a tool is given to run with. */
export interface ToolControl {
  watcher: Progress;
  /** Writes the results so far. */
  save(results: Results): void;
  /** Why the tool was asked to stop; null: it was not. */
  stopReason(): string | null;
  /** Registers what ends the work under way when a stop is asked for; a new one replaces it. */
  onStop(stop: () => void): void;
}

/** Runs a tool on a terminal or elsewhere, with Ctrl-C and full disks; prints and writes its results. */
export async function runTool(
  { tool, title, sessions, rows }: { tool: Results['tool']; title: string; sessions: number; rows: number },
  args: OutputArguments,
  run: (control: ToolControl) => Promise<Results>,
): Promise<number> {
  const directory = new ResultsDirectory(args.results, tool, args.out);
  const plain = progressFor(args, title, sessions, rows);
  const progress = args.json ? printing(plain) : plain;
  let stop: () => void = () => {};
  const interrupt = onInterrupt(
    'stopping; what was measured is kept',
    (text) => progress.note(text),
    () => stop(),
  );
  let unwritable: string | null = null;
  let results: Results;
  try {
    results = await run({
      watcher: progress,
      save(partial) {
        try {
          directory.write('results.json', JSON.stringify(partial));
        } catch (error) {
          if (unwritable === null)
            progress.note(`ardent: results cannot be written: ${(error as Error).message}`);
          unwritable = (error as Error).message;
        }
      },
      stopReason: () => interrupt.reason,
      onStop: (callback) => (stop = callback),
    });
  } finally {
    progress.end();
    interrupt.release();
  }
  const files = writeResults(directory, results, progress);
  printResults(results, args, files);
  return files.length === 0 ? EXIT.usage : exitCodeOf(results);
}

export async function runBench(run: BenchRun, args: OutputArguments): Promise<number> {
  const { tool, title, plan, options, notes } = run;
  const pool = new LoadPool(plan.settings.workers);
  const header = {
    tool,
    title,
    argv: process.argv.slice(2),
    options,
    dataRoot: args.dataDir ?? tmpdir(),
    notes,
  };
  try {
    return await runTool(
      {
        tool,
        title,
        sessions: plan.targets.reduce((sum, target) => sum + repeatsOf(plan, target), 0),
        rows: plan.rows.length,
      },
      args,
      (control) => {
        control.onStop(() => pool.stop());
        return runPlan(plan, header, { ...control, pool });
      },
    );
  } finally {
    await pool.close();
  }
}

export function printResults(results: Results, args: OutputArguments, files: string[]): void {
  if (args.json) {
    process.stdout.write(
      `${JSON.stringify({ type: 'end', state: results.state, files, cells: results.cells.length })}\n`,
    );
    return;
  }
  if (args.csv) {
    process.stdout.write(toBenchmarkCsv(results));
    return;
  }
  const failures = failuresOf(results);
  if (results.cells.every(({ state }) => state !== 'ok')) {
    if (results.state === 'partial') failures.push(`nothing was measured: ${results.partialReason}`);
    process.stderr.write(`${failures.map((text) => `ardent: ${text}`).join('\n')}\n`);
    return;
  }
  const tables =
    results.targets.length === 1 ? [targetTable(results)] : matrixTables(results, 'opsPerSecond');
  const lines = [tables.map(renderText).join('\n\n')];
  for (const curve of results.capacity ?? []) {
    lines.push(
      curve.kneeOpsPerSecond === null
        ? `${curve.workload} on ${curve.target}: overloaded at every rate`
        : `${curve.workload} on ${curve.target}: followed up to ${formatCount(curve.kneeOpsPerSecond)} ops/s${latencyBelowKnee(
            curve,
          )
            .map(({ share, p99Us }) => `; p99 at ${share * 100}% of that ${formatMicroseconds(p99Us)}`)
            .join('')}`,
    );
  }
  if (!args.quiet) {
    const { environment } = results;
    const took = (Date.parse(results.finishedAt) - Date.parse(results.startedAt)) / 1000;
    lines.push(
      '',
      ...results.notes.map((note) => `• ${note}`),
      ...environment.warnings.map((warning) => `! ${warning}`),
      ...failures.map((text) => `✗ ${text}`),
      '',
      `${environment.cpuModel}, ${environment.cpuCount} processors, ${environment.kernel}, Node ${environment.nodeVersion}; ${formatDuration(took)}, seed ${results.seed}`,
      ...files,
    );
  }
  if (results.state === 'partial') lines.push(`PARTIAL: ${results.partialReason}`);
  process.stdout.write(`${lines.join('\n')}\n`);
}

function failuresOf(results: Results): string[] {
  const reasons = new Map<string, number>();
  for (const cell of results.cells) {
    if (cell.state !== 'failed' && cell.state !== 'unsupported') continue;
    const { target, reason = '' } = cell;
    const text = `${reason.startsWith(target) ? '' : `${target}: `}${cell.state === 'unsupported' ? 'unsupported: ' : ''}${reason}`;
    reasons.set(text, (reasons.get(text) ?? 0) + 1);
  }
  return [...reasons].map(([text, count]) => (count === 1 ? text : `${text} (${count} rows)`));
}

export function exitCodeOf(results: Results): number {
  if (results.state === 'partial') return EXIT.interrupted;
  if (results.runs.some((run) => (run.verified?.wrong ?? 0) > 0)) return EXIT.data;
  const count = (state: Cell['state']): number => results.cells.filter((cell) => cell.state === state).length;
  const ok = count('ok');
  // What a server does not offer is a finding, not a failure; nothing at all was not asked for.
  if (ok + count('unsupported') === results.cells.length && ok > 0) return EXIT.ok;
  const unreachable =
    results.sessions.length > 0 &&
    results.sessions.every(({ startSeconds, state }) => state === 'failed' && startSeconds === null);
  return unreachable && ok === 0 ? EXIT.unreachable : EXIT.failed;
}
