/**
 * Command lines with placeholders, as a user writes them:
 *
 *   SET {key} {value}
 *   HSET user:{index zipfian:0.99 1000000} name {value 64-1024}
 *
 * | placeholder                    | becomes                                                       |
 * |--------------------------------|---------------------------------------------------------------|
 * | {key [distribution] [N]}       | key:000000000042, a key number drawn from [0, N)               |
 * | {index [distribution] [N]}     | 000000000042, the number alone, for key names of your own      |
 * | {same}                         | the number drawn last in this operation                       |
 * | {value [sizes]}                | random bytes: 128, 64-1024 or 64:70,1024:30                    |
 * | {int N}, {int A B}             | a decimal number from [0, N) or [A, B)                         |
 * | {range N W}                    | two arguments: a number from [0, N - W] and the one W - 1 above |
 * | __rand_int__                   | redis-benchmark's: 12 digits, uniform                          |
 *
 * Distribution, N and sizes default to the options of the run. `{same}` lets one operation of several
 * commands (separated by `;`) stay on one key.
 */
import { parseDistribution, type Distribution } from './distribution.ts';
import { parseSizes, type SizeSpec } from './values.ts';

/** Digits of a key number, as redis-benchmark writes it. */
export const KEY_DIGITS = 12;

export type Piece =
  | { kind: 'text'; bytes: Buffer }
  | { kind: 'index'; distribution: Distribution; size: number }
  | { kind: 'same' }
  | { kind: 'value'; sizes: SizeSpec }
  | { kind: 'int'; low: number; high: number }
  | { kind: 'range'; size: number; width: number };

/** One argument. `range` stands alone and gives two. */
export type Argument = Piece[];

export interface CommandTemplate {
  /** As written. */
  line: string;
  args: Argument[];
}

export interface CommandDefaults {
  distribution: Distribution;
  /** Keys in the key space. */
  keyspace: number;
  values: SizeSpec;
}

export class CommandLineError extends Error {
  constructor(line: string, problem: string) {
    super(`command "${line}": ${problem}`);
    this.name = 'CommandLineError';
  }
}

/** Splits at blanks outside quotes and braces. Inside "..." `\xHH`, `\n`, `\r`, `\t`, `\"`, `\\` are escapes. */
export function splitCommandLine(line: string): string[] {
  const words: string[] = [];
  let word: string | null = null;
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (quote === '}') {
      word += c;
      if (c === '}') quote = '';
    } else if (quote !== '') {
      if (c === quote) quote = '';
      else if (c === '\\' && quote === '"' && i + 1 < line.length) {
        const escaped = line[++i];
        const hex = /^[0-9a-fA-F]{2}/.exec(line.slice(i + 1));
        if (escaped === 'x' && hex !== null) {
          word += String.fromCharCode(parseInt(hex[0], 16));
          i += 2;
        } else word += { n: '\n', r: '\r', t: '\t' }[escaped] ?? escaped;
      } else word += c;
    } else if (c === ' ' || c === '\t') {
      if (word !== null) words.push(word);
      word = null;
    } else if (c === '"' || c === "'") {
      quote = c;
      word ??= '';
    } else {
      if (c === '{') quote = '}';
      word = (word ?? '') + c;
    }
  }
  if (quote !== '')
    throw new CommandLineError(line, quote === '}' ? 'a { is not closed' : 'a quote is not closed');
  if (word !== null) words.push(word);
  return words;
}

function wholeNumber(line: string, given: string | undefined, name: string): number {
  const value = Number(given);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new CommandLineError(line, `${name}: "${given}" is no number`);
  return value;
}

