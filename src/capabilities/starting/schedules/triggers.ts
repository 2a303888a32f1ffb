import { makePlan } from '../../../engine/definition/plan.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import type { Companion } from '../../running/workflows/service.ts';
import { triggersOf } from './rules.ts';
import { type ScheduleService, TOO_MANY } from './service.ts';

const SCOPE = 'schedules:write';

/** Triggers of type `schedule` are schedules of their workflow: they come, change and go with it. */
export function triggerCompanion({ accord, announce }: Pick<ScheduleService, 'accord' | 'announce'>): Companion {
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
    return {
      writes: agreed.writes,
      contested: 'revision',
      refusals: { schedules: TOO_MANY },
      committed: () => agreed.schedules.forEach(announce),
    };
  };
}
