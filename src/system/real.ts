import { randomFillSync } from 'node:crypto';
import { type Logger, pino } from 'pino';
import type { Clock } from './clock.ts';
import { type Ids, RANDOM_DIGITS, sortableIds } from './ids.ts';
import { redactText } from './redaction.ts';

/** The real clock, randomness and log. No other file of the host reads them, so tests can replace them all. */

/** The machine's clock and timers. */
export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, Math.min(ms, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
  soon(action) {
    setImmediate(action);
  },
  processorMs() {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  },
};

/** Node fires a longer timer at once. An action that is due later is woken early and must check the time again. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** Generates ids from a clock, the machine's unless given, and a cryptographic random source. */
export function realIds(clock: Pick<Clock, 'now'> = realClock): Ids {
  return sortableIds(() => clock.now(), base36Source());
}

const BASE36 = '0123456789abcdefghijklmnopqrstuvwxyz';

/** Discards bytes from 252 on, the largest multiple of 36, so that every digit is equally likely. */
function base36Source(): () => string {
  const pool = new Uint8Array(4_096);
  let position = pool.length;
  const nextByte = (): number => {
    if (position === pool.length) {
      randomFillSync(pool);
      position = 0;
    }
    return pool[position++]!;
  };
  return () => {
    let digits = '';
    while (digits.length < RANDOM_DIGITS) {
      const byte = nextByte();
      if (byte < 252) digits += BASE36[byte % 36]!;
    }
    return digits;
  };
}

/** Opens the log: JSON lines for machines, or coloured text if `isPretty`. */
export async function realLog(level: string, isPretty: boolean): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  };
  if (!isPretty) return pino(options);
  const { PinoPretty } = await import('pino-pretty');
  return pino(options, PinoPretty({ sync: true }));
}

/** Redacts an error before it is logged: its message may quote what a caller sent. */
function describeError(error: Error): object {
  return { type: error.name, message: redactText(error.message), stack: redactText(error.stack ?? '') };
}
