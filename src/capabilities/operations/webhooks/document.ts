import type { WebhookDelivery, WebhookSubscription } from '../../../protocol/operations/webhooks.ts';
import { eventIdOf } from '../../../runtime/recording.ts';
import { redactText } from '../../../system/redaction.ts';
import { type DeliveryRow, listFrom, type WebhookRow } from './records.ts';

/** A webhook as the API shows it, without its secret. `url` is undefined if it cannot be unsealed. */
export function webhookDocument(row: WebhookRow, url: string | undefined): WebhookSubscription {
  return {
    webhookId: row.webhook_id,
    tenantId: row.scope_name,
    ...(url === undefined ? {} : { url: redactText(url) }),
    events: listFrom(row.events),
    tags: listFrom(row.tags),
    secretFingerprint: row.fingerprint,
    createdBy: row.created_by,
    createdAt: timeText(row.created_at),
    ...(row.rotated_at === null ? {} : { rotatedAt: timeText(row.rotated_at) }),
  };
}

/** A delivery as the API shows it. */
export function deliveryDocument(row: DeliveryRow): WebhookDelivery {
  return {
    deliveryId: row.delivery_id,
    webhookId: row.webhook_id,
    runId: row.run_id,
    eventId: eventIdOf(row.run_id, row.sequence),
    eventType: row.event_type,
    sequence: row.sequence,
    state: row.state,
    attempts: row.attempts,
    ...(row.status === null ? {} : { lastStatus: row.status }),
    ...(row.error === null ? {} : { lastError: row.error }),
    createdAt: timeText(row.created_at),
    lastAttemptAt: timeText(row.attempted_at),
    ...(row.due_at === null ? {} : { nextAttemptAt: timeText(row.due_at) }),
  };
}

function timeText(at: number): string {
  return new Date(at).toISOString();
}
