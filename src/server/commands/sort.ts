/** SORT and SORT_RO. */
import { parseDouble } from '../../bytes/number.ts';
import { ByteSink } from '../../bytes/sink.ts';
import { Slice } from '../../bytes/slice.ts';
import { Type, WrongTypeError, type Database } from '../../store/api.ts';
import { CommandError, type Command, type KeyPosition } from '../command.ts';
import type { Context } from '../context.ts';
import { syntaxError } from '../errors.ts';
import { announceIfNew, lookedUp } from './announce.ts';
import { clampedInteger } from './arguments.ts';
import { keyAt, unknownKeys } from './key-specs.ts';

const NOT_NUMBERS = "ERR One or more scores can't be converted into double";

const STAR = 42;
const HASH = 35;

/** Bytes as a string, one character a byte: quick to compare, and in byte order. */
type Bytes = string;

interface Options {
  descending: boolean;
  alpha: boolean;
  offset: number;
  /** Negative: all. */
  count: number;
  by: Pattern | null;
  /** BY a constant: the order stays as it is. */
  unsorted: boolean;
  get: Pattern[];
  store: Slice | null;
}

/** `prefix*suffix` names a string, `prefix*suffix->field` a field of a hash, `#` the element itself. */
class Pattern {
  private readonly itself: boolean;
  private readonly prefix: Bytes;
  private readonly suffix: Bytes;
  private readonly field: Slice | null;
  /** Without a star the pattern names nothing. */
  readonly constant: boolean;

  constructor(slice: Slice) {
    const { u8, start, end } = slice;
    this.itself = end - start === 1 && u8[start] === HASH;
    const text = slice.latin1();
    const star = text.indexOf(String.fromCharCode(STAR));
    this.constant = star < 0;
    this.prefix = text.slice(0, Math.max(0, star));
    const rest = text.slice(star + 1);
    const arrow = rest.indexOf('->');
    const hasField = arrow >= 0 && arrow + 2 < rest.length;
    this.suffix = hasField ? rest.slice(0, arrow) : rest;
    this.field = hasField ? bytesSlice(rest.slice(arrow + 2)) : null;
  }

  /** The key that the pattern names for an element, null when it names none. */
  key(element: Bytes): Slice | null {
    return this.itself || this.constant ? null : bytesSlice(this.prefix + element + this.suffix);
  }

  /** Asks for the keys that it names for elements [start, end) together. */
  need(db: Database, elements: readonly Bytes[], start: number, end: number): void {
    db.need(end - start, (index) => this.key(elements[start + index]));
    if (this.field === null) return;
    const value = new Slice();
    db.needReads(end - start, (index) => this.resolve(db, elements[start + index], value));
  }

  /** Shows what the pattern names for an element; false when there is nothing. */
  resolve(db: Database, element: Bytes, into: Slice): boolean {
    if (this.itself) {
      into.setSlice(bytesSlice(element));
      return true;
    }
    const key = this.key(element);
    if (key === null) return false;
    if (this.field === null) return db.type(key) === Type.String && db.getString(key, into);
    return db.type(key) === Type.Hash && db.hash(key)!.get(this.field, into);
  }
}

function bytesSlice(bytes: Bytes): Slice {
  return Slice.from(Buffer.from(bytes, 'latin1'));
}

function parseOptions(context: Context, readOnly: boolean): Options {
  const options: Options = {
    descending: false,
    alpha: false,
    offset: 0,
    count: -1,
    by: null,
    unsorted: false,
    get: [],
    store: null,
  };
  const { args, argc } = context;
  for (let i = 2; i < argc; i++) {
    const left = argc - i - 1;
    if (context.is(i, 'asc')) {
      options.descending = false;
    } else if (context.is(i, 'desc')) {
      options.descending = true;
    } else if (context.is(i, 'alpha')) {
      options.alpha = true;
    } else if (context.is(i, 'limit') && left >= 2) {
      options.offset = clampedInteger(context, ++i);
      options.count = clampedInteger(context, ++i);
    } else if (!readOnly && context.is(i, 'store') && left >= 1) {
      options.store = args[++i];
    } else if (context.is(i, 'by') && left >= 1) {
      options.by = new Pattern(args[++i]);
      if (options.by.constant) options.unsorted = true;
    } else if (context.is(i, 'get') && left >= 1) {
      options.get.push(new Pattern(args[++i]));
    } else {
      throw syntaxError();
    }
  }
  return options;
}

