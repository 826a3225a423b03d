/** `ardent compare`: two result sets, and whether the second is worse. */
import { readFileSync } from 'node:fs';
import type { Argv } from 'yargs';
import { compareResults } from '../bench/compare-results.ts';
import { parseResults } from '../results/document.ts';
import { comparisonTable, renderText } from '../report/table.ts';
import { EXIT, exitWith, UsageError } from './exit-codes.ts';

interface CompareArguments {
  before: string;
  after: string;
  maxRegression: string;
  json: boolean;
}

export const builder = (yargs: Argv): Argv<CompareArguments> =>
  yargs
    .positional('before', { type: 'string', demandOption: true, describe: 'results.json of the old state' })
    .positional('after', { type: 'string', demandOption: true, describe: 'results.json of the new state' })
    .option('max-regression', {
      type: 'string',
      default: '5%',
      describe: 'Loss of rate that is still accepted',
    })
    .option('json', { type: 'boolean', default: false, describe: 'Print JSON' })
    .example('$0 compare old/results.json new/results.json --max-regression 3%', 'for a gate in CI')
    .epilogue(
      'Exit code 0: no proven regression; 99: one is proven (at least 5 runs a side, Mann-Whitney p < 0.01, and beyond the limit); 1: the files cannot be compared.',
    ) as unknown as Argv<CompareArguments>;

export const handler = (args: CompareArguments): Promise<void> =>
  exitWith(async () => {
    const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(args.maxRegression);
    if (match === null)
      throw new UsageError(`--max-regression ${args.maxRegression}: expected a share as 5% or 0.05`);
    const limit = Number(match[1]) / (match[2] === '%' ? 100 : 1);
    if (limit >= 1) throw new UsageError(`--max-regression ${args.maxRegression}: must be below 100%`);
    const [before, after] = [args.before, args.after].map((path) =>
      parseResults(readFileSync(path, 'utf8'), path),
    );
    const compared = compareResults(before, after, limit);
    if (compared.rows.length === 0)
      throw new UsageError('the two result sets have no row and target in common');
    const regressions = compared.rows.filter(({ regression }) => regression).length;
    if (args.json) process.stdout.write(`${JSON.stringify(compared)}\n`);
    else {
      const lines = [renderText(comparisonTable(compared)), ''];
      if (compared.differences.length > 0)
        lines.push('Settings that differ:', ...compared.differences.map((text) => `  ${text}`));
      if (compared.unmatched.length > 0)
        lines.push(`In one of the two only: ${compared.unmatched.join(', ')}`);
      const voided = compared.rows.filter(({ voidedBy }) => voidedBy.length > 0).length;
      if (voided > 0)
        lines.push(`${voided} ${voided === 1 ? 'row is' : 'rows are'} void: nothing follows from such runs.`);
      const few = compared.rows.filter(({ difference }) => difference.verdict === 'too few runs').length;
      if (few > 0)
        lines.push(`${few} ${few === 1 ? 'row has' : 'rows have'} too few runs for a verdict (5 a side).`);
      lines.push(
        regressions > 0
          ? `${regressions} proven ${regressions === 1 ? 'regression' : 'regressions'} beyond ${args.maxRegression}`
          : `No proven regression beyond ${args.maxRegression}`,
      );
      process.stdout.write(`${lines.join('\n')}\n`);
    }
    return regressions > 0 ? EXIT.regression : EXIT.ok;
  });
