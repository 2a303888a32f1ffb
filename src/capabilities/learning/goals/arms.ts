import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Continuation, GoalPlan } from '../../../protocol/learning/goals.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Unit } from '../../../store/sql.ts';
import type { CommitmentService } from '../../starting/commitments/service.ts';
import type { HeartbeatService } from '../../starting/heartbeats/service.ts';
import type { ScheduleService } from '../../starting/schedules/service.ts';
import { type Author, type BelongsTo, ownerText, subjectOf } from '../../starting/starter/self-starting.ts';
import { type Arm, briefing, type HeldGoal } from './document.ts';
import { misfit } from './rules.ts';

/** An arm that is not at work yet: it is once its writes are committed. */
export interface Armed {
  readonly arm: Arm;
  /** What it says of the runs, where nobody else has yet. */
  readonly plan?: GoalPlan | undefined;
  readonly writes: Unit;
  readonly committed: () => void;
}

/** Something that starts runs by itself and is there once its writes are committed. */
interface Thing {
  readonly ref: string;
  readonly runs: { readonly workflowId?: string | undefined; readonly inputs?: JsonObject | undefined };
  readonly writes: Unit;
  readonly committed: () => void;
}

/** One way in which the next run of a goal comes about by itself. */
interface ArmKind {
  /** What the plan asks for, made for the goal. Nothing where it does not ask yet. */
  make(goal: HeldGoal, author: Author, owner: BelongsTo): Promise<Thing | Refusal> | undefined;
  /** One that is there, to work for the goal for a while. */
  lend(author: Author, ref: string, owner: BelongsTo): Promise<Thing | Refusal>;
  disposal(subject: Subject, ref: string): Unit;
  takeBack(subject: Subject, ref: string): Unit;
}

export interface ArmNeeds {
  readonly schedules: Pick<ScheduleService, 'make' | 'announce' | 'disposal' | 'lend' | 'takeBack'>;
  readonly commitments: Pick<CommitmentService, 'make' | 'announce' | 'disposal' | 'lend' | 'takeBack'>;
  readonly heartbeat: Pick<HeartbeatService, 'make' | 'announce' | 'disposal' | 'lend' | 'takeBack'>;
}

/** What a thing that starts runs for a goal says that it belongs to. */
export const OWNER_KIND = 'goal';

/** What re-engages work on goals. Whoever is started by hand has none of these. */
export class Arms {
  readonly #kinds: Partial<Record<Continuation, ArmKind>>;

  constructor({ schedules, commitments, heartbeat }: ArmNeeds) {
    this.#kinds = {
      schedule: scheduleArm(schedules),
      commitment: commitmentArm(commitments),
      heartbeat: heartbeatArm(heartbeat),
    };
  }

  get served(): ReadonlySet<Continuation> {
    return new Set<Continuation>([...(Object.keys(this.#kinds) as Continuation[]), 'manual']);
  }

  /** An arm for the goal as it is to be, in the place of the one it may have. */
  async arm(goal: HeldGoal): Promise<Armed | Refusal | undefined> {
    const { row, continuation } = goal;
    const kind = this.#kinds[continuation.mode];
    const ref = continuation.armRef;
    if (!kind) return undefined;
    const author = { subject: subjectOf(row) };
    const owner = { kind: OWNER_KIND, id: row.goal_id };
    const thing = await (ref == null ? kind.make(goal, author, owner) : kind.lend(author, ref, owner));
    if (!thing) return undefined;
    if (isRefusal(thing)) return ref == null ? thing : misfit('continuation.armRef', thing.message);
    const { writes, committed } = thing;
    return { arm: { ref: thing.ref, isOwn: ref == null }, plan: planOf(thing), writes, committed };
  }

  /** What takes the arm of a goal away: it starts nothing more. */
  disarm({ row, continuation, arm }: HeldGoal): Unit {
    const kind = this.#kinds[continuation.mode];
    if (!arm || !kind) return [];
    return arm.isOwn ? kind.disposal(subjectOf(row), arm.ref) : kind.takeBack(subjectOf(row), arm.ref);
  }
}

function planOf({ runs: { workflowId, inputs } }: Thing): GoalPlan | undefined {
  return workflowId === undefined ? undefined : { workflowId, criteria: [], ...(inputs ? { inputs } : {}) };
}

/** What runs are given that an arm starts. It is checked now, and put together anew for each of them. */
function inputsOf(goal: HeldGoal): JsonObject {
  return { ...goal.plan?.inputs, goal: briefing(goal) };
}

function scheduleArm(schedules: ArmNeeds['schedules']): ArmKind {
  type Made = Awaited<ReturnType<typeof schedules.make>>;
  const thing = (made: Made): Thing | Refusal => {
    if (isRefusal(made)) return made;
    const { schedule, writes } = made;
    return { ref: schedule.id, runs: schedule, writes, committed: () => schedules.announce(schedule) };
  };
  return {
    make: (goal, author, owner) => {
      const { schedule, workflowId } = goal.plan ?? {};
      if (!schedule || workflowId === undefined) return undefined;
      return schedules.make(author, { workflowId, ...schedule, inputs: inputsOf(goal) }, owner).then(thing);
    },
    lend: async (author, ref, owner) => thing(await schedules.lend(author, ref, owner)),
    disposal: schedules.disposal,
    takeBack: schedules.takeBack,
  };
}

function heartbeatArm(heartbeats: ArmNeeds['heartbeat']): ArmKind {
  type Made = Awaited<ReturnType<typeof heartbeats.make>>;
  const thing = (made: Made): Thing | Refusal => {
    if (isRefusal(made)) return made;
    const { heartbeat, writes } = made;
    return { ref: heartbeat.id, runs: heartbeat, writes, committed: () => heartbeats.announce(heartbeat) };
  };
  return {
    make: (goal, author, owner) => {
      const { heartbeat, workflowId } = goal.plan ?? {};
      if (!heartbeat || workflowId === undefined) return undefined;
      return heartbeats.make(author, { workflowId, ...heartbeat, inputs: inputsOf(goal) }, owner).then(thing);
    },
    lend: async (author, ref, owner) => thing(await heartbeats.lend(author, ref, owner)),
    disposal: heartbeats.disposal,
    takeBack: heartbeats.takeBack,
  };
}

/** It is kept again and again, unless it says otherwise: one run seldom does it. */
function commitmentArm(commitments: ArmNeeds['commitments']): ArmKind {
  type Made = Awaited<ReturnType<typeof commitments.make>>;
  const thing = (made: Made): Thing | Refusal => {
    if (isRefusal(made)) return made;
    const { commitment, writes } = made;
    return { ref: commitment.id, runs: commitment, writes, committed: () => commitments.announce(commitment) };
  };
  return {
    make: (goal, author, owner) => {
      const { commitment, workflowId } = goal.plan ?? {};
      if (!commitment || workflowId === undefined) return undefined;
      const { predicate, memoryRef = ownerText(owner), ...rest } = commitment;
      const repeated = predicate ? { predicate: { repeats: true, ...predicate } } : {};
      const request = { workflowId, ...rest, ...repeated, memoryRef, inputs: inputsOf(goal) };
      return commitments.make(author, request, owner).then(thing);
    },
    lend: async (author, ref, owner) => thing(await commitments.lend(author, ref, owner)),
    disposal: commitments.disposal,
    takeBack: commitments.takeBack,
  };
}
