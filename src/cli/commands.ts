import type { CommandModule } from 'yargs';

/** Every `ardent` command, in the order of `--help`. */
export const commands: CommandModule[] = [];
