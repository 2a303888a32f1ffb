import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { DeliveryState, WebhookSubscription } from '../../../protocol/operations/webhooks.ts';
import type { EventType } from '../../../protocol/running/events.ts';
import { and, type Change, changeOf } from '../../../runtime/change.ts';
import { factsOf, type Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { ensureWork } from '../../../store/queue.ts';
import { redactValue } from '../../../system/redaction.ts';
import { withAllowEntry } from '../../egress-advice.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import { webhookDocument } from './document.ts';
import type { IssuedWebhook, NewCallback, NewWebhook, Webhooks } from './door.ts';
import type { Subscribers } from './reactions.ts';
import {
  DELIVERY,
  type DeliveryPosition,
  type DeliveryRow,
  deleteWebhook,
  deliveryWorkId,
  findDelivery,
  findWebhook,
  insertWebhook,
  listDeliveries,
  listText,
  listWebhooks,
  reopenDelivery,
  resealWebhook,
  type WebhookRow,
} from './records.ts';
import { deliveredRun, newCursor, refuseForeignScope, scopeNameOf } from './rules.ts';
import type { WebhookSealer } from './sealer.ts';
import { fingerprintOf, newSecret } from './signing.ts';

/** Each webhook of a tenant is matched whenever one of its runs moves, so their number is limited. */
const WEBHOOKS_MAX = 200;

/** What the URL of a run is told: where people are needed, and how it ends. */
const CALLBACK_EVENTS: readonly EventType[] = ['interrupt.requested', 'run.completed', 'run.failed', 'run.cancelled'];

const UNKNOWN = refuse('subscription_not_found', 'There is no such webhook, or you may not see it.');
const TOO_MANY = refuse('conflict', `A tenant may have ${WEBHOOKS_MAX} webhooks. Unregister one first.`, {
  limit: WEBHOOKS_MAX,
});
const NOT_UNSEALED = refuse(
  'conflict',
  'The webhook was sealed under another secret of the host and cannot be read. Register it again.',
);
const RUN_GONE = refuse('conflict', 'The run of this delivery has expired, so the event cannot be sent again.');
const PENDING = refuse('conflict', 'This delivery is still pending and will be retried.', { state: 'pending' });

/** Which deliveries a list shows. */
interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  readonly before?: DeliveryPosition | undefined;
  readonly limit: number;
}

/** A webhook to be stored; `runId` is empty unless it is the callback of that run. */
interface AddedWebhook extends Pick<NewWebhook, 'url' | 'events' | 'tags'> {
  readonly runId: string;
  /** Where interrupts are answered, if the receiver may do that. */
  readonly answersAt?: string | undefined;
}

type WebhookRuntime = Pick<Runtime, 'store' | 'clock' | 'ids' | 'egress' | 'hub' | 'reader'> &
  Partial<Pick<Runtime, 'tracing'>>;

interface WebhookParts {
  readonly audit: Pick<Audit, 'entry'>;
  readonly sealer: WebhookSealer;
  readonly subscribers: Subscribers;
}

/** Registers webhooks, and shows and repeats their deliveries. */
export class WebhookService implements Webhooks {
  readonly #runtime: WebhookRuntime;
  readonly #audit: Pick<Audit, 'entry'>;
  readonly #sealer: WebhookSealer;
  readonly #subscribers: Subscribers;

  constructor(runtime: WebhookRuntime, { audit, sealer, subscribers }: WebhookParts) {
    this.#runtime = runtime;
    this.#audit = audit;
    this.#sealer = sealer;
    this.#subscribers = subscribers;
  }

  async register({ subject }: Caller, wanted: NewWebhook): Promise<Change<IssuedWebhook> | Refusal> {
    const problem = await this.#runtime.egress.check(wanted.url);
    if (problem) return refuse('webhook_url_rejected', `url ${withAllowEntry(problem, wanted.url)}.`, { field: 'url' });
    const foreign = refuseForeignScope(subject, wanted.scopeName);
    if (foreign) return foreign;
    return this.#add(subject, { ...wanted, runId: '' });
  }

  async callback(
    { subject, scopes }: Caller,
    { runId, url, origin }: NewCallback,
  ): Promise<Change<IssuedWebhook> | Refusal> {
    if (!scopes.has('runs:read')) {
      const message = 'callbackUrl receives events of the run, which needs the scope runs:read.';
      return refuse('forbidden', message, { field: 'callbackUrl', scopeRequired: 'runs:read' });
    }
    const problem = await this.#runtime.egress.check(url);
    if (problem)
      return refuse('validation_error', `callbackUrl ${withAllowEntry(problem, url)}.`, { field: 'callbackUrl' });
    const answersAt = scopes.has('approvals:respond') ? origin : undefined;
    return this.#add(subject, { url, events: CALLBACK_EVENTS, runId, answersAt });
  }

