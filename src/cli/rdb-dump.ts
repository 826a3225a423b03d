/** `ardent rdb dump`: keys as JSON, one a line. docs/rdb.md describes the lines. */
import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { matchGlob } from '../bytes/glob.ts';
import { Slice } from '../bytes/slice.ts';
import {
  RDB_VALUE_NAMES,
  RdbValue,
  RdbVisitor,
  type RdbKey,
  type StreamConsumer,
  type StreamGroup,
  type StreamState,
} from '../rdb/visitor.ts';
import { EXIT, UsageError } from './exit-codes.ts';
import { readFile } from './rdb-file.ts';

export interface DumpFilter {
  match?: string;
  db?: number;
  /** Types by comma. */
  type?: string;
}

/** Strings that come in parts are printed as they come, in base 64, of which 3 bytes make 4 characters. */
const BASE64_GROUP = 3;

class JsonLines extends RdbVisitor {
  private parts: string[] = [];
  private readonly pattern: Slice | null;
  private readonly db: number;
  private readonly types: ReadonlySet<string> | null;
  /** The key in progress is printed. */
  private shown = false;
  private type: number = 0;
  /** Elements, fields, members or entries of the key so far; bytes of a string. */
  private seen = 0;
  private length = 0;
  /** Bytes of a long string that do not fill a group yet. */
  private carry = Buffer.alloc(0);
  private groups = 0;
  private consumers = 0;
  private listed = 0;

  constructor({ match, db, type }: DumpFilter) {
    super();
    this.pattern = match === undefined ? null : Slice.from(match);
    this.db = db ?? -1;
    this.types = type === undefined ? null : new Set(type.split(','));
  }

  /** What was printed since the last call. */
  take(): string {
    const text = this.parts.join('');
    this.parts = [];
    return text;
  }

  private put(text: string): void {
    this.parts.push(text);
  }

  override aux(name: Slice, value: Slice): void {
    if (this.filtered) return;
    this.put(`{"aux":${json(name)},"value":${json(value)}}\n`);
  }

  override library(code: Slice): void {
    if (this.filtered) return;
    this.put(`{"library":${json(code)}}\n`);
  }

  private get filtered(): boolean {
    return this.pattern !== null || this.db >= 0 || this.types !== null;
  }

  override beginKey(key: RdbKey): void {
    const { pattern, db, types } = this;
    const type = RDB_VALUE_NAMES[key.type];
    this.shown =
      (pattern === null || matchGlob(pattern, key.key)) &&
      (db < 0 || db === key.db) &&
      (types === null || types.has(type));
    if (!this.shown) return;
    this.type = key.type;
    this.seen = 0;
    this.groups = 0;
    this.length = key.count;
    let line = `{"db":${key.db},"key":${json(key.key)},"type":"${type}"`;
    if (key.expiresAt >= 0) line += `,"expiresAt":${key.expiresAt}`;
    if (key.idleSeconds >= 0) line += `,"idleSeconds":${key.idleSeconds}`;
    if (key.frequency >= 0) line += `,"frequency":${key.frequency}`;
    if (key.type === RdbValue.Module) line += `,"module":${JSON.stringify(key.moduleName)}`;
    this.put(`${line}${VALUE_NAMES[key.type]}`);
  }

  override stringPart(bytes: Slice): void {
    if (!this.shown) return;
    if (this.seen === 0 && bytes.length === this.length) {
      this.put(json(bytes));
    } else {
      if (this.seen === 0) this.put('{"base64":"');
      const all = Buffer.concat([this.carry, bytes.u8.subarray(bytes.start, bytes.end)]);
      const last = this.seen + bytes.length === this.length;
      const whole = last ? all.length : all.length - (all.length % BASE64_GROUP);
      this.put(all.toString('base64', 0, whole));
      this.carry = Buffer.from(all.subarray(whole));
      if (last) this.put('"}');
    }
    this.seen += bytes.length;
  }

  /** What stands between two elements. */
  private item(text: string): void {
    if (this.shown) this.put(this.seen++ === 0 ? text : `,${text}`);
  }

  override element(bytes: Slice): void {
    if (this.shown) this.item(json(bytes));
  }

  override field(field: Slice, value: Slice, expiresAt: number): void {
    if (this.shown) {
      this.item(`[${json(field)},${json(value)}${expiresAt < 0 ? '' : `,${expiresAt}`}]`);
    }
  }

