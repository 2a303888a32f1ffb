import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { commitAll, UnitRefused } from '../../../runtime/command.ts';
import { eventIdOf } from '../../../runtime/recording.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import { WebhookKeys } from './keys.ts';
import { Lanes } from './react.ts';
import {
  type DeliveryPlace,
  type DeliveryRow,
  deleteWebhook,
  findDelivery,
  findWebhook,
  insertWebhook,
  LANE,
  laneId,
  listDeliveries,
  listFrom,
  listText,
  listWebhooks,
  reopenDelivery,
  resealWebhook,
  type WebhookRow,
} from './records.ts';
import { newLane, refuseForeignScope, scopeNameOf } from './rules.ts';
import { fingerprintOf, newSecret } from './signing.ts';

/** Each of them is looked at whenever a run of the tenant moves. */
const WEBHOOKS_MAX = 200;

export interface NewWebhook {
  readonly url: string;
  readonly events: readonly string[];
  readonly tags?: readonly string[] | undefined;
  /** The scope that the caller names, if any. */
  readonly scopeName?: string | undefined;
}

/** A webhook with the secret that signs from now on. It is shown here and nowhere else. */
export interface Issued {
  readonly webhookId: string;
  readonly secret: string;
  readonly secretFingerprint: string;
}

export interface Webhook {
  readonly webhookId: string;
  readonly tenantId: string;
  /** Absent when it was sealed under a secret that the operator no longer gives. */
  readonly url?: string;
  readonly events: readonly string[];
  readonly tags: readonly string[];
  readonly secretFingerprint: string;
  readonly createdBy: string;
  readonly createdAt: number;
  readonly rotatedAt?: number;
}

export interface Delivery {
  readonly deliveryId: string;
  readonly webhookId: string;
  readonly runId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly sequence: number;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly createdAt: number;
  readonly lastAttemptAt: number;
  readonly nextAttemptAt?: number;
  readonly lastStatus?: number;
  readonly lastError?: string;
}

type Also<T> = (done: T) => Unit;

export type WebhookService = ReturnType<typeof webhookService>;

