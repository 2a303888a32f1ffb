import { isRefusal, type Refusal } from '../../protocol/errors.ts';
import type { Continuation, GoalPlan } from '../../protocol/goals.ts';
import type { Unit } from '../../store/sql.ts';
import type { ScheduleService } from '../schedules/service.ts';
import { subjectOf } from '../self-starting.ts';
import { type Arm, briefing, type HeldGoal } from './document.ts';
import { misfit } from './rules.ts';

/** An arm that is not at work yet: it is once its writes are committed. */
export interface Armed {
  readonly arm: Arm;
  /** What it says of the runs, where nobody else has yet. */
  readonly plan?: GoalPlan;
  readonly writes: Unit;
  readonly committed: () => void;
}

/** One way in which the next run of a goal comes about by itself. */
interface ArmKind {
  /** Nothing where the plan does not say yet when. */
  make(goal: HeldGoal): Promise<Armed | Refusal | undefined>;
  drop(goal: HeldGoal, arm: Arm): Unit;
}

export interface ArmNeeds {
  readonly schedules: Pick<ScheduleService, 'make' | 'announce' | 'disposal' | 'lend' | 'takeBack'>;
}

/** What re-engages work on goals. Who arms a goal by hand has none of these. */
export class Arms {
  readonly #kinds: Partial<Record<Continuation, ArmKind>>;

  constructor({ schedules }: ArmNeeds) {
    this.#kinds = { schedule: scheduleArm(schedules) };
  }

  get served(): ReadonlySet<Continuation> {
    return new Set<Continuation>([...(Object.keys(this.#kinds) as Continuation[]), 'manual']);
  }

  async arm(goal: HeldGoal): Promise<Armed | Refusal | undefined> {
    return this.#kinds[goal.continuation.mode]?.make(goal);
  }

  /** What takes the arm of a goal away: it starts nothing more. */
  disarm(goal: HeldGoal): Unit {
    return goal.arm ? (this.#kinds[goal.continuation.mode]?.drop(goal, goal.arm) ?? []) : [];
  }
}

/** What a thing that starts runs for a goal says that it belongs to. */
export const OWNER_KIND = 'goal';

function scheduleArm(schedules: ArmNeeds['schedules']): ArmKind {
  return {
    async make(goal) {
      const { row, plan, continuation } = goal;
      const subject = subjectOf(row);
      const owner = { kind: OWNER_KIND, id: row.goal_id };
      if (continuation.armRef != null) {
        const lent = await schedules.lend({ subject }, continuation.armRef, owner);
        if (isRefusal(lent)) return misfit('continuation.armRef', lent.message);
        const { workflowId, inputs } = lent.schedule;
        return {
          arm: { ref: continuation.armRef, isOwn: false },
          plan: { workflowId, criteria: [], ...(inputs ? { inputs } : {}) },
          writes: lent.writes,
          committed: () => schedules.announce(lent.schedule),
        };
      }
      if (!plan?.schedule) return undefined;
      const { workflowId, inputs } = plan;
      const request = { workflowId, ...plan.schedule, inputs: { ...inputs, goal: briefing(goal) } };
      const made = await schedules.make({ subject }, request, owner);
      if (isRefusal(made)) return made;
      const { schedule, writes } = made;
      return { arm: { ref: schedule.id, isOwn: true }, writes, committed: () => schedules.announce(schedule) };
    },
    drop: ({ row }, { ref, isOwn }) =>
      isOwn ? schedules.disposal(subjectOf(row), ref) : schedules.takeBack(subjectOf(row), ref),
  };
}
