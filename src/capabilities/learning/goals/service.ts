import { abandon, isClosed, newProgress, pause, refuseChange, resume } from '../../../engine/judging/goal.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { Goal, GoalEdit, GoalPlan, GoalRequest, JudgeCalibration } from '../../../protocol/learning/goals.ts';
import { and, type Change, changeOf, withResult } from '../../../runtime/change.ts';
import { openManagementRun } from '../../../runtime/management.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import type { Write } from '../../../store/sql.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { Host } from '../../capability.ts';
import type { Feed } from '../../operations/feed/door.ts';
import type { Caller } from '../../request.ts';
import { subjectColumns } from '../../subject-columns.ts';
import type { Audit } from '../../trust/audit/door.ts';
import type { Verifiers } from '../verifiers/door.ts';
import type { Arms } from './arms.ts';
import { GOAL_WORK, type GoalChanges, type GoalMove } from './changes.ts';
import type { ContributingRuns } from './contributing-runs.ts';
import { calibrationFrom, factsFrom, goalFrom, type HeldGoal, type Stall } from './document.ts';
import type { Goals, GoalVerdicts } from './door.ts';
import { type CalibrationRow, calibrate } from './opinion-records.ts';
import type { GoalPlans } from './plans.ts';
import type { GoalReader } from './reader.ts';
import type { GoalFilter } from './records.ts';
import {
  findUnjudged,
  type GoalRunRow,
  insertGoal,
  insertObjective,
  listObjectives,
  listVerdicts,
  type ObjectiveRow,
  wakeGoal,
} from './records.ts';
import { refuseUnserved, unprocessable } from './rules.ts';
import { needsPerson, stallWithoutArm, standingOf } from './standing.ts';
import { rowOf } from './stored-goal.ts';

const GOALS_MAX = 20_000;
const TOO_MANY_GOALS = refuse('conflict', `A tenant may have ${GOALS_MAX} goals that are not closed.`, {
  limit: GOALS_MAX,
});

/** What the goal service is built from. */
interface GoalParts {
  readonly audit: Pick<Audit, 'entry'>;
  readonly feed: Pick<Feed, 'publish'>;
  readonly verifiers: Pick<Verifiers, 'get'>;
  readonly arms: Arms;
  readonly changes: GoalChanges;
  readonly contributing: ContributingRuns;
  readonly plans: GoalPlans;
  readonly reader: GoalReader;
  readonly agreement: Goals['agreement'];
}

/** What people do with goals. What happens to them otherwise is decided in `work.ts`. */
export class GoalService implements Goals {
  readonly agreement: Goals['agreement'];
  readonly #host: Pick<Host, 'runtime' | 'executor'>;
  readonly #parts: GoalParts;

  constructor(host: Pick<Host, 'runtime' | 'executor'>, parts: GoalParts) {
    this.agreement = parts.agreement;
    this.#host = host;
    this.#parts = parts;
  }

