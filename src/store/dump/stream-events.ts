/** Streams from the store to RDB events, and back. */
import { Slice } from '../../bytes/slice.ts';
import { Damage } from '../../rdb/error.ts';
import { StreamConsumer, StreamGroup, StreamState, type RdbVisitor } from '../../rdb/visitor.ts';
import type { Stream, StreamConsumer as StoredConsumer, StreamGroup as StoredGroup } from '../api.ts';
import { copyId, newStreamId } from '../stream-id.ts';

const FIRST_POSSIBLE = newStreamId();

/** Tells the visitor what is between `beginKey` and `endKey`. */
export function showStream(stream: Stream, visitor: RdbVisitor): void {
  const { groups } = stream;
  stream.forEachFrom(0, 1, (id, fields, count) => {
    visitor.streamEntry(id, fields, count);
    return true;
  });
  const state = new StreamState();
  const firstId = newStreamId();
  stream.idAt(0, firstId);
  state.length = stream.length;
  state.lastId.setSlice(stream.lastId);
  state.firstId.setSlice(firstId);
  state.maxDeletedId.setSlice(stream.maxDeletedId);
  state.entriesAdded = stream.entriesAdded;
  const names = groups.names();
  state.groups = names.length;
  visitor.streamEnd(state);
  for (const name of names) showGroup(stream, name, visitor);
}

function showGroup({ groups }: Stream, name: Slice, visitor: RdbVisitor): void {
  const stored = groups.get(name)!;
  const group = new StreamGroup();
  group.name.setSlice(name);
  group.lastId.setSlice(stored.lastId);
  group.entriesRead = stored.entriesRead;
  group.pending = groups.pendingCount(stored);
  visitor.streamGroup(group);
  groups.forEachPending(stored, FIRST_POSSIBLE, (id, { deliveredAt, deliveries }) => {
    visitor.streamPending(id, deliveredAt, deliveries);
    return true;
  });
  const consumers = groups.consumers(stored);
  visitor.streamConsumers(consumers.length);
  for (const each of consumers) {
    const consumer = new StreamConsumer();
    consumer.name.setSlice(each.name);
    consumer.seenAt = consumer.activeAt = each.seenAt;
    consumer.pending = groups.ownedCount(stored, each);
    visitor.streamConsumer(consumer);
    groups.forEachOwned(stored, each, FIRST_POSSIBLE, (id) => {
      visitor.streamOwned(id);
      return true;
    });
  }
}

/** Takes the events of one stream after the other; `open` opens the one they belong to. Throws Damage. */
export class StreamImport {
  private readonly open: () => Stream;
  private group: StoredGroup | null = null;
  private consumer: StoredConsumer | null = null;
  /** Pending entries of the group that nobody owns yet. */
  private unowned = 0;
  private readonly id = newStreamId();

  constructor(open: () => Stream) {
    this.open = open;
  }

  entry(id: Slice, fields: readonly Slice[], count: number): void {
    this.open().append(id, fields, 0, count);
  }

  state(state: StreamState): void {
    const stream = this.open();
    stream.create();
    stream.lastId = state.lastId;
    stream.maxDeletedId = state.maxDeletedId;
    stream.entriesAdded = state.entriesAdded;
    this.unowned = 0;
  }

  streamGroup({ name, lastId, entriesRead }: StreamGroup): void {
    this.end();
    const id = newStreamId();
    copyId(lastId, id);
    this.group = this.open().groups.create(name, id, entriesRead);
    if (this.group === null) throw new Damage('a consumer group occurs twice');
  }

  pending(id: Slice, deliveredAt: number, deliveries: number): void {
    const { groups } = this.open();
    if (groups.pending(this.group!, id) !== null) throw new Damage('a pending entry occurs twice');
    copyId(id, this.id);
    groups.setPending(this.group!, this.id, { consumer: 0, deliveredAt, deliveries });
    this.unowned++;
  }

  streamConsumer({ name, seenAt }: StreamConsumer): void {
    const { groups } = this.open();
    if (groups.consumer(this.group!, name) !== null) throw new Damage('a consumer occurs twice');
    this.consumer = groups.createConsumer(this.group!, name.clone(), seenAt);
  }

  owned(id: Slice): void {
    const { groups } = this.open();
    const entry = groups.pending(this.group!, id);
    if (entry === null) throw new Damage('a consumer owns an entry that is not pending');
    if (entry.consumer !== 0) throw new Damage('a pending entry has two owners');
    copyId(id, this.id);
    groups.setPending(this.group!, this.id, { ...entry, consumer: this.consumer!.number });
    this.unowned--;
  }

  /** After the last event of a stream. */
  end(): void {
    if (this.unowned !== 0) throw new Damage('a pending entry has no owner');
  }
}
