/** Loads and saves as tables, CSV, and the short form for programs. */
import { stringify } from 'csv-stringify/sync';
import {
  SAVE_LOAD_METRICS,
  type SaveLoadMetric,
  type SaveLoadResults,
} from '../results/save-load-results.ts';
import { saveLoadMatrix } from '../bench/save-load/matrix.ts';
import { formatBytes, formatDuration, formatRatio } from './format.ts';
import type { TextTable } from './table.ts';

export const SAVE_LOAD_TITLES: Record<SaveLoadMetric, string> = {
  loadTimeSec: 'load',
  settledTimeSec: 'load, settled',
  saveTimeSec: 'save',
  rdbSizeMB: 'file',
  usedMemoryMB: 'memory',
  rssMB: 'process',
  fillTimeSec: 'fill',
};

export const SAVE_LOAD_EXPLANATIONS: Record<SaveLoadMetric, string> = {
  loadTimeSec: 'from nothing to all of it served',
  settledTimeSec: 'the same, and until the engine has it',
  saveTimeSec: 'from the command to its reply, with the file on the disk',
  rdbSizeMB: 'size of the file that was saved',
  usedMemoryMB: 'what the server says that it uses after the load (INFO used_memory)',
  rssMB: 'anonymous memory of the process after the load',
  fillTimeSec: 'making the data over the wire',
};

const MB = 1024 * 1024;

export function formatSaveLoad(metric: SaveLoadMetric, value: number): string {
  if (!metric.endsWith('Sec')) return formatBytes(value * MB);
  return value < 1
    ? `${(value * 1000).toFixed(value < 0.1 ? 1 : 0)} ms`
    : value < 10
      ? `${value.toFixed(2)} s`
      : formatDuration(value);
}

/** One line a record. */
export function saveLoadCsv(results: SaveLoadResults): string {
  const columns = [
    ...(['db', 'target', 'dataSet', 'repeat', 'keys', 'valueLength', 'saveTimeSec', 'loadTimeSec'] as const),
    ...(['settledTimeSec', 'startTimeSec', 'fillTimeSec', 'rdbSizeMB', 'usedMemoryMB', 'rssMB'] as const),
    ...(['dbSize', 'saveStatus', 'loadStatus', 'error'] as const),
  ];
  const sets = new Map(results.dataSets.map((dataSet) => [dataSet.id, dataSet]));
  return stringify([
    [...columns, 'type', 'tierBytes', 'path'],
    ...results.results.map((record) => {
      const { type, tierBytes, path } = sets.get(record.dataSet)!;
      return [...columns.map((column) => record[column]), type, tierBytes, path];
    }),
  ]);
}

/** Data sets by targets by metrics, with ratios: matrix.json. */
export function saveLoadMatrixJson(results: SaveLoadResults): string {
  const { schema, tool, baseline, targets, dataSets } = results;
  return JSON.stringify({
    schema,
    tool,
    baseline,
    metrics: SAVE_LOAD_METRICS,
    targets,
    dataSets,
    cells: saveLoadMatrix(results),
  });
}

/** A line for each data set on each target. */
export function saveLoadTable(results: SaveLoadResults): TextTable {
  const cells = saveLoadMatrix(results);
  const metrics = SAVE_LOAD_METRICS.filter((metric) =>
    cells.some((cell) => cell.metrics[metric] !== undefined),
  );
  const ratio = (metric: SaveLoadMetric): boolean =>
    metric !== 'fillTimeSec' && cells.some((cell) => cell.metrics[metric]?.ratio != null);
  const header = [
    'data set',
    'server',
    'keys',
    ...metrics.flatMap((metric) => [SAVE_LOAD_TITLES[metric], ...(ratio(metric) ? ['×'] : [])]),
  ];
  const rows = cells.map((cell) => {
    const target = results.targets.find(({ id }) => id === cell.target)!;
    const dataSet = results.dataSets.find(({ id }) => id === cell.dataSet)!;
    return [
      dataSet.label,
      target.label,
      cell.dbSize === null ? '–' : cell.dbSize.toLocaleString('en-US'),
      ...metrics.flatMap((metric) => {
        const value = cell.metrics[metric];
        const text =
          value === undefined
            ? cell.state === 'failed'
              ? 'failed'
              : '–'
            : formatSaveLoad(metric, value.median);
        return [text, ...(ratio(metric) ? [value?.ratio == null ? '' : formatRatio(value.ratio)] : [])];
      }),
    ];
  });
  const base = results.targets.find(({ id }) => id === results.baseline);
  return {
    title: results.title,
    header,
    rows,
    legend: base === undefined ? [] : [`×  ratio to ${base.label}: less is better`],
  };
}
