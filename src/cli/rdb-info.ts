/** `ardent rdb info`: a file in figures. */
import { statSync } from 'node:fs';
import type { Slice } from '../bytes/slice.ts';
import { showKey } from '../rdb/error.ts';
import { RDB_TYPE_NAMES } from '../rdb/format.ts';
import type { RdbReader } from '../rdb/reader.ts';
import { RDB_VALUE_NAMES, RdbVisitor, type RdbKey } from '../rdb/visitor.ts';
import { formatBytes, formatCount } from '../report/format.ts';
import { renderText } from '../report/table.ts';
import { readFile } from './rdb-file.ts';

interface TypeInfo {
  keys: number;
  /** Elements, fields, members or entries. */
  elements: number;
  /** Bytes of keys and values as they are, not as they are encoded. */
  bytes: number;
  /** Bytes that they take in the file. */
  fileBytes: number;
}

interface BigKey {
  db: number;
  /** As for people: quoted, not printable bytes as \xHH, long ones cut. */
  key: string;
  type: string;
  elements: number;
  bytes: number;
}

export interface FileInfo {
  file: string;
  bytes: number;
  version: number;
  checksum: 'none' | 'right';
  /** Bytes after the end of the data, such as those of an append-only file. */
  trailingBytes: number;
  aux: Record<string, string>;
  keys: number;
  databases: Record<string, { keys: number; expiring: number }>;
  types: Record<string, TypeInfo>;
  /** Keys by encoding. */
  encodings: Record<string, number>;
  biggest: BigKey[];
  /** Keys by when they expire, from now on. */
  expiry: Record<string, number>;
  /** Fields of hashes that expire. */
  fieldDeadlines: number;
  libraries: number;
  /** Modules with values or data in the file. */
  modules: string[];
}

const HOUR_MS = 3_600_000;
/** Upper bounds of the expiry histogram, and what they are called. */
const EXPIRY_BOUNDS: readonly (readonly [string, number])[] = [
  ['expired', 0],
  ['within an hour', HOUR_MS],
  ['within a day', 24 * HOUR_MS],
  ['within a week', 7 * 24 * HOUR_MS],
  ['within 30 days', 30 * 24 * HOUR_MS],
  ['within a year', 365 * 24 * HOUR_MS],
  ['later', Infinity],
];

class InfoVisitor extends RdbVisitor {
  readonly aux_: Record<string, string> = {};
  readonly databases: FileInfo['databases'] = {};
  readonly types: FileInfo['types'] = {};
  readonly encodings: FileInfo['encodings'] = {};
  readonly biggest: BigKey[] = [];
  readonly expiry: number[] = [];
  never = 0;
  fieldDeadlines = 0;
  libraries = 0;
  readonly modules = new Set<string>();
  reader!: RdbReader;

  private readonly top: number;
  private readonly now = Date.now();
  private key!: RdbKey;
  private elements = 0;
  private bytes = 0;
  /** Where in the file the record before ended. */
  private from = 0;

  constructor(top: number) {
    super();
    this.top = top;
    for (let i = 0; i < EXPIRY_BOUNDS.length; i++) this.expiry.push(0);
  }

  override aux(name: Slice, value: Slice): void {
    this.aux_[name.utf8()] = value.utf8();
    this.from = this.reader.offset;
  }

  override library(): void {
    this.libraries++;
    this.from = this.reader.offset;
  }

  override moduleAux(name: string): void {
    this.modules.add(name);
  }

  override beginKey(key: RdbKey): void {
    this.key = key;
    this.elements = 0;
    this.bytes = key.key.length;
    if (key.moduleName !== '') this.modules.add(key.moduleName);
  }

  override stringPart(bytes: Slice): void {
    this.bytes += bytes.length;
  }

  override element(bytes: Slice): void {
    this.elements++;
    this.bytes += bytes.length;
  }

  override field(field: Slice, value: Slice, expiresAt: number): void {
    this.elements++;
    this.bytes += field.length + value.length;
    if (expiresAt >= 0) this.fieldDeadlines++;
  }

  override member(member: Slice): void {
    this.elements++;
    this.bytes += member.length + 8;
  }

  override streamEntry(_id: Slice, fields: readonly Slice[], count: number): void {
    this.elements++;
    this.bytes += 16;
    for (let i = 0; i < count; i++) this.bytes += fields[i].length;
  }

  override endKey(): void {
    const { key, elements, bytes } = this;
    const typeName = RDB_VALUE_NAMES[key.type];
    const type = (this.types[typeName] ??= { keys: 0, elements: 0, bytes: 0, fileBytes: 0 });
    type.keys++;
    type.elements += elements;
    type.bytes += bytes;
    type.fileBytes += this.reader.offset - this.from;
    this.from = this.reader.offset;
    const encoding = RDB_TYPE_NAMES[key.encoding] ?? '';
    this.encodings[encoding] = (this.encodings[encoding] ?? 0) + 1;
    const database = (this.databases[key.db] ??= { keys: 0, expiring: 0 });
    database.keys++;
    if (key.expiresAt >= 0) {
      database.expiring++;
      const left = key.expiresAt - this.now;
      this.expiry[EXPIRY_BOUNDS.findIndex(([, bound]) => left <= bound)]++;
    } else {
      this.never++;
    }
    this.rank(typeName);
  }

