import { Compile } from 'typebox/compile';
import { makePlan } from '../../engine/plan.ts';
import { isRefusal, type Refusal, refuse } from '../../protocol/errors.ts';
import { ScheduleRequest } from '../../protocol/schedules.ts';
import type { WorkflowDefinition } from '../../protocol/workflows.ts';
import { misfitsOf } from '../../runtime/catalog.ts';
import type { Companion } from '../workflows/service.ts';
import { type ScheduleService, TOO_MANY } from './service.ts';

const SCOPE = 'schedules:write';
const requests = Compile(ScheduleRequest);

/** Triggers of type `schedule` are schedules of their workflow: they come, change and go with it. */
export function triggerCompanion({ accord, announce }: Pick<ScheduleService, 'accord' | 'announce'>): Companion {
  return async ({ subject, scopes }, workflowId, definition) => {
    const wanted = definition ? requestsOf(definition) : new Map<string, ScheduleRequest>();
    if (isRefusal(wanted)) return wanted;
    if (wanted.size > 0 && !scopes.has(SCOPE)) {
      return refuse('forbidden', `A trigger of type schedule takes the scope ${SCOPE}.`, { scopeRequired: SCOPE });
    }
    // The version does not matter here: what a run may be given does not depend on it.
    const plan = definition && wanted.size > 0 ? makePlan(definition, 0) : undefined;
    const agreed = await accord(subject, { plan, workflowId }, wanted);
    if (isRefusal(agreed)) return agreed.refused === 'validation_error' ? { ...agreed, status: 422 } : agreed;
    return {
      writes: agreed.writes,
      contested: 'revision',
      refusals: { schedules: TOO_MANY },
      committed: () => agreed.schedules.forEach(announce),
    };
  };
}

/** What is asked for, by the id of the trigger. */
function requestsOf({ id: workflowId, triggers }: WorkflowDefinition): ReadonlyMap<string, ScheduleRequest> | Refusal {
  const wanted = new Map<string, ScheduleRequest>();
  for (const [index, { id, type, config = {}, enabled }] of triggers.entries()) {
    if (type !== 'schedule' || enabled === false) continue;
    const request = { ...config, workflowId, enabled: true };
    const [misfit] = misfitsOf(requests, request);
    if (misfit) return misfitAt(`triggers[${index}].config${misfit.path}`, misfit.message);
    if (wanted.has(id)) return misfitAt(`triggers[${index}].id`, 'is the id of another schedule, too');
    wanted.set(id, request as ScheduleRequest);
  }
  return wanted;
}

function misfitAt(path: string, message: string): Refusal {
  return { ...refuse('validation_error', `${path}: ${message}`, { fields: [{ path, message }] }), status: 422 };
}
