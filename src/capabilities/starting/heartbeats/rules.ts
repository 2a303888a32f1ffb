import { expressionLanguage } from '../../../engine/expressions/expression.ts';
import { ExpressionError } from '../../../engine/expressions/expression-error.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import { deepEqual, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { HeartbeatRequest, TickStatus } from '../../../protocol/starting/heartbeats.ts';
import { checkObservation, type Observed } from '../starter/observing.ts';
import { checkExpression, invalidField } from '../starter/rules.ts';

/** The largest state that a heartbeat stores, as JSON. */
export const STATE_BYTES_MAX = 16 * 1_024;

/** The result of a tick. */
export interface Tick {
  readonly status: TickStatus;
  readonly error?: string;
  readonly change?: StateChange;
}

/** A difference between two states. */
interface StateChange {
  readonly from: JsonObject;
  readonly to: JsonObject;
  /** Whether it starts a run. */
  readonly startsRun: boolean;
}

/** The state before the first observation, so that the first one is a change. */
export const INITIAL_STATE: JsonObject = {};

const STATE = expressionLanguage(['observed', 'prior']);
const WHEN = expressionLanguage(['from', 'to']);

/** Compares an observation with the state before it. The same observation twice gives no second change. */
export function tickOf(
  { state, when }: Pick<HeartbeatRequest, 'state' | 'when'>,
  prior: JsonObject,
  result: Observed,
): Tick {
  if (!('observed' in result)) return result;
  try {
    const { observed, token = observed } = result;
    const to = asState(state === undefined ? token : STATE.compile(state)({ observed, prior }));
    if (Buffer.byteLength(JSON.stringify(to)) > STATE_BYTES_MAX) {
      return { status: 'error', error: `The state is larger than ${STATE_BYTES_MAX} bytes.` };
    }
    if (deepEqual(to, prior)) return { status: 'ok' };
    const startsRun = when === undefined || WHEN.compile(when)({ from: prior, to }) === true;
    return { status: 'ok', change: { from: prior, to, startsRun } };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { status: 'error', error: `An expression failed: ${error.message}.` };
  }
}

/** The protocol requires states to be objects, so other values become the member `value`. */
function asState(value: unknown): JsonObject {
  return isObject(value) ? value : { value: value ?? null };
}

/** Refuses a request that is not consistent, or whose expressions do not compile. */
export function checkHeartbeat(request: HeartbeatRequest): Refusal | undefined {
  const { observe, state, when, workflowId, inputs } = request;
  if (workflowId === undefined && inputs !== undefined) {
    return invalidField('inputs', 'inputs requires workflowId.');
  }
  if (workflowId === undefined && when !== undefined) return invalidField('when', 'when requires workflowId.');
  return (
    checkObservation('observe', observe) ??
    checkExpression('state', state, STATE.compile) ??
    checkExpression('when', when, WHEN.compile)
  );
}
