/** `ardent rdb`: what is in an RDB file, whether it is sound, the same as version 10 or as JSON. */
import type { Argv } from 'yargs';
import { EXIT, exitWith, UsageError } from './exit-codes.ts';
import { convertFile } from './rdb-convert.ts';
import { dumpFile } from './rdb-dump.ts';
import { inspect, reportText } from './rdb-info.ts';
import { FileError } from './rdb-file.ts';
import { verifyFile } from './rdb-verify.ts';

interface FileArguments {
  file: string;
}

interface InfoArguments extends FileArguments {
  json: boolean;
  top: number;
}

interface VerifyArguments {
  files: string[];
}

interface ConvertArguments extends FileArguments {
  output: string;
  compression: boolean;
  checksum: boolean;
  lossy: boolean;
}

interface DumpArguments extends FileArguments {
  match?: string;
  db?: number;
  type?: string;
}

const file = <T>(yargs: Argv<T>): Argv<T & FileArguments> =>
  yargs.positional('file', { type: 'string', demandOption: true, describe: 'An RDB file' });

export const builder = (yargs: Argv): Argv =>
  yargs
    .command<InfoArguments>(
      'info <file>',
      'Keys by type and encoding, sizes, the biggest keys, when keys expire',
      (command) =>
        file(command)
          .option('json', { type: 'boolean', default: false, describe: 'Print it as JSON' })
          .option('top', { type: 'number', default: 10, describe: 'How many of the biggest keys are listed' })
          .example('$0 rdb info dump.rdb', 'a summary')
          .example('$0 rdb info --top 100 --json dump.rdb', 'the hundred biggest keys, for a program'),
      ({ file, json, top }) =>
        ended(async () => {
          wholeNumber('top', top);
          const info = await inspect(file, top);
          process.stdout.write(json ? `${JSON.stringify(info, null, 2)}\n` : reportText(info));
          return EXIT.ok;
        }),
    )
    .command<VerifyArguments>(
      'verify <files..>',
      'Read a file to its end: checksum, every encoding, repeated members, groups of streams',
      (command) =>
        command
          .positional('files', {
            type: 'string',
            array: true,
            demandOption: true,
            describe: 'RDB files',
          })
          .example('$0 rdb verify backup/*.rdb', 'each file, and what is wrong with it')
          .epilogue('Exit code 0: all are sound; 3: one is not, told with file, offset, key and reason.'),
      ({ files }) =>
        ended(async () => {
          let sound = true;
          for (const path of files) sound = (await verifyFile(path)) && sound;
          return sound ? EXIT.ok : EXIT.data;
        }),
    )
    .command<ConvertArguments>(
      'convert <file> <output>',
      'Write the file anew as version 10, which Redis 7.0 and later load',
      (command) =>
        file(command)
          .positional('output', {
            type: 'string',
            demandOption: true,
            describe: 'The new file; may be the same, and is replaced when the new one is whole and synced',
          })
          .option('compression', { type: 'boolean', default: true, describe: 'Compress strings' })
          .option('checksum', { type: 'boolean', default: true, describe: 'End with a checksum' })
          .option('lossy', {
            type: 'boolean',
            default: false,
            describe: 'Leave out what version 10 has no place for: module data, deadlines of hash fields',
          })
          .example('$0 rdb convert redis-8.rdb redis-7.rdb', 'for an older server')
          .example('$0 rdb convert --no-compression dump.rdb plain.rdb', 'quick to load'),
      ({ file, output, ...options }) =>
        ended(async () => {
          process.stderr.write(`${await convertFile(file, output, options)}\n`);
          return EXIT.ok;
        }),
    )
    .command<DumpArguments>(
      'dump <file>',
      'Print the keys as JSON, one a line',
      (command) =>
        file(command)
          .option('match', { type: 'string', describe: 'Only keys that this glob pattern matches' })
          .option('db', { type: 'number', describe: 'Only keys of this database' })
          .option('type', { type: 'string', describe: 'Only keys of these types, by comma' })
          .example('$0 rdb dump dump.rdb | jq -r .key', 'the names of all keys')
          .example("$0 rdb dump --match 'user:*' --type hash dump.rdb", 'some keys')
          .epilogue('Bytes that are no UTF-8 are printed as {"base64": "…"}; docs/rdb.md has the lines.'),
      ({ file, ...filter }) =>
        ended(() => {
          if (filter.db !== undefined) wholeNumber('db', filter.db);
          return dumpFile(file, filter);
        }),
    )
    .demandCommand(1, 'rdb: info, verify, convert or dump')
    .strict();

/** Never called: one of the commands above is, or an error has been told. */
export const handler = (): Promise<void> => Promise.resolve();

function wholeNumber(option: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) throw new UsageError(`--${option} must be a whole number`);
}

/** As `exitWith`; a damaged file is an error of the data. */
function ended(command: () => Promise<number>): Promise<void> {
  return exitWith(async () => {
    try {
      return await command();
    } catch (error) {
      if (error instanceof FileError) throw new UsageError(error.message, EXIT.data);
      throw error;
    }
  });
}