function parsePlaceholder(line: string, inside: string, defaults: CommandDefaults): Piece[] {
  const [name, ...options] = inside.trim().split(/\s+/);
  const expect = (most: number): void => {
    if (options.length > most) throw new CommandLineError(line, `too many words in {${inside}}`);
  };
  try {
    switch (name) {
      case 'key':
      case 'index': {
        expect(2);
        const last = options.at(-1);
        const size = last !== undefined && /^\d+$/.test(last) ? Number(options.pop()) : defaults.keyspace;
        if (size < 1 || size >= 10 ** KEY_DIGITS)
          throw new CommandLineError(line, `{${inside}}: ${size} keys`);
        const distribution = options[0] === undefined ? defaults.distribution : parseDistribution(options[0]);
        const index: Piece = { kind: 'index', distribution, size };
        return name === 'key' ? [{ kind: 'text', bytes: Buffer.from('key:') }, index] : [index];
      }
      case 'same':
        expect(0);
        return [{ kind: 'same' }];
      case 'value':
        expect(1);
        return [
          { kind: 'value', sizes: options[0] === undefined ? defaults.values : parseSizes(options[0]) },
        ];
      case 'int': {
        expect(2);
        const numbers = options.map((option) => wholeNumber(line, option, 'int'));
        const [low, high] = numbers.length === 2 ? numbers : [0, numbers[0]];
        if (!(high > low)) throw new CommandLineError(line, `{${inside}} is empty`);
        return [{ kind: 'int', low, high }];
      }
      case 'range': {
        expect(2);
        const size = wholeNumber(line, options[0], 'range');
        const width = wholeNumber(line, options[1], 'range');
        if (width < 1 || width > size)
          throw new CommandLineError(line, `{${inside}}: width ${width} of ${size}`);
        return [{ kind: 'range', size, width }];
      }
    }
  } catch (error) {
    if (error instanceof RangeError) throw new CommandLineError(line, error.message);
    throw error;
  }
  throw new CommandLineError(line, `unknown placeholder {${inside}}; key, index, same, value, int, range`);
}

export function parseCommandLine(line: string, defaults: CommandDefaults): CommandTemplate {
  const words = splitCommandLine(line);
  if (words.length === 0) throw new CommandLineError(line, 'it is empty');
  const args = words.map((word) => {
    const pieces: Piece[] = [];
    for (const part of word.split(/(\{[^}]*\}|__rand_int__)/)) {
      if (part === '') continue;
      if (part === '__rand_int__') {
        pieces.push({ kind: 'index', distribution: parseDistribution('uniform'), size: defaults.keyspace });
      } else if (part.startsWith('{') && part.endsWith('}')) {
        pieces.push(...parsePlaceholder(line, part.slice(1, -1), defaults));
      } else pieces.push({ kind: 'text', bytes: Buffer.from(part, 'latin1') });
    }
    if (pieces.some((piece) => piece.kind === 'range') && pieces.length > 1) {
      throw new CommandLineError(line, '{range} must be an argument of its own');
    }
    if (pieces.length === 0) pieces.push({ kind: 'text', bytes: Buffer.alloc(0) });
    return pieces;
  });
  return { line, args };
}

/** The commands of one operation, separated by `;` outside quotes and braces. */
export function parseOperation(line: string, defaults: CommandDefaults): CommandTemplate[] {
  const commands: string[] = [];
  let from = 0;
  let quote = '';
  for (let i = 0; i <= line.length; i++) {
    const c = line[i];
    if (i === line.length || (c === ';' && quote === '')) {
      commands.push(line.slice(from, i).trim());
      from = i + 1;
    } else if (quote !== '') {
      if (c === quote) quote = '';
    } else if (c === '"' || c === "'") quote = c;
    else if (c === '{') quote = '}';
  }
  const templates = commands.map((command) => parseCommandLine(command, defaults));
  if (templates[0].args.flat().some((piece) => piece.kind === 'same')) {
    const first = templates[0].args.flat();
    const same = first.findIndex((piece) => piece.kind === 'same');
    if (!first.slice(0, same).some((piece) => piece.kind === 'index')) {
      throw new CommandLineError(line, '{same} before any {key} or {index}');
    }
  }
  return templates;
}
