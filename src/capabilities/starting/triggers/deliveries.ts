import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import type { TriggerOutcome } from '../../../protocol/format/choices.ts';
import type { TriggerDelivery } from '../../../protocol/starting/triggers.ts';
import { type Change, changeOf, commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { Unit, Write } from '../../../store/sql.ts';
import type { Cancel } from '../../../system/clock.ts';
import { redactText } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';
import { timestamp } from '../../timestamps.ts';
import {
  addToCount,
  type DeliveryFilter,
  type DeliveryRow,
  deleteOldDeliveries,
  insertDelivery,
  listDeliveries,
  trimDeliveries,
} from './delivery-records.ts';
import { findTrigger, type TriggerRow } from './records.ts';

/** Lines that are kept of each trigger, and for how long. */
export const DELIVERIES_KEPT = 200;
const KEPT_MS = 7 * 24 * 60 * 60_000;
/** Lines wait so long for others, to be written together. */
const WRITE_AFTER_MS = 250;
/** Lines that wait at most; a host that gets more in that time leaves some out. */
const WAITING_MAX = 1_000;

/** Kind and id of the one work item that deletes old lines. */
export const SWEEP_DELIVERIES = 'sweep-trigger-deliveries';
const SWEEP_EVERY_MS = 60 * 60_000;
const SWEPT_AT_ONCE = 5_000;

/** What came of a request, besides its outcome. */
interface DeliveryFacts {
  readonly deliveryId?: string | undefined;
  readonly runId?: string;
  readonly refusal?: Refusal;
}

type LogRuntime = Pick<Runtime, 'store' | 'clock' | 'ids' | 'log'>;

/**
 * The delivery log of triggers: what came of the requests to them, and nothing of what was in them.
 *
 * L1. That a run was started is written in the unit of the run.
 * L2. Everything else is written soon, together; a host that dies may leave out what came in its last moments, and a
 *     store that is away keeps no sender waiting.
 * L3. Requests that anybody can send are counted: each trigger has one line for each reason to refuse them.
 */
export class DeliveryLog {
  readonly #runtime: LogRuntime;
  readonly #waiting: DeliveryRow[] = [];
  readonly #counts = new Map<string, DeliveryRow>();
  readonly #grown = new Set<string>();
  #cancelWrite: Cancel | undefined;

  constructor(runtime: LogRuntime) {
    this.#runtime = runtime;
  }

  /** The line of a run that is started, as a part of the change that starts it. */
  started(trigger: TriggerRow, runId: string, deliveryId: string | undefined): Change {
    const row = this.#rowOf(trigger, 'started', { runId, deliveryId });
    return changeOf(undefined, [insertDelivery(row)], { announce: [() => this.#grow(trigger.trigger_id)] });
  }

  /** Notes what came of a request that is known to come from the expected sender. */
  note(trigger: TriggerRow, outcome: TriggerOutcome, facts: DeliveryFacts = {}): void {
    if (this.#waiting.length >= WAITING_MAX) return;
    this.#waiting.push(this.#rowOf(trigger, outcome, facts));
    this.#grow(trigger.trigger_id);
  }

  /** Counts a request that was refused without a look at it. */
  count(trigger: TriggerRow, outcome: 'refused' | 'limited', code: string): void {
    const key = `${trigger.trigger_id} ${outcome} ${code}`;
    const before = this.#counts.get(key)?.count ?? 0;
    if (before === 0 && this.#counts.size >= WAITING_MAX) return;
    this.#counts.set(key, { ...this.#rowOf(trigger, outcome, {}), code, count: before + 1 });
    this.#writeSoon();
  }

  /** The lines of a trigger that is visible to the caller, newest first. */
  async list(
    { subject }: Caller,
    triggerId: string,
    filter: DeliveryFilter,
    limit: number,
  ): Promise<TriggerDelivery[] | Refusal> {
    const { store } = this.#runtime;
    const [trigger] = await store.read<TriggerRow>(findTrigger(subject, triggerId));
    if (!trigger) return NOT_FOUND;
    return (await store.read<DeliveryRow>(listDeliveries(trigger, filter, limit))).map(deliveryFrom);
  }

  /** Writes what waits. */
  async write(): Promise<void> {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    const lines = [
      ...this.#waiting.splice(0).map(insertDelivery),
      ...[...this.#grown].map((triggerId) => trimDeliveries(triggerId, DELIVERIES_KEPT)),
    ];
    // In the same order on every host, because each counter is locked.
    const counted = [...this.#counts].sort(([one], [other]) => (one < other ? -1 : 1));
    this.#counts.clear();
    this.#grown.clear();
    await Promise.all([lines, counted.flatMap(([, row]) => addToCount(row))].map((unit) => this.#commit(unit)));
  }

  async #commit(unit: Unit): Promise<void> {
    if (unit.length === 0) return;
    try {
      await commitOrThrow(this.#runtime.store, unit);
    } catch (error) {
      this.#runtime.log.warn({ err: error }, 'some deliveries to triggers could not be stored in the delivery log');
    }
  }

  /** Deletes old lines, a limited number at a time. */
  readonly sweep: WorkHandler = async () => {
    const { store, clock } = this.#runtime;
    const outcome = await store.commit([deleteOldDeliveries(KEPT_MS, SWEPT_AT_ONCE)]);
    const isDone = !outcome.committed || outcome.rows[0]!.length < SWEPT_AT_ONCE;
    return { dueAgainAt: isDone ? clock.now() + SWEEP_EVERY_MS : clock.now() };
  };

  #grow(triggerId: string): void {
    this.#grown.add(triggerId);
    this.#writeSoon();
  }

  #writeSoon(): void {
    this.#cancelWrite ??= this.#runtime.clock.after(WRITE_AFTER_MS, () => void this.write());
  }

  #rowOf(
    { trigger_id, tenant }: TriggerRow,
    outcome: TriggerOutcome,
    { deliveryId, runId, refusal }: DeliveryFacts,
  ): DeliveryRow {
    const { clock, ids } = this.#runtime;
    const field = refusal?.details?.field;
    return {
      entry_id: ids.next('tdl-'),
      trigger_id,
      tenant,
      at: clock.now(),
      outcome,
      delivery_id: deliveryId === undefined ? null : redactText(deliveryId),
      run_id: runId ?? null,
      code: refusal?.refused ?? null,
      field: typeof field === 'string' ? field : null,
      count: 1,
    };
  }
}

/** The work item of the sweep. */
export function sweepDeliveriesWork(): Write {
  return ensureWork({ workId: SWEEP_DELIVERIES, kind: SWEEP_DELIVERIES, tenant: '*', dueAt: 0 });
}

function deliveryFrom(row: DeliveryRow): TriggerDelivery {
  const { entry_id: id, trigger_id: triggerId, at, outcome, delivery_id, run_id, code, field, count } = row;
  return {
    id,
    triggerId,
    at: timestamp(at),
    outcome,
    ...(delivery_id === null ? {} : { deliveryId: delivery_id }),
    ...(run_id === null ? {} : { runId: run_id }),
    ...(code === null ? {} : { reason: { code, ...(field === null ? {} : { field }) } }),
    ...(count === 1 ? {} : { count }),
  };
}
