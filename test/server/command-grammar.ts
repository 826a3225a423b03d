/** Commands made at random from what COMMAND DOCS says of their arguments, sound ones and others. */
import { parseReply, type Dice, type ReplyTree } from './replies.ts';

interface Argument {
  name: string;
  type: string;
  token: string | undefined;
  optional: boolean;
  multiple: boolean;
  /** The token stands before each of them. */
  tokenEach: boolean;
  parts: Argument[];
}

interface Grammar {
  name: string;
  group: string;
  parts: Argument[];
}

/** Replies that depend on time, chance or the server itself, commands that block for good or are for connections. */
const LEFT_OUT = new Set(
  (
    'acl asking auth bgrewriteaof bgsave client cluster command config debug discard dump eval eval_ro evalsha evalsha_ro exec ' +
    'failover fcall fcall_ro flushall flushdb function hello hrandfield info lastsave latency lolwut memory migrate module ' +
    'monitor multi object psubscribe psync publish pubsub punsubscribe quit randomkey readonly readwrite replconf replicaof ' +
    'reset restore restore-asking role save script select shutdown slaveof slowlog spop spublish srandmember ssubscribe ' +
    'subscribe sunsubscribe swapdb sync time unsubscribe unwatch wait watch xinfo zrandmember'
  ).split(' '),
);

const KEYS: Readonly<Record<string, readonly string[]>> = {
  string: ['s1', 's2', 'n1'],
  bitmap: ['s1', 'b1', 'n1'],
  list: ['l1', 'l2', 'l3'],
  hash: ['h1', 'h2'],
  'sorted-set': ['z1', 'z2', 'z3'],
  set: ['e1', 'e2', 'e3'],
  stream: ['x1', 'x2'],
  generic: ['s1', 'l1', 'h1', 'z1', 'e1', 'x1', 'n1', 'b1'],
};
/** Every key that commands may touch. */
export const ALL_KEYS: readonly string[] = [
  ...new Set(Object.values(KEYS).flat()),
  'none',
  'none2',
  '',
  'k\xff',
];

const INTEGERS = '0 1 -1 2 3 -2 4 5 10 -3 100 7'.split(' ');
const ODD_INTEGERS = [
  ...'2147483648 -2147483649 9223372036854775807 -9223372036854775808 9223372036854775808 1.5 abc'.split(' '),
  ...['', '+1', '01', ' 1', '0x10', '1e3', '-0', '4294967296', '99999999999999999999'],
];
const SECONDS = '100000 200000 300000 0 -1 9223372036854775807 9223372036854775 abc 1e3 600000'.split(' ');
const INSTANTS = '0 -1 99999999999 abc 1 4102444800 4102444800000'.split(' ');
const DOUBLES = '0 1 -1 1.5 2 3.14 10 -2.5'.split(' ');
const ODD_DOUBLES = [
  ...'inf -inf +inf nan 1e400 -1e400 0x1p3 1e-320 abc 5.0 1e5 (1 17976931348623157e292 0.1'.split(' '),
  ...['1e17', '123456789012345678', '-0', 'Infinity', '', ' 1', '3.0000000000000001'],
];
const TEXTS = 'a b c d foo bar 1 2 10 -5 3.5 A aa ab'.split(' ');
const ODD_TEXTS = [
  '',
  '*',
  '\xff',
  'x'.repeat(100),
  '\r\n',
  'y'.repeat(20),
  'two words',
  'LIMIT',
  'GET',
  'NX',
];
const PATTERNS = [
  '*',
  'a*',
  '?',
  '[ab]',
  'h*',
  '[',
  '\\',
  '*->a',
  'nosort',
  '#',
  'w_*',
  '[^a]',
  'a\\*',
  '[a-',
];
const BOUNDS = '- + [a (a [b (c -inf +inf inf (1 (2 0 1 2 3 -1 [ ( abc (inf [aa (nan 1.5 10'.split(' ');
const IDS = [
  ...'0 1 2-1 5-* 1-1 - + $ > 0-0 0-1 18446744073709551615-18446744073709551615 1- -1 abc 1-1-1 (1-1 ('.split(
    ' ',
  ),
  ...['5', '10', '7-0', '', '(-', '3-3', '20-1', '100-5'],
];
const TYPES = 'u8 i8 u1 i64 u63 u64 i65 i5 u0 x8 i u16'.split(' ');
const BIT_OFFSETS = '0 1 #1 7 8 100 -1 # 4294967296 abc #-1 33'.split(' ');
/** A string of as many bytes would cost memory and nothing else. */
const OFFSET_MAX = 100_000;