export function webhookService(
  { runtime, settings }: Host,
  { audit }: { readonly audit: Pick<AuditService, 'record'> },
) {
  const { store, clock, ids, egress, hub, reader } = runtime;
  const keys = new WebhookKeys(store, settings.secret);
  const lanes = new Lanes(runtime);

  return {
    keys,
    lanes,

    async register(caller: Caller, wanted: NewWebhook, also: Also<Issued>): Promise<Issued | Refusal> {
      const { subject } = caller;
      const problem = await egress.check(wanted.url);
      if (problem) return refuse('webhook_url_rejected', `url ${problem}.`, { field: 'url' });
      const foreign = refuseForeignScope(subject, wanted.scopeName);
      if (foreign) return foreign;
      const issued = issue(ids.next('wh-'));
      const row: WebhookRow = {
        webhook_id: issued.webhookId,
        tenant: subject.tenant,
        workspace: subject.workspace ?? null,
        scope_name: scopeNameOf(subject),
        events: listText([...new Set(wanted.events)]),
        tags: listText([...new Set(redactValue(wanted.tags ?? []))]),
        sealed: await keys.seal({ url: wanted.url, secret: issued.secret }, issued.webhookId),
        fingerprint: issued.secretFingerprint,
        created_by: subject.principal,
        created_at: clock.now(),
        rotated_at: null,
      };
      lanes.expect(subject.tenant);
      try {
        const record = audited(caller, 'webhook.register', issued.webhookId);
        await commitAll(store, [insertWebhook(row, WEBHOOKS_MAX), ...record, ...also(issued)]);
      } catch (error) {
        if (!isBroken(error, 'webhooks')) throw error;
        return refuse('conflict', `A tenant may have ${WEBHOOKS_MAX} webhooks.`, { limit: WEBHOOKS_MAX });
      }
      lanes.announce();
      return issued;
    },

    async unregister(
      caller: Caller,
      webhookId: string,
      scopeName: string | undefined,
      also: () => Unit,
    ): Promise<Refusal | undefined> {
      const foreign = refuseForeignScope(caller.subject, scopeName);
      if (foreign) return foreign;
      const row = await find(caller, webhookId);
      if (isRefusal(row)) return row;
      return unlessGone([deleteWebhook(row), ...audited(caller, 'webhook.unregister', webhookId), ...also()]);
    },

    async list(caller: Caller, before: string | undefined, limit: number): Promise<Webhook[]> {
      const rows = await store.read<WebhookRow>(listWebhooks(caller.subject, before, limit));
      return Promise.all(rows.map(async (row) => webhookFrom(row, (await keys.open(row))?.url)));
    },

    /** What is sent from now on is signed with a new secret. */
    async rotate(caller: Caller, webhookId: string, also: Also<Issued>): Promise<Issued | Refusal> {
      const row = await find(caller, webhookId);
      if (isRefusal(row)) return row;
      const known = await keys.open(row);
      if (!known) return refuse('conflict', 'What was sealed cannot be opened any more: register it anew.');
      const issued = issue(webhookId);
      const sealed = await keys.seal({ ...known, secret: issued.secret }, webhookId);
      const fresh = { ...row, sealed, fingerprint: issued.secretFingerprint, rotated_at: clock.now() };
      const record = audited(caller, 'webhook.rotate', webhookId);
      return (await unlessGone([resealWebhook(fresh), ...record, ...also(issued)])) ?? issued;
    },

    async deliveries(
      caller: Caller,
      webhookId: string,
      { state, before, limit }: { state?: DeliveryState; before?: DeliveryPlace | undefined; limit: number },
    ): Promise<Delivery[] | Refusal> {
      const row = await find(caller, webhookId);
      if (isRefusal(row)) return row;
      const found = listDeliveries(row.tenant, webhookId, state, before, limit);
      return (await store.read<DeliveryRow>(found)).map(deliveryFrom);
    },

    /** Sends one event again, by itself: it does not wait for others, and others do not wait for it. */
    async redeliver(
      caller: Caller,
      webhookId: string,
      deliveryId: string,
      also: Also<Delivery>,
    ): Promise<Delivery | Refusal> {
      const webhook = await find(caller, webhookId);
      if (isRefusal(webhook)) return webhook;
      const { tenant } = webhook;
      const [row] = await store.read<DeliveryRow>(findDelivery(tenant, webhookId, deliveryId));
      if (!row) return NOT_FOUND;
      const { run_id, sequence } = row;
      if (!(await reader.row({ tenant }, run_id))) return refuse('conflict', 'Its run is no longer kept.');
      const now = clock.now();
      const workId = laneId(webhookId, run_id, sequence);
      const payload = JSON.stringify(newLane(sequence - 1, sequence));
      const delivery = deliveryFrom({ ...row, state: 'pending', due_at: now });
      try {
        await commitAll(store, [
          reopenDelivery(tenant, deliveryId, now),
          ensureWork({ workId, kind: LANE, tenant, payload, dueAt: 0 }),
          ...audited(caller, 'webhook.redeliver', deliveryId),
          ...also(delivery),
        ]);
      } catch (error) {
        if (!isBroken(error, 'delivery')) throw error;
        return refuse('conflict', 'It is still on its way.', { state: 'pending' });
      }
      hub.callToWork(workId);
      return delivery;
    },
  };

  function audited({ subject: { tenant, workspace, principal } }: Caller, action: AuditAction, target: string): Unit {
    return audit.record({ tenant, workspace, actor: principal, action, target });
  }

  async function find({ subject }: Caller, webhookId: string): Promise<WebhookRow | Refusal> {
    const [row] = await store.read<WebhookRow>(findWebhook(subject, webhookId));
    return row ?? UNKNOWN;
  }

  async function unlessGone(unit: Unit): Promise<Refusal | undefined> {
    try {
      await commitAll(store, unit);
      return undefined;
    } catch (error) {
      if (!isBroken(error, 'webhook')) throw error;
      return UNKNOWN;
    }
  }
}

const UNKNOWN = refuse('subscription_not_found', 'There is no such webhook, or you may not see it.');

function isBroken(error: unknown, promise: string): boolean {
  return error instanceof UnitRefused && error.broke === promise;
}

function issue(webhookId: string): Issued {
  const secret = newSecret();
  return { webhookId, secret, secretFingerprint: fingerprintOf(secret) };
}

function webhookFrom(row: WebhookRow, url: string | undefined): Webhook {
  return {
    webhookId: row.webhook_id,
    tenantId: row.scope_name,
    ...(url === undefined ? {} : { url: redactText(url) }),
    events: listFrom(row.events),
    tags: listFrom(row.tags),
    secretFingerprint: row.fingerprint,
    createdBy: row.created_by,
    createdAt: row.created_at,
    ...(row.rotated_at === null ? {} : { rotatedAt: row.rotated_at }),
  };
}

function deliveryFrom(row: DeliveryRow): Delivery {
  return {
    deliveryId: row.delivery_id,
    webhookId: row.webhook_id,
    runId: row.run_id,
    eventId: eventIdOf(row.run_id, row.sequence),
    eventType: row.event_type,
    sequence: row.sequence,
    state: row.state,
    attempts: row.attempts,
    createdAt: row.created_at,
    lastAttemptAt: row.attempted_at,
    ...(row.due_at === null ? {} : { nextAttemptAt: row.due_at }),
    ...(row.status === null ? {} : { lastStatus: row.status }),
    ...(row.error === null ? {} : { lastError: row.error }),
  };
}
