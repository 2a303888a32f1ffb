import { Compile } from 'typebox/compile';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { once } from '../../../protocol/format/once.ts';
import { type Continuation, GoalBounds, type GoalEdit, type GoalRequest } from '../../../protocol/learning/goals.ts';

const bounds = once(() => Compile(GoalBounds));

/** Members that only judges and bounds change: callers cannot claim that a goal is complete. */
const OWNED = ['state', 'progress'] as const;

/** Bounds are checked before the rest of the body: a goal without bounds is refused whatever else is wrong. */
export function refuseBounds(body: unknown): Refusal | undefined {
  const given = isObject(body) ? body.bounds : undefined;
  if (isObject(given) && Object.keys(given).length > 0 && bounds().Check(given)) return undefined;
  return unprocessable(
    'bounds',
    'A goal needs bounds: at least one of maxLoopIterations, maxCostUsd and runTimeoutMs.',
  );
}

/** Refuses bodies that set what only the judge and the bounds change. */
export function refuseOwned(body: unknown): Refusal | undefined {
  if (!isObject(body)) return undefined;
  const { completion } = body as JsonObject;
  const field =
    OWNED.find((name) => name in body) ??
    (isObject(completion) && 'lastVerdict' in completion ? 'completion.lastVerdict' : undefined);
  return field && unprocessable(field, `${field} cannot be set: it follows from the verdicts and the bounds.`);
}

/** Refuses edits of the bounds. */
export function refuseNewBounds(body: unknown): Refusal | undefined {
  if (!isObject(body) || !('bounds' in body)) return undefined;
  return unprocessable('bounds', 'The bounds of a goal cannot be changed.');
}

/** Refuses a continuation or a judge that this host does not serve. */
export function refuseUnserved(
  { completion, continuation }: Pick<GoalEdit, 'completion' | 'continuation'> | GoalRequest,
  served: ReadonlySet<Continuation>,
): Refusal | undefined {
  if (continuation && !served.has(continuation.mode)) {
    return unprocessable('continuation.mode', `This host serves ${[...served].join(', ')}.`);
  }
  if (continuation?.mode === 'manual' && continuation.armRef != null) {
    return unprocessable('continuation.armRef', 'A goal that is continued manually has no arm.');
  }
  if (completion?.check === 'verifier' && completion.verifierRef == null) {
    return unprocessable('completion.verifierRef', 'completion.verifierRef is missing: name the verifier that judges.');
  }
  return undefined;
}

/** Refuses, with status 422, a body that is well-formed but cannot be acted on. */
export function unprocessable(field: string, message: string): Refusal {
  return { ...refuse('validation_error', message, { field }), status: 422 };
}
