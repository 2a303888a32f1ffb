import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { MIN_INTERVAL_SEC } from '../../../protocol/starting/heartbeats.ts';

/**
 * What a starter is doing: waiting for its condition (`armed`), switched off (`disabled`), done because nothing follows
 * (`finished`), or given up because its run could not be started (`failed`).
 */
export type StarterState = 'armed' | 'disabled' | 'finished' | 'failed';

/**
 * What happens to a starter. People and owners enable and disable it. An evaluation of its condition ends with `await`
 * (there is a next time), `finish` or `fail`.
 */
export type StarterEvent = 'enable' | 'disable' | 'await' | 'finish' | 'fail';

/** The one table of states. An event that a state does not list is refused. The end of a loan disables in any state. */
const TRANSITIONS: { readonly [S in StarterState]: { readonly [E in StarterEvent]?: StarterState } } = {
  armed: { enable: 'armed', disable: 'disabled', await: 'armed', finish: 'finished', fail: 'failed' },
  disabled: { enable: 'armed', disable: 'disabled' },
  finished: {},
  failed: {},
};

/** The state after an event; undefined where the event cannot happen. */
export function nextState(state: StarterState, event: StarterEvent): StarterState | undefined {
  return TRANSITIONS[state][event];
}

const DAY_MS = 24 * 60 * 60_000;

/** A time that passed at most this long ago still counts as due: the hosts were busy, not down. */
export const GRACE_MS = 60_000;
const HORIZON_DAYS = 3_660;
/** How far ahead a starter may be due. */
export const HORIZON_MS = HORIZON_DAYS * DAY_MS;
/** The same as an ISO 8601 duration. */
export const HORIZON = `P${HORIZON_DAYS}D`;

/** An interval as it is applied: shorter ones than the advertised minimum are rounded up. */
export function intervalOf(intervalSec: number): number {
  return Math.max(intervalSec, MIN_INTERVAL_SEC);
}

/** The first multiple of the interval after `awaited` that is not over yet. Missed ones are never made up for. */
export function nextTick(awaited: number, intervalSec: number, now: number): number {
  const intervalMs = intervalOf(intervalSec) * 1_000;
  const passed = Math.floor(Math.max(0, now - awaited) / intervalMs) + 1;
  return awaited + passed * intervalMs;
}

/** Refuses a request because of one of its fields. */
export function invalidField(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}

/** Refuses an expression that does not compile. */
export function checkExpression(
  field: string,
  text: string | undefined,
  compile: (text: string) => unknown,
): Refusal | undefined {
  if (text === undefined) return undefined;
  try {
    compile(text);
    return undefined;
  } catch (error) {
    return invalidField(field, `${field} is not a valid expression: ${(error as Error).message}`);
  }
}