  override member(member: Slice, score: number): void {
    if (this.shown) this.item(`[${json(member)},${scoreJson(score)}]`);
  }

  override streamEntry(id: Slice, fields: readonly Slice[], count: number): void {
    if (!this.shown) return;
    this.item(`[${idJson(id)},[${fields.slice(0, count).map(json).join(',')}]]`);
  }

  override streamEnd(state: StreamState): void {
    if (!this.shown) return;
    const { lastId, firstId, maxDeletedId, entriesAdded } = state;
    this.put(
      `],"lastId":${idJson(lastId)},"firstId":${idJson(firstId)},"maxDeletedId":${idJson(maxDeletedId)},"entriesAdded":${entriesAdded},"groups":[`,
    );
  }

  override streamGroup(group: StreamGroup): void {
    if (!this.shown) return;
    if (this.groups++ > 0) this.put(']},');
    const read = group.entriesRead < 0 ? 'null' : group.entriesRead;
    this.put(
      `{"name":${json(group.name)},"lastId":${idJson(group.lastId)},"entriesRead":${read},"pending":[`,
    );
    this.listed = 0;
  }

  override streamPending(id: Slice, deliveredAt: number, deliveries: number): void {
    if (!this.shown) return;
    this.put(`${this.listed++ > 0 ? ',' : ''}[${idJson(id)},${deliveredAt},${deliveries}]`);
  }

  override streamConsumers(): void {
    if (!this.shown) return;
    this.put('],"consumers":[');
    this.consumers = 0;
  }

  private consumerEnds(): void {
    if (this.consumers > 0) this.put(']}');
  }

  override streamConsumer(consumer: StreamConsumer): void {
    if (!this.shown) return;
    this.consumerEnds();
    const { name, seenAt, activeAt } = consumer;
    this.put(
      `${this.consumers++ > 0 ? ',' : ''}{"name":${json(name)},"seenAt":${seenAt},"activeAt":${activeAt},"pending":[`,
    );
    this.listed = 0;
  }

  override streamOwned(id: Slice): void {
    if (this.shown) this.put(`${this.listed++ > 0 ? ',' : ''}${idJson(id)}`);
  }

  override endKey(): void {
    if (!this.shown) return;
    if (this.type === RdbValue.Stream && this.groups > 0) {
      this.consumerEnds();
      this.put(']}');
    }
    this.put(`${VALUE_ENDS[this.type]}}\n`);
  }
}

/** By RdbValue: the name of what holds the value, and its beginning. */
const VALUE_NAMES = [
  '',
  ',"value":',
  ',"elements":[',
  ',"members":[',
  ',"fields":[',
  ',"members":[',
  ',"entries":[',
  '',
];
const VALUE_ENDS = ['', '', ']', ']', ']', ']', ']', ''];

/** A JSON string if the bytes are UTF-8, else `{"base64":"…"}`. */
function json(bytes: Slice): string {
  const run = bytes.u8.subarray(bytes.start, bytes.end);
  return isUtf8(run) ? JSON.stringify(bytes.utf8()) : `{"base64":"${run.toString('base64')}"}`;
}

/** Infinities as strings, since JSON has no number for them. */
function scoreJson(score: number): string {
  if (Number.isFinite(score)) return Object.is(score, -0) ? '-0' : String(score);
  return score > 0 ? '"inf"' : '"-inf"';
}

function idJson(id: Slice): string {
  return `"${id.view.getBigUint64(id.start)}-${id.view.getBigUint64(id.start + 8)}"`;
}

/** Prints the file's keys. Resolves to the exit code. */
export async function dumpFile(path: string, filter: DumpFilter): Promise<number> {
  const unknown = filter.type?.split(',').find((type) => !RDB_VALUE_NAMES.includes(type as 'string'));
  if (unknown !== undefined || filter.type === '') {
    throw new UsageError(`--type ${filter.type}: types are ${RDB_VALUE_NAMES.slice(1).join(', ')}`);
  }
  const lines = new JsonLines(filter);
  const { stdout } = process;
  // A reader that has seen enough, such as `head`.
  stdout.on('error', (error: NodeJS.ErrnoException) =>
    process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed),
  );
  const print = (): Promise<void> | undefined =>
    stdout.write(lines.take()) ? undefined : once(stdout, 'drain').then(() => undefined);
  try {
    await readFile(path, lines, { afterPiece: print });
  } finally {
    await print();
  }
  return EXIT.ok;
}
