/** The default user's password (`requirepass`), kept as its digest. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from './config.ts';

export class Password {
  private digest: Buffer | null = null;

  constructor(config: Config) {
    config.onChange('requirepass', () => {
      const text = config.text('requirepass');
      this.digest = text === '' ? null : digest(Buffer.from(text, 'latin1'));
    });
  }

  get isSet(): boolean {
    return this.digest !== null;
  }

  /** True for the password, and for any when none is set. */
  matches(password: Buffer): boolean {
    return this.digest === null || timingSafeEqual(digest(password), this.digest);
  }

  /** As ACL LIST shows it. */
  get rule(): string {
    return this.digest === null ? 'nopass' : `#${this.digest.toString('hex')}`;
  }
}

function digest(password: Buffer): Buffer {
  return createHash('sha256').update(password).digest();
}
