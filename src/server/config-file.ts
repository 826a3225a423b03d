/** Configuration files in redis.conf's syntax: one parameter a line, `#` comments, `include`. */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { splitWords } from '../resp/request-parser.ts';
import { Config, ConfigError, findParameter, nearestParameter } from './config.ts';

/** Files may include files, but not for ever. */
const INCLUDE_DEPTH_MAX = 16;

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EISDIR: 'it is a directory',
  EACCES: 'the system does not allow it',
};

/** A line of a configuration file cannot be used; `message` names file and line. */
export class ConfigFileError extends Error {}

/** Reads the file into `config`. Later lines win; lists such as `save` add up within a file. */
export function readConfigFile(config: Config, file: string): void {
  readFile(config, file, '', 0);
}

/** `includedAt`: where another file names it, with a colon behind. */
function readFile(config: Config, file: string, includedAt: string, depth: number): void {
  if (depth > INCLUDE_DEPTH_MAX) throw new ConfigFileError(`${file}: includes are nested too deep`);
  let text: string;
  try {
    text = readFileSync(file, 'latin1');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = REASONS[code ?? ''] ?? message;
    throw new ConfigFileError(`${includedAt}cannot read configuration file ${file}: ${reason}`);
  }
  text.split('\n').forEach((line, i) => {
    const where = `${file}:${i + 1}`;
    const trimmed = line.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const parts = splitWords(trimmed);
    if (parts === undefined) throw new ConfigFileError(`${where}: quotes do not balance`);
    const [name, ...values] = parts;
    if (name.toLowerCase() === 'include') {
      for (const included of values)
        readFile(config, path.resolve(path.dirname(file), included), `${where}: `, depth + 1);
      return;
    }
    if (findParameter(name) === undefined) {
      const near = nearestParameter(name);
      const hint = near === undefined ? '' : `; did you mean '${near}'?`;
      throw new ConfigFileError(`${where}: unknown parameter '${name}'${hint}`);
    }
    if (values.length === 0) throw new ConfigFileError(`${where}: '${name}' has no value`);
    try {
      config.load(name, joinValues(name, values));
    } catch (error) {
      if (error instanceof ConfigError) throw new ConfigFileError(`${where}: ${error.message}`);
      throw error;
    }
  });
}

/** Several words belong to a parameter that takes a list; to any other they are too many. */
function joinValues(name: string, values: readonly string[]): string {
  const parameter = findParameter(name);
  if (parameter !== undefined && parameter.kind !== 'words' && values.length > 1)
    throw new ConfigError(name, 'too many values', `'${name}' takes one value`);
  return values.join(' ');
}

const quoteIfNeeded = (value: string): string =>
  value === '' || /["'\s\\#]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : value;

/**
 * CONFIG REWRITE: the file keeps its comments and order; lines of parameters get their values of
 * now, parameters changed since that have no line are added at the end. Replaced in one step.
 */
export function rewriteConfigFile(config: Config, file: string): void {
  const written = new Set<string>();
  const lines: string[] = [];
  const render = (name: string): string => {
    const parameter = findParameter(name)!;
    const value = config.get(parameter.name);
    return `${name} ${parameter.kind === 'words' && value !== '' ? value : quoteIfNeeded(value)}`;
  };
  for (const line of readFileSync(file, 'latin1').split('\n')) {
    const [name] = splitWords(line.trim()) ?? [];
    const parameter = name === undefined || name.startsWith('#') ? undefined : findParameter(name);
    if (parameter === undefined) {
      lines.push(line);
    } else if (!written.has(parameter.name)) {
      written.add(parameter.name);
      lines.push(render(name));
    }
  }
  while (lines.at(-1) === '') lines.pop();
  for (const name of config.changed) if (!written.has(name)) lines.push(render(name));
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, `${lines.join('\n')}\n`, { encoding: 'latin1', flush: true });
  renameSync(temporary, file);
}
