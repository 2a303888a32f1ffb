import { platform } from '../client/machine.ts';

/** Signals within this time are one: a service manager sends it to all processes, and one of them passes it on. */
const SAME_SIGNAL_MS = 1_000;
const EXIT_FAILED = 1;

/** Calls `stop` at the first of some signals. A second one ends the process at once. */
export function onStopSignal(signals: readonly NodeJS.Signals[], stop: (signal: NodeJS.Signals) => void): void {
  let stoppingSince: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    const now = platform.now();
    if (stoppingSince === undefined) {
      stoppingSince = now;
      stop(signal);
    } else if (now - stoppingSince >= SAME_SIGNAL_MS) process.exit(EXIT_FAILED);
  };
  for (const signal of signals) process.on(signal, onSignal);
}
