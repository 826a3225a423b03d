/** `ardent report`: a results document as tables, Markdown, CSV or HTML. */
import { readFileSync, writeFileSync } from 'node:fs';
import type { Argv } from 'yargs';
import { toBenchmarkCsv, toCsv } from '../report/csv.ts';
import { renderHtml } from '../report/html/page.ts';
import { METRICS, parseResults, type MetricName } from '../results/document.ts';
import { matrixTables, renderMarkdown, renderText } from '../report/table.ts';
import { EXIT, exitWith } from './exit-codes.ts';

interface ReportArguments {
  results: string;
  format: 'text' | 'markdown' | 'csv' | 'benchmark-csv' | 'html';
  metric: MetricName;
  output?: string;
}

export const builder = (yargs: Argv): Argv<ReportArguments> =>
  yargs
    .positional('results', { type: 'string', demandOption: true, describe: 'A results.json' })
    .option('format', {
      alias: 'f',
      choices: ['text', 'markdown', 'csv', 'benchmark-csv', 'html'],
      default: 'text',
      describe: 'Form',
    })
    .option('metric', { choices: METRICS, default: 'opsPerSecond', describe: 'What text and Markdown show' })
    .option('output', { alias: 'o', type: 'string', describe: 'File instead of the terminal' })
    .example('$0 report bench-results/matrix/…/results.json -f html -o report.html', 'the report again')
    .example(
      '$0 report results.json -f markdown --metric p99Us',
      'a table to paste',
    ) as unknown as Argv<ReportArguments>;

export const handler = (args: ReportArguments): Promise<void> =>
  exitWith(async () => {
    const results = parseResults(readFileSync(args.results, 'utf8'), args.results);
    const render = {
      text: () => `${matrixTables(results, args.metric).map(renderText).join('\n\n')}\n`,
      markdown: () => `${matrixTables(results, args.metric).map(renderMarkdown).join('\n\n')}\n`,
      csv: () => toCsv(results),
      'benchmark-csv': () => toBenchmarkCsv(results),
      html: () => renderHtml(results),
    }[args.format];
    if (args.output === undefined) process.stdout.write(render());
    else writeFileSync(args.output, render());
    return EXIT.ok;
  });
