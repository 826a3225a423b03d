/**
 * Writes beside a save, in an order that can be recognised: slot n mod SLOTS gets n, for n = 1, 2, 3… One
 * state of that history is told by its largest number alone, so a copy that mixes two moments is found out.
 */
import type { Redis } from 'ioredis';

const SLOTS = 997;
const IN_FLIGHT = 16;
const SLOT_PREFIX = 'load:';

export class OrderedWrites {
  /** The last number that was acknowledged. */
  acknowledged = 0;
  private stopped = false;
  private work: Promise<void> | null = null;
  private readonly client: Redis;

  constructor(client: Redis) {
    this.client = client;
  }

  start(): void {
    this.stopped = false;
    this.work = this.loop();
    // Told by `stop`.
    this.work.catch(() => {});
  }

  private async loop(): Promise<void> {
    while (!this.stopped) {
      const from = this.acknowledged;
      const sent = Array.from({ length: IN_FLIGHT }, (_, i) => {
        const n = from + 1 + i;
        return this.client.set(`${SLOT_PREFIX}${n % SLOTS}`, n);
      });
      await Promise.all(sent);
      this.acknowledged += IN_FLIGHT;
    }
  }

  /** Rejects with what went wrong meanwhile, unless the server was meant to die. */
  async stop(died = false): Promise<void> {
    this.stopped = true;
    if (died) await this.work?.catch(() => {});
    else await this.work;
  }
}

/**
 * Null when the slots are one state of the history that ends at `low` at the earliest and `high` at the
 * latest (`high` may lie beyond what was acknowledged by what was in flight); else what is wrong.
 */
export async function checkOrderedWrites(client: Redis, low: number, high: number): Promise<string | null> {
  const names = Array.from({ length: SLOTS }, (_, slot) => `${SLOT_PREFIX}${slot}`);
  const slots = (await client.mget(names)).map((text) => (text === null ? 0 : Number(text)));
  const last = Math.max(...slots);
  for (let slot = 0; slot < SLOTS; slot++) {
    const offset = (last - slot) % SLOTS;
    const expected = Math.max(0, last - (offset < 0 ? offset + SLOTS : offset));
    // Number 0 was never written: slot 0 begins with SLOTS.
    if (slots[slot] !== expected) {
      return `two moments are mixed: the last write is ${last}, and slot ${slot} has ${slots[slot]}, not ${expected}`;
    }
  }
  if (last < low) return `write ${low} was acknowledged before, and the last one found is ${last}`;
  if (last > high + IN_FLIGHT) return `write ${last} is found, and only ${high} were sent`;
  return null;
}
