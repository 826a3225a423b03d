/** `ardent rdb-perf`: load and save of generated data, type by type and size by size. */
import type { Argv } from 'yargs';
import { FILL_SHARE, GENERATED_TYPES, type GeneratedType } from '../bench/save-load/fill.ts';
import type { SaveLoadPlan } from '../bench/save-load/run.ts';
import { parseSize } from '../bytes/size.ts';
import { formatBytes } from '../report/format.ts';
import { lastGiven } from './bench-options.ts';
import { exitWith, UsageError } from './exit-codes.ts';
import { knownWords, wordsOf } from './option-values.ts';
import {
  checkNumbers,
  runTool,
  saveLoadOptions,
  serversOf,
  type SaveLoadArguments,
} from './save-load-run.ts';

interface PerfArguments extends SaveLoadArguments {
  rdbTypes: string;
  perfRdbMaxmemory: string;
  valueSize: string;
  elements: number;
  compressibility: number;
  seed?: number;
}

const SMALLEST_TIER = 16 * 1024 * 1024;

export const builder = (yargs: Argv): Argv<PerfArguments> =>
  saveLoadOptions(yargs)
    .option('rdb-types', {
      type: 'string',
      default: GENERATED_TYPES.join(','),
      describe: 'Types of values by comma',
    })
    .option('perf-rdb-maxmemory', {
      type: 'string',
      default: '1gb,4gb,8gb',
      describe: `Memory that each server is given, by comma; ${FILL_SHARE * 100}% of it is filled`,
    })
    .option('value-size', {
      type: 'string',
      default: '256',
      describe: 'Bytes of a value, element or member; several by comma',
    })
    .option('elements', { type: 'number', default: 10, describe: 'Elements of a value that is not a string' })
    .option('compressibility', {
      type: 'number',
      default: 0,
      describe: 'Share of a value that a compressor can remove',
    })
    .option('seed', { type: 'number', describe: 'Of all random choices (default: drawn, and told)' })
    .example('$0 rdb-perf --rdb-types string,hash --perf-rdb-maxmemory 256mb,1gb', 'two types by two sizes')
    .example('$0 rdb-perf --rdb-types string --value-size 128,1024 --image', 'two value sizes, images too')
    .epilogue(
      'How many keys fill the memory is tried on every server first; the server that needs most for a key decides, so that all get the same data.',
    ) as unknown as Argv<PerfArguments>;

export const handler = (args: PerfArguments): Promise<void> => exitWith(() => run(lastGiven(args)));

async function run(args: PerfArguments): Promise<number> {
  checkNumbers(args);
  const types = knownWords<GeneratedType>(args.rdbTypes, 'rdb-types', GENERATED_TYPES);
  const tiers = wordsOf(args.perfRdbMaxmemory).map((word) => {
    const bytes = parseSize(word);
    if (bytes === undefined || bytes < SMALLEST_TIER) {
      throw new UsageError(
        `--perf-rdb-maxmemory ${word}: a size of at least ${formatBytes(SMALLEST_TIER)}, such as 256mb`,
      );
    }
    return bytes;
  });
  const sizes = wordsOf(args.valueSize).map((word) => {
    const bytes = parseSize(word);
    if (bytes === undefined || bytes < 1) throw new UsageError(`--value-size ${word}: a number of bytes`);
    return bytes;
  });
  if (!Number.isSafeInteger(args.elements) || args.elements < 1) {
    throw new UsageError('--elements must be a whole number above 0');
  }
  if (!(args.compressibility >= 0 && args.compressibility <= 1)) {
    throw new UsageError('--compressibility must be between 0 and 1');
  }
  const seed = args.seed ?? Math.floor(Math.random() * 0x7fffffff);
  const dataSets: SaveLoadPlan['dataSets'] = types.flatMap((type) =>
    sizes.flatMap((valueLength) =>
      tiers.map((tierBytes) => {
        const label = `${type} ${formatBytes(tierBytes)}${sizes.length > 1 ? `, ${formatBytes(valueLength)} values` : ''}`;
        return {
          info: {
            ...{ id: label.replace(/[ ,]+/g, '-'), label, type, tierBytes, valueLength },
            ...{ keys: 0, fileBytes: null, path: null },
          },
          source: {
            spec: {
              ...{ type, valueLength, elements: args.elements },
              ...{ compressibility: args.compressibility, seed },
            },
          },
        };
      }),
    ),
  );
  return runTool(
    {
      tool: 'rdb-perf',
      title: 'Load and save of generated data',
      servers: serversOf(args),
      dataSets,
      notes: [],
      options: {
        types: types.join(','),
        tiers: args.perfRdbMaxmemory,
        valueSize: args.valueSize,
        elements: args.elements,
        compressibility: args.compressibility,
        seed,
      },
    },
    args,
  );
}
