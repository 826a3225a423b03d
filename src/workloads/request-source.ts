/**
 * Requests as bytes, without end and without an allocation per request. One source a connection.
 *
 * Where every request has the same length the bytes are built once and only the digits of key numbers
 * are written anew (`FixedRequests`); other workloads are encoded request by request
 * (`VariableRequests`). `createRequestSource` chooses.
 */
import { ByteSink } from '../bytes/sink.ts';
import {
  KEY_DIGITS,
  parseOperation,
  type CommandDefaults,
  type CommandTemplate,
  type Piece,
} from './command-line.ts';
import { createChooser, KeyPopulation, type Chooser, type Share } from './distribution.ts';
import { Random } from './random.ts';
import { largest, sizeAt, type ValuePool } from './values.ts';
import type { OperationMix } from './workload.ts';

export interface RequestSource {
  /**
   * The next `count` requests, at most `batch`; no more than `batch` may be without reply. The bytes
   * are valid until the next call, unless `keep` is called before it.
   */
  next(count: number): Buffer;
  /** The bytes given out last are still being sent: they must stay as they are. */
  keep(): void;
  /** Operation of each request of the last `next`, as an index into the mix. */
  readonly operations: Uint8Array;
  /** Key number of each request of the last `next`, where there is one. */
  readonly keys: Float64Array;
  /** Bytes of arguments after the command name in all write requests so far. */
  userBytes: number;
}

export interface SourceOptions {
  mix: readonly OperationMix[];
  defaults: CommandDefaults;
  pool: ValuePool;
  seed: number;
  /** Requests that may be without reply at the same time. */
  batch: number;
  draws: KeyDraws;
  /** Values depend on the key alone, so that reads can be checked. */
  verifiable: boolean;
}

export function createRequestSource(options: SourceOptions): RequestSource {
  const { mix, defaults } = options;
  const operations = mix.map((operation) => parseOperation(operation.line, defaults));
  const only = operations.length === 1 && operations[0].length === 1 ? operations[0][0] : null;
  const fixed = (piece: Piece): boolean =>
    piece.kind === 'text' ||
    piece.kind === 'index' ||
    piece.kind === 'same' ||
    (piece.kind === 'value' && piece.sizes.kind === 'fixed' && !options.verifiable);
  if (only !== null && only.args.flat().every(fixed)) return new FixedRequests(only, options);
  return new VariableRequests(operations, options);
}

/** Bytes of the longest value that a mix can ask for: what its ValuePool must be able to give. */
export function longestValue(mix: readonly OperationMix[], defaults: CommandDefaults): number {
  const pieces = mix.flatMap(({ line }) => parseOperation(line, defaults).flatMap(({ args }) => args.flat()));
  return Math.max(0, ...pieces.map((piece) => (piece.kind === 'value' ? largest(piece.sizes) : 0)));
}

/** Writes the lowest `digits` digits of `value` so that they end before `end`. */
function writeDigits(u8: Buffer, end: number, digits: number, value: number): void {
  if (value > 0x7fffffff) {
    const text = String(value).padStart(digits, '0');
    u8.write(text, end - digits, 'latin1');
    return;
  }
  for (let pos = end - 1, stop = end - digits; pos >= stop; pos--) {
    const rest = (value / 10) | 0;
    u8[pos] = 48 + value - rest * 10;
    value = rest;
  }
}

/** A place in the request where digits go; `chooser` null: the number drawn before. */
interface DigitSlot {
  end: number;
  chooser: Chooser | null;
}

class FixedRequests implements RequestSource {
  readonly operations: Uint8Array;
  readonly keys: Float64Array;
  userBytes = 0;
  private readonly bytes: Buffer;
  private readonly requestLength: number;
  private readonly slots: DigitSlot[];
  private readonly digits: number;
  private readonly batch: number;
  private readonly userBytesEach: number;
  private at = 0;

  constructor(template: CommandTemplate, options: SourceOptions) {
    const { pool, batch, mix } = options;
    this.batch = batch;
    this.operations = new Uint8Array(batch);
    this.keys = new Float64Array(batch);
    const sink = new ByteSink();
    const ends: { end: number; piece: Piece }[] = [];
    let userBytes = 0;
    let highest = 0;
    for (let request = 0; request < batch; request++) {
      const start = sink.pos;
      if (!mix[0].inline) sink.ascii(`*${template.args.length}\r\n`);
      template.args.forEach((pieces, index) => {
        const length = pieces.reduce((sum, piece) => sum + fixedLength(piece), 0);
        if (!mix[0].inline) sink.ascii(`$${length}\r\n`);
        else if (index > 0) sink.ascii(' ');
        for (const piece of pieces) {
          if (piece.kind === 'text') sink.copy(piece.bytes, 0, piece.bytes.length);
          else if (piece.kind === 'value') {
            const place = pool.draw();
            sink.copy(pool.bytes, place, place + fixedLength(piece));
          } else {
            sink.ascii('0'.repeat(KEY_DIGITS));
            if (request === 0) ends.push({ end: sink.pos - start, piece });
          }
        }
        if (!mix[0].inline) sink.ascii('\r\n');
        if (request === 0 && index > 0) userBytes += length;
      });
      if (mix[0].inline) sink.ascii('\r\n');
    }
    this.bytes = Buffer.from(sink.written());
    this.requestLength = this.bytes.length / batch;
    this.userBytesEach = mix[0].access === 'write' ? userBytes : 0;
    this.slots = ends.map(({ end, piece }) => {
      if (piece.kind !== 'index') return { end, chooser: null };
      highest = Math.max(highest, piece.distribution.name === 'insert' ? Infinity : piece.size);
      return { end, chooser: options.draws.chooser(piece) };
    });
    // Leading zeros never change: only as many digits as the largest number has are written.
    this.digits = Number.isFinite(highest) ? String(highest).length : KEY_DIGITS;
  }

