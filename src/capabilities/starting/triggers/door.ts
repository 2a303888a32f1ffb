import type { Refusal } from '../../../protocol/errors.ts';
import type { RotatedTrigger, RotateTriggerRequest, Trigger } from '../../../protocol/starting/triggers.ts';
import type { Change } from '../../../runtime/change.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

export { declaredTriggers } from './rules.ts';

/** Which triggers a list shows. */
export interface TriggerFilter {
  readonly workflowId?: string | undefined;
  readonly before?: string | undefined;
}

/** Triggers of workflows that others set off. They come, change and go with their workflow. */
export interface Triggers {
  /** Newest first. URLs are shown to callers who may change them. */
  list(caller: Caller, filter: TriggerFilter, limit: number, origin: string): Promise<Trigger[]>;
  find(caller: Caller, triggerId: string, origin: string): Promise<Trigger | Refusal>;
  /** Replaces the signing secret of a webhook, or its URL. */
  rotate(
    caller: Caller,
    triggerId: string,
    request: RotateTriggerRequest,
    origin: string,
  ): Promise<Change<RotatedTrigger> | Refusal>;
}

/** The door to triggers. */
export const Triggers = door<Triggers>()('triggers');
