import type { Command } from '../command.ts';

export const zsetCommands: readonly Command[] = [];
