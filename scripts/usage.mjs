/** A script's opening comment is its manual. */
import { readFileSync } from 'node:fs';

/** Prints the comment that the script at `url` opens with, and ends. */
export function showUsage(url) {
  const [, comment] = /\/\*\*\n([\s\S]*?)\n \*\//.exec(readFileSync(new URL(url), 'utf8'));
  console.log(comment.replace(/^ \* ?/gm, ''));
  process.exit(0);
}
