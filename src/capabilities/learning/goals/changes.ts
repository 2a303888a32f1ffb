import { hasStopped, isClosed } from '../../../engine/judging/goal.ts';
import { isTerminal } from '../../../engine/run/run.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { GoalStanding } from '../../../protocol/learning/goals.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { and, type Change, changeOf, unchanged, withResult } from '../../../runtime/change.ts';
import { moveRun } from '../../../runtime/move-run.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Feed, FeedFact } from '../../operations/feed/door.ts';
import type { Audit } from '../../trust/audit/door.ts';
import type { Arms } from './arms.ts';
import type { HeldGoal } from './document.ts';
import { updateGoal } from './records.ts';
import { needsPerson, standingOf } from './standing.ts';
import { rowOf } from './stored-goal.ts';

/** The kind of the work item of a goal. Each goal has at most one, by its id. */
export const GOAL_WORK = 'goal';

/** What a goal becomes, who changes it, and what else changes with it. */
export interface GoalMove {
  readonly after: HeldGoal;
  /** The time of the change, if the caller has shown it already. */
  readonly at?: number;
  readonly actor: string;
  readonly action: AuditAction;
  readonly details?: JsonObject;
  /** Events for the goal's management run, before those that follow from the change of state. */
  readonly events?: readonly NewEvent[];
  readonly writes?: Unit;
  readonly facts?: readonly FeedFact[];
}

/** What changes of goals need of others. */
interface GoalChangeNeeds {
  readonly audit: Pick<Audit, 'entry'>;
  readonly feed: Pick<Feed, 'publish'>;
  readonly arms: Arms;
}

/** The one way in which goals change: row, arm, management run, audit and feed in one change. */
export class GoalChanges {
  readonly #runtime: Runtime;
  readonly #needs: GoalChangeNeeds;

  constructor(runtime: Runtime, needs: GoalChangeNeeds) {
    this.#runtime = runtime;
    this.#needs = needs;
  }

  /** Counts a run of the goal, which does not stop it, so that its management run has nothing to record. */
  countRun(before: HeldGoal, move: GoalMove): Change<HeldGoal> {
    return this.#change(before, move, this.#settled(before, move));
  }

  /** Moves a goal, with the events that follow. The result is the goal afterwards. */
  async move(before: HeldGoal, move: GoalMove): Promise<Change<HeldGoal> | Refusal> {
    const after = this.#settled(before, move);
    const called = changeOf(undefined, [], { announce: [() => this.#runtime.hub.wakeWorkers(before.row.goal_id)] });
    const change = and(this.#change(before, move, after), called);
    const events = [...(move.events ?? []), ...endings(before, after)];
    if (events.length === 0) return change;
    const { tenant, run_id: runId } = before.row;
    const told = await moveRun(this.#runtime, { tenant }, runId, (run) => (isTerminal(run) ? GOAL_OVER : events));
    if (!isRefusal(told)) return withResult(and(told, change), () => after);
    // The goal was closed after it was read, so its version has moved: the change conflicts and is decided again.
    return told === GOAL_OVER ? change : told;
  }

  /** Tells those who follow the goal that its judge is being waited for. */
  judging(goal: HeldGoal): Change {
    const { tenant, workspace } = goal.row;
    return this.#needs.feed.publish({ tenant, workspace: workspace ?? undefined }, [
      updateOf(goal, standingOf(goal, true)),
    ]);
  }

  /** Whatever stops a goal, it has no arm then. */
  #settled(before: HeldGoal, { after, at: now = this.#runtime.clock.now() }: GoalMove): HeldGoal {
    const isActive = after.progress.state === 'active';
    const stoppedAt = hasStopped(before.progress, after.progress) ? now : before.row.stopped_at;
    const row = { ...before.row, updated_at: now, stopped_at: isActive ? null : stoppedAt };
    const mayStart = isActive && !after.progress.isPaused;
    return { ...after, row, arm: isActive ? after.arm : undefined, stall: mayStart ? after.stall : undefined };
  }

  #change(
    before: HeldGoal,
    { actor, action, details, writes = [], facts = [] }: GoalMove,
    after: HeldGoal,
  ): Change<HeldGoal> {
    const { arms, audit, feed } = this.#needs;
    const { goal_id: target, tenant, workspace } = before.row;
    const where = { tenant, workspace: workspace ?? undefined };
    const losesArm = before.arm !== undefined && before.arm.ref !== after.arm?.ref;
    const change = and(
      // The arm comes first, as it does when it starts a run: locks are always taken in the same order.
      losesArm ? arms.disarm(before) : unchanged(undefined),
      changeOf(undefined, [updateGoal(rowOf(after)), ...writes], { retryOn: ['goal'] }),
      audit.entry({ ...where, actor, action, target, ...defined({ details }) }),
      feed.publish(where, [...facts, ...factsOf(before, after)]),
    );
    return withResult(change, () => after);
  }
}

const GOAL_OVER = refuse('run_terminal', 'The goal is over.');

/** A stop is an event of its own, and the management run ends when the goal is closed. */
function endings({ row, progress }: HeldGoal, after: HeldGoal): NewEvent[] {
  const { state } = after.progress;
  return [
    ...(state !== 'active' && hasStopped(progress, after.progress)
      ? [{ type: 'goal.closed', payload: { goalId: row.goal_id, finalState: state } } as const]
      : []),
    ...(isClosed(after.progress) && !isClosed(progress) ? [{ type: 'run.completed', payload: {} } as const] : []),
  ];
}

function factsOf(before: HeldGoal, after: HeldGoal): FeedFact[] {
  const { row, progress } = before;
  return [
    updateOf(after, standingOf(after, false)),
    ...(hasStopped(progress, after.progress)
      ? [{ event: 'goal.closed', data: { goalId: row.goal_id, finalState: after.progress.state } } as const]
      : []),
    ...(needsPerson(before) === needsPerson(after) ? [] : [{ event: 'inbox.changed', data: {} } as const]),
  ];
}

function updateOf({ row, progress }: HeldGoal, standing: GoalStanding | undefined): FeedFact {
  const { state, isPaused, iterations } = progress;
  const data = { goalId: row.goal_id, state, paused: isPaused, iterations, ...defined({ standing: standing?.status }) };
  return { event: 'goal.updated', data };
}
