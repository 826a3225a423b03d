import type { CommandLog } from '../../src/server/command-log.ts';
import { encodeCommand } from './harness.ts';
import { parseReply } from './replies.ts';

/** A log that keeps its frames in memory. */
export class MemoryLog implements CommandLog {
  readonly frames: Buffer[] = [];
  position = 0;
  policy = 'no' as const;
  onSynced = (): void => {};
  readonly failure = null;

  get syncedPosition(): number {
    return this.position;
  }

  append(payload: Buffer): number {
    this.frames.push(Buffer.from(payload));
    return (this.position += payload.length);
  }

  /** The logged commands, as lines. */
  lines(): string[] {
    const lines: string[] = [];
    let rest = Buffer.concat(this.frames).toString('latin1');
    while (rest !== '') {
      const command = parseReply(rest);
      if (typeof command === 'string') throw new Error(`not a command: ${command}`);
      const words = command.elements.map((each) => (each as string).slice(1));
      lines.push(words.join(' '));
      rest = rest.slice(encodeCommand(words.map((word) => Buffer.from(word, 'latin1'))).length);
    }
    return lines;
  }
}
