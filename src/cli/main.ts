#!/usr/bin/env node
/** The command line. Each command is a module of its own, loaded only when it is asked for. */
import { readFileSync } from 'node:fs';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { commands } from './commands.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

await yargs(hideBin(process.argv))
  .scriptName('ardent')
  .version(version)
  .command(commands)
  .demandCommand(1, 'Name a command; `ardent --help` lists them.')
  .strict()
  .showHelpOnFail(false, 'See --help.')
  .wrap(100)
  .help()
  .parseAsync();
