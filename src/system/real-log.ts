import { type DestinationStream, type Logger, pino } from 'pino';
import { redactText } from './redaction.ts';

/** Opens the log: JSON lines for machines, to standard output unless told otherwise, or coloured text if `isPretty`. */
export async function realLog(level: string, isPretty: boolean, to?: DestinationStream): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  };
  if (!isPretty) return pino(options, to);
  const { PinoPretty } = await import('pino-pretty');
  return pino(options, PinoPretty({ sync: true, singleLine: true }));
}

/** Redacts an error before it is logged: its message may quote what a caller sent. */
function describeError(error: Error): object {
  return { type: error.name, message: redactText(error.message), stack: redactText(error.stack ?? '') };
}
