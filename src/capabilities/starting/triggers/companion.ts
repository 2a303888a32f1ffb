import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { Caller } from '../../request.ts';
import type { WorkflowCompanion } from '../../running/workflows/door.ts';
import { declaredTriggers, type WantedTrigger } from './rules.ts';
import type { TriggerService } from './service.ts';

/** Keeps the triggers that a workflow declares and those that are served the same. */
export function triggerCompanion(triggers: Pick<TriggerService, 'synchronize'>): WorkflowCompanion {
  return async (caller, workflowId, definition) => {
    const wanted = definition ? declaredTriggers(definition) : new Map<string, WantedTrigger>();
    if (isRefusal(wanted)) return wanted;
    for (const { type } of wanted.values()) {
      const refusal =
        lacking(caller, type, 'schedules:write') ?? (type === 'event' && lacking(caller, type, 'runs:read'));
      if (refusal) return refusal;
    }
    return triggers.synchronize(caller.subject, workflowId, wanted);
  };
}

/** Whoever declares a trigger has runs started; by an event, with what other runs resulted in. */
function lacking({ scopes }: Caller, type: string, scope: 'schedules:write' | 'runs:read'): Refusal | undefined {
  if (scopes.has(scope)) return undefined;
  return refuse('forbidden', `A trigger of type ${type} requires the scope ${scope}.`, { scopeRequired: scope });
}