  async #add(
    subject: Subject,
    { url, events, tags = [], runId, answersAt }: AddedWebhook,
  ): Promise<Change<IssuedWebhook>> {
    const issued = issue(this.#runtime.ids.next('wh-'));
    const row: WebhookRow = {
      webhook_id: issued.webhookId,
      tenant: subject.tenant,
      workspace: subject.workspace ?? null,
      scope_name: scopeNameOf(subject),
      events: listText([...new Set(events)]),
      tags: listText([...new Set(redactValue(tags))]),
      sealed: await this.#sealer.seal({ url, secret: issued.secret, answersAt }, issued.webhookId),
      fingerprint: issued.secretFingerprint,
      created_by: subject.principal,
      created_at: this.#runtime.clock.now(),
      rotated_at: null,
      run_id: runId,
    };
    this.#subscribers.tenants.add(subject.tenant);
    const register = changeOf(issued, [insertWebhook(row, WEBHOOKS_MAX)], {
      announce: [() => this.#subscribers.tenants.announce(subject.tenant)],
      refusals: { webhooks: TOO_MANY },
    });
    return and(register, entryBy(this.#audit, subject, 'webhook.register', issued.webhookId));
  }

  async unregister(caller: Caller, webhookId: string, scopeName: string | undefined): Promise<Change | Refusal> {
    const foreign = refuseForeignScope(caller.subject, scopeName);
    if (foreign) return foreign;
    const row = await this.#find(caller, webhookId);
    if (isRefusal(row)) return row;
    const unregister = changeOf(undefined, [deleteWebhook(row)], { refusals: { webhook: UNKNOWN } });
    return and(unregister, entryBy(this.#audit, caller.subject, 'webhook.unregister', webhookId));
  }

  async list(caller: Caller, before: string | undefined, limit: number): Promise<WebhookSubscription[]> {
    const rows = await this.#runtime.store.read<WebhookRow>(listWebhooks(caller.subject, before, limit));
    return Promise.all(rows.map(async (row) => webhookDocument(row, (await this.#sealer.unseal(row))?.url)));
  }

  /** Replaces the secret that signs deliveries from now on. */
  async rotate(caller: Caller, webhookId: string): Promise<Change<IssuedWebhook> | Refusal> {
    const row = await this.#find(caller, webhookId);
    if (isRefusal(row)) return row;
    const target = await this.#sealer.unseal(row);
    if (!target) return NOT_UNSEALED;
    const issued = issue(webhookId);
    const sealed = await this.#sealer.seal({ ...target, secret: issued.secret }, webhookId);
    const rotated_at = this.#runtime.clock.now();
    const resealed = resealWebhook({ ...row, sealed, fingerprint: issued.secretFingerprint, rotated_at });
    const rotate = changeOf(issued, [resealed], { refusals: { webhook: UNKNOWN } });
    return and(rotate, entryBy(this.#audit, caller.subject, 'webhook.rotate', webhookId));
  }

  /** Deliveries to a webhook, newest first. */
  async deliveries(caller: Caller, webhookId: string, filter: DeliveryFilter): Promise<DeliveryRow[] | Refusal> {
    const row = await this.#find(caller, webhookId);
    if (isRefusal(row)) return row;
    const { state, before, limit } = filter;
    return this.#runtime.store.read<DeliveryRow>(listDeliveries(row.tenant, webhookId, state, before, limit));
  }

  /** Sends one event again with a work item of its own: it neither waits for other events nor delays them. */
  async redeliver(caller: Caller, webhookId: string, deliveryId: string): Promise<Change<DeliveryRow> | Refusal> {
    const { store, clock, hub, reader } = this.#runtime;
    const webhook = await this.#find(caller, webhookId);
    if (isRefusal(webhook)) return webhook;
    const { tenant } = webhook;
    const [row] = await store.read<DeliveryRow>(findDelivery(tenant, webhookId, deliveryId));
    if (!row) return NOT_FOUND;
    const { run_id, sequence } = row;
    const run = await reader.row({ tenant }, run_id);
    if (!run) return RUN_GONE;
    const now = clock.now();
    const workId = deliveryWorkId(webhookId, run_id, row);
    const payload = JSON.stringify(
      newCursor(sequence - 1, { through: sequence, run: deliveredRun(this.#runtime, factsOf(run)) }),
    );
    const writes = [reopenDelivery(row, now), ensureWork({ workId, kind: DELIVERY, tenant, payload, dueAt: 0 })];
    const redeliver = changeOf({ ...row, state: 'pending' as const, due_at: now }, writes, {
      announce: [() => hub.wakeWorkers(workId)],
      refusals: { delivery: PENDING },
    });
    return and(redeliver, entryBy(this.#audit, caller.subject, 'webhook.redeliver', deliveryId));
  }

  async #find({ subject }: Caller, webhookId: string): Promise<WebhookRow | Refusal> {
    const [row] = await this.#runtime.store.read<WebhookRow>(findWebhook(subject, webhookId));
    return row ?? UNKNOWN;
  }
}

function issue(webhookId: string): IssuedWebhook {
  const secret = newSecret();
  return { webhookId, secret, secretFingerprint: fingerprintOf(secret) };
}
