/** From the records of loads and saves to cells: medians, and ratios to the baseline. */
import {
  SAVE_LOAD_METRICS,
  type SaveLoadCell,
  type SaveLoadMetric,
  type SaveLoadResults,
} from '../../results/save-load-results.ts';
import { median } from '../statistics.ts';

/** Data sets by targets, with what the records say of each. */
export function saveLoadMatrix(results: SaveLoadResults): SaveLoadCell[] {
  const medianOf = (
    dataSet: string,
    target: string,
    metric: SaveLoadMetric,
  ): { median: number; n: number } | null => {
    const values = results.results.flatMap((record) =>
      record.dataSet === dataSet && record.target === target && record[metric] !== null
        ? [record[metric]]
        : [],
    );
    return values.length === 0 ? null : { median: median(values), n: values.length };
  };
  return results.dataSets.flatMap(({ id: dataSet }) =>
    results.targets.flatMap(({ id: target }) => {
      const records = results.results.filter(
        (record) => record.dataSet === dataSet && record.target === target,
      );
      if (records.length === 0) return [];
      const bad = records.find((record) => record.error !== undefined);
      const cell: SaveLoadCell = {
        dataSet,
        target,
        state:
          bad === undefined
            ? 'ok'
            : [bad.loadStatus, bad.saveStatus].includes('failed')
              ? 'failed'
              : 'not run',
        ...(bad === undefined ? {} : { error: bad.error }),
        keys: records[0].keys,
        dbSize: records.at(-1)!.dbSize,
        metrics: {},
      };
      for (const metric of SAVE_LOAD_METRICS) {
        const own = medianOf(dataSet, target, metric);
        if (own === null) continue;
        const base = results.baseline === '' ? null : medianOf(dataSet, results.baseline, metric);
        cell.metrics[metric] = {
          ...own,
          ratio:
            target === results.baseline || base === null || base.median === 0
              ? null
              : own.median / base.median,
        };
      }
      return [cell];
    }),
  );
}
