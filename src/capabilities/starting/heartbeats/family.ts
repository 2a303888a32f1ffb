import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import { type Heartbeat, type HeartbeatRequest, MAX_RUNTIME_MS } from '../../../protocol/starting/heartbeats.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Unit } from '../../../store/sql.ts';
import { subjectOf } from '../../subject-columns.ts';
import { timestamp } from '../../timestamps.ts';
import { refuseSecrets } from '../../trust/secrets.ts';
import type { Before, Occasion } from '../starter/door.ts';
import type { Evaluation, StarterFamily, StartOutcome } from '../starter/family.ts';
import { type Observed, type Observer, observeWithin } from '../starter/observing.ts';
import { intervalOf, invalidField, nextTick } from '../starter/rules.ts';
import { inputsOf, type PlannedRun } from '../starter/run-creation.ts';
import { heartbeatFrom, specOf } from './document.ts';
import {
  countLiveRuns,
  deleteHeartbeatEvents,
  expireHeartbeatEvents,
  HEARTBEATS,
  type HeartbeatRow,
  insertHeartbeatEvent,
} from './records.ts';
import { checkHeartbeat, INITIAL_STATE, type Tick, tickOf } from './rules.ts';

/** The kind of the work item that waits for the next tick of a heartbeat. */
export const HEARTBEAT_WORK = 'heartbeat';
const HEARTBEATS_MAX = 2_000;
/** How many events of a heartbeat are stored. */
const EVENTS_MAX = 200;
/** A heartbeat with this many runs that have not ended starts no more. */
const LIVE_RUNS_MAX = 10;

/** Starters whose condition is a change: they observe something at an interval, and compare. */
export function heartbeatFamily(
  runtime: Runtime,
  observer: Observer,
): StarterFamily<HeartbeatRow, HeartbeatRequest, Heartbeat, Before> {
  return {
    kind: HEARTBEAT_WORK,
    idPrefix: 'hb-',
    limit: HEARTBEATS_MAX,
    table: HEARTBEATS,
    auditActions: {
      create: 'heartbeat.create',
      remove: 'heartbeat.remove',
      enable: 'heartbeat.resume',
      disable: 'heartbeat.pause',
    },
    lentColumns: { state: null },

    check: (request, { isOwned }) => {
      const { observe, state, when } = request;
      if (!observe && !isOwned) return invalidField('observe', 'observe is missing: name what to observe.');
      return checkHeartbeat(request) ?? refuseSecrets(defined({ observe, state, when }));
    },
    newRow: ({ inputs: _inputs, ...spec }, { id, now, columns }) => ({
      ...columns,
      heartbeat_id: id,
      spec: JSON.stringify({ ...spec, intervalSec: intervalOf(spec.intervalSec) }),
      next_tick_at: now,
      state: null,
      last_tick_at: null,
      last_status: null,
      last_error: null,
      last_changed_at: null,
      last_run_id: null,
      told: 0,
    }),
    document: heartbeatFrom,
    listColumns: ({ before }) => ({ before }),
    auditDetails: ({ intervalSec, workflowId }) => defined({ intervalSec, workflowId }),

    idOf: ({ heartbeat_id }) => heartbeat_id,
    status: ({ next_tick_at: dueAt }) => ({ state: dueAt === null ? 'disabled' : 'armed', dueAt }),
    statusColumns: ({ dueAt }) => ({ next_tick_at: dueAt }),
    firstDue: (_row, now) => now,

    evaluate: async (row, dueAt, observeOwner) => {
      const result = await observe(runtime, observer, row, observeOwner);
      return evaluate(row, dueAt, runtime.clock.now(), result);
    },
    plannedRun: (row, occasion) => plannedRun(runtime, row, occasion),
    deleteOthers: (tenant, id) => [deleteHeartbeatEvents(tenant, id)],
  };
}

function observe(
  { clock }: Runtime,
  observer: Observer,
  row: HeartbeatRow,
  observeOwner: (() => Promise<unknown>) | undefined,
): Promise<Observed> {
  const { observe: observation } = specOf(row);
  if (observation) return observer.observe(subjectOf(row), observation);
  if (observeOwner) return observeWithin(clock, MAX_RUNTIME_MS, observeOwner);
  return Promise.resolve({ status: 'error', error: 'The heartbeat names nothing to observe.' });
}

function evaluate(row: HeartbeatRow, dueAt: number, now: number, result: Observed): Evaluation<HeartbeatRow> {
  const spec = specOf(row);
  const seen = tickOf(spec, row.state === null ? INITIAL_STATE : JSON.parse(row.state), result);
  const { change } = seen;
  return {
    occasion: change?.startsRun ? { at: now, change: { from: change.from, to: change.to } } : undefined,
    settle: (outcome) => {
      // A change whose run could not be started is not stored, so the next tick finds it again.
      const tick: Tick = isRefusal(outcome) ? { status: 'error', error: outcome.message } : seen;
      const events = eventsOf(row, tick, now);
      return {
        columns: { ...tickColumns(tick, outcome, now), told: row.told + events.length },
        next: nextTick(dueAt, spec.intervalSec, now),
        writes: eventWrites(row, events),
      };
    },
  };
}

function tickColumns({ status, error, change }: Tick, outcome: StartOutcome, now: number): Partial<HeartbeatRow> {
  return {
    ...(change ? { state: JSON.stringify(change.to), last_changed_at: now } : {}),
    ...(outcome && !isRefusal(outcome) ? { last_run_id: outcome.runId } : {}),
    last_tick_at: now,
    last_status: status,
    last_error: error ?? null,
  };
}

async function plannedRun(
  { store }: Runtime,
  row: HeartbeatRow,
  { at, change }: Occasion,
): Promise<PlannedRun | Refusal | undefined> {
  const { workflowId } = specOf(row);
  if (workflowId === undefined) return undefined;
  const { tenant, heartbeat_id: heartbeatId } = row;
  const tag = `heartbeat:${heartbeatId}`;
  const [live] = await store.read<{ count: number }>(countLiveRuns(tenant, tag));
  if (live!.count >= LIVE_RUNS_MAX) return refuse('conflict', `${LIVE_RUNS_MAX} runs of the heartbeat have not ended.`);
  return {
    workflowId,
    inputs: { ...inputsOf(row), heartbeat: { ...change } },
    tags: [tag],
    metadata: { heartbeatId, tickAt: timestamp(at) },
  };
}

interface NewHeartbeatEvent {
  readonly type: string;
  readonly payload: JsonObject;
  readonly at: number;
}

/** Every tick is an event, and every change is another. */
function eventsOf(
  { heartbeat_id: heartbeatId }: HeartbeatRow,
  { status, change }: Tick,
  at: number,
): NewHeartbeatEvent[] {
  const evaluated = { heartbeatId, status, changed: change !== undefined };
  return [
    { type: 'heartbeat.evaluated', payload: evaluated, at },
    ...(change
      ? [{ type: 'heartbeat.stateChanged', payload: { heartbeatId, from: change.from, to: change.to }, at }]
      : []),
  ];
}

function eventWrites(row: HeartbeatRow, events: readonly NewHeartbeatEvent[]): Unit {
  const { heartbeat_id, tenant, told } = row;
  const expired = told + events.length - EVENTS_MAX;
  return [
    ...events.map(({ type, payload, at }, index) => {
      const sequence = told + index + 1;
      return insertHeartbeatEvent({ heartbeat_id, tenant, sequence, at, type, payload: JSON.stringify(payload) });
    }),
    ...(expired > 0 ? [expireHeartbeatEvents(row, expired)] : []),
  ];
}
