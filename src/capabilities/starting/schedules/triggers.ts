import { makePlan } from '../../../engine/definition/plan.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { changeOf } from '../../../runtime/change.ts';
import type { WorkflowCompanion } from '../../running/workflows/door.ts';
import { triggersOf } from './rules.ts';
import { type ScheduleService, TOO_MANY } from './service.ts';

const SCOPE = 'schedules:write';

/** Triggers of type `schedule` are schedules of their workflow: they come, change and go with it. */
export function triggerCompanion({
  accord,
  announce,
}: Pick<ScheduleService, 'accord' | 'announce'>): WorkflowCompanion {
  return async ({ subject, scopes }, workflowId, definition) => {
    const wanted = definition ? triggersOf(definition) : new Map<string, ScheduleRequest>();
    if (isRefusal(wanted)) return wanted;
    if (wanted.size > 0 && !scopes.has(SCOPE)) {
      return refuse('forbidden', `A trigger of type schedule takes the scope ${SCOPE}.`, { scopeRequired: SCOPE });
    }
    // The version does not matter here: what a run may be given does not depend on it.
    const plan = definition && wanted.size > 0 ? makePlan(definition, 0) : undefined;
    const agreed = await accord(subject, { plan, workflowId }, wanted);
    if (isRefusal(agreed)) return agreed.refused === 'validation_error' ? { ...agreed, status: 422 } : agreed;
    return changeOf(undefined, agreed.writes, {
      retryOn: ['revision'],
      refusals: { schedules: TOO_MANY },
      announce: [() => agreed.schedules.forEach(announce)],
    });
  };
}
