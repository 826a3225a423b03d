import type { CommandModule } from 'yargs';
import { matrix } from './matrix.ts';
import { server } from './server.ts';

/** Every `ardent` command, in the order of `--help`. */
export const commands: CommandModule[] = [server, matrix as unknown as CommandModule];
