import { Compile } from 'typebox/compile';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { type Continuation, GoalBounds, type GoalEdit, type GoalRequest } from '../../../protocol/learning/goals.ts';

const bounds = Compile(GoalBounds);

/** What judges and bounds decide, and nobody else: completion is never claimed. */
const OWNED = ['state', 'progress'] as const;

/** Bounds come first: a goal without them is none, whatever else is wrong with it. */
export function refuseBounds(body: unknown): Refusal | undefined {
  const given = isObject(body) ? body.bounds : undefined;
  if (isObject(given) && Object.keys(given).length > 0 && bounds.Check(given)) return undefined;
  return misfit('bounds', 'A goal has bounds: at least one of maxLoopIterations, maxCostUsd and runTimeoutMs.');
}

export function refuseOwned(body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined;
  const { completion } = body as JsonObject;
  const field =
    OWNED.find((name) => name in body) ??
    (isObject(completion) && 'lastVerdict' in completion ? 'completion.lastVerdict' : undefined);
  return field && misfit(field, `${field} is what the judge and the bounds make of it; it cannot be set.`);
}

export function refuseNewBounds(body: unknown): Refusal | undefined {
  if (!isObject(body) || !('bounds' in body)) return undefined;
  return misfit('bounds', 'The bounds of a goal stay as they are.');
}

/** Whether this host can do what the goal asks of it. */
export function refuseUnserved(
  { completion, continuation }: Pick<GoalEdit, 'completion' | 'continuation'> | GoalRequest,
  served: ReadonlySet<Continuation>,
): Refusal | undefined {
  if (continuation && !served.has(continuation.mode)) {
    return misfit('continuation.mode', `This host serves ${[...served].join(', ')}.`);
  }
  if (continuation?.mode === 'manual' && continuation.armRef != null) {
    return misfit('continuation.armRef', 'Who starts runs by hand has no arm.');
  }
  if (completion?.check === 'verifier' && completion.verifierRef == null) {
    return misfit('completion.verifierRef', 'Name the verifier that judges.');
  }
  return undefined;
}

/** The body was understood, and cannot be done. */
export function misfit(field: string, message: string): Refusal {
  return { ...refuse('validation_error', message, { field }), status: 422 };
}
