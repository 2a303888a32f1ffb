import { hasStopped, isClosed } from '../../../engine/judging/goal.ts';
import { isTerminal } from '../../../engine/run/run.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { command, commitUnless, UnitRefused } from '../../../runtime/command.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Unit } from '../../../store/sql.ts';
import type { FeedFact, Feed as FeedService } from '../../operations/feed/door.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import type { Arms } from './arms.ts';
import { type HeldGoal, rowOf } from './document.ts';
import { moveGoal } from './records.ts';

/** The kind of work item by which a goal is looked after. There is one for each goal, by its id. */
export const GOAL = 'goal';

/** What becomes of a goal, on whose account, and what else happens with it. */
export interface Move {
  readonly after: HeldGoal;
  /** When it happens, where that was said already. */
  readonly at?: number;
  readonly actor: string;
  readonly action: AuditAction;
  readonly details?: JsonObject;
  /** For the run that tells its life, before what the move itself makes of it. */
  readonly events?: readonly NewEvent[];
  readonly writes?: Unit;
  readonly facts?: readonly FeedFact[];
}

export interface MoveNeeds {
  readonly audit: Pick<AuditService, 'record'>;
  readonly feed: Pick<FeedService, 'entries' | 'wake'>;
  readonly arms: Arms;
}

/** The one way in which goals change: state, arm, log, audit and feed together, and only if nobody was quicker. */
export class Moves {
  readonly #runtime: Runtime;
  readonly #needs: MoveNeeds;

  constructor(runtime: Runtime, needs: MoveNeeds) {
    this.#runtime = runtime;
    this.#needs = needs;
  }

  /** What the move writes, for whoever commits it with something else. It must not stop the goal. */
  unit(before: HeldGoal, move: Move): Unit {
    return this.#writes(before, move, this.#settled(before, move));
  }

  /** The goal as it is then; undefined when it has changed since it was read. */
  async commit(before: HeldGoal, move: Move): Promise<HeldGoal | undefined> {
    const { hub } = this.#runtime;
    const after = this.#settled(before, move);
    const events = [...(move.events ?? []), ...endings(before, after)];
    const isDone = await this.#write(before, events, this.#writes(before, move, after));
    if (!isDone) return undefined;
    this.#needs.feed.wake(before.row.tenant);
    hub.callToWork(before.row.goal_id);
    return after;
  }

  /** What follows from a stop, whoever brought it about: a goal that has stopped has no arm. */
  #settled(before: HeldGoal, { after, at: now = this.#runtime.clock.now() }: Move): HeldGoal {
    const isActive = after.progress.state === 'active';
    const stoppedAt = hasStopped(before.progress, after.progress) ? now : before.row.stopped_at;
    const row = { ...before.row, updated_at: now, stopped_at: isActive ? null : stoppedAt };
    return { ...after, row, arm: isActive ? after.arm : undefined };
  }

  #writes(before: HeldGoal, { actor, action, details, writes = [], facts = [] }: Move, after: HeldGoal): Unit {
    const { arms, audit, feed } = this.#needs;
    const { goal_id: goalId, tenant, workspace } = before.row;
    const where = { tenant, workspace: workspace ?? undefined };
    const isLeft = before.arm !== undefined && before.arm.ref !== after.arm?.ref;
    return [
      // An arm that fires holds itself before it holds the goal; who takes it away does the same.
      ...(isLeft ? arms.disarm(before) : []),
      moveGoal(rowOf(after)),
      ...writes,
      ...audit.record({ ...where, actor, action, target: goalId, ...defined({ details }) }),
      ...feed.entries(where, [...facts, ...factsOf(before, after)]),
    ];
  }

  async #write({ row }: HeldGoal, events: readonly NewEvent[], unit: Unit): Promise<boolean> {
    if (events.length === 0) return commitUnless('goal', this.#runtime.store, unit);
    try {
      const told = await command(
        this.#runtime,
        { tenant: row.tenant },
        row.run_id,
        (run) => (isTerminal(run) ? refuse('run_terminal', 'The goal is over.') : events),
        () => unit,
      );
      return !isRefusal(told);
    } catch (error) {
      if (error instanceof UnitRefused && error.broke === 'goal') return false;
      throw error;
    }
  }
}

/** A stop is told once, and the run that tells of a goal ends with it. */
function endings({ row, progress }: HeldGoal, after: HeldGoal): NewEvent[] {
  const { state } = after.progress;
  return [
    ...(state !== 'active' && hasStopped(progress, after.progress)
      ? [{ type: 'goal.closed', payload: { goalId: row.goal_id, finalState: state } } as const]
      : []),
    ...(isClosed(after.progress) && !isClosed(progress) ? [{ type: 'run.completed', payload: {} } as const] : []),
  ];
}

function factsOf({ row, progress }: HeldGoal, after: HeldGoal): FeedFact[] {
  const { state, isPaused, iterations } = after.progress;
  const data = { goalId: row.goal_id, state, paused: isPaused, iterations };
  const movesInbox = (progress.state === 'escalated') !== (state === 'escalated');
  return [
    { event: 'goal.updated', data },
    ...(hasStopped(progress, after.progress)
      ? [{ event: 'goal.closed', data: { goalId: row.goal_id, finalState: state } } as const]
      : []),
    ...(movesInbox ? [{ event: 'inbox.changed', data: {} } as const] : []),
  ];
}