/** The elements of the list, set or sorted set at args[1]. */
function elementsOf(context: Context, type: Type): Bytes[] {
  const { db } = context;
  const key = context.args[1];
  const elements: Bytes[] = [];
  const push = (element: Slice): boolean => {
    elements.push(element.latin1());
    return true;
  };
  if (type === Type.List) db.list(key)!.forEachFrom(0, 1, push);
  else if (type === Type.Set) db.set(key)!.forEachFrom(0, push);
  else if (type === Type.ZSet) db.zset(key)!.forEachFrom(0, 1, push);
  else if (type !== Type.None) throw new WrongTypeError();
  return elements;
}

/** First index and number of the elements that LIMIT leaves. */
function limits(length: number, { offset, count }: Options): { start: number; size: number } {
  const start = Math.min(Math.max(offset, 0), length);
  const size = count < 0 ? length - start : Math.min(count, length - start);
  return { start, size };
}

/** As strtod reads it: leading blanks do not count, and an empty string is 0. */
function score(slice: Slice): number {
  if (slice.length === 0) return 0;
  const trimmed = new Slice();
  trimmed.setSlice(slice);
  const { u8, end } = slice;
  let start = slice.start;
  while (start < end && (u8[start] === 32 || (u8[start] >= 9 && u8[start] <= 13))) start++;
  trimmed.start = start;
  const value = parseDouble(trimmed);
  if (Number.isNaN(value)) throw new CommandError(NOT_NUMBERS);
  return value;
}

function compareBytes(a: Bytes, b: Bytes): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sortNumerically(context: Context, elements: Bytes[], { by, descending }: Options): Bytes[] {
  const value = new Slice();
  const scores = new Float64Array(elements.length);
  for (let i = 0; i < elements.length; i++) {
    if (by === null) scores[i] = score(bytesSlice(elements[i]));
    else if (by.resolve(context.db, elements[i], value)) scores[i] = score(value);
  }
  const direction = descending ? -1 : 1;
  const order = Uint32Array.from(scores.keys()).sort((a, b) => {
    const difference = scores[a] === scores[b] ? 0 : scores[a] - scores[b];
    return direction * (difference !== 0 ? difference : compareBytes(elements[a], elements[b]));
  });
  return Array.from(order, (index) => elements[index]);
}

function sortByText(context: Context, elements: Bytes[], { by, descending }: Options): Bytes[] {
  const direction = descending ? -1 : 1;
  if (by === null) return elements.sort((a, b) => direction * compareBytes(a, b));
  const value = new Slice();
  const weights = elements.map((element) => (by.resolve(context.db, element, value) ? value.latin1() : null));
  const order = Uint32Array.from(elements.keys()).sort((a, b) => {
    const left = weights[a];
    const right = weights[b];
    if (left === right) return 0;
    if (left === null || right === null) return left === null ? -direction : direction;
    return direction * compareBytes(left, right);
  });
  return Array.from(order, (index) => elements[index]);
}

function sorted(context: Context, type: Type, options: Options): Bytes[] {
  const elements = elementsOf(context, type);
  const { unsorted, store } = options;
  if (unsorted && !(type === Type.Set && store !== null)) {
    return options.descending && type !== Type.Set ? elements.reverse() : elements;
  }
  if (unsorted) {
    // A set has no order of its own, and what is stored must not depend on the one it is kept in.
    return sortByText(context, elements, { ...options, by: null });
  }
  // Elements of equal weight stand in byte order unless a list gives them another.
  if (type !== Type.List && options.by !== null) elements.sort(compareBytes);
  options.by?.need(context.db, elements, 0, elements.length);
  return options.alpha ? sortByText(context, elements, options) : sortNumerically(context, elements, options);
}

