/** The options of a script, whose opening comment is its manual. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/**
 * The values of `options` (as `parseArgs` has them) on the command line. With `--help` prints the comment that the
 * script at `url` opens with, and ends; what it does not understand ends it with one line and exit code 1.
 */
export function readOptions(url, options) {
  let values;
  try {
    ({ values } = parseArgs({
      options: { ...options, help: { type: 'boolean', short: 'h' } },
      allowNegative: true,
    }));
  } catch (error) {
    if (!error.code?.startsWith('ERR_PARSE_ARGS')) throw error;
    const [sentence] = error.message.split('. ');
    console.error(`${path.basename(fileURLToPath(url))}: ${sentence}; --help lists the options`);
    process.exit(1);
  }
  if (!values.help) return values;
  const [, comment] = /\/\*\*\n([\s\S]*?)\n \*\//.exec(readFileSync(fileURLToPath(url), 'utf8'));
  console.log(comment.replace(/^ \* ?/gm, ''));
  process.exit(0);
}
