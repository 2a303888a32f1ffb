import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import { LeaseLost } from '../../../runtime/effects/ledger.ts';
import type { WorkHandler, WorkResult } from '../../../runtime/executor.ts';
import { type Lease, noteProgress, type WorkItem } from '../../../store/queue.ts';
import { EgressFailure } from '../../../system/egress.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { WebhookKeys } from './keys.ts';
import { Pace } from './pace.ts';
import {
  type DeliveryRow,
  findWebhook,
  type LaneEvent,
  nextEvent,
  readLaneId,
  recordAttempt,
  type WebhookRow,
} from './records.ts';
import { type Judgement, judgeAttempt, type Lane, standBack } from './rules.ts';
import { deliveryIdOf, signedRequest } from './signing.ts';

const TIMEOUT_MS = 5_000;
/** What a receiver says besides its status is of no interest; it may say this much. */
const ANSWER_BYTES_MAX = 16_384;
/** Events that a lane sends before others get their turn. */
const TURN_MAX = 16;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** How long it is kept what came of a delivery. */
const KEPT_MS: Record<DeliveryState, number> = { delivered: 3 * DAY_MS, pending: 30 * DAY_MS, dead: 30 * DAY_MS };

/** What came of an attempt: an answer, good or bad, or the reason why there is none. */
interface Attempt {
  readonly isDelivered: boolean;
  readonly status?: number;
  readonly error?: string;
}

/**
 * Sends what waits in a lane, one event after the other.
 *
 * D1. An event goes out only when everything before it in its lane is delivered or dead.
 * D2. What came of an attempt is written down before the next one. A host that dies in between leaves the event to be
 *     sent again, under the same delivery id.
 * D3. Nothing goes to a webhook that is no longer registered.
 */
export function laneHandler({ runtime, executor, settings }: Host, keys: WebhookKeys): WorkHandler {
  const { store, clock, egress, log } = runtime;
  const pace = new Pace();
  const agent = `openwop-webhook-dispatcher/${settings.version}`;

  return async (item) => {
    const { webhookId } = readLaneId(item.work_id);
    const lease = { workId: item.work_id, owner: executor.hostId, epoch: item.epoch };
    const lane = JSON.parse(item.payload) as Lane;
    if (lane.dueAt > clock.now()) return { writes: [], dueAgainAt: lane.dueAt };
    if (!pace.enter(webhookId)) return leaveRoom(lease, lane);
    try {
      return await takeTurn(item, lease, lane);
    } finally {
      pace.leave(webhookId);
    }
  };

  async function leaveRoom(lease: Lease, lane: Lane): Promise<WorkResult> {
    const waiting = standBack(lane, clock.now(), lease.workId);
    await keep(lease, waiting);
    return { writes: [], dueAgainAt: waiting.dueAt };
  }

  async function takeTurn(item: WorkItem, lease: Lease, start: Lane): Promise<WorkResult> {
    const { webhookId, runId } = readLaneId(item.work_id);
    const { tenant } = item;
    let lane = start;
    for (let turn = 0; turn < TURN_MAX; turn++) {
      const [webhook] = await store.read<WebhookRow>(findWebhook({ tenant }, webhookId));
      if (!webhook) return { writes: [] };
      const { after, through = Number.MAX_SAFE_INTEGER } = lane;
      const place = { tenant, runId, after, through, events: webhook.events };
      const [event] = await store.read<LaneEvent>(nextEvent(place));
      if (!event) return { writes: [] };
      const judged = await tryOnce(webhook, runId, event, lease, lane);
      lane = judged.lane;
      if (judged.state === 'pending') return { writes: [], dueAgainAt: lane.dueAt };
    }
    return { writes: [], dueAgainAt: clock.now() };
  }

  async function tryOnce(
    webhook: WebhookRow,
    runId: string,
    event: LaneEvent,
    lease: Lease,
    lane: Lane,
  ): Promise<Judgement> {
    const { webhook_id, tenant } = webhook;
    const { sequence } = event;
    const deliveryId = deliveryIdOf(webhook_id, runId, sequence);
    const attempt = await send(webhook, runId, event, deliveryId);
    const { isDelivered } = attempt;
    const at = clock.now();
    const judged = judgeAttempt(lane, { sequence, isDelivered, at, name: deliveryId }, settings.webhooks);
    pace.note(webhook_id, isDelivered);
    if (judged.state === 'dead') log.warn({ webhookId: webhook_id, runId, deliveryId }, 'a delivery is given up');
    await keep(lease, judged.lane, {
      delivery_id: deliveryId,
      webhook_id,
      tenant,
      run_id: runId,
      sequence,
      event_type: event.type,
      state: judged.state,
      attempted_at: at,
      due_at: judged.state === 'pending' ? judged.lane.dueAt : null,
      status: attempt.status ?? null,
      error: attempt.error ?? null,
      expires_at: at + KEPT_MS[judged.state],
    });
    return judged;
  }

  async function send(webhook: WebhookRow, runId: string, event: LaneEvent, deliveryId: string): Promise<Attempt> {
    const confidential = await keys.open(webhook);
    if (!confidential) return { isDelivered: false, error: 'The signing secret cannot be opened.' };
    const { url, secret } = confidential;
    const { webhook_id: webhookId, scope_name: scopeName } = webhook;
    const sentAt = clock.now();
    const signed = signedRequest({ webhookId, scopeName, secret, runId, deliveryId, event, sentAt, agent });
    const limits = { timeoutMs: TIMEOUT_MS, maxBytes: ANSWER_BYTES_MAX, excess: 'cut' } as const;
    try {
      const { status } = await egress.send({ url, method: 'POST', ...signed, ...limits });
      const isDelivered = status >= 200 && status < 300;
      return isDelivered ? { isDelivered, status } : { isDelivered, status, error: `It answered ${status}.` };
    } catch (error) {
      if (!(error instanceof EgressFailure)) throw error;
      return { isDelivered: false, error: error.message };
    }
  }

  async function keep(lease: Lease, lane: Lane, row?: Omit<DeliveryRow, 'attempts' | 'created_at'>): Promise<void> {
    const outcome = await store.commit([
      noteProgress(lease, JSON.stringify(lane)),
      ...(row ? [recordAttempt(row)] : []),
    ]);
    if (!outcome.committed) throw new LeaseLost('another host has taken this lane over');
  }
}
