/**
 * The arguments of a command as COMMAND DOCS tells them, read from one line in the notation of manuals:
 *
 *     key value [condition(NX|XX)] [GET] [expiration(EX seconds|PX milliseconds|KEEPTTL)]
 *
 *     name            a value; its type follows from the name (TYPES), or is written `name:type`
 *     name@2          said of keys, or patterns of keys, by the command's key spec of that index; keys that
 *                     do not say it have the first, the second and so on
 *     TOKEN           a word that stands for itself; `name=TOKEN` when it is called otherwise
 *     TOKEN name      a value after a word
 *     name(a|b)       one of several; name(a b): several together
 *     [a]             may be absent
 *     a...            may be repeated; [TOKEN a]... and {TOKEN a}...: with the word each time
 */

export type ArgumentType =
  'string' | 'integer' | 'double' | 'key' | 'pattern' | 'unix-time' | 'pure-token' | 'oneof' | 'block';

export interface Argument {
  name: string;
  type: ArgumentType;
  token?: string;
  optional: boolean;
  multiple: boolean;
  /** The token is repeated with the value. */
  multipleToken: boolean;
  /** Index of the key spec that describes it. */
  keySpec?: number;
  /** Of `oneof` and `block`. */
  arguments?: Argument[];
}

const words = (type: ArgumentType, names: string): [string, ArgumentType][] =>
  names.split(' ').map((name) => [name, type]);

/** Types of values by their names; what is not here is a string. */
const TYPES = new Map<string, ArgumentType>([
  ...words('key', 'key source destination newkey key1 key2 dst src destkey sourcekey'),
  ...words('integer', 'offset numkeys count bit start end milliseconds slot port increment destination-db'),
  ...words('integer', 'cursor limit ms index seconds ttl frequency protover len stop numreplicas rank'),
  ...words('integer', 'entries_added entries_read num-matches index1 index2 version weight client-id db'),
  ...words('integer', 'decrement bits config-epoch cluster_bus_port start-slot end-slot'),
  ...words('double', 'timeout longitude latitude radius width height score'),
  ...words('pattern', 'pattern'),
  ...words('unix-time', 'unix-time-seconds unix-time-milliseconds'),
]);

const TYPED = /^(.*?)(?::(string|integer|double|key))?(?:@(\d+))?$/;
const LEXEME = /\.\.\.|[[\](){}|]|[^\s[\](){}|.]+/g;

class Parser {
  private readonly lexemes: readonly string[];
  private at = 0;
  private keys = 0;

  constructor(text: string) {
    this.lexemes = text.match(LEXEME) ?? [];
  }

  private peek(): string | undefined {
    return this.lexemes[this.at];
  }

  /** Arguments up to `end`, which is consumed; with '|' between them when they are alternatives. */
  sequence(end: string | undefined): { arguments: Argument[]; alternatives: boolean } {
    const found: Argument[] = [];
    let alternatives = false;
    while (this.peek() !== end) {
      if (this.peek() === '|') {
        alternatives = true;
        this.at++;
      }
      found.push(this.argument());
    }
    this.at++;
    return { arguments: found, alternatives };
  }

  private argument(): Argument {
    const bracket = this.peek() === '[' ? ']' : this.peek() === '{' ? '}' : '';
    if (bracket !== '') this.at++;
    const argument = this.value();
    if (this.repeated()) argument.multiple = true;
    if (bracket === '') return argument;
    this.at++;
    argument.optional = bracket === ']';
    if (this.repeated()) argument.multiple = argument.multipleToken = true;
    return argument;
  }

  private repeated(): boolean {
    if (this.peek() !== '...') return false;
    this.at++;
    return true;
  }

  private value(): Argument {
    const word = this.lexemes[this.at++];
    const [name, token] = word.includes('=')
      ? [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)]
      : [word.toLowerCase(), word];
    if (word.includes('=') || (/^[A-Z]/.test(word) && !this.tokenOfValue()))
      return { name, type: 'pure-token', token, ...PLAIN };
    if (/^[A-Z]/.test(word)) return { ...this.value(), token: word };
    if (this.peek() === '(') {
      this.at++;
      const inner = this.sequence(')');
      return { name, type: inner.alternatives ? 'oneof' : 'block', ...PLAIN, arguments: inner.arguments };
    }
    const [, plain, type, keySpec] = TYPED.exec(word)!;
    const argument: Argument = {
      name: plain,
      type: (type as ArgumentType | undefined) ?? TYPES.get(plain) ?? 'string',
      ...PLAIN,
    };
    if (keySpec !== undefined) argument.keySpec = Number(keySpec);
    else if (argument.type === 'key') argument.keySpec = this.keys++;
    return argument;
  }

  /** The word before belongs to the value that follows. */
  private tokenOfValue(): boolean {
    const next = this.peek();
    return next !== undefined && /^[a-z]/.test(next);
  }
}

const PLAIN = { optional: false, multiple: false, multipleToken: false };

export function parseSyntax(text: string): Argument[] {
  return new Parser(text).sequence(undefined).arguments;
}