/** What both servers begin with. */
export const START: readonly (readonly string[])[] = [
  ['SET', 's1', 'hello world'],
  ['SET', 's2', '\xffabc'],
  ['SET', 'n1', '10'],
  ['SET', 'b1', '\xf0\x0f\xaa'],
  ['RPUSH', 'l1', 'a', 'b', 'c', 'a', '1', '10', '2'],
  ['RPUSH', 'l2', '3', '1', '2'],
  ['SADD', 'e1', 'a', 'b', 'c', 'foo'],
  ['SADD', 'e2', '1', '2', '3', '10'],
  ['SADD', 'e3', 'b', 'c', 'd', '2'],
  ['HSET', 'h1', 'a', '1', 'b', '2', 'f', 'foo'],
  ['HSET', 'h2', 'n', '10', 'd', '3.5'],
  ['ZADD', 'z1', '1', 'a', '2', 'b', '3', 'c', '10', 'd'],
  ['ZADD', 'z2', '0', 'a', '0', 'aa', '0', 'ab', '0', 'b', '0', 'c'],
  ['ZADD', 'z3', '-inf', 'x', '1.5', 'a', 'inf', 'y', '3', 'b'],
  ['XADD', 'x1', '1-1', 'a', '1'],
  ['XADD', 'x1', '2-1', 'b', '2', 'c', '3'],
  ['XADD', 'x1', '3-3', 'a', '4'],
  ['XGROUP', 'CREATE', 'x1', 'g1', '0'],
  ['XREADGROUP', 'GROUP', 'g1', 'c1', 'COUNT', '2', 'STREAMS', 'x1', '>'],
  ['XADD', 'x2', '5-0', 'f', 'v'],
];

export class CommandMaker {
  private readonly grammars: readonly Grammar[];
  private readonly dice: Dice;

  /** `docs` is a server's reply to COMMAND DOCS; only commands that `has` are made. */
  constructor(docs: string, has: (command: string) => boolean, dice: Dice) {
    this.dice = dice;
    this.grammars = grammarsOf(parseReply(docs)).filter(({ name }) => {
      const [command] = name.split(' ');
      return has(command) && !LEFT_OUT.has(command);
    });
  }

  get count(): number {
    return this.grammars.length;
  }

  /** A command; one of eight is not what the grammar says. */
  next(): string[] {
    const { dice } = this;
    for (;;) {
      const grammar = dice.pick(this.grammars);
      const args = this.spoil(this.sequence(grammar.parts, grammar));
      const command = [...grammar.name.split(' '), ...args];
      if (grammar.name === 'xadd' && command.includes('*')) continue;
      // The order of members of one weight is a set's own.
      const words = command.map((word) => word.toLowerCase());
      if (words[0].startsWith('sort') && words.includes('by')) continue;
      const sizes = /^(setbit|setrange|bitfield)$/.test(grammar.name);
      if (sizes && command.some((word) => Math.abs(Number(word.replace('#', ''))) > OFFSET_MAX)) continue;
      if (dice.chance(0.3)) command[0] = command[0].toUpperCase();
      return command;
    }
  }

  private spoil(args: string[]): string[] {
    const { dice } = this;
    if (args.length === 0 || !dice.chance(1 / 8)) return args;
    const at = dice.below(args.length);
    switch (dice.below(5)) {
      case 0:
        args.splice(at, 1);
        return args;
      case 1:
        args.splice(at, 0, dice.pick([...TEXTS, ...ODD_TEXTS, ...INTEGERS, ...ODD_INTEGERS]));
        return args;
      case 2:
        return args.slice(0, at);
      case 3:
        return [...args, ...args.slice(-2)];
      default:
        [args[at], args[args.length - 1]] = [args[args.length - 1], args[at]];
        return args;
    }
  }

