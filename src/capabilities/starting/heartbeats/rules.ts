import { ExpressionError, expressionLanguage } from '../../../engine/expressions/expression.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { deepEqual, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { type HeartbeatRequest, MIN_INTERVAL_SEC, type TickStatus } from '../../../protocol/starting/heartbeats.ts';
import type { Observation } from '../../../protocol/starting/observations.ts';

export const STATE_BYTES_MAX = 16 * 1_024;

/** What a look came to: what was seen and, where that is a lot, what of it is enough to tell a change. */
export type Look =
  | { readonly observed: unknown; readonly token?: JsonObject }
  | { readonly status: 'timeout' | 'error'; readonly error: string };

/** What there is to say of a tick, and what is different from now on. */
export interface Tick {
  readonly status: TickStatus;
  readonly error?: string;
  readonly change?: Change;
}

export interface Change {
  readonly from: JsonObject;
  readonly to: JsonObject;
  /** Whether it is to start a run. */
  readonly isWanted: boolean;
}

/** Before the first look nothing was seen, so that seeing anything is a change. */
export const NOTHING_SEEN: JsonObject = {};

const STATE = expressionLanguage(['observed', 'prior']);
const WHEN = expressionLanguage(['from', 'to']);

/** What a heartbeat makes of what it sees: the same for the same, so that nobody is told anything twice. */
export function tickOf({ state, when }: Pick<HeartbeatRequest, 'state' | 'when'>, prior: JsonObject, look: Look): Tick {
  if (!('observed' in look)) return look;
  try {
    const { observed, token = observed } = look;
    const to = asState(state === undefined ? token : STATE.compile(state)({ observed, prior }));
    if (Buffer.byteLength(JSON.stringify(to)) > STATE_BYTES_MAX) {
      return { status: 'error', error: `The state is larger than ${STATE_BYTES_MAX} bytes.` };
    }
    if (deepEqual(to, prior)) return { status: 'ok' };
    const isWanted = when === undefined || WHEN.compile(when)({ from: prior, to }) === true;
    return { status: 'ok', change: { from: prior, to, isWanted } };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { status: 'error', error: `An expression failed: ${error.message}.` };
  }
}

/** The protocol knows states that are objects. */
function asState(value: unknown): JsonObject {
  return isObject(value) ? value : { value: value ?? null };
}

/** The first tick that is not over, on the beat. Those that were missed are never made up for. */
export function nextTick(awaited: number, intervalSec: number, now: number): number {
  const intervalMs = intervalOf(intervalSec) * 1_000;
  const passed = Math.floor(Math.max(0, now - awaited) / intervalMs) + 1;
  return awaited + passed * intervalMs;
}

export function intervalOf(intervalSec: number): number {
  return Math.max(intervalSec, MIN_INTERVAL_SEC);
}

/** What is wrong with what somebody wrote down. */
export function checkHeartbeat(request: HeartbeatRequest): Refusal | undefined {
  const { observe, state, when, workflowId, inputs } = request;
  if (workflowId === undefined && inputs !== undefined) return misfit('inputs', 'Without workflowId nobody gets them.');
  if (workflowId === undefined && when !== undefined) return misfit('when', 'Without workflowId nothing is started.');
  return (
    checkObservation('observe', observe) ??
    problemAt('state', state, STATE.compile) ??
    problemAt('when', when, WHEN.compile)
  );
}

/** One thing is looked at; those that are made by something else may leave that to it. */
export function checkObservation(field: string, observe: Observation | undefined): Refusal | undefined {
  if (observe === undefined || Object.keys(observe).length === 1) return undefined;
  return misfit(field, `${field} has one of http, kv and runs.`);
}

export function problemAt(
  field: string,
  text: string | undefined,
  compile: (text: string) => unknown,
): Refusal | undefined {
  if (text === undefined) return undefined;
  try {
    compile(text);
    return undefined;
  } catch (error) {
    return misfit(field, `${field} is no expression: ${(error as Error).message}`);
  }
}

function misfit(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}
