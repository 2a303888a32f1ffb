import { isRefusal, NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { isObject } from '../../../protocol/format/json.ts';
import { isTerminalStatus, type RunStatus } from '../../../protocol/running/runs.ts';
import type { AnsweredByHook, StartedByHook, WebhookTriggerConfig } from '../../../protocol/starting/triggers.ts';
import { and, type Change, changeOf, perform, unchanged } from '../../../runtime/change.ts';
import { RateLimiter } from '../../../runtime/rate-limit.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Sealer } from '../../../runtime/sealer.ts';
import { findIdempotencyRecord, type IdempotencyRow, saveIdempotencyRecord } from '../../../store/idempotency.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { type Reply, type Request, reply } from '../../request.ts';
import { resultOfRun } from '../../running/calls/door.ts';
import { type Events, waitUntilSettled } from '../../running/events/door.ts';
import type { DeliveryLog } from './deliveries.ts';
import { configOf } from './document.ts';
import { payloadOf, readableHeaders } from './payload.ts';
import { findByPath, type TriggerRow } from './records.ts';
import { deliveryIdFor, inputsFor, passes } from './rules.ts';
import { newTriggerSecret, pathHashOf, type TriggerSecrets, validSecrets } from './secrets.ts';
import { isSigned, signatureHeaders } from './signatures.ts';
import type { TriggeredRuns } from './starting.ts';

/** A request to a webhook, as the edge hands it over. */
type HookRequest = Pick<Request, 'header' | 'headers' | 'origin' | 'signal' | 'query'> & {
  readonly path: string;
  readonly bytes: Uint8Array;
};

/** What webhooks need of the host. */
interface ReceiverParts {
  readonly runtime: Runtime;
  readonly runs: TriggeredRuns;
  readonly events: Pick<Events, 'poll'>;
  readonly sealer: Sealer<TriggerSecrets>;
  readonly log: Pick<DeliveryLog, 'started' | 'note' | 'count'>;
  readonly perSecond: number;
  readonly hosts: () => number;
}

/** A request that is known to come from the expected sender. */
interface Delivery {
  readonly row: TriggerRow;
  readonly config: WebhookTriggerConfig;
  readonly scope: { readonly body: unknown; readonly headers: object; readonly query: object };
}

/** The run of a delivery. */
interface Started {
  readonly runId: string;
  /** Its status as it started; undefined if an earlier delivery started it. */
  readonly status: RunStatus | undefined;
}

/** How long the id of a delivery is remembered: senders retry, or are told to, for some days. */
const DELIVERY_RETENTION_MS = 7 * 24 * 60 * 60_000;
const WAIT_S = 10;
/** Requests of one host that wait for the end of a run. Others get the run's id at once. */
const WAITING_MAX = 50;
/** Stands in for the secret of a trigger that does not exist, so that a request takes as long as to one that does. */
const NOBODYS = newTriggerSecret();
const SIGNED_BY_NOBODY = { scheme: 'github' } as const;

/**
 * Takes requests to webhooks.
 *
 * H1. An unknown URL and a wrong signature get the same answer: nobody learns which URLs exist.
 * H2. Nothing of a body is looked at before its signature is checked.
 * H3. The run and the id of its delivery are one unit: a request that is sent again gets the same run.
 */
export class HookReceiver {
  readonly #parts: ReceiverParts;
  readonly #rates: RateLimiter;
  #waiting = 0;

  constructor(parts: ReceiverParts) {
    this.#parts = parts;
    const { perSecond, hosts } = parts;
    this.#rates = new RateLimiter({ perSecond, burst: 2 * perSecond }, hosts, 'trigger');
  }

  async receive(request: HookRequest): Promise<Reply | Refusal> {
    const row = await this.#authenticated(request);
    if (!row) return NOT_FOUND;
    const { log, runtime } = this.#parts;
    const { clock, turns } = runtime;
    const limited = this.#rates.take(row.trigger_id, clock.now());
    if (limited) {
      log.count(row, 'limited', limited.refused);
      return limited;
    }
    await turns.next(row.tenant);
    const config = configOf(row);
    const payload = payloadOf(config.scheme, request.header('content-type') ?? '', request.bytes);
    if (isRefusal(payload)) {
      log.note(row, 'invalid', { refusal: payload });
      return payload;
    }
    const { body } = payload;
    const challenge = challengeOf(config, body);
    if (challenge !== undefined) {
      log.note(row, 'challenge');
      return reply(200, { challenge } satisfies AnsweredByHook);
    }
    const headers = readableHeaders(request.headers, signatureHeaders(config));
    return this.#deliver({ row, config, scope: { body, headers, query: Object(request.query) } }, request);
  }

  /** The trigger that a request is for, if it comes from the expected sender. */
  async #authenticated(request: HookRequest): Promise<TriggerRow | undefined> {
    const { runtime, sealer, log } = this.#parts;
    const now = runtime.clock.now();
    const [row] = await runtime.store.read<TriggerRow>(findByPath(pathHashOf(request.path)));
    const secrets = row?.sealed == null ? undefined : await sealer.unseal(row.sealed, row.trigger_id);
    if (!row || !secrets) {
      isSigned(request, { config: SIGNED_BY_NOBODY, secrets: [NOBODYS], now });
      return undefined;
    }
    const config = configOf(row);
    const valid = validSecrets(secrets, now);
    const isRight = isSigned(request, { config, secrets: valid, now });
    if (isRight && row.is_enabled === 1) return row;
    const isUnset = config.scheme !== 'path' && valid.length === 0;
    log.count(row, 'refused', isRight ? 'trigger_disabled' : isUnset ? 'secret_missing' : 'signature_invalid');
    return undefined;
  }

  async #deliver(delivery: Delivery, request: HookRequest): Promise<Reply | Refusal> {
    const { runtime, runs, log } = this.#parts;
    const { row, config, scope } = delivery;
    const compiled = runs.compiled(row);
    const deliveryId = deliveryIdFor(compiled, scope);
    if (!passes(compiled, scope)) {
      log.note(row, 'ignored', { deliveryId });
      return reply(200, { ignored: true } satisfies AnsweredByHook);
    }
    const started = await perform(runtime, () => this.#startOnce(delivery, deliveryId), { tenant: row.tenant });
    if (isRefusal(started)) {
      log.note(row, started.refused === 'validation_error' ? 'invalid' : 'failed', { deliveryId, refusal: started });
      return refusalFor(started);
    }
    if (started.status === undefined) log.note(row, 'duplicate', { deliveryId, runId: started.runId });
    const statusUrl = `${request.origin}/v1/runs/${started.runId}`;
    if (config.respond === 'result') await this.#wait(row, started.runId, config.waitSeconds ?? WAIT_S, request.signal);
    // Most senders only want to know that the request has arrived: nothing is read for them.
    else if (started.status) return reply(202, { ...started, statusUrl });
    return this.#answer(delivery, started, statusUrl);
  }

  async #startOnce({ row, scope }: Delivery, deliveryId: string | undefined): Promise<Change<Started> | Refusal> {
    const { runtime, runs, log } = this.#parts;
    const compiled = runs.compiled(row);
    const recordKey = sha256Hex(JSON.stringify(['trigger', row.trigger_id, deliveryId ?? '']));
    const [record] =
      deliveryId === undefined ? [] : await runtime.store.read<IdempotencyRow>(findIdempotencyRecord(recordKey));
    if (record) return unchanged({ runId: record.body, status: undefined });
    const inputs = inputsFor(compiled, scope, { body: scope.body });
    if (isRefusal(inputs)) return inputs;
    const mark = { triggerId: row.trigger_id, ...(deliveryId === undefined ? {} : { deliveryId }) };
    const start = await runs.start(row, inputs, mark);
    if (isRefusal(start)) return start;
    const logged = and(start, log.started(row, start.result.runId, deliveryId));
    if (deliveryId === undefined) return logged;
    const stored = { record_key: recordKey, digest: '', status: 202, body: start.result.runId };
    const remembered = changeOf(undefined, [saveIdempotencyRecord(stored, DELIVERY_RETENTION_MS)], {
      retryOn: ['idempotency'],
    });
    return and(logged, remembered);
  }

  async #wait(row: TriggerRow, runId: string, seconds: number, signal: AbortSignal): Promise<void> {
    const { runtime, events } = this.#parts;
    const run = this.#waiting < WAITING_MAX ? await runtime.reader.row({ tenant: row.tenant }, runId) : undefined;
    if (!run) return;
    this.#waiting++;
    try {
      await waitUntilSettled({ events, clock: runtime.clock }, run, { waitMs: seconds * 1_000, signal });
    } finally {
      this.#waiting--;
    }
  }

  async #answer({ row, config }: Delivery, { runId, ...before }: Started, statusUrl: string): Promise<Reply | Refusal> {
    const { runtime } = this.#parts;
    const result = await runtime.reader.view({ tenant: row.tenant }, runId, ({ run }) => resultOfRun(run));
    if (!result) return NOT_FOUND;
    const { status } = result;
    const duplicate = before.status === undefined ? { duplicate: true } : {};
    const started: StartedByHook = { runId, status, statusUrl, ...duplicate };
    if (config.respond !== 'result' || !isTerminalStatus(status)) return reply(202, started);
    return reply(200, { ...started, ...result } satisfies AnsweredByHook);
  }
}

/** Slack sends this once, when somebody enters the URL. */
function challengeOf({ scheme }: WebhookTriggerConfig, body: unknown): string | undefined {
  if (scheme !== 'slack' || !isObject(body) || body.type !== 'url_verification') return undefined;
  return typeof body.challenge === 'string' ? body.challenge : undefined;
}

/** Inputs that the workflow does not take are a matter of the trigger; its sender cannot help it. */
function refusalFor(refusal: Refusal): Refusal {
  return refusal.refused === 'validation_error' ? { ...refusal, status: 422 } : refusal;
}