  /** Nothing to do: a request's place is written again only after its reply. */
  keep(): void {}

  next(count: number): Buffer {
    const { bytes, slots, requestLength, digits, keys } = this;
    if (this.at + count > this.batch) this.at = 0;
    const from = this.at * requestLength;
    for (let i = 0; i < count; i++) {
      const start = from + i * requestLength;
      let value = 0;
      for (let s = 0; s < slots.length; s++) {
        const slot = slots[s];
        if (slot.chooser !== null) value = slot.chooser.next();
        writeDigits(bytes, start + slot.end, digits, value);
      }
      keys[i] = value;
    }
    this.at += count;
    this.userBytes += count * this.userBytesEach;
    return bytes.subarray(from, from + count * requestLength);
  }
}

function fixedLength(piece: Piece): number {
  switch (piece.kind) {
    case 'text':
      return piece.bytes.length;
    case 'value':
      return piece.sizes.kind === 'fixed' ? piece.sizes.bytes : NaN;
    default:
      return KEY_DIGITS;
  }
}

/**
 * The choosers behind placeholders, shared by the sources of one thread: so a sequence or the inserts of
 * several connections neither repeat a key nor leave one out.
 */
export class KeyDraws {
  private readonly choosers = new Map<string, Chooser>();
  private readonly populations = new Map<number, KeyPopulation>();
  private readonly random: Random;
  private readonly share: Share;

  constructor(seed: number, share: Share = { index: 0, of: 1 }) {
    this.random = new Random(seed, share.index);
    this.share = share;
  }

  chooser(piece: Piece & { kind: 'index' }): Chooser {
    const id = JSON.stringify([piece.distribution, piece.size]);
    let chooser = this.choosers.get(id);
    if (chooser === undefined) {
      let population = this.populations.get(piece.size);
      if (population === undefined) {
        this.populations.set(piece.size, (population = new KeyPopulation(piece.size, this.share)));
      }
      this.choosers.set(id, (chooser = createChooser(piece.distribution, population, this.random)));
    }
    return chooser;
  }
}

type Step = (sink: ByteSink) => void;

/** What an argument is made of: text; bytes of a known length; or such as get their length when they are drawn. */
type Part = { text: string } | { length: number; write: Step } | { draw(): number; write: Step };

function decimalLength(value: number): number {
  return value < 10 ? 1 : String(value).length;
}

class VariableRequests implements RequestSource {
  readonly operations: Uint8Array;
  readonly keys: Float64Array;
  userBytes = 0;
  private sink = new ByteSink();
  private readonly random: Random;
  /** Per operation and command. */
  private readonly programs: Step[][][];
  /** Upper bounds of the operations' shares of [0, 1). */
  private readonly bounds: number[];
  private readonly options: SourceOptions;
  /** Commands of an operation that is not sent completely yet. */
  private operation = 0;
  private command = 0;
  private lastKey = 0;

  constructor(operations: CommandTemplate[][], options: SourceOptions) {
    this.options = options;
    this.random = new Random(options.seed);
    this.operations = new Uint8Array(options.batch);
    this.keys = new Float64Array(options.batch);
    this.programs = operations.map((commands, operation) =>
      commands.map((command) => this.compile(command, options.mix[operation])),
    );
    const total = options.mix.reduce((sum, operation) => sum + operation.weight, 0);
    let bound = 0;
    this.bounds = options.mix.map((operation) => (bound += operation.weight / total));
  }

