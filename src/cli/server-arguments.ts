/** The words after `ardent server`, by redis-server's rules: lists take several values, numbers stay as written. */
import path from 'node:path';
import { readConfigFile } from '../server/config-file.ts';
import { Config, findParameter, nearestParameter } from '../server/config.ts';
import { UsageError } from './exit-codes.ts';

/** Reads `[file] --name value … --name=value`, later ones win. */
export function parseArguments(words: readonly string[]): Config {
  const config = new Config();
  const rest = [...words];
  if (rest.length > 0 && !rest[0].startsWith('--')) {
    const file = path.resolve(rest.shift()!);
    readConfigFile(config, file);
    config.file = file;
  }
  while (rest.length > 0) {
    const word = rest.shift()!;
    if (!word.startsWith('--')) throw new UsageError(`'${word}' is no parameter; parameters begin with --`);
    const equals = word.indexOf('=');
    const name = word.slice(2, equals < 0 ? undefined : equals);
    if (findParameter(name) === undefined) throw new UsageError(unknownParameter(name));
    const values = equals < 0 ? takeValues(name, rest) : [word.slice(equals + 1)];
    config.load(name, values.join(' '));
  }
  return config;
}

/** A list takes all words up to the next parameter, a switch may stand alone, others take one word. */
function takeValues(name: string, rest: string[]): string[] {
  const parameter = findParameter(name)!;
  const next = (): boolean => rest.length > 0 && !rest[0].startsWith('--');
  if (parameter.kind === 'boolean' && !next()) return ['yes'];
  if (!next())
    throw new UsageError(
      `--${name} needs a value${parameter.help === undefined ? '' : ` (${parameter.help})`}`,
    );
  const values = [rest.shift()!];
  while (parameter.kind === 'words' && next()) values.push(rest.shift()!);
  return values;
}

function unknownParameter(name: string): string {
  const near = nearestParameter(name);
  const hint = near === undefined ? '`ardent server --help` lists them' : `did you mean --${near}?`;
  return `unknown parameter --${name}; ${hint}`;
}
