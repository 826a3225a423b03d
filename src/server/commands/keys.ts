import type { Command } from '../command.ts';

export const keyCommands: readonly Command[] = [];