  /** What is known beforehand becomes literal bytes; a step is left for each thing that is drawn. */
  private compile(command: CommandTemplate, { inline, access }: OperationMix): Step[] {
    const steps: Step[] = [];
    let literal = '';
    const flush = (): void => {
      const bytes = Buffer.from(literal, 'latin1');
      if (bytes.length > 0) steps.push((sink) => sink.copy(bytes, 0, bytes.length));
      literal = '';
    };
    const step = (write: Step): void => {
      flush();
      steps.push(write);
    };
    const args = command.args.flatMap((pieces) => this.partsOf(pieces));
    const counts = access === 'write';
    let fixedUserBytes = 0;
    if (!inline) literal += `*${args.length}\r\n`;
    args.forEach((parts, index) => {
      let fixed = 0;
      for (const part of parts)
        fixed += 'text' in part ? part.text.length : 'length' in part ? part.length : 0;
      const drawn = parts.flatMap((part) => ('draw' in part ? part.draw : []));
      const counted = counts && index > 0;
      if (counted) fixedUserBytes += fixed;
      literal += inline ? (index > 0 ? ' ' : '') : '$';
      if (drawn.length > 0) {
        step((sink) => {
          let length = 0;
          for (const draw of drawn) length += draw();
          if (counted) this.userBytes += length;
          if (!inline) sink.decimal(fixed + length);
        });
      } else if (!inline) literal += String(fixed);
      if (!inline) literal += '\r\n';
      for (const part of parts) {
        if ('text' in part) literal += part.text;
        else step(part.write);
      }
      if (!inline) literal += '\r\n';
    });
    if (inline) literal += '\r\n';
    flush();
    if (fixedUserBytes > 0) steps.push(() => (this.userBytes += fixedUserBytes));
    return steps;
  }

  /** The arguments that one argument of a template gives. */
  private partsOf(pieces: Piece[]): Part[][] {
    const [first] = pieces;
    if (first.kind !== 'range') return [pieces.map((piece) => this.part(piece))];
    const { size, width } = first;
    let start = 0;
    return [
      [
        {
          draw: () => decimalLength((start = this.random.below(size - width + 1))),
          write: (sink) => sink.decimal(start),
        },
      ],
      [
        {
          draw: () => decimalLength(start + width - 1),
          write: (sink) => sink.decimal(start + width - 1),
        },
      ],
    ];
  }

  private part(piece: Piece): Part {
    const { pool, draws, verifiable } = this.options;
    const digits: Step = (sink) => {
      sink.ensure(KEY_DIGITS);
      sink.pos += KEY_DIGITS;
      writeDigits(sink.u8, sink.pos, KEY_DIGITS, this.lastKey);
    };
    switch (piece.kind) {
      case 'text':
        return { text: piece.bytes.toString('latin1') };
      case 'index': {
        const chooser = draws.chooser(piece);
        return {
          length: KEY_DIGITS,
          write: (sink) => {
            this.lastKey = chooser.next();
            digits(sink);
          },
        };
      }
      case 'same':
        return { length: KEY_DIGITS, write: digits };
      case 'int': {
        const { low, high } = piece;
        let value = 0;
        return {
          draw: () => decimalLength((value = low + this.random.below(high - low))),
          write: (sink) => sink.decimal(value),
        };
      }
      case 'value': {
        const { sizes } = piece;
        if (sizes.kind === 'fixed' && !verifiable) {
          const { bytes } = sizes;
          return {
            length: bytes,
            write: (sink) => {
              const place = pool.draw();
              sink.copy(pool.bytes, place, place + bytes);
            },
          };
        }
        let place = 0;
        let size = 0;
        return {
          draw: () => {
            place = verifiable ? pool.placeOf(this.lastKey) : pool.draw();
            size = verifiable ? pool.sizeOf(this.lastKey, sizes) : sizeAt(sizes, this.random.fraction());
            return size;
          },
          write: (sink) => sink.copy(pool.bytes, place, place + size),
        };
      }
      case 'range':
        throw new RangeError('{range} must be an argument of its own');
    }
  }

  keep(): void {
    this.sink = new ByteSink();
  }

  private drawOperation(): number {
    const at = this.random.fraction();
    let operation = 0;
    while (operation < this.bounds.length - 1 && at >= this.bounds[operation]) operation++;
    return operation;
  }

  next(count: number): Buffer {
    const sink = this.sink;
    sink.clear();
    for (let i = 0; i < count; i++) {
      if (this.command === 0) this.operation = this.drawOperation();
      const commands = this.programs[this.operation];
      for (const step of commands[this.command]) step(sink);
      this.operations[i] = this.operation;
      this.keys[i] = this.lastKey;
      if (++this.command === commands.length) this.command = 0;
    }
    return sink.written();
  }
}

/** The arguments of one encoded request, for clients that take arguments instead of bytes. */
export function decodeRequest(bytes: Buffer): Buffer[] {
  if (bytes[0] !== 42)
    return bytes
      .toString('latin1')
      .trim()
      .split(' ')
      .map((word) => Buffer.from(word, 'latin1'));
  const args: Buffer[] = [];
  let pos = bytes.indexOf(10) + 1;
  while (pos < bytes.length) {
    const lineEnd = bytes.indexOf(10, pos);
    const length = Number(bytes.toString('latin1', pos + 1, lineEnd - 1));
    args.push(Buffer.from(bytes.subarray(lineEnd + 1, lineEnd + 1 + length)));
    pos = lineEnd + 1 + length + 2;
  }
  return args;
}
