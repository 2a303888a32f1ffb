import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Continuation, GoalPlan } from '../../../protocol/learning/goals.ts';
import { type Change, unchanged } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Commitments } from '../../starting/commitments/door.ts';
import type { Heartbeats } from '../../starting/heartbeats/door.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import { type Author, ownerText, type StarterOwner, type Starters } from '../../starting/starter/door.ts';
import { subjectOf } from '../../subject-columns.ts';
import { type Arm, briefing, type HeldGoal } from './document.ts';
import { unprocessable } from './rules.ts';

/** An arm that works for a goal once its change is committed. */
interface Armed {
  readonly arm: Arm;
  /** The plan that follows from the arm, for a goal that has none. */
  readonly plan?: GoalPlan | undefined;
  readonly change: Change<unknown>;
}

/** What arms need: one family of starters for each way in which a goal continues by itself. */
export interface ArmNeeds {
  readonly schedules: Schedules;
  readonly commitments: Commitments;
  readonly heartbeat: Heartbeats;
}

/** The kind of owner that the starters of goals have. */
export const OWNER_KIND = 'goal';

/** One family of starters as arms of goals. */
interface ArmKind extends Pick<Starters<never, StarterDocument, never>, 'lend' | 'takeBack' | 'removeOwned'> {
  /** Creates what the plan of a goal asks for; undefined as long as it asks for nothing. */
  create(goal: HeldGoal, author: Author, owner: StarterOwner): Promise<Change<StarterDocument> | Refusal> | undefined;
  /** Whether the starter is going to be evaluated again. */
  isArmed(author: Author, ref: string): Promise<boolean>;
}

/** What goals read of a starter. */
interface StarterDocument {
  readonly id: string;
  readonly workflowId?: string | undefined;
  readonly inputs?: JsonObject | undefined;
}

type PlanOf = GoalPlan & { readonly inputs: JsonObject };

/** The starters that start runs of goals. Goals that are continued by hand have none. */
export class Arms {
  readonly #kinds: Partial<Record<Continuation, ArmKind>>;

  constructor({ schedules, commitments, heartbeat }: ArmNeeds) {
    this.#kinds = {
      schedule: armKind(
        schedules,
        ({ workflowId, inputs, schedule }) => schedule && { workflowId, ...schedule, inputs },
        ({ nextRunAt }) => nextRunAt !== undefined,
      ),
      commitment: armKind(commitments, commitmentRequest, ({ state }) => state === 'armed'),
      heartbeat: armKind(
        heartbeat,
        ({ workflowId, inputs, heartbeat: its }) => its && { workflowId, ...its, inputs },
        ({ nextTickAt }) => nextTickAt !== undefined,
      ),
    };
  }

  /** The continuation modes that this host serves. */
  get served(): ReadonlySet<Continuation> {
    return new Set<Continuation>([...(Object.keys(this.#kinds) as Continuation[]), 'manual']);
  }

  /** Creates or borrows an arm for the goal as it is going to be. */
  async arm(goal: HeldGoal): Promise<Armed | Refusal | undefined> {
    const { row, continuation } = goal;
    const kind = this.#kinds[continuation.mode];
    const ref = continuation.armRef;
    if (!kind) return undefined;
    const author = { subject: subjectOf(row) };
    const owner = { kind: OWNER_KIND, id: row.goal_id };
    const change = await (ref == null ? kind.create(goal, author, owner) : kind.lend(author, ref, owner));
    if (!change) return undefined;
    if (isRefusal(change)) {
      return ref == null ? inBlock(continuation.mode, change) : unprocessable('continuation.armRef', change.message);
    }
    const { id, workflowId, inputs } = change.result;
    const plan = workflowId === undefined ? undefined : { workflowId, criteria: [], ...(inputs ? { inputs } : {}) };
    return { arm: { ref: id, isOwn: ref == null }, plan, change };
  }

  /** Refuses a plan with a block that could not be an arm, whichever way the goal continues now. */
  async refusePlan(goal: HeldGoal): Promise<Refusal | undefined> {
    const author = { subject: subjectOf(goal.row) };
    const owner = { kind: OWNER_KIND, id: goal.row.goal_id };
    for (const [mode, kind] of Object.entries(this.#kinds)) {
      const created = await kind.create(goal, author, owner);
      if (created && isRefusal(created)) return inBlock(mode, created);
    }
    return undefined;
  }

  /** Whether the arm of a goal may start another run. */
  async isArmed({ row, continuation, arm }: HeldGoal): Promise<boolean> {
    const kind = this.#kinds[continuation.mode];
    if (!arm || !kind) return false;
    return kind.isArmed({ subject: subjectOf(row) }, arm.ref);
  }

  /** Removes the arm of a goal, or gives it back. */
  disarm({ row, continuation, arm }: HeldGoal): Change {
    const kind = this.#kinds[continuation.mode];
    if (!arm || !kind) return unchanged(undefined);
    const subject: Subject = subjectOf(row);
    return arm.isOwn ? kind.removeOwned(subject, arm.ref) : kind.takeBack(subject, arm.ref);
  }
}

/** The refusal of a starter, with the place in the plan that it is about. */
function inBlock(mode: string, refusal: Refusal): Refusal {
  const { field } = refusal.details ?? {};
  if (typeof field !== 'string' || /^(inputs|workflowId)/.test(field)) return refusal;
  return { ...refusal, details: { ...refusal.details, field: `${mode}.${field}` } };
}

/** Uses starters as arms; `requestFor` says which starter a plan asks for, `isArmed` whether one still waits. */
function armKind<Request, Document extends StarterDocument>(
  starters: Starters<Request, Document, never>,
  requestFor: (plan: PlanOf, owner: StarterOwner) => Request | undefined,
  isArmed: (document: Document) => boolean,
): ArmKind {
  return {
    isArmed: async (author, ref) => {
      const found = await starters.find(author, ref);
      return !isRefusal(found) && isArmed(found);
    },
    create: (goal, author, owner) => {
      // The inputs are checked now, and composed anew for each run.
      const plan = goal.plan && { ...goal.plan, inputs: { ...goal.plan.inputs, goal: briefing(goal) } };
      const request = plan && requestFor(plan, owner);
      return request && starters.create(author, request, owner);
    },
    lend: (author, ref, owner) => starters.lend(author, ref, owner),
    removeOwned: (subject, ref) => starters.removeOwned(subject, ref),
    takeBack: (subject, ref) => starters.takeBack(subject, ref),
  };
}

/** A predicate repeats unless it says otherwise, because one run seldom reaches a goal. */
function commitmentRequest({ workflowId, inputs, commitment }: PlanOf, owner: StarterOwner) {
  if (!commitment) return undefined;
  const { predicate, memoryRef = ownerText(owner), ...rest } = commitment;
  const repeated = predicate ? { predicate: { repeats: true, ...predicate } } : {};
  return { workflowId, ...rest, ...repeated, memoryRef, inputs };
}
