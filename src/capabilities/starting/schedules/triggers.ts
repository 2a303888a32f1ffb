import { inactivityOf } from '../../../engine/definition/activity.ts';
import { makePlan } from '../../../engine/definition/plan.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import type { WorkflowCompanion } from '../../running/workflows/door.ts';
import { triggersOf } from './rules.ts';
import type { ScheduleService } from './service.ts';

const SCOPE = 'schedules:write';

/** Keeps the triggers of type `schedule` of a workflow and its schedules the same. */
export function triggerCompanion(schedules: Pick<ScheduleService, 'synchronize'>): WorkflowCompanion {
  return async ({ subject, scopes }, workflowId, definition) => {
    const isScheduled = definition !== undefined && !inactivityOf(definition);
    const wanted = isScheduled ? triggersOf(definition) : new Map<string, ScheduleRequest>();
    if (isRefusal(wanted)) return wanted;
    if (wanted.size > 0 && !scopes.has(SCOPE)) {
      return refuse('forbidden', `A trigger of type schedule requires the scope ${SCOPE}.`, { scopeRequired: SCOPE });
    }
    // The version does not matter: it has no influence on what a run may be given.
    const plan = definition && wanted.size > 0 ? makePlan(definition, 0) : undefined;
    const change = await schedules.synchronize(subject, { plan, workflowId }, wanted);
    if (!isRefusal(change) || change.refused !== 'validation_error') return change;
    return { ...change, status: 422 };
  };
}
