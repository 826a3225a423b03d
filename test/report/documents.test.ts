import { describe, expect, it } from 'vitest';
import { toBenchmarkCsv, toCsv } from '../../src/report/csv.ts';
import { formatBytes, formatCount, formatDuration, formatMicroseconds } from '../../src/report/format.ts';
import { parseResults, ResultsError } from '../../src/results/document.ts';
import { matrixTables, renderMarkdown, renderText, targetTable } from '../../src/report/table.ts';
import { run, sampleResults } from './sample.ts';

describe('results documents', () => {
  it('are read back as they were written', () => {
    const results = sampleResults();
    expect(parseResults(JSON.stringify(results), 'x')).toEqual(results);
  });

  /** What is said of a document in which the field at `path` is `value` (undefined: absent). */
  const complaint = (path: string, value: unknown): string => {
    const results = JSON.parse(JSON.stringify(sampleResults())) as object;
    const names = path.split('.');
    const last = names.pop()!;
    const owner = names.reduce((object, name) => (object as Record<string, object>)[name], results);
    (owner as Record<string, unknown>)[last] = value;
    try {
      parseResults(JSON.stringify(results), 'file.json');
    } catch (error) {
      expect(error).toBeInstanceOf(ResultsError);
      return (error as Error).message;
    }
    return 'accepted';
  };
  it.each([
    ['seed', undefined, '$.seed: missing'],
    ['runs.2.opsPerSecond', '5', '$.runs[2].opsPerSecond: expected a finite number, found string'],
    ['targets.0.kind', 'toaster', '$.targets[0].kind: expected one of ardent'],
    ['cells.0.workload', 'nope', '$.cells[0].workload: no workload nope'],
    ['baseline', 'nobody', '$.baseline: no target nobody'],
    ['version', 2, 'version 2; this ardent reads 1'],
    ['format', 'x', '$.format: expected "ardent-results"'],
  ])('are refused with the place of the fault: %s = %j', (path, value, message) => {
    expect(complaint(path, value)).toContain(message);
  });

  it('what is not JSON is told so', () => {
    expect(() => parseResults('{', 'file.json')).toThrow(/^file\.json is not a results document: not JSON/);
  });
});

describe('cells', () => {
  const cells = sampleResults().cells;
  const cell = (workload: string, target: string) =>
    cells.find((candidate) => candidate.workload === workload && candidate.target === target)!;

  it('proven, undecided, and not comparable', () => {
    expect(cell('get', 'lmdb').versus).toMatchObject({ ratio: 1.5, verdict: 'higher' });
    expect(cell('get', 'redis-none').versus!.verdict).toBe('not comparable');
    expect(cell('get', 'redis').versus).toBeNull();
  });

  it('a badge voids the verdict, of the cell that has it and of those that are compared with it', () => {
    expect(cell('set', 'lmdb').versus).toMatchObject({ verdict: 'void', voidedBy: ['NOISY'] });
    const noisyBase = sampleResults([run('get', 'redis', 6, 10_000), run('get', 'redis', 7, 10_000)]);
    expect(
      noisyBase.cells.find(({ workload, target }) => workload === 'get' && target === 'lmdb')!.versus,
    ).toMatchObject({ verdict: 'void', voidedBy: ['NOISY of redis'] });
  });

  it('badges say what is wrong with a cell', () => {
    const names = (workload: string, target: string): string[] =>
      cell(workload, target).badges.map(({ name }) => name);
    expect(names('get', 'lmdb')).toEqual([]);
    expect(names('set', 'lmdb')).toEqual(['NOISY']);
    expect(names('get', 'redis-none')).toEqual(['UNEQUAL-DURABILITY']);
  });

  it('a failed cell keeps its reason and loses nothing else', () => {
    expect(cell('spop', 'lmdb')).toMatchObject({ state: 'failed', reason: 'the target died: SIGSEGV' });
    expect(cell('spop', 'redis').state).toBe('ok');
    expect(cell('spop', 'redis-none')).toMatchObject({ state: 'missing' });
  });

  it('latencies are merged over the runs', () => {
    expect(cell('get', 'lmdb').latency!.count).toBe(5 * 20_000);
  });
});

describe('tables', () => {
  it('medians, ratios with their verdict, marks with their meaning', () => {
    const text = matrixTables(sampleResults(), 'opsPerSecond').map(renderText).join('\n\n');
    expect(text).toMatch(/^GET +150,000 +1\.50×▲ +100,000 +110,000 +1\.10×$/m);
    expect(text).toMatch(/^SET +99,000 n +\(0\.99×\) +100,000/m);
    expect(text).toMatch(/^SPOP +failed/m);
    expect(text).toContain('n  NOISY');
    expect(text).toContain('(×)  void');
    expect(text).toContain('Redis (no persistence): durability none, not everysec');
  });

  it('engine-bound columns stand in a table of their own, beside the baseline', () => {
    const results = sampleResults();
    const served = results.targets.find(({ id }) => id === 'lmdb')!;
    results.targets.push({ ...served, id: 'lmdb-bound', label: 'LMDB (engine-bound)', mode: 'engine-bound' });
    const bound = results.cells.filter(({ target }) => target === 'lmdb');
    results.cells.push(...bound.map((found) => ({ ...found, target: 'lmdb-bound' })));
    const tables = matrixTables(results, 'opsPerSecond');
    expect(tables.map(({ header }) => header)).toEqual([
      ['workload', 'LMDB', '×', 'Redis (AOF everysec)', 'Redis (no persistence)', '×'],
      ['workload', 'LMDB (engine-bound)', '×', 'Redis (AOF everysec)'],
    ]);
    expect(tables[1].rows[0][1]).toBe(tables[0].rows[0][1]);
  });

  it('as Markdown', () => {
    const lines = renderMarkdown(matrixTables(sampleResults(), 'p99Us')[0]).split('\n');
    expect(lines[0]).toBe('| workload | LMDB | Redis (AOF everysec) | Redis (no persistence) |');
    expect(lines[2]).toMatch(/^\| GET \| [\d.]+ (µs|ms) \|/);
  });

  it('one target in one line a row', () => {
    expect(renderText(targetTable(sampleResults()))).toMatch(/^GET +150,000 +[\d.]+ (µs|ms)/m);
  });
});

it('CSV: a line a run; and redis-benchmark’s form', () => {
  const results = sampleResults();
  expect(toCsv(results).trim().split('\n')).toHaveLength(1 + results.runs.length);
  expect(
    toCsv(results)
      .split('\n')
      .find((line) => line.startsWith('set,lmdb,')),
  ).toMatch(/,NOISY,void,$/);
  expect(toBenchmarkCsv(results).split('\n')[1]).toMatch(/^"GET","150000\.00",/);
});

it('quantities', () => {
  expect([formatCount(123456.7), formatCount(12.34), formatCount(0.5), formatCount(NaN)]).toEqual([
    '123,457',
    '12.3',
    '0.5',
    '–',
  ]);
  expect([formatBytes(500), formatBytes(1536), formatBytes(5e9)]).toEqual(['500 B', '1.50 KB', '4.66 GB']);
  expect([formatMicroseconds(12.34), formatMicroseconds(1234), formatMicroseconds(2.5e6)]).toEqual([
    '12.3 µs',
    '1.23 ms',
    '2.50 s',
  ]);
  expect([formatDuration(5.25), formatDuration(59.4), formatDuration(125)]).toEqual([
    '5.3 s',
    '59 s',
    '2:05 min',
  ]);
});
