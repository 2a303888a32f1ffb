import { effectSpan } from '../../../engine/inspection/span-names.ts';
import { parseTrace, type TraceHeaders, traceHeaders } from '../../../protocol/format/trace.ts';
import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import { changeOf } from '../../../runtime/change.ts';
import { LeaseLost } from '../../../runtime/effects/ledger.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { ActivityOutcome, ActivityReport } from '../../../runtime/tracing.ts';
import type { WorkKind, WorkResult } from '../../../runtime/work-kind.ts';
import { ensureWork, type Lease, saveCheckpoint, type WorkItem } from '../../../store/queue.ts';
import type { Write } from '../../../store/sql.ts';
import { spanIdOf } from '../../../system/digest.ts';
import { EgressFailure } from '../../../system/egress.ts';
import type { Host } from '../../capability.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import { ReceiverLimits } from './receiver-limits.ts';
import {
  DELIVERY,
  type DeliverableEvent,
  type DeliveryRow,
  findWebhook,
  forgetDeliveries,
  nextEvent,
  readDeliveryWorkId,
  recordAttempt,
  type WebhookRow,
} from './records.ts';
import { type AttemptOutcome, afterAttempt, type DeliveryCursor, postpone, type RetryPolicy } from './rules.ts';
import type { WebhookSealer } from './sealer.ts';
import { type AnswerAddress, deliveryIdOf, signedRequest } from './signing.ts';

const TIMEOUT_MS = 5_000;
/** Only the status of a receiver's answer matters; of its body this much is read. */
const ANSWER_BYTES_MAX = 16_384;
/** Events that a work item sends before it gives others a turn. */
const EVENTS_PER_TURN = 16;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long the outcome of a delivery is stored. */
const RETENTION_MS: Record<DeliveryState, number> = { delivered: 3 * DAY_MS, pending: 30 * DAY_MS, dead: 30 * DAY_MS };

/** Work items handled at once: receivers are slow, and runs must not wait for them. */
const AT_ONCE = 128;
const CLEAN_UP = 'forget-deliveries';
const CLEAN_UP_EVERY_MS = 60_000;
const CLEAN_UP_ROWS = 2_000;

type WorkHost = Pick<Host, 'version'> & {
  readonly runtime: Pick<Runtime, 'store' | 'clock' | 'egress' | 'log' | 'meter'> & Partial<Pick<Runtime, 'tracing'>>;
  readonly executor: Pick<Host['executor'], 'hostId'>;
};

/** What deliveries are made with. */
interface DeliveryParts {
  readonly sealer: WebhookSealer;
  readonly interrupts: Pick<Interrupts, 'tokenOf'>;
  readonly policy: RetryPolicy;
}

/** The kinds of work items: deliveries, and the clean-up of their outcomes. */
export function webhookWork(host: WorkHost, parts: DeliveryParts): Record<string, WorkKind> {
  const worker = new DeliveryWorker(host, parts);
  const { clock } = host.runtime;
  return {
    [DELIVERY]: { handle: (item) => worker.handle(item), atOnce: AT_ONCE },
    [CLEAN_UP]: {
      handle: async () => ({
        change: changeOf(undefined, [forgetDeliveries(CLEAN_UP_ROWS)]),
        dueAgainAt: clock.now() + CLEAN_UP_EVERY_MS,
      }),
    },
  };
}

/** The one work item that deletes outcomes of old deliveries. */
export function cleanUpWork(): Write {
  return ensureWork({ workId: CLEAN_UP, kind: CLEAN_UP, tenant: '*', dueAt: 0 });
}

/** The answer of a receiver, or the reason why there is none. */
interface Attempt {
  readonly isDelivered: boolean;
  readonly status?: number;
  readonly error?: string;
}

interface Traced {
  readonly cursor: Pick<DeliveryCursor, 'trace' | 'workflowId' | 'attempts'>;
}

