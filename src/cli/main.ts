#!/usr/bin/env node
/** The command line. Each command is a module of its own, loaded only when it is asked for. */
import { readFileSync } from 'node:fs';
import yargs from 'yargs';
import { hideBin } from 'yargs/helpers';
import { commands } from './commands.ts';
import { EXIT } from './exit-codes.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

await yargs(hideBin(process.argv))
  .scriptName('ardent')
  .version(version)
  .command(commands)
  .demandCommand(1, 'no command given')
  .strict()
  .fail((message: string | null, error: Error | undefined, program) => {
    if (error) throw error;
    const [word] = hideBin(process.argv);
    if (word === undefined) program.showHelp('error');
    const known = commands.some(({ command }) => String(command).split(' ')[0] === word);
    console.error(`ardent: ${message}; see ardent ${known ? `${word} ` : ''}--help`);
    process.exit(EXIT.usage);
  })
  .wrap(100)
  .help()
  .parseAsync();
