import type { StoreMemory } from './api.ts';
import type { Arena } from './arena.ts';
import type { Defragmenter } from './defragmenter.ts';

export interface TierMemoryGround {
  readonly arena: Arena;
  readonly defragmenter: Defragmenter;
  usedBytes(): number;
  evictableBytes(): number;
  /** `limit` has changed. */
  applyLimit(): void;
}

/** Bytes of the tier, as Store.memory. */
export class TierMemory implements StoreMemory {
  private readonly ground: TierMemoryGround;
  private bytes = Infinity;

  constructor(ground: TierMemoryGround) {
    this.ground = ground;
  }

  get used(): number {
    return this.ground.usedBytes();
  }

  get evictable(): number {
    return this.ground.evictableBytes();
  }

  get limit(): number {
    return this.bytes;
  }

  set limit(bytes: number) {
    this.bytes = bytes;
    this.ground.applyLimit();
  }

  get blocks(): number {
    return this.ground.arena.blockBytes;
  }

  get slabs(): number {
    return this.ground.arena.slabBytes;
  }

  get chunks(): number {
    return this.ground.arena.committedBytes;
  }

  get defragmenting(): boolean {
    return this.ground.defragmenter.active;
  }

  get movedBlocks(): number {
    return this.ground.defragmenter.moved;
  }
}
