/** Every command of the server. */
import type { Command } from './command.ts';
import { bitCommands } from './commands/bits.ts';
import { connectionCommands } from './commands/connection.ts';
import { hashCommands } from './commands/hashes.ts';
import { keyCommands } from './commands/keys.ts';
import { listCommands } from './commands/lists.ts';
import { setCommands } from './commands/sets.ts';
import { stringCommands } from './commands/strings.ts';
import { zsetCommands } from './commands/zsets.ts';

export const commandTable: readonly Command[] = [
  ...stringCommands,
  ...bitCommands,
  ...keyCommands,
  ...listCommands,
  ...setCommands,
  ...hashCommands,
  ...zsetCommands,
  ...connectionCommands,
];