  /** Keeps the biggest keys, biggest first. */
  private rank(type: string): void {
    const { biggest, top, bytes, key, elements } = this;
    if (top === 0 || (biggest.length === top && biggest[top - 1].bytes >= bytes)) return;
    let place = biggest.length;
    while (place > 0 && biggest[place - 1].bytes < bytes) place--;
    const shown = showKey(key.key.u8.subarray(key.key.start, key.key.end));
    biggest.splice(place, 0, { db: key.db, key: shown, type, elements, bytes });
    if (biggest.length > top) biggest.pop();
  }
}

/** Reads the file. Throws FileError where it is damaged. */
export async function inspect(path: string, top: number): Promise<FileInfo> {
  const visitor = new InfoVisitor(top);
  const reader = await readFile(path, visitor, { onReader: (its) => (visitor.reader = its) });
  const { size } = statSync(path);
  const expiry: Record<string, number> = { never: visitor.never };
  EXPIRY_BOUNDS.forEach(([name], i) => (expiry[name] = visitor.expiry[i]));
  return {
    file: path,
    bytes: size,
    version: reader.version,
    checksum: reader.checksumFound ? 'right' : 'none',
    trailingBytes: Math.max(0, size - reader.offset),
    aux: visitor.aux_,
    keys: reader.keys,
    databases: visitor.databases,
    types: visitor.types,
    encodings: visitor.encodings,
    biggest: visitor.biggest,
    expiry,
    fieldDeadlines: visitor.fieldDeadlines,
    libraries: visitor.libraries,
    modules: [...visitor.modules],
  };
}

export function reportText(info: FileInfo): string {
  const { aux } = info;
  const facts = [
    `${info.file}: RDB version ${info.version}, ${formatBytes(info.bytes)}, ${formatCount(info.keys)} keys, checksum ${info.checksum}`,
  ];
  if (Object.keys(aux).length > 0) {
    facts.push(
      Object.entries(aux)
        .map(([name, value]) => `${name} ${name === 'ctime' ? readableTime(value) : plain(value)}`)
        .join(', '),
    );
  }
  if (info.libraries > 0) facts.push(`${info.libraries} function libraries`);
  if (info.fieldDeadlines > 0) facts.push(`${formatCount(info.fieldDeadlines)} hash fields expire`);
  if (info.modules.length > 0) facts.push(`modules: ${info.modules.join(', ')}`);
  if (info.trailingBytes > 0) facts.push(`${info.trailingBytes} bytes follow after the end of the data`);
  const tables = [
    table(
      'Types',
      ['type', 'keys', 'elements', 'bytes', 'in the file', 'bytes a key'],
      Object.entries(info.types).map(([type, { keys, elements, bytes, fileBytes }]) => [
        ...[type, formatCount(keys), formatCount(elements), formatBytes(bytes), formatBytes(fileBytes)],
        formatBytes(bytes / keys),
      ]),
    ),
    table(
      'Encodings',
      ['encoding', 'keys'],
      Object.entries(info.encodings).map(([name, keys]) => [name, formatCount(keys)]),
    ),
    table(
      'Databases',
      ['database', 'keys', 'expiring'],
      Object.entries(info.databases).map(([db, { keys, expiring }]) => [
        ...[db, formatCount(keys), formatCount(expiring)],
      ]),
    ),
    table(
      'Expiry',
      ['keys expire', 'keys'],
      Object.entries(info.expiry)
        .filter(([, keys]) => keys > 0)
        .map(([when, keys]) => [when, formatCount(keys)]),
    ),
    table(
      'Biggest keys',
      ['key', 'type', 'database', 'elements', 'bytes'],
      info.biggest.map(({ key, type, db, elements, bytes }) => [
        ...[key, type, String(db), type === 'string' ? '' : formatCount(elements), formatBytes(bytes)],
      ]),
    ),
  ];
  return `${[facts.join('\n'), ...tables.filter((text) => text !== '')].join('\n\n')}\n`;
}

function table(title: string, header: string[], rows: string[][]): string {
  return rows.length === 0 ? '' : renderText({ title, header, rows, legend: [] });
}

/** Longest value of a field that is shown, characters. */
const SHOWN_VALUE_MAX = 60;

/** In one line, and cut where it is long. */
function plain(value: string): string {
  const cut = value.length > SHOWN_VALUE_MAX ? `${value.slice(0, SHOWN_VALUE_MAX)}…` : value;
  return cut.replace(/[^ -~…]+/g, ' ');
}

function readableTime(seconds: string): string {
  const time = new Date(Number(seconds) * 1000);
  return Number.isNaN(time.getTime()) ? seconds : time.toISOString();
}