  private sequence(parts: readonly Argument[], grammar: Grammar): string[] {
    const { dice } = this;
    const out: string[] = [];
    let keys = 0;
    for (const part of parts) {
      if (part.optional && dice.chance(0.55)) continue;
      let times = part.multiple ? 1 + dice.below(1 + dice.below(4)) : 1;
      if (part.name === 'numkeys' && dice.chance(0.85)) {
        keys = 1 + dice.below(3);
        out.push(String(keys));
        continue;
      }
      if (keys > 0 && part.type === 'key') times = keys;
      for (let i = 0; i < times; i++) {
        if (part.token !== undefined && (i === 0 || part.tokenEach))
          out.push(dice.chance(0.5) ? part.token : part.token.toLowerCase());
        if (part.type === 'oneof') out.push(...this.sequence([dice.pick(part.parts)], grammar));
        else if (part.type === 'block') out.push(...this.sequence(part.parts, grammar));
        else if (part.type !== 'pure-token') out.push(this.value(part, grammar));
      }
    }
    return out;
  }

  private value({ name, type }: Argument, { name: command, group }: Grammar): string {
    const { dice } = this;
    const mostly = (share: number, usual: readonly string[], odd: readonly string[]): string =>
      dice.pick(dice.chance(share) ? usual : odd);
    if (type === 'key') return mostly(0.75, KEYS[group] ?? ALL_KEYS, ALL_KEYS);
    if (name === 'timeout') return dice.pick(['0.01', '0.005', '-0.1', 'abc']);
    if (name === 'milliseconds' && group === 'stream') return dice.pick(['1', '5', '-1', 'abc']);
    if (name === 'cursor') return dice.pick(['0', '0', 'abc', '1.5']);
    if (type === 'unix-time') return dice.pick(INSTANTS);
    if (type === 'integer' && /expire|^p?setex$|^set$|^getex$/.test(command)) return dice.pick(SECONDS);
    if (group === 'stream') {
      if (/^(id|start|end|.*-id|lastid|threshold|ms|id-or-.*)$/.test(name)) return dice.pick(IDS);
      if (/group/.test(name)) return dice.pick(['g1', 'g1', 'g2', 'gx']);
      if (/consumer/.test(name)) return dice.pick(['c1', 'c2', 'c3']);
    }
    if (group === 'sorted-set' && /^(min|max|start|stop|end)$/.test(name))
      return mostly(0.5, BOUNDS, INTEGERS);
    if (/encoding/.test(name)) return dice.pick(TYPES);
    if (name === 'offset' && group === 'bitmap') return dice.pick(BIT_OFFSETS);
    if (name === 'operation' && command === 'bitop') return dice.pick(['and', 'OR', 'xor', 'not', 'nor']);
    if (type === 'integer') return mostly(0.7, INTEGERS, ODD_INTEGERS);
    if (type === 'double' || name === 'increment') return mostly(0.6, DOUBLES, ODD_DOUBLES);
    if (type === 'pattern') return dice.pick(PATTERNS);
    return mostly(0.75, TEXTS, ODD_TEXTS);
  }
}

function entries(tree: ReplyTree): [string, ReplyTree][] {
  const elements = typeof tree === 'string' ? [] : tree.elements;
  return elements.flatMap((element, i) =>
    i % 2 === 0 ? [[text(element), elements[i + 1]] as [string, ReplyTree]] : [],
  );
}

function text(tree: ReplyTree | undefined): string {
  return typeof tree === 'string' ? tree.slice(1) : '';
}

function grammarsOf(docs: ReplyTree): Grammar[] {
  return entries(docs).flatMap(([name, about]) => {
    const fields = new Map(entries(about));
    const subcommands = fields.get('subcommands');
    if (subcommands !== undefined)
      return grammarsOf(subcommands).map((grammar) => ({ ...grammar, name: grammar.name.replace('|', ' ') }));
    return [{ name, group: text(fields.get('group')), parts: argumentsOf(fields.get('arguments')) }];
  });
}

function argumentsOf(tree: ReplyTree | undefined): Argument[] {
  if (tree === undefined || typeof tree === 'string') return [];
  return tree.elements.map((element) => {
    const fields = new Map(entries(element));
    const flags = fields.get('flags');
    const has = (flag: string): boolean =>
      flags !== undefined && typeof flags !== 'string' && flags.elements.some((each) => text(each) === flag);
    return {
      name: text(fields.get('name')),
      type: text(fields.get('type')),
      token: text(fields.get('token')) || undefined,
      optional: has('optional'),
      multiple: has('multiple'),
      tokenEach: has('multiple_token'),
      parts: argumentsOf(fields.get('arguments')),
    };
  });
}
