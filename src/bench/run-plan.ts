/**
 * Runs a plan. Repeats alternate between the targets, forth and back (A B C, C B A, …), each with a
 * fresh server, so that a drift of the machine touches all of them alike. After every session the
 * results so far are handed on: what was measured is never lost.
 */
import type { ClientCeiling, Results, Run, Session } from '../results/document.ts';
import { RESULTS_FORMAT, RESULTS_VERSION } from '../results/document.ts';
import { capacitiesOf } from './capacity.ts';
import { clientCeilings } from './ceiling.ts';
import { cellsOf } from './cells.ts';
import { describeEnvironment } from './environment.ts';
import type { LoadPool } from './load.ts';
import { repeatsOf, type Plan } from './plan.ts';
import { notesOf } from './notes.ts';
import { runSession, type Watcher } from './session.ts';
import type { Target } from './target.ts';

export interface PlanHeader {
  tool: Results['tool'];
  title: string;
  argv: string[];
  options: Results['options'];
  /** Where targets keep their data. */
  dataRoot: string;
  notes: string[];
}

export interface PlanControl {
  pool: LoadPool;
  watcher: Watcher;
  /** Called with the document so far; `state` is `partial` until the end. */
  save(results: Results): void;
  /** Why the bench was asked to stop; null: it was not. */
  stopReason(): string | null;
}

/** A target that did not even start so many times is not tried again. */
const START_FAILURES = 1;

export async function runPlan(plan: Plan, header: PlanHeader, control: PlanControl): Promise<Results> {
  const sharesMachine = plan.targets.every(
    ({ info }) => info.kind !== 'foreign' || /127\.0\.0\.1|localhost|\//.test(info.address),
  );
  const environment = describeEnvironment(header.dataRoot, sharesMachine);
  const startedAt = new Date().toISOString();
  const sessions: Session[] = [];
  const runs: Run[] = [];
  let clientCeiling: ClientCeiling[] = [];
  const stopping = (): boolean => control.stopReason() !== null;

  const document = (final: boolean, reason: string | null): Results => {
    const targets = plan.targets.map(({ info }) => info);
    const workloads = plan.rows.map(({ info }) => info);
    const cells = cellsOf({
      targets,
      workloads,
      runs,
      sessions,
      baseline: plan.baseline,
      clientCeiling,
      mergeLatencies: final,
    });
    const capacity = capacitiesOf(workloads, runs);
    return {
      format: RESULTS_FORMAT,
      version: RESULTS_VERSION,
      tool: header.tool,
      title: header.title,
      state: reason === null ? 'complete' : 'partial',
      ...(reason === null ? {} : { partialReason: reason }),
      startedAt,
      finishedAt: new Date().toISOString(),
      argv: header.argv,
      rerun: rerunLine(header.argv, plan.settings.seed),
      seed: plan.settings.seed,
      options: header.options,
      environment,
      targets,
      workloads,
      baseline: plan.baseline,
      ...(clientCeiling.length > 0 ? { clientCeiling } : {}),
      sessions,
      runs,
      cells,
      ...(capacity.length > 0 ? { capacity } : {}),
      notes: [...header.notes, ...notesOf(plan, environment, cells, sessions, runs)],
    };
  };

  const { driver } = plan.settings;
  const closed = plan.rows.filter(({ open }) => open === null).map(({ pipeline }) => pipeline);
  if (driver !== 'redis-benchmark' && closed.length > 0) {
    control.watcher.phase('the client’s own ceiling');
    clientCeiling = await clientCeilings(closed, { ...plan.settings, driver }, control.pool, stopping);
  }

  const startFailures = new Map<Target, number>();
  for (let repeat = 1; repeat <= plan.repeats; repeat++) {
    const order = repeat % 2 === 1 ? plan.targets : [...plan.targets].reverse();
    for (const target of order) {
      if (stopping()) break;
      if (repeat > repeatsOf(plan, target) || (startFailures.get(target) ?? 0) >= START_FAILURES) continue;
      let rows = plan.rows;
      while (rows.length > 0 && !stopping()) {
        const outcome = await runSession({
          target,
          repeat,
          rows,
          settings: plan.settings,
          drainSeconds: plan.drainSeconds,
          pool: control.pool,
          watcher: control.watcher,
          stopping,
        });
        const session = sessions.push(outcome.session) - 1;
        for (const run of outcome.runs) runs.push({ ...run, session, order: runs.length });
        control.save(document(false, control.stopReason() ?? 'the run is not finished'));
        if (outcome.session.startSeconds === null && outcome.session.state === 'failed') {
          startFailures.set(target, (startFailures.get(target) ?? 0) + 1);
          break;
        }
        // The target died at a row: the rows after it get a fresh one. Foreign targets are not ours to restart.
        if (outcome.session.state === 'ok' || target.info.kind === 'foreign' || outcome.runs.length === 0)
          break;
        rows = rows.slice(outcome.runs.length);
      }
    }
  }
  const results = document(true, control.stopReason());
  control.save(results);
  return results;
}

/** The command line again, with the seed that this run drew. */
function rerunLine(argv: readonly string[], seed: number): string {
  const quoted = argv.map((word) =>
    /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`,
  );
  return [
    'ardent',
    ...quoted,
    ...(argv.some((word) => word.startsWith('--seed')) ? [] : ['--seed', String(seed)]),
  ].join(' ');
}