  async create(caller: Caller, request: GoalRequest): Promise<Change<Goal> | Refusal> {
    const { arms } = this.#parts;
    const refusal = refuseUnserved(request, arms.served) ?? (await this.#refuseVerifier(caller, request.completion));
    if (refusal) return refusal;
    const { runtime } = this.#host;
    const { subject } = caller;
    const goalId = runtime.ids.next('goal-');
    const management = { workflowId: 'capstan-goal', subject, inputs: { goalId } } as const;
    const opened = await openManagementRun(runtime, management, []);
    const unarmed = newGoal(subject, goalId, opened.result.runId, request, runtime.clock.now());
    const armed = await arms.arm(unarmed);
    if (armed && isRefusal(armed)) return armed;
    const ready = { ...unarmed, arm: armed?.arm, plan: armed?.plan };
    const goal = { ...ready, stall: stallWithoutArm(ready, unarmed.row.created_at) };
    return and(this.#insert(goal), ...(armed ? [armed.change] : []), opened);
  }

  async find({ subject }: Caller, goalId: string): Promise<Goal | Refusal> {
    const { reader } = this.#parts;
    const goal = await reader.load(subject, goalId);
    return goal ? reader.document(goal) : NOT_FOUND;
  }

  list({ subject }: Caller, filter: GoalFilter, limit: number): Promise<Goal[]> {
    return this.#parts.reader.list(subject, filter, limit);
  }

  completions({ subject }: Caller, filter: GoalFilter, limit: number): Promise<Pick<Goal, 'id' | 'completion'>[]> {
    return this.#parts.reader.completions(subject, filter, limit);
  }

  async edit(caller: Caller, goalId: string, edit: GoalEdit): Promise<Change<Goal> | Refusal> {
    const goal = await this.#load(caller, goalId);
    if (isRefusal(goal)) return goal;
    const refusal =
      refuseChange(goal.progress) ??
      refuseUnserved(edit, this.#parts.arms.served) ??
      (await this.#refuseVerifier(caller, edit.completion));
    if (refusal) return refusal;
    const { objective, writes } = this.#reword(goal, caller, edit.objective);
    const continued = continueBy(goal, edit.continuation);
    const authors = withAuthor(goal, caller);
    const after: HeldGoal = {
      ...goal,
      ...objective,
      ...continued,
      ...defined({ completion: edit.completion }),
      authors,
    };
    const details = { changed: Object.keys(edit) };
    return this.#move(goal, caller, { after, action: 'goal.update', details, writes }, continued !== undefined);
  }

  async pause(caller: Caller, goalId: string): Promise<Change<Goal> | Refusal> {
    const goal = await this.#load(caller, goalId);
    if (isRefusal(goal)) return goal;
    const progress = pause(goal.progress);
    if (isRefusal(progress)) return progress;
    const after: HeldGoal = { ...goal, progress, arm: undefined };
    return this.#move(goal, caller, { after, action: 'goal.pause' }, false);
  }

  async resume(caller: Caller, goalId: string, text: string | undefined): Promise<Change<Goal> | Refusal> {
    const goal = await this.#load(caller, goalId);
    if (isRefusal(goal)) return goal;
    const now = this.#host.runtime.clock.now();
    const progress = resume(goal.progress, now);
    if (isRefusal(progress)) return progress;
    const said = text === undefined ? undefined : redactText(text);
    const note = said === undefined ? goal.note : { at: now, by: caller.subject.principal, text: said };
    const after: HeldGoal = { ...goal, progress, escalation: undefined, note };
    const details = defined({ note: said });
    const writes = [wakeGoal(goal.row, GOAL_WORK)];
    return this.#move(goal, caller, { after, action: 'goal.resume', details, writes }, true);
  }

  async abandon(caller: Caller, goalId: string): Promise<Change<Goal> | Refusal> {
    const goal = await this.#load(caller, goalId);
    if (isRefusal(goal)) return goal;
    const progress = abandon(goal.progress);
    if (isRefusal(progress)) return progress;
    const after: HeldGoal = { ...goal, progress, escalation: undefined };
    const writes = [wakeGoal(goal.row, GOAL_WORK)];
    return this.#move(goal, caller, { after, action: 'goal.abandon', writes }, false);
  }

  async plan({ subject }: Caller, goalId: string): Promise<GoalPlan | Refusal> {
    const goal = await this.#parts.reader.load(subject, goalId);
    return goal?.plan ? this.#parts.plans.document(goal, goal.plan) : NOT_FOUND;
  }

  async setPlan(caller: Caller, goalId: string, given: GoalPlan): Promise<Change<GoalPlan> | Refusal> {
    const { plans } = this.#parts;
    const goal = await this.#load(caller, goalId);
    if (isRefusal(goal)) return goal;
    if (isClosed(goal.progress)) return refuseClosed(goal);
    const plan = redactValue(given);
    const planned: HeldGoal = { ...goal, plan, authors: withAuthor(goal, caller) };
    const refusal = (await plans.check(goal, plan)) ?? (await this.#parts.arms.refusePlan(planned));
    if (refusal) return refusal;
    const details = { workflowId: plan.workflowId, criteria: plan.criteria.map(({ key }) => key) };
    const move = { after: planned, action: 'goal.plan', details } as const;
    const change = await this.#move(goal, caller, move, goal.continuation.armRef == null);
    if (isRefusal(change)) return change;
    const shown = await plans.document(goal, plan);
    return withResult(change, () => shown);
  }

  async start(caller: Caller, goalId: string, inputs: JsonObject | undefined): Promise<Change<StartedRun> | Refusal> {
    const goal = await this.#load(caller, goalId);
    if (isRefusal(goal)) return goal;
    const { principal: actor } = caller.subject;
    const names = namesOf(caller);
    const initiator = { actor, names, isArm: false, inputs: inputs && redactValue(inputs) };
    const start = await this.#parts.contributing.prepare(goal, initiator);
    if (isRefusal(start)) return start;
    return and(this.#host.executor.startRun(start.created), ...(start.change ? [start.change] : []));
  }

  async evaluations(
    { subject }: Caller,
    goalId: string,
    before: number,
    limit: number,
  ): Promise<GoalVerdicts | Refusal> {
    const { store } = this.#host.runtime;
    const goal = await this.#parts.reader.load(subject, goalId);
    if (!goal) return NOT_FOUND;
    const objectives = await store.read<ObjectiveRow>(listObjectives(goalId));
    const rows = await store.read<GoalRunRow>(listVerdicts(goalId, before, limit));
    const [unjudged] = await store.read<GoalRunRow>(findUnjudged(goal.row));
    return { facts: factsFrom(goal, objectives, standingOf(goal, unjudged !== undefined)), rows };
  }

  async calibration({ subject }: Caller): Promise<JudgeCalibration[]> {
    const rows = await this.#host.runtime.store.read<CalibrationRow>(calibrate(subject));
    return rows.map(calibrationFrom);
  }

  async #load({ subject }: Caller, goalId: string): Promise<HeldGoal | Refusal> {
    return (await this.#parts.reader.load(subject, goalId)) ?? NOT_FOUND;
  }

  /**
   * Moves a goal, with a new arm if what the arm depends on has changed. An arm that could not work is refused, also
   * where the goal does not need it yet because it is paused or waits for a person.
   */
  async #move(
    goal: HeldGoal,
    { subject }: Caller,
    move: Omit<GoalMove, 'actor'>,
    rearms: boolean,
  ): Promise<Change<Goal> | Refusal> {
    const { arms, changes, reader } = this.#parts;
    const { state, isPaused } = move.after.progress;
    const found = rearms && !isClosed(move.after.progress) ? await arms.arm(move.after) : undefined;
    if (found && isRefusal(found)) return found;
    const armed = state === 'active' && !isPaused ? found : undefined;
    const arm = rearms || state !== 'active' ? armed?.arm : move.after.arm;
    const at = this.#host.runtime.clock.now();
    const ready: HeldGoal = { ...move.after, plan: move.after.plan ?? armed?.plan, arm };
    const after: HeldGoal = { ...ready, stall: await this.#stallAfter(goal, ready, at) };
    if (move.action === 'goal.resume' && after.stall) return refuseUnarmed(after.stall);
    const moved = await changes.move(goal, { ...move, after, at, actor: subject.principal });
    if (isRefusal(moved)) return moved;
    const shown = await reader.document({ ...after, row: { ...after.row, updated_at: at } });
    return withResult(and(moved, ...(armed ? [armed.change] : [])), () => shown);
  }

  /** Why the goal stands still after a change. A judge that takes long still does, and so does an arm that is spent. */
  async #stallAfter({ stall: before, arm }: HeldGoal, after: HeldGoal, at: number): Promise<Stall | undefined> {
    const stall = stallWithoutArm(after, before?.at ?? at);
    if (stall || before?.status === 'judging') return stall ?? before;
    const isSpent = before?.status === 'no-arm' && after.arm !== undefined && after.arm.ref === arm?.ref;
    return isSpent && !(await this.#parts.arms.isArmed(after)) ? before : undefined;
  }

  #insert(goal: HeldGoal): Change<Goal> {
    const { audit, feed } = this.#parts;
    const { row, progress, completion, continuation } = goal;
    const { goal_id: target, tenant, principal: actor } = row;
    const where = { tenant, workspace: row.workspace ?? undefined };
    const details = { check: completion.check, mode: continuation.mode, bounds: progress.bounds };
    const writes = [
      insertGoal(rowOf(goal), GOALS_MAX),
      insertObjective(objectiveRow(goal, actor, row.created_at)),
      ...(progress.deadlineAt === undefined ? [] : [wakeGoal(row, GOAL_WORK, progress.deadlineAt)]),
    ];
    const inserted = changeOf(goalFrom(goal, []), writes, {
      announce: [() => this.#host.runtime.hub.wakeWorkers(target, progress.deadlineAt)],
      refusals: { goals: TOO_MANY_GOALS },
    });
    const entry = audit.entry({ ...where, actor, action: 'goal.create', target, details });
    const updated = { event: 'goal.updated', data: { goalId: target, state: 'active' } } as const;
    const waits = needsPerson(goal) ? [{ event: 'inbox.changed', data: {} } as const] : [];
    return and(inserted, entry, feed.publish(where, [updated, ...waits]));
  }

  async #refuseVerifier(
    caller: Caller,
    completion: GoalRequest['completion'] | undefined,
  ): Promise<Refusal | undefined> {
    if (completion?.check !== 'verifier') return undefined;
    const found = await this.#parts.verifiers.get(caller, completion.verifierRef!);
    return isRefusal(found) ? unprocessable('completion.verifierRef', 'There is no such verifier.') : undefined;
  }

  /** Another wording is another version of the objective: the old one stays, and verdicts name the version they are about. */
  #reword(
    goal: HeldGoal,
    { subject }: Caller,
    given: string | undefined,
  ): { readonly objective: Partial<HeldGoal>; readonly writes: Write[] } {
    const objective = given === undefined ? goal.objective : redactText(given);
    if (objective === goal.objective) return { objective: {}, writes: [] };
    const reworded = { objective, objectiveVersion: goal.objectiveVersion + 1 };
    const row = objectiveRow({ ...goal, ...reworded }, subject.principal, this.#host.runtime.clock.now());
    return { objective: reworded, writes: [insertObjective(row)] };
  }
}

function newGoal(subject: Subject, goalId: string, runId: string, request: GoalRequest, now: number): HeldGoal {
  const { objective, completion, continuation, bounds } = request;
  return {
    row: {
      goal_id: goalId,
      ...subjectColumns(subject),
      run_id: runId,
      state: 'active',
      body: '',
      version: 1,
      created_at: now,
      updated_at: now,
      stopped_at: null,
      stalled_at: null,
    },
    objective: redactText(objective),
    objectiveVersion: 1,
    completion,
    continuation,
    progress: newProgress(bounds, now),
    authors: namesOf({ subject }),
  };
}

/** The continuation that an edit asks for; undefined if the goal has it already. An arm serves one mode only. */
function continueBy(
  { continuation: { mode }, arm }: HeldGoal,
  given: GoalEdit['continuation'],
): Pick<HeldGoal, 'continuation' | 'arm'> | undefined {
  if (!given || (arm && given.mode === mode && given.armRef === arm.ref)) return undefined;
  return { continuation: given, arm: undefined };
}

function objectiveRow({ row, objective, objectiveVersion }: HeldGoal, principal: string, at: number): ObjectiveRow {
  return { goal_id: row.goal_id, version: objectiveVersion, objective, principal, at };
}

/** Whoever is behind a credential: its principal, and the person that it names. */
function namesOf({ subject: { principal, person } }: Pick<Caller, 'subject'>): string[] {
  return person === undefined ? [principal] : [principal, person];
}

function withAuthor({ authors = [] }: HeldGoal, caller: Caller): string[] {
  return [...new Set([...authors, ...namesOf(caller)])];
}

function refuseUnarmed({ reason }: Stall): Refusal {
  return refuse('conflict', `The goal cannot continue by itself. ${reason}`, { reason: 'no-arm' });
}

function refuseClosed({ progress: { state } }: HeldGoal): Refusal {
  return refuse('conflict', `The goal is ${state}. The plan of a closed goal cannot be changed.`, { state });
}
