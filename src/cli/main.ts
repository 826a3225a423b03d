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

/** A fault of the command line: one line that says where help is. */
function refuse(message: string): never {
  const [word] = hideBin(process.argv);
  const known = commands.some(({ command }) => String(command).split(' ')[0] === word);
  console.error(`ardent: ${message}; see ardent ${known ? `${word} ` : ''}--help`);
  process.exit(EXIT.usage);
}

try {
  await yargs(hideBin(process.argv))
    .scriptName('ardent')
    .version(version)
    .command(commands)
    .demandCommand(1, 'no command given')
    .strict()
    .fail((message: string | null, error: Error | undefined, program) => {
      if (error) throw error;
      if (hideBin(process.argv).length === 0) program.showHelp('error');
      refuse(message ?? 'wrong arguments');
    })
    .wrap(100)
    .help()
    .parseAsync();
} catch (error) {
  // Some faults of the command line come as yargs' own error, past `fail`.
  if ((error as Error).name !== 'YError') throw error;
  refuse((error as Error).message);
}
