import type { Command } from '../command.ts';

export const bitCommands: readonly Command[] = [];
