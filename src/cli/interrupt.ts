/** Ctrl-C and SIGTERM in long commands: the first ends the work in order, the second at once. */
import { EXIT } from './exit-codes.ts';

export interface Interrupt {
  /** Why the work is to end; null while nobody has asked. */
  readonly reason: string | null;
  /** The signals are the system's again. */
  release(): void;
}

/**
 * @param doing what the first signal leads to, as told to the user
 * @param note tells it
 * @param stop ends what need not be waited for
 */
export function onInterrupt(
  doing: string,
  note: (text: string) => void,
  stop: () => void = () => {},
): Interrupt {
  let reason: string | null = null;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (reason !== null) process.exit(EXIT.interrupted);
    reason = `interrupted by ${signal}`;
    note(`${signal}: ${doing} (once more: at once)`);
    stop();
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return {
    get reason() {
      return reason;
    },
    release() {
      process.removeListener('SIGINT', onSignal);
      process.removeListener('SIGTERM', onSignal);
    },
  };
}
