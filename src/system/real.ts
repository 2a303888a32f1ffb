import { randomFillSync } from 'node:crypto';
import { type Logger, pino } from 'pino';
import type { Clock } from './clock.ts';
import { CHANCE_DIGITS, type Ids, sortableIds } from './ids.ts';
import { redactText } from './redaction.ts';

/** The machine's own clock, randomness and log: the only file that reads them. */

export const realClock: Clock = {
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, Math.min(ms, TIMER_MAX_MS));
    return () => clearTimeout(timer);
  },
  soon(action) {
    setImmediate(action);
  },
};

/** Longer than this and Node fires at once. Whoever waits longer looks again when the timer fires. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export function realIds(): Ids {
  return sortableIds(() => Date.now(), base36Source());
}

/** Digits from bytes below 252, the largest multiple of 36, so that each is equally likely. */
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
    while (digits.length < CHANCE_DIGITS) {
      const byte = nextByte();
      if (byte < 252) digits += (byte % 36).toString(36);
    }
    return digits;
  };
}

export async function realLog(level: string, isForPeople: boolean): Promise<Logger> {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
  };
  if (!isForPeople) return pino(options);
  const { PinoPretty } = await import('pino-pretty');
  return pino(options, PinoPretty({ sync: true }));
}

/** What an error may say in a log: messages can quote what a caller sent. */
function describeError(error: Error): object {
  return { type: error.name, message: redactText(error.message), stack: redactText(error.stack ?? '') };
}
