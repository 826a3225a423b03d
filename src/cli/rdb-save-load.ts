/** `ardent rdb-save-load`: how long servers take to load and save files that exist. */
import { readdirSync, statSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import type { Argv } from 'yargs';
import { inspectFile } from '../bench/save-load/inspect.ts';
import type { SaveLoadPlan } from '../bench/save-load/run.ts';
import { lastGiven } from './bench-options.ts';
import { EXIT, exitWith, UsageError } from './exit-codes.ts';
import {
  checkNumbers,
  runTool,
  saveLoadOptions,
  serversOf,
  type SaveLoadArguments,
} from './save-load-run.ts';

interface FilesArguments extends SaveLoadArguments {
  rdb?: string[];
  rdbDir?: string[];
}

export const builder = (yargs: Argv): Argv<FilesArguments> =>
  saveLoadOptions(yargs)
    .option('rdb', { type: 'string', array: true, describe: 'An RDB file; may be given several times' })
    .option('rdb-dir', {
      type: 'string',
      array: true,
      describe: 'A directory, searched with all below it for *.rdb',
    })
    .example('$0 rdb-save-load --rdb dump.rdb', 'one file on every engine and Redis')
    .example('$0 rdb-save-load --rdb-dir backups --repeats 3', 'every file below backups, medians of three')
    .example(
      '$0 rdb-save-load --rdb dump.rdb --targets redis --targets "other=valkey-server --port {port} --dir {dir}"',
      'another server by its command line',
    )
    .epilogue(
      'Every load and save happens in a fresh server that is cleaned up afterwards. A file is read whole before, and one that is damaged is refused with its place.',
    ) as unknown as Argv<FilesArguments>;

export const handler = (args: FilesArguments): Promise<void> => exitWith(() => run(lastGiven(args)));

/** Files as given and those found in directories, each once, with the names they are shown by. */
function filesOf(args: FilesArguments): { path: string; label: string }[] {
  const files = new Map<string, string>();
  for (const path of args.rdb ?? []) {
    if (!statSync(path).isFile()) throw new UsageError(`--rdb ${path}: not a file`);
    files.set(resolve(path), basename(path));
  }
  for (const directory of args.rdbDir ?? []) {
    const found = readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.rdb'))
      .map((entry) => resolve(join(entry.parentPath, entry.name)))
      .sort();
    if (found.length === 0) throw new UsageError(`--rdb-dir ${directory}: there is no .rdb file in it`);
    for (const path of found) if (!files.has(path)) files.set(path, relative(directory, path));
  }
  if (files.size === 0) throw new UsageError('no file is given; --rdb FILE or --rdb-dir DIR');
  return [...files].map(([path, label]) => ({ path, label }));
}

async function run(args: FilesArguments): Promise<number> {
  checkNumbers(args);
  const servers = serversOf(args);
  const dataSets: SaveLoadPlan['dataSets'] = [];
  const notes: string[] = [];
  const ids = new Set<string>();
  let damaged = false;
  for (const { path, label } of filesOf(args)) {
    try {
      const content = await inspectFile(path);
      if (content.modules > 0)
        notes.push(`${label}: ${content.modules} values of modules, which servers without them refuse`);
      if (content.expired > 0)
        notes.push(`${label}: ${content.expired} keys have expired and are not expected after a load`);
      let id = label;
      for (let n = 2; ids.has(id); n++) id = `${label}#${n}`;
      ids.add(id);
      dataSets.push({
        info: {
          ...{ id, label: id, type: null, tierBytes: null },
          ...{ valueLength: content.meanValueBytes, keys: content.keys, fileBytes: content.bytes, path },
        },
        source: { file: path },
      });
    } catch (error) {
      damaged = true;
      process.stderr.write(`ardent: ${path}: ${(error as Error).message}\n`);
    }
  }
  if (dataSets.length === 0) return EXIT.data;
  const code = await runTool(
    { tool: 'rdb-save-load', title: 'Load and save of RDB files', servers, dataSets, notes, options: {} },
    args,
  );
  return code === EXIT.ok && damaged ? EXIT.data : code;
}
