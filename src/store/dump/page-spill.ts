/**
 * Pages that wait until all of their collection have come: a few in memory, the rest in a file that
 * has no name, so that nothing is left of it however the process ends.
 */
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { PAGE_BYTES } from '../arena.ts';

const PAGES_A_BLOCK = 512;
const BLOCK_BYTES = PAGES_A_BLOCK * PAGE_BYTES;
/** Blocks that stay in memory: 16 MB. */
const BLOCKS_IN_MEMORY = 16;

export class PageSpill {
  private readonly path: string;
  private fd = -1;
  private readonly blocks: Buffer[] = [];
  /** The block that is being filled, and blocks that were filled before it. */
  private block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  private filled = 0;
  private pages = 0;
  private readonly page = Buffer.from(new ArrayBuffer(PAGE_BYTES + 8), 0, PAGE_BYTES);
  /** By page, the page of the same collection before it, counted from 1. */
  private previous: Int32Array = new Int32Array(1024);
  /** By collection, its last page, counted from 1. */
  private last: Int32Array = new Int32Array(1024);

  /** @param path of the file, if one is needed */
  constructor(path: string) {
    this.path = path;
  }

  /** Takes a copy of a page of the collection with that number. */
  add(collection: number, u8: Buffer, start: number): void {
    u8.copy(this.block, (this.pages - this.filled * PAGES_A_BLOCK) * PAGE_BYTES, start, start + PAGE_BYTES);
    this.pages++;
    if (this.pages >= this.previous.length) this.previous = larger(this.previous, this.pages);
    if (collection >= this.last.length) this.last = larger(this.last, collection);
    this.previous[this.pages] = this.last[collection];
    this.last[collection] = this.pages;
    if (this.pages % PAGES_A_BLOCK === 0) this.store();
  }

  private store(): void {
    if (this.filled < BLOCKS_IN_MEMORY) {
      this.blocks.push(this.block);
      this.block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    } else {
      if (this.fd < 0) {
        this.fd = openSync(this.path, 'wx+', 0o600);
        unlinkSync(this.path);
      }
      for (let done = 0; done < BLOCK_BYTES;) {
        const at = (this.filled - BLOCKS_IN_MEMORY) * BLOCK_BYTES + done;
        done += writeSync(this.fd, this.block, done, BLOCK_BYTES - done, at);
      }
    }
    this.filled++;
  }

  /** Calls `visit` with every page of a collection; the memory is lent. */
  forEach(collection: number, visit: (u8: Buffer, start: number) => void): void {
    for (let page = this.last[collection] ?? 0; page !== 0; page = this.previous[page]) {
      const index = page - 1;
      const block = Math.floor(index / PAGES_A_BLOCK);
      const start = (index % PAGES_A_BLOCK) * PAGE_BYTES;
      if (block === this.filled) visit(this.block, start);
      else if (block < BLOCKS_IN_MEMORY) visit(this.blocks[block], start);
      else {
        readSync(this.fd, this.page, 0, PAGE_BYTES, (block - BLOCKS_IN_MEMORY) * BLOCK_BYTES + start);
        visit(this.page, 0);
      }
    }
  }

  close(): void {
    if (this.fd >= 0) closeSync(this.fd);
    this.fd = -1;
  }
}

function larger(table: Int32Array, index: number): Int32Array {
  const grown = new Int32Array(Math.max(table.length * 2, index + 1));
  grown.set(table);
  return grown;
}
