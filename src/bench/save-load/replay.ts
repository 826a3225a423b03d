/** A file's content as commands, for servers that cannot be given the file itself. */
import { createReadStream, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { ByteSink } from '../../bytes/sink.ts';
import { Slice } from '../../bytes/slice.ts';
import { RdbReader } from '../../rdb/reader.ts';
import {
  RdbValue,
  RdbVisitor,
  type RdbKey,
  type StreamConsumer,
  type StreamGroup,
  type StreamState,
} from '../../rdb/visitor.ts';
import { ReplyKind, ReplyScanner, ScannedReplies } from '../../resp/reply-scanner.ts';
import type { Address } from '../load-spec.ts';

/** Elements that go into one command. */
const BATCH = 64;
const CHUNK_BYTES = 256 * 1024;
const SOCKET_BYTES = 64 * 1024;

/** Builds commands from what a file says; module values cannot be built and are counted. */
class CommandVisitor extends RdbVisitor {
  readonly out = new ByteSink(CHUNK_BYTES);
  commands = 0;
  skipped = 0;
  private db = 0;
  private readonly key = new Slice();
  private keyBytes = Buffer.alloc(0);
  private type: RdbValue = RdbValue.String;
  private expiresAt = -1;
  private parts = 0;
  /** Arguments of the command under way, its bytes apart from its header, whose count comes last. */
  private readonly body = new ByteSink(CHUNK_BYTES);
  private words = 0;
  private elements = 0;
  private group = Buffer.alloc(0);
  private consumer = '';
  private pending = new Map<string, { deliveredAt: number; deliveries: number }>();

  private word(bytes: Slice): void {
    const { body } = this;
    body.byte(36);
    body.decimal(bytes.length);
    body.ascii('\r\n');
    body.slice(bytes);
    body.ascii('\r\n');
    this.words++;
  }

  private text(text: string | Buffer): void {
    const bytes = Buffer.from(text as string);
    this.word(Slice.from(bytes));
  }

  private send(): void {
    const { out, body } = this;
    out.byte(42);
    out.decimal(this.words);
    out.ascii('\r\n');
    out.copy(body.u8, 0, body.pos);
    this.commands++;
    body.pos = 0;
    this.words = 0;
    this.elements = 0;
  }

  private command(...words: (string | Buffer)[]): void {
    for (const word of words) this.text(word);
    this.send();
  }

  /** One more element of a command that takes many. */
  private add(name: string, ...items: (Slice | string)[]): void {
    if (this.words === 0) {
      this.text(name);
      this.word(this.key);
    }
    for (const item of items)
      if (typeof item === 'string') this.text(item);
      else this.word(item);
    if (++this.elements === BATCH) this.send();
  }

  override library(code: Slice): void {
    this.text('FUNCTION');
    this.text('LOAD');
    this.text('REPLACE');
    this.word(code);
    this.send();
  }

  override beginKey(key: RdbKey): void {
    if (key.db !== this.db) {
      this.db = key.db;
      this.command('SELECT', String(key.db));
    }
    this.keyBytes = Buffer.from(key.key.u8.subarray(key.key.start, key.key.end));
    this.key.setSlice(Slice.from(this.keyBytes));
    this.type = key.type;
    this.expiresAt = key.expiresAt;
    this.parts = 0;
    if (key.type === RdbValue.Module) this.skipped++;
  }

  override stringPart(bytes: Slice): void {
    this.text(this.parts++ === 0 ? 'SET' : 'APPEND');
    this.word(this.key);
    this.word(bytes);
    this.send();
  }

  override element(bytes: Slice): void {
    this.add(this.type === RdbValue.Set ? 'SADD' : 'RPUSH', bytes);
  }

  override field(field: Slice, value: Slice, expiresAt: number): void {
    this.add('HSET', field, value);
    if (expiresAt < 0) return;
    const name = Buffer.from(field.u8.subarray(field.start, field.end));
    if (this.words > 0) this.send();
    this.command('HPEXPIREAT', this.keyBytes, String(expiresAt), 'FIELDS', '1', name);
  }

  override member(member: Slice, score: number): void {
    this.add('ZADD', score === Infinity ? 'inf' : score === -Infinity ? '-inf' : String(score), member);
  }

  override streamEntry(id: Slice, fields: readonly Slice[], count: number): void {
    this.text('XADD');
    this.word(this.key);
    this.text(idText(id));
    for (let i = 0; i < count; i++) this.word(fields[i]);
    this.send();
  }

  override streamEnd(state: StreamState): void {
    if (state.length === 0) {
      // A stream without entries: one that is taken back at once.
      this.command('XADD', this.keyBytes, 'MAXLEN', '0', '0-1', 'a', 'b');
    }
    this.command(
      ...['XSETID', this.keyBytes, idText(state.lastId), 'ENTRIESADDED', String(state.entriesAdded)],
      ...['MAXDELETEDID', state.maxDeletedId.length === 16 ? idText(state.maxDeletedId) : '0-0'],
    );
  }

  override streamGroup(group: StreamGroup): void {
    this.group = Buffer.from(group.name.u8.subarray(group.name.start, group.name.end));
    this.pending = new Map();
    const read = group.entriesRead < 0 ? [] : ['ENTRIESREAD', String(group.entriesRead)];
    this.command('XGROUP', 'CREATE', this.keyBytes, this.group, idText(group.lastId), ...read);
  }

  override streamPending(id: Slice, deliveredAt: number, deliveries: number): void {
    this.pending.set(idText(id), { deliveredAt, deliveries });
  }

  override streamConsumer(consumer: StreamConsumer): void {
    this.consumer = consumer.name.latin1();
    this.command('XGROUP', 'CREATECONSUMER', this.keyBytes, this.group, Buffer.from(this.consumer, 'latin1'));
  }

  override streamOwned(id: Slice): void {
    const text = idText(id);
    const { deliveredAt, deliveries } = this.pending.get(text) ?? { deliveredAt: 0, deliveries: 1 };
    this.command(
      ...['XCLAIM', this.keyBytes, this.group, Buffer.from(this.consumer, 'latin1'), '0', text],
      ...['TIME', String(deliveredAt), 'RETRYCOUNT', String(deliveries), 'FORCE', 'JUSTID'],
    );
  }

  override endKey(): void {
    if (this.words > 0) this.send();
    if (this.expiresAt >= 0 && this.type !== RdbValue.Module) {
      this.command('PEXPIREAT', this.keyBytes, String(this.expiresAt));
    }
  }
}

/** 16 bytes as `ms-seq`. */
function idText(id: Slice): string {
  const { view, start } = id;
  return `${view.getBigUint64(start)}-${view.getBigUint64(start + 8)}`;
}

/** Replies that come back: how many, and the first error among them. */
class Replies {
  count = 0;
  firstError: string | null = null;
  private readonly found = new ScannedReplies(SOCKET_BYTES);
  private readonly scanner = new ReplyScanner(this.found);

  take(chunk: Buffer): void {
    for (let from = 0; from < chunk.length; from += SOCKET_BYTES) {
      const piece = chunk.subarray(from, from + SOCKET_BYTES);
      const n = this.scanner.scan(piece, 0, piece.length);
      this.count += n;
      if (this.firstError !== null || this.scanner.unusual === 0) continue;
      for (let i = 0; i < n; i++) {
        if (this.found.kinds[i] !== ReplyKind.Error) continue;
        const { errorAt } = this.scanner;
        this.firstError = piece.toString('latin1', errorAt, errorAt + 200).split('\r\n')[0];
        break;
      }
    }
  }
}

async function connected(address: Address): Promise<Socket> {
  const socket = address.path === undefined ? connect(address.port, address.host) : connect(address.path);
  await once(socket, 'connect');
  return socket;
}

/** Sends a file's content to a server. Throws the first error that it answers. Returns how many keys could not be sent. */
export async function replayFile(path: string, address: Address): Promise<number> {
  const visitor = new CommandVisitor();
  const reader = new RdbReader(visitor, { size: statSync(path).size });
  const socket = await connected(address);
  const replies = new Replies();
  let failure: Error | null = null;
  let wake = (): void => {};
  socket.on('data', (chunk: Buffer) => {
    replies.take(chunk);
    wake();
  });
  socket.on('error', (error) => {
    failure = error;
    wake();
  });
  socket.on('close', () => {
    failure ??= new Error('the server closed the connection');
    wake();
  });
  const flush = async (): Promise<void> => {
    const { out } = visitor;
    const more = socket.write(Buffer.from(out.u8.subarray(0, out.pos)));
    out.pos = 0;
    if (!more) {
      await new Promise<void>((resolve) => {
        socket.once('drain', resolve);
        wake = resolve;
      });
    }
    if (failure !== null) throw failure;
    if (replies.firstError !== null) throw new Error(`the server answered: ${replies.firstError}`);
  };
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) {
      reader.feed(chunk as Buffer);
      await flush();
    }
    reader.finish();
    await flush();
    while (replies.count < visitor.commands && failure === null) {
      await new Promise<void>((resolve) => (wake = resolve));
    }
    await flush();
  } finally {
    socket.removeAllListeners('close');
    socket.destroy();
  }
  return visitor.skipped;
}
