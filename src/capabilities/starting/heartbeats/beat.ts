import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { MAX_RUNTIME_MS } from '../../../protocol/starting/heartbeats.ts';
import type { WorkHandler, WorkResult } from '../../../runtime/executor.ts';
import type { Unit, Write } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { type RunStarter, type Start, starterOf, subjectOf, timeText } from '../starter/self-starting.ts';
import { heartbeatFrom, specOf } from './document.ts';
import { lookWithin, type Observer } from './observing.ts';
import {
  countLiveRuns,
  findHeartbeat,
  forgetHeartbeatEvents,
  type HeartbeatRow,
  insertHeartbeatEvent,
  moveHeartbeat,
} from './records.ts';
import { type Change, type Look, NOTHING_SEEN, nextTick, type Tick, tickOf } from './rules.ts';
import type { HeartbeatStarter } from './service.ts';

/** What heartbeats said, and is still shown. */
const EVENTS_KEPT = 200;
/** Runs of one heartbeat that have not ended, from which on it waits with the next. */
const LIVE_RUNS_MAX = 10;

/**
 * Deals with a heartbeat whose time has come. What it saw, what it says, the run that a change starts and the next tick
 * are committed together, and only if nobody else has moved it: a tick happens once or not at all, whoever dies when.
 */
export class Beating {
  readonly #host: Host;
  readonly #runs: RunStarter;
  readonly #observer: Observer;
  readonly #starters: ReadonlyMap<string, HeartbeatStarter>;

  constructor(
    host: Host,
    parts: { runs: RunStarter; observer: Observer; starters: ReadonlyMap<string, HeartbeatStarter> },
  ) {
    this.#host = host;
    this.#runs = parts.runs;
    this.#observer = parts.observer;
    this.#starters = parts.starters;
  }

  readonly handle: WorkHandler = async ({ work_id: heartbeatId, tenant }) => {
    const { store, clock } = this.#host.runtime;
    const [row] = await store.read<HeartbeatRow>(findHeartbeat({ tenant }, heartbeatId));
    if (!row || row.next_tick_at === null) return { writes: [] };
    if (clock.now() < row.next_tick_at) return { writes: [], dueAgainAt: row.next_tick_at };
    return this.#settle(row, row.next_tick_at, await this.#look(row));
  };

  /** What comes of a look. */
  async #settle(row: HeartbeatRow, awaited: number, look: Look): Promise<WorkResult> {
    const now = this.#host.runtime.clock.now();
    const spec = specOf(row);
    const prior = row.state === null ? NOTHING_SEEN : JSON.parse(row.state);
    const seen = tickOf(spec, prior, look);
    const start = seen.change?.isWanted ? await this.#start(row, seen.change, now) : undefined;
    // What could not be started is a change that has not been dealt with: it is seen again with the next tick.
    const tick: Tick = isRefusal(start) ? { status: 'error', error: start.message } : seen;
    const dueAgainAt = nextTick(awaited, spec.intervalSec, now);
    const moved = movedBy(row, tick, now, dueAgainAt);
    const telling = eventsOf(row, tick, now);
    if (!start || isRefusal(start)) return { writes: told(moved, telling), dueAgainAt };
    const { writes, committed } = this.#host.executor.birth(start.created);
    const last_run_id = start.created.held.run.facts.runId;
    return {
      writes: [...told({ ...moved, last_run_id }, telling), ...(start.also ?? []), ...writes],
      dueAgainAt,
      committed,
    };
  }

  #look(row: HeartbeatRow): Promise<Look> {
    const { observe } = specOf(row);
    const subject = subjectOf(row);
    if (observe) return this.#observer.look(subject, observe, MAX_RUNTIME_MS);
    const seenByOwner = starterOf(this.#starters, row)?.observe;
    if (!seenByOwner) return Promise.resolve({ status: 'error', error: 'There is nothing to look at.' });
    return lookWithin(this.#host.runtime.clock, MAX_RUNTIME_MS, () => seenByOwner(heartbeatFrom(row), subject));
  }

  async #start(row: HeartbeatRow, { from, to }: Change, at: number): Promise<Start | Refusal | undefined> {
    const owner = starterOf(this.#starters, row);
    if (owner) return owner.start(heartbeatFrom(row), { from, to, at }, subjectOf(row));
    const { workflowId } = specOf(row);
    if (workflowId === undefined) return undefined;
    const { tenant, heartbeat_id: heartbeatId } = row;
    const tag = `heartbeat:${heartbeatId}`;
    const [live] = await this.#host.runtime.store.read<{ count: number }>(countLiveRuns(tenant, tag));
    if (live!.count >= LIVE_RUNS_MAX) return refuse('conflict', `${LIVE_RUNS_MAX} of its runs have not ended.`);
    const inputs: JsonObject = { ...(row.inputs === null ? {} : JSON.parse(row.inputs)), heartbeat: { from, to } };
    return this.#runs.start({
      subject: subjectOf(row),
      workflowId,
      inputs: JSON.stringify(inputs),
      tags: [tag],
      metadata: { heartbeatId, tickAt: timeText(at) },
    });
  }
}

function movedBy(row: HeartbeatRow, tick: Tick, now: number, next: number): HeartbeatRow {
  return {
    ...row,
    ...(tick.change ? { state: JSON.stringify(tick.change.to), last_changed_at: now } : {}),
    next_tick_at: next,
    last_tick_at: now,
    last_status: tick.status,
    last_error: tick.error ?? null,
  };
}

interface Told {
  readonly type: string;
  readonly payload: object;
  readonly at: number;
}

/** Every tick is told, and a change besides. */
function eventsOf({ heartbeat_id: heartbeatId }: HeartbeatRow, { status, change }: Tick, at: number): Told[] {
  const evaluated = { heartbeatId, status, changed: change !== undefined };
  return [
    { type: 'heartbeat.evaluated', payload: evaluated, at },
    ...(change
      ? [{ type: 'heartbeat.stateChanged', payload: { heartbeatId, from: change.from, to: change.to }, at }]
      : []),
  ];
}

function told(row: HeartbeatRow, events: readonly Told[]): Unit {
  const { heartbeat_id, tenant } = row;
  const last = row.told + events.length;
  const writes: Write[] = events.map(({ type, payload, at }, index) =>
    insertHeartbeatEvent({
      heartbeat_id,
      tenant,
      sequence: row.told + index + 1,
      at,
      type,
      payload: JSON.stringify(payload),
    }),
  );
  const old = last - EVENTS_KEPT;
  return [moveHeartbeat({ ...row, told: last }), ...writes, ...(old > 0 ? [forgetHeartbeatEvents(row, old)] : [])];
}
