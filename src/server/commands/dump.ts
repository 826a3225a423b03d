/** DUMP and RESTORE: a value as a string of bytes, in Redis's form. */
import { ByteSink } from '../../bytes/sink.ts';
import { Slice } from '../../bytes/slice.ts';
import { RdbError } from '../../rdb/error.ts';
import { payloadIsSound, readPayload, writePayload } from '../../rdb/payload.ts';
import {
  RdbKey,
  RdbValue,
  RdbVisitor,
  type StreamConsumer,
  type StreamGroup,
  type StreamState,
} from '../../rdb/visitor.ts';
import { Type, type Database, type Stream } from '../../store/api.ts';
import { showStream, StreamImport } from '../../store/dump/stream-events.ts';
import { CommandError, type Command } from '../command.ts';
import type { Context } from '../context.ts';
import { hashFieldSet, setMemberAdded, zsetMemberAdded } from '../encoding.ts';
import { syntaxError } from '../errors.ts';
import { lookedUp } from './announce.ts';
import { integerFrom } from './arguments.ts';
import { keyAt } from './key-specs.ts';
import { temporaryKey, withTemporary } from './temporary.ts';

const BUSY_KEY = 'BUSYKEY Target key name already exists.';
const INVALID_TTL = 'ERR Invalid TTL value, must be >= 0';
const INVALID_IDLE_TIME = 'ERR Invalid IDLETIME value, must be >= 0';
const INVALID_FREQUENCY = 'ERR Invalid FREQ value, must be >= 0 and <= 255';
const NOT_SOUND = 'ERR DUMP payload version or checksum are wrong';
const BAD_DATA = 'ERR Bad data format';
const FREQUENCY_MAX = 255;

/** Tells the visitor the value at a key that exists. */
function showValue(db: Database, key: Slice, visitor: RdbVisitor): void {
  const shown = new RdbKey();
  shown.key.setSlice(key);
  const begin = (type: RdbValue, count: number): void => {
    shown.type = type;
    shown.count = count;
    visitor.beginKey(shown);
  };
  switch (db.type(key)) {
    case Type.String: {
      const value = new Slice();
      db.getString(key, value);
      begin(RdbValue.String, value.length);
      visitor.stringPart(value);
      break;
    }
    case Type.List: {
      const list = db.list(key)!;
      begin(RdbValue.List, list.length);
      list.forEachFrom(0, 1, (element) => {
        visitor.element(element);
        return true;
      });
      break;
    }
    case Type.Set: {
      const set = db.set(key)!;
      begin(RdbValue.Set, set.size);
      set.forEachFrom(0, (member) => {
        visitor.element(member);
        return true;
      });
      break;
    }
    case Type.Hash: {
      const hash = db.hash(key)!;
      begin(RdbValue.Hash, hash.size);
      hash.forEachFrom(0, (field, value) => {
        visitor.field(field, value, -1);
        return true;
      });
      break;
    }
    case Type.ZSet: {
      const zset = db.zset(key)!;
      begin(RdbValue.ZSet, zset.size);
      zset.forEachFrom(0, 1, (member, score) => {
        visitor.member(member, score);
        return true;
      });
      break;
    }
    case Type.Stream: {
      const stream = db.stream(key)!;
      begin(RdbValue.Stream, stream.length);
      showStream(stream, visitor);
      break;
    }
  }
  visitor.endKey();
}

function dump(context: Context): void {
  const { args, db, reply } = context;
  const exists = db.type(args[1]) !== Type.None;
  lookedUp(context, args[1], exists);
  if (!exists) {
    reply.null();
    return;
  }
  const payload = new ByteSink(256);
  writePayload(payload, (writer) => showValue(db, args[1], writer));
  reply.bulkBytes(payload.u8.subarray(0, payload.pos));
}

/** Makes the value that it is told, at a key that does not exist yet. Throws BAD_DATA for one that cannot be. */
class ValueImport extends RdbVisitor {
  private readonly context: Context;
  private readonly key: Slice;
  private type: RdbValue = RdbValue.String;
  private size = 0;
  private readonly stream: StreamImport;

  constructor(context: Context, key: Slice) {
    super();
    this.context = context;
    this.key = key;
    let stream: Stream | undefined;
    this.stream = new StreamImport(() => (stream ??= context.db.stream(key, true)));
  }

  override beginKey({ type }: RdbKey): void {
    if (type === RdbValue.Module) throw new CommandError(BAD_DATA);
    this.type = type;
  }

  override stringPart(bytes: Slice): void {
    const { db } = this.context;
    if (this.size === 0) db.setString(this.key, bytes);
    else db.string(this.key, true).write(this.size, bytes);
    this.size += bytes.length;
  }

  override element(bytes: Slice): void {
    const { context, key } = this;
    this.size++;
    if (this.type === RdbValue.List) {
      context.db.list(key, true).pushRight(bytes);
      return;
    }
    if (!context.db.set(key, true).add(bytes)) throw new CommandError(BAD_DATA);
    setMemberAdded(context, key, this.size, bytes);
  }