/** What the trace shows of a delivery: not where it went, because addresses may hold secrets. */
function reportOf(outcome: ActivityOutcome<Attempt>): ActivityReport | undefined {
  if ('error' in outcome) return undefined;
  const { isDelivered, status } = outcome.result;
  return {
    provider: 'webhook',
    isRemote: true,
    attributes: {
      'http.request.method': 'POST',
      ...(status === undefined ? {} : { 'http.response.status_code': status }),
    },
    errorCode: isDelivered ? undefined : 'delivery_failed',
  };
}

/**
 * Sends the events of one run to one webhook, in order.
 *
 * D1. An event is sent only when every event before it is delivered or dead.
 * D2. The outcome of an attempt is stored before the next one. If a host dies in between, the event is sent again under
 *     the same delivery id.
 * D3. Nothing is sent to a webhook that is no longer registered.
 */
class DeliveryWorker {
  readonly #host: WorkHost;
  readonly #parts: DeliveryParts;
  readonly #limits = new ReceiverLimits();

  constructor(host: WorkHost, parts: DeliveryParts) {
    this.#host = host;
    this.#parts = parts;
  }

  async handle(item: WorkItem): Promise<WorkResult> {
    const { webhookId } = readDeliveryWorkId(item.work_id);
    const lease = { workId: item.work_id, owner: this.#host.executor.hostId, epoch: item.epoch };
    const cursor = JSON.parse(item.payload) as DeliveryCursor;
    if (cursor.dueAt > this.#now) return { dueAgainAt: cursor.dueAt };
    if (!this.#limits.enter(webhookId)) return this.#postpone(lease, cursor);
    try {
      return await this.#deliver(item, lease, cursor);
    } finally {
      this.#limits.leave(webhookId);
    }
  }

  get #now(): number {
    return this.#host.runtime.clock.now();
  }

  async #postpone(lease: Lease, cursor: DeliveryCursor): Promise<WorkResult> {
    const waiting = postpone(cursor, this.#now, lease.workId);
    await this.#checkpoint(lease, waiting);
    return { dueAgainAt: waiting.dueAt };
  }

  async #deliver(item: WorkItem, lease: Lease, start: DeliveryCursor): Promise<WorkResult> {
    const { store } = this.#host.runtime;
    const { webhookId, runId } = readDeliveryWorkId(item.work_id);
    const { tenant } = item;
    let cursor = start;
    for (let sent = 0; sent < EVENTS_PER_TURN; sent++) {
      const [webhook] = await store.read<WebhookRow>(findWebhook({ tenant }, webhookId));
      if (!webhook) return {};
      const { after, through = Number.MAX_SAFE_INTEGER } = cursor;
      const wanted = { tenant, runId, after, through, events: webhook.events };
      const [event] = await store.read<DeliverableEvent>(nextEvent(wanted));
      if (!event) return {};
      const outcome = await this.#attempt(webhook, runId, event, lease, cursor);
      cursor = outcome.cursor;
      if (outcome.state === 'pending') return { dueAgainAt: cursor.dueAt };
    }
    return { dueAgainAt: this.#now };
  }

  async #attempt(
    webhook: WebhookRow,
    runId: string,
    event: DeliverableEvent,
    lease: Lease,
    cursor: DeliveryCursor,
  ): Promise<AttemptOutcome> {
    const { webhook_id, tenant } = webhook;
    const { sequence } = event;
    const deliveryId = deliveryIdOf(webhook_id, runId, sequence);
    const attempt = await this.#traced({ runId, deliveryId, cursor }, (trace) =>
      this.#send(webhook, runId, event, { deliveryId, trace }),
    );
    const { isDelivered } = attempt;
    const at = this.#now;
    const outcome = afterAttempt(cursor, { sequence, isDelivered, at, name: deliveryId }, this.#parts.policy);
    const { state } = outcome;
    this.#limits.note(webhook_id, isDelivered);
    if (state === 'dead') {
      const fields = { webhookId: webhook_id, runId, deliveryId };
      this.#host.runtime.log.warn(fields, 'a webhook delivery failed for good and is a dead letter now');
    }
    await this.#checkpoint(lease, outcome.cursor, {
      delivery_id: deliveryId,
      webhook_id,
      tenant,
      run_id: runId,
      sequence,
      event_type: event.type,
      state,
      attempted_at: at,
      due_at: state === 'pending' ? outcome.cursor.dueAt : null,
      status: attempt.status ?? null,
      error: attempt.error ?? null,
      expires_at: at + RETENTION_MS[state],
    });
    this.#host.runtime.meter.delivered(state === 'pending' ? 'retried' : state);
    return outcome;
  }

  /** Sends under a span of its own, below that of the run. */
  #traced(
    { runId, deliveryId, cursor }: { readonly runId: string; readonly deliveryId: string } & Traced,
    send: (trace: TraceHeaders | undefined) => Promise<Attempt>,
  ): Promise<Attempt> {
    const { tracing } = this.#host.runtime;
    const trace = parseTrace(cursor.trace?.traceparent, cursor.trace?.tracestate);
    if (!trace) return send(undefined);
    const spanId = spanIdOf(effectSpan(deliveryId, cursor.attempts));
    const headers = traceHeaders(trace, spanId);
    if (!tracing?.isObserved(trace)) return send(headers);
    const activity = { runId, workflowId: cursor.workflowId, trace, spanId, parentSpanId: trace.spanId };
    return tracing.observe(activity, () => send(headers), reportOf);
  }

  async #send(
    webhook: WebhookRow,
    runId: string,
    event: DeliverableEvent,
    { deliveryId, trace }: { readonly deliveryId: string; readonly trace: TraceHeaders | undefined },
  ): Promise<Attempt> {
    const target = await this.#parts.sealer.unseal(webhook);
    if (!target) return { isDelivered: false, error: 'The signing secret cannot be unsealed.' };
    const { url, secret } = target;
    const { webhook_id: webhookId, scope_name: scopeName } = webhook;
    const agent = `openwop-webhook-dispatcher/${this.#host.version}`;
    const answer = target.answersAt && (await this.#answerTo(webhook, event, target.answersAt));
    const signed = signedRequest({
      webhookId,
      scopeName,
      secret,
      runId,
      deliveryId,
      event,
      answer: answer || undefined,
      trace,
      sentAt: this.#now,
      agent,
    });
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: ANSWER_BYTES_MAX, excess: 'cut' } as const;
    try {
      const { status } = await this.#host.runtime.egress.send({ url, method: 'POST', ...signed, ...limits });
      const isDelivered = status >= 200 && status < 300;
      return isDelivered ? { isDelivered, status } : { isDelivered, status, error: `It answered ${status}.` };
    } catch (error) {
      if (!(error instanceof EgressFailure)) throw error;
      return { isDelivered: false, error: error.message };
    }
  }

  /** How the receiver can answer the interrupt that an event requests; undefined if there is nothing to answer. */
  async #answerTo(
    { tenant, run_id: runId }: WebhookRow,
    { type, body }: DeliverableEvent,
    origin: string,
  ): Promise<AnswerAddress | undefined> {
    if (type !== 'interrupt.requested') return undefined;
    const { nodeId } = JSON.parse(body) as Pick<RunEvent, 'nodeId'>;
    const interruptToken = nodeId && (await this.#parts.interrupts.tokenOf({ tenant, runId }, nodeId));
    if (!interruptToken) return undefined;
    return { interruptToken, callbackUrl: `${origin}/v1/interrupts/${interruptToken}` };
  }

  /** Stores how far the deliveries have come, under the lease. */
  async #checkpoint(
    lease: Lease,
    cursor: DeliveryCursor,
    row?: Omit<DeliveryRow, 'attempts' | 'created_at'>,
  ): Promise<void> {
    const outcome = await this.#host.runtime.store.commit([
      saveCheckpoint(lease, JSON.stringify(cursor)),
      ...(row ? [recordAttempt(row)] : []),
    ]);
    if (!outcome.committed) throw new LeaseLost('another host has taken over these deliveries');
  }
}