function sort(context: Context, readOnly: boolean): void {
  const options = parseOptions(context, readOnly);
  const { db, reply } = context;
  const type = db.type(context.args[1]);
  lookedUp(context, context.args[1], type !== Type.None);
  const elements = sorted(context, type, options);
  const { start, size } = limits(elements.length, options);
  for (const pattern of options.get) pattern.need(db, elements, start, start + size);
  if (options.store !== null) {
    store(context, options.store, elements.slice(start, start + size), options.get);
    return;
  }
  const value = new Slice();
  reply.array(size * Math.max(1, options.get.length));
  for (let i = start; i < start + size; i++) {
    if (options.get.length === 0) reply.bulk(bytesSlice(elements[i]));
    for (const pattern of options.get) {
      if (pattern.resolve(db, elements[i], value)) reply.bulk(value);
      else reply.null();
    }
  }
}

function store(context: Context, key: Slice, elements: Bytes[], patterns: Pattern[]): void {
  const { db } = context;
  // All values are read before the first is written: the list may replace one of their keys.
  const values = new ByteSink();
  const ends: number[] = [];
  const value = new Slice();
  for (const element of elements) {
    if (patterns.length === 0) {
      values.slice(bytesSlice(element));
      ends.push(values.pos);
    }
    for (const pattern of patterns) {
      if (pattern.resolve(db, element, value)) values.slice(value);
      ends.push(values.pos);
    }
  }
  if (ends.length > 0) announceIfNew(context, key);
  const existed = db.remove(key);
  if (ends.length > 0) {
    const list = db.list(key, true);
    let start = 0;
    for (const end of ends) {
      value.set(values.u8, values.view, start, end);
      list.pushRight(value);
      start = end;
    }
    context.changed(key, 'l', 'sortstore');
    context.ready(key);
  } else if (existed) {
    context.changed(key, 'g', 'del');
  }
  context.reply.integer(ends.length);
}

/** The sorted key, and the last STORE's. */
const READ_ONLY = ['RO', 'access'];

function sortKeys(args: readonly Slice[], argc: number): KeyPosition[] {
  const keys: KeyPosition[] = [{ index: 1, access: READ_ONLY }];
  for (let i = 2; i < argc; i++) {
    const word = args[i].length <= 5 ? args[i].latin1().toLowerCase() : '';
    if (word === 'limit') i += 2;
    else if (word === 'get' || word === 'by') i++;
    else if (word === 'store' && i + 1 < argc) keys[1] = { index: ++i, access: ['OW', 'update'] };
  }
  return keys;
}

const COMPLEXITY = 'O(N+M*log(M)), N being the number of elements and M that of the ones returned';

export const sortCommands: readonly Command[] = [
  {
    name: 'sort',
    arity: -2,
    syntax:
      'key [BY pattern@1] [LIMIT offset_count(offset count)] [GET pattern@1]... [order(ASC|DESC)] [sorting=ALPHA] [STORE destination@2]',
    flags: ['write', 'denyoom', 'movablekeys'],
    categories: ['set', 'sortedset', 'list', 'dangerous'],
    keys: [keyAt(1, 'RO', 'access'), unknownKeys('RO', 'access'), unknownKeys('OW', 'update')],
    getKeys: sortKeys,
    group: 'generic',
    since: '1.0.0',
    complexity: COMPLEXITY,
    summary: 'Sorts the elements of a list, set or sorted set, and returns or stores them.',
    run: (context) => sort(context, false),
  },
  {
    name: 'sort_ro',
    arity: -2,
    syntax:
      'key [BY pattern@1] [LIMIT offset_count(offset count)] [GET pattern@1]... [order(ASC|DESC)] [sorting=ALPHA]',
    flags: ['readonly', 'movablekeys'],
    categories: ['set', 'sortedset', 'list', 'dangerous'],
    keys: [keyAt(1, 'RO', 'access'), unknownKeys('RO', 'access')],
    getKeys: () => [{ index: 1, access: READ_ONLY }],
    group: 'generic',
    since: '7.0.0',
    complexity: COMPLEXITY,
    summary: 'Sorts the elements of a list, set or sorted set without storing them.',
    run: (context) => sort(context, true),
  },
];
