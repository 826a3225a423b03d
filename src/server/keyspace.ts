/** Who is told of changes to keys: watching clients, caching clients, listeners to keyspace events. */
import type { Database } from '../store/api.ts';
import type { EventClass } from './context.ts';
import { eventClasses } from './parameters.ts';
import type { Server } from './server.ts';

export class Keyspace {
  private readonly server: Server;
  /** `notify-keyspace-events`. */
  private classes = new Set<string>();

  constructor(server: Server) {
    this.server = server;
    server.config.onChange('notify-keyspace-events', () => {
      this.classes = eventClasses(server.config.text('notify-keyspace-events'));
      this.observe();
    });
  }

  /** Brings `server.observed` up to date. */
  observe(): void {
    const { watches, tracking } = this.server;
    this.server.observed = watches.anyone || tracking.anyone || this.classes.size > 0;
  }

  /** A key's value has changed: whoever watches it is told. */
  changed(db: Database, key: Buffer): void {
    const { watches, tracking } = this.server;
    const name = key.latin1Slice();
    watches.changed(db, name);
    if (tracking.anyone) tracking.changed(db, name);
  }

  /** Publishes a keyspace event, if its class is listened to. */
  notify(db: Database, key: Buffer, eventClass: EventClass, event: string): void {
    const { classes } = this;
    const { pubsub } = this.server;
    if (!classes.has(eventClass)) return;
    if (classes.has('K'))
      pubsub.publish(
        Buffer.concat([Buffer.from(`__keyspace@${db.index}__:`), key]),
        Buffer.from(event),
        false,
      );
    if (classes.has('E')) pubsub.publish(Buffer.from(`__keyevent@${db.index}__:${event}`), key, false);
  }
}