  override field(field: Slice, value: Slice): void {
    const { context, key } = this;
    this.size++;
    if (!context.db.hash(key, true).set(field, value)) throw new CommandError(BAD_DATA);
    hashFieldSet(context, key, this.size, field, value);
  }

  override member(member: Slice, score: number): void {
    const { context, key } = this;
    this.size++;
    if (!context.db.zset(key, true).set(member, score)) throw new CommandError(BAD_DATA);
    zsetMemberAdded(context, key, this.size, member);
  }

  override streamEntry(id: Slice, fields: readonly Slice[], count: number): void {
    this.stream.entry(id, fields, count);
  }

  override streamEnd(state: StreamState): void {
    this.stream.state(state);
  }

  override streamGroup(group: StreamGroup): void {
    this.stream.streamGroup(group);
  }

  override streamPending(id: Slice, deliveredAt: number, deliveries: number): void {
    this.stream.pending(id, deliveredAt, deliveries);
  }

  override streamConsumer(consumer: StreamConsumer): void {
    this.stream.streamConsumer(consumer);
  }

  override streamOwned(id: Slice): void {
    this.stream.owned(id);
  }

  override endKey(): void {
    if (this.type === RdbValue.Stream) this.stream.end();
  }
}

/** Makes the value of the payload in place of what is at the key; without a change when it is damaged. */
function replaceWith(context: Context, key: Slice, payload: Slice): void {
  const { db } = context;
  withTemporary(context, () => {
    try {
      readPayload(payload, key, new ValueImport(context, temporaryKey));
    } catch (error) {
      throw error instanceof RdbError ? new CommandError(BAD_DATA) : error;
    }
    if (db.type(temporaryKey) === Type.None) throw new CommandError(BAD_DATA);
    db.rename(temporaryKey, db, key);
  });
}

function restore(context: Context): void {
  const { args, argc, db, now } = context;
  const [, key, , payload] = args;
  let replace = false;
  let absolute = false;
  let idle = -1;
  let frequency = false;
  for (let i = 4; i < argc; i++) {
    if (context.is(i, 'replace')) {
      replace = true;
    } else if (context.is(i, 'absttl')) {
      absolute = true;
    } else if (context.is(i, 'idletime') && i + 1 < argc && !frequency) {
      idle = integerFrom(context, ++i, 0, INVALID_IDLE_TIME);
    } else if (context.is(i, 'freq') && i + 1 < argc && idle < 0) {
      const value = context.bigInteger(++i);
      if (value < 0n || value > FREQUENCY_MAX) throw new CommandError(INVALID_FREQUENCY);
      frequency = true;
    } else {
      throw syntaxError();
    }
  }
  const existed = db.type(key) !== Type.None;
  if (existed && !replace) throw new CommandError(BUSY_KEY);
  const ttl = context.bigInteger(2);
  if (ttl < 0n) throw new CommandError(INVALID_TTL);
  if (!payloadIsSound(payload)) throw new CommandError(NOT_SOUND);
  const until = ttl === 0n ? 0 : Math.min(Number(ttl) + (absolute ? 0 : now), Number.MAX_SAFE_INTEGER);
  replaceWith(context, key, payload);
  context.reply.ok();
  if (until !== 0 && until <= now) {
    db.remove(key);
    if (!existed) return;
    context.changed(key, 'g', 'del');
    context.effect('DEL', key);
    return;
  }
  if (until !== 0) db.setExpiry(key, until);
  if (idle >= 0) db.setIdle(key, idle);
  context.event(key, 'n', 'new');
  context.ready(key);
  context.changed(key, 'g', 'restore');
  context.effect('RESTORE', key, until, payload, 'REPLACE', 'ABSTTL');
}

const restoring = {
  arity: -4,
  syntax: 'key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]',
  categories: ['keyspace', 'dangerous'],
  keys: [keyAt(1, 'OW', 'update')],
  complexity: 'O(N log N), N being the number of elements',
  run: restore,
} as const;

export const dumpCommands: readonly Command[] = [
  {
    name: 'dump',
    arity: 2,
    syntax: 'key',
    flags: ['readonly'],
    categories: ['keyspace'],
    keys: [keyAt(1, 'RO', 'access')],
    group: 'generic',
    since: '2.6.0',
    complexity: 'O(N), N being the number of elements',
    tips: ['nondeterministic_output'],
    summary: 'Gives the value at a key as bytes that RESTORE takes.',
    run: dump,
  },
  {
    ...restoring,
    name: 'restore',
    flags: ['write', 'denyoom'],
    group: 'generic',
    since: '2.6.0',
    summary: 'Makes a value from what DUMP gave.',
  },
  {
    ...restoring,
    name: 'restore-asking',
    flags: ['write', 'denyoom', 'asking'],
    group: 'server',
    since: '3.0.0',
    internal: true,
    summary: 'RESTORE between the nodes of a cluster.',
  },
];
