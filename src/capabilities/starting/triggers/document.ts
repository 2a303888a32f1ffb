import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Trigger, TriggerEvent, WebhookTriggerConfig } from '../../../protocol/starting/triggers.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { ownerFrom, subjectOf } from '../../subject-columns.ts';
import { timestamp } from '../../timestamps.ts';
import type { TriggerRow } from './records.ts';
import type { TriggerSecrets } from './secrets.ts';

/** Where webhooks send their requests. */
export const HOOKS = '/v1/host/capstan/hooks';

/** The name under which the runs of a trigger start. */
function principalOf({ workflow_id, name }: Pick<TriggerRow, 'workflow_id' | 'name'>): string {
  return `trigger:${workflow_id}/${name}`;
}

/** On whose behalf the runs of a trigger start: the tenant of who registered it, under the name of the trigger. */
export function runSubjectOf(row: TriggerRow): Subject {
  return { ...subjectOf(row), principal: principalOf(row) };
}

/** The config that was validated when the definition was registered. */
export function configOf({ config }: Pick<TriggerRow, 'config'>): WebhookTriggerConfig {
  return JSON.parse(config) as WebhookTriggerConfig;
}

/** A trigger as callers see it. `origin` is given if they may see the URL; without `secrets` it cannot be unsealed. */
export function triggerFrom(row: TriggerRow, secrets: TriggerSecrets | undefined, origin: string | undefined): Trigger {
  return {
    id: row.trigger_id,
    workflowId: row.workflow_id,
    name: row.name,
    type: row.type,
    enabled: row.is_enabled === 1,
    principal: principalOf(row),
    ...(row.type === 'webhook' ? webhookMembers(row, secrets, origin) : eventMembers(row)),
    owner: ownerFrom(row),
    createdAt: timestamp(row.created_at),
    updatedAt: timestamp(row.updated_at),
  };
}

function webhookMembers(
  row: TriggerRow,
  secrets: TriggerSecrets | undefined,
  origin: string | undefined,
): Pick<Trigger, 'scheme' | 'url' | 'hasSecret' | 'rotatedAt'> {
  const { scheme } = configOf(row);
  return {
    scheme,
    ...(secrets && origin !== undefined ? { url: `${origin}${HOOKS}/${secrets.path}` } : {}),
    ...(scheme === 'path' ? {} : { hasSecret: secrets?.secret !== undefined }),
    ...(row.rotated_at === null ? {} : { rotatedAt: timestamp(row.rotated_at) }),
  };
}

function eventMembers({ event_type, last_error }: TriggerRow): Pick<Trigger, 'eventType' | 'lastError'> {
  return {
    eventType: event_type as TriggerEvent,
    ...(last_error === null ? {} : { lastError: JSON.parse(last_error) }),
  };
}

/** What the audit log says about a trigger. */
export function auditDetails(row: TriggerRow): JsonObject {
  const { workflow_id: workflowId, name, type } = row;
  return { workflowId, trigger: name, type, enabled: row.is_enabled === 1 };
}
