import { abandon, isClosed, newProgress, pause, refuseChange, resume } from '../../../engine/judging/goal.ts';
import { criteriaProblems } from '../../../engine/judging/verifier-spec.ts';
import { maskMembers } from '../../../engine/masking/mask.ts';
import { statusOf } from '../../../engine/run/run.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type {
  Goal,
  GoalEdit,
  GoalEvaluations,
  GoalPlan,
  GoalRequest,
  JudgeCalibration,
} from '../../../protocol/learning/goals.ts';
import { commitAll, UnitRefused } from '../../../runtime/command.ts';
import { openManagementRun } from '../../../runtime/management.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import type { Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { Also, LegacyHost as Host } from '../../legacy.ts';
import type { FeedService } from '../../operations/feed/service.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import type { CommitmentService } from '../../starting/commitments/service.ts';
import type { HeartbeatService } from '../../starting/heartbeats/service.ts';
import type { ScheduleService, Start } from '../../starting/schedules/service.ts';
import { subjectColumns, subjectOf } from '../../starting/starter/self-starting.ts';
import { type AuditService, HOST_ACTOR } from '../../trust/audit/service.ts';
import type { VerifierService } from '../verifiers/service.ts';
import { type Armed, Arms, OWNER_KIND } from './arms.ts';
import { Attendant } from './attend.ts';
import { briefing, evaluationFrom, factsFrom, goalFrom, type HeldGoal, holdGoal, rowOf } from './document.ts';
import { GOAL, type Move, Moves } from './moves.ts';
import {
  type CalibrationRow,
  calibrate,
  callFor,
  findGoal,
  type GoalFilter,
  type GoalRow,
  type GoalRunRow,
  insertGoal,
  insertObjective,
  listContributions,
  listGoals,
  listObjectives,
  listVerdicts,
  type ObjectiveRow,
} from './records.ts';
import { misfit, refuseUnserved } from './rules.ts';
import { ContributingRuns } from './starting.ts';
import { waitingGoals } from './waiting.ts';

const GOALS_MAX = 20_000;
/** Each try that fails is one that succeeded on another host. */
const TRIES_MAX = 20;

export interface GoalNeeds {
  readonly audit: Pick<AuditService, 'record'>;
  readonly feed: Pick<FeedService, 'entries' | 'wake'>;
  readonly runs: Pick<Runs, 'check'>;
  readonly schedules: ScheduleService;
  readonly heartbeat: HeartbeatService;
  readonly commitments: CommitmentService;
  readonly verifiers: Pick<VerifierService, 'judge' | 'judgedRun' | 'get'>;
}

export type GoalService = ReturnType<typeof goalService>;

/** What is to become of a goal, or why nothing is; undefined to look again. */
type Deed<T> = (goal: HeldGoal) => Promise<T | Refusal | undefined>;

export function goalService(host: Host, services: GoalNeeds) {
  const { audit, feed, runs, schedules, heartbeat, commitments, verifiers } = services;
  const { runtime, executor } = host;
  const { store, clock, ids, hub, plans } = runtime;
  const arms = new Arms({ schedules, commitments, heartbeat });
  const moves = new Moves(runtime, { audit, feed, arms });
  const contributing = new ContributingRuns(host, runs, moves);
  const attendant = new Attendant(host, { verifiers, arms, moves });

  schedules.startWith(OWNER_KIND, async ({ belongsTo }, _slot, subject) => startFor(subject, belongsTo));
  commitments.startWith(OWNER_KIND, ({ belongsTo }, subject) => startFor(subject, belongsTo));
  heartbeat.startWith(OWNER_KIND, {
    observe: ({ belongsTo }, subject) => lookAt(subject, belongsTo),
    start: ({ belongsTo }, _change, subject) => startFor(subject, belongsTo),
  });

  return {
    attend: attendant.handle,
    served: arms.served,
    waiting: waitingGoals(store),

    async create(caller: Caller, request: GoalRequest, also: Also<Goal>): Promise<Goal | Refusal> {
      const refusal = refuseUnserved(request, arms.served) ?? (await refuseVerifier(caller, request.completion));
      if (refusal) return refusal;
      const { subject } = caller;
      const goalId = ids.next('goal-');
      const life = await openManagementRun(runtime, { workflowId: 'capstan-goal', subject, inputs: { goalId } }, []);
      const unarmed = newGoal(subject, goalId, life.result.runId, request);
      const armed = await arms.arm(unarmed);
      if (armed && isRefusal(armed)) return armed;
      const goal = { ...unarmed, arm: armed?.arm, plan: armed?.plan };
      const shown = goalFrom(goal, []);
      const unit = [...birth(goal, armed), ...life.writes, ...also(shown)];
      const refused = await commitAll(store, unit).catch(refuseFull);
      if (refused) return refused;
      for (const tell of life.announce) tell();
      armed?.committed();
      hub.callToWork(goalId, goal.progress.deadlineAt);
      return shown;
    },

    async find({ subject }: Caller, goalId: string): Promise<Goal | Refusal> {
      const goal = await load(subject, goalId);
      return goal ? shownOf(goal) : NOT_FOUND;
    },

    async list({ subject }: Caller, filter: GoalFilter, limit: number): Promise<Goal[]> {
      const rows = await store.read<GoalRow>(listGoals(subject, filter, limit));
      const contributions = await contributionsTo(rows.map(({ goal_id }) => goal_id));
      return rows.map((row) => goalFrom(holdGoal(row), contributions.get(row.goal_id) ?? []));
    },

    async edit(caller: Caller, goalId: string, edit: GoalEdit, also: Also<Goal>): Promise<Goal | Refusal> {
      const refusal = refuseUnserved(edit, arms.served) ?? (await refuseVerifier(caller, edit.completion));
      return change(caller, goalId, async (goal) => {
        const impossible = refuseChange(goal.progress) ?? refusal;
        if (impossible) return impossible;
        const { objective, writes } = reword(goal, caller, edit.objective);
        const continued = continueBy(goal, edit.continuation);
        const after: HeldGoal = { ...goal, ...objective, ...continued, ...defined({ completion: edit.completion }) };
        const details = { changed: Object.keys(edit) };
        return moved(goal, caller, { after, action: 'goal.update', details, writes }, continued, also);
      });
    },

    pause: (caller: Caller, goalId: string, also: Also<Goal>): Promise<Goal | Refusal> =>
      change(caller, goalId, async (goal) => {
        const progress = pause(goal.progress);
        if (isRefusal(progress)) return progress;
        return moved(goal, caller, { after: { ...goal, progress, arm: undefined }, action: 'goal.pause' }, false, also);
      }),

    /** After a pause, or after somebody has looked into why it stopped. What they say goes to the runs that follow. */
    resume: (caller: Caller, goalId: string, text: string | undefined, also: Also<Goal>): Promise<Goal | Refusal> =>
      change(caller, goalId, async (goal) => {
        const progress = resume(goal.progress, clock.now());
        if (isRefusal(progress)) return progress;
        const said = text === undefined ? undefined : redactText(text);
        const note = said === undefined ? goal.note : { at: clock.now(), by: caller.subject.principal, text: said };
        const after: HeldGoal = { ...goal, progress, escalation: undefined, note };
        const details = defined({ note: said });
        const writes = [callFor(goal.row, GOAL)];
        return moved(goal, caller, { after, action: 'goal.resume', details, writes }, true, also);
      }),

    abandon: (caller: Caller, goalId: string, also: Also<Goal>): Promise<Goal | Refusal> =>
      change(caller, goalId, async (goal) => {
        const progress = abandon(goal.progress);
        if (isRefusal(progress)) return progress;
        const after: HeldGoal = { ...goal, progress, escalation: undefined };
        const writes = [callFor(goal.row, GOAL)];
        return moved(goal, caller, { after, action: 'goal.abandon', writes }, false, also);
      }),

    async plan({ subject }: Caller, goalId: string): Promise<GoalPlan | Refusal> {
      const goal = await load(subject, goalId);
      return goal?.plan ? shownPlan(goal, goal.plan) : NOT_FOUND;
    },

    setPlan: (caller: Caller, goalId: string, given: GoalPlan, also: Also<GoalPlan>): Promise<GoalPlan | Refusal> =>
      change(caller, goalId, async (goal) => {
        const plan = redactValue(given);
        if (isClosed(goal.progress)) return refuseClosed(goal);
        const refusal = await refusePlan(goal, plan);
        if (refusal) return refusal;
        const shown = await shownPlan(goal, plan);
        const details = { workflowId: plan.workflowId, criteria: plan.criteria.map(({ key }) => key) };
        const move = { after: { ...goal, plan }, action: 'goal.plan', details } as const;
        const outcome = await moved(goal, caller, move, goal.continuation.armRef == null, () => also(shown));
        return outcome && (isRefusal(outcome) ? outcome : shown);
      }),

    start: (caller: Caller, goalId: string, inputs: JsonObject | undefined, also: Also<StartedRun>) =>
      change<StartedRun>(caller, goalId, async (goal) => {
        const actor = caller.subject.principal;
        const prepared = await contributing.prepare(goal, {
          actor,
          isByArm: false,
          inputs: inputs && redactValue(inputs),
        });
        if (isRefusal(prepared)) return prepared;
        const { run } = prepared.created.held;
        const started = { runId: run.facts.runId, status: statusOf(run) };
        try {
          await executor.launch(prepared.created, [...prepared.writes, ...also(started)]);
        } catch (error) {
          if (error instanceof UnitRefused && error.broke === 'goal') return undefined;
          throw error;
        }
        return started;
      }),

    async evaluations(
      { subject }: Caller,
      goalId: string,
      before: number,
      limit: number,
    ): Promise<{ readonly facts: Omit<GoalEvaluations, 'items' | 'nextCursor'>; rows: GoalRunRow[] } | Refusal> {
      const goal = await load(subject, goalId);
      if (!goal) return NOT_FOUND;
      const objectives = await store.read<ObjectiveRow>(listObjectives(goalId));
      return {
        facts: factsFrom(goal, objectives),
        rows: await store.read<GoalRunRow>(listVerdicts(goalId, before, limit)),
      };
    },

    evaluationFrom,

    async calibration({ subject }: Caller): Promise<JudgeCalibration[]> {
      const rows = await store.read<CalibrationRow>(calibrate(subject));
      return rows.map(({ judge, verdicts, agreed, disputed }) => ({
        judge,
        verdicts,
        agreed,
        disputed,
        agreementRate: agreed + disputed === 0 ? null : agreed / (agreed + disputed),
      }));
    },
  };

  async function load(from: { tenant: string; workspace?: string | undefined }, goalId: string) {
    const [row] = await store.read<GoalRow>(findGoal(from, goalId));
    return row && holdGoal(row);
  }

  /** Looks at a goal and does something about it, again while others are quicker. */
  function change<T>({ subject }: Caller, goalId: string, deed: Deed<T>): Promise<T | Refusal> {
    return runtime.turns.take(goalId, async () => {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const goal = await load(subject, goalId);
        if (!goal) return NOT_FOUND;
        const outcome = await deed(goal);
        if (outcome !== undefined) return outcome;
      }
      return {
        ...refuse('conflict', 'The goal is changing too quickly. Try again.'),
        headers: { 'Retry-After': '1' },
      };
    });
  }

  /** Commits a move, with a new arm where what it depends on has changed. */
  async function moved(
    goal: HeldGoal,
    { subject }: Caller,
    move: Omit<Move, 'actor'>,
    rearms: unknown,
    also: Also<Goal>,
  ): Promise<Goal | Refusal | undefined> {
    const { state, isPaused } = move.after.progress;
    const found = rearms && state === 'active' && !isPaused ? await arms.arm(move.after) : undefined;
    const isMissing = found !== undefined && isRefusal(found);
    // What stopped to ask cannot be changed before it goes on: it does so without an arm that is gone.
    if (isMissing && goal.progress.state === 'active') return found;
    const armed = isMissing ? undefined : found;
    const plan = move.after.plan ?? armed?.plan;
    const arm = rearms || state !== 'active' ? armed?.arm : move.after.arm;
    const after: HeldGoal = { ...move.after, plan, arm };
    const at = clock.now();
    const shown = await shownOf({ ...after, row: { ...after.row, updated_at: at } });
    const writes = [...(move.writes ?? []), ...(armed?.writes ?? []), ...also(shown)];
    const done = await moves.commit(goal, { ...move, after, at, actor: subject.principal, writes }).catch(refuseFull);
    if (!done || isRefusal(done)) return done;
    armed?.committed();
    return shown;
  }

  /** An arm's turn: it starts a run of the goal that it belongs to. */
  async function startFor(subject: Subject, belongsTo: string | undefined): Promise<Start | Refusal> {
    const goal = await ownerOf(subject, belongsTo);
    if (!goal) return NOT_FOUND;
    const prepared = await contributing.prepare(goal, { actor: HOST_ACTOR, isByArm: true });
    return isRefusal(prepared) ? prepared : { created: prepared.created, also: prepared.writes };
  }

  /** What an arm sees that looks at the goal itself: each verdict is something new. */
  async function lookAt(subject: Subject, belongsTo: string | undefined): Promise<JsonObject> {
    const goal = await ownerOf(subject, belongsTo);
    return defined({ state: goal?.progress.state, iterations: goal?.progress.iterations });
  }

  function ownerOf({ tenant }: Subject, belongsTo = ''): Promise<HeldGoal | undefined> {
    return load({ tenant }, belongsTo.slice(OWNER_KIND.length + 1));
  }

  function newGoal(subject: Subject, goalId: string, runId: string, request: GoalRequest): HeldGoal {
    const now = clock.now();
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
      },
      objective: redactText(objective),
      objectiveVersion: 1,
      completion,
      continuation,
      progress: newProgress(bounds, now),
    };
  }

  function birth(goal: HeldGoal, armed: Armed | undefined): Unit {
    const { row, progress, completion, continuation } = goal;
    const { goal_id: target, tenant, principal: actor } = row;
    const where = { tenant, workspace: row.workspace ?? undefined };
    const details = { check: completion.check, mode: continuation.mode, bounds: progress.bounds };
    return [
      insertGoal(rowOf(goal), GOALS_MAX),
      insertObjective(objectiveRow(goal, actor, row.created_at)),
      ...(progress.deadlineAt === undefined ? [] : [callFor(row, GOAL, progress.deadlineAt)]),
      ...(armed?.writes ?? []),
      ...audit.record({ ...where, actor, action: 'goal.create', target, details }),
      ...feed.entries(where, [{ event: 'goal.updated', data: { goalId: target, state: 'active' } }]),
    ];
  }

  async function shownOf(goal: HeldGoal): Promise<Goal> {
    const { goal_id } = goal.row;
    return goalFrom(goal, (await contributionsTo([goal_id])).get(goal_id) ?? []);
  }

  async function contributionsTo(goalIds: readonly string[]): Promise<ReadonlyMap<string, string[]>> {
    const byGoal = new Map<string, string[]>(goalIds.map((goalId) => [goalId, []]));
    if (goalIds.length === 0) return byGoal;
    const rows = await store.read<Pick<GoalRunRow, 'goal_id' | 'run_id'>>(listContributions(goalIds));
    for (const { goal_id, run_id } of rows) byGoal.get(goal_id)!.push(run_id);
    return byGoal;
  }

  async function refuseVerifier(
    caller: Caller,
    completion: GoalRequest['completion'] | undefined,
  ): Promise<Refusal | undefined> {
    if (completion?.check !== 'verifier') return undefined;
    const found = await verifiers.get(caller, completion.verifierRef!);
    return isRefusal(found) ? misfit('completion.verifierRef', 'There is no such verifier.') : undefined;
  }

  /** Whether a run could be started by this plan, and judged by it. */
  async function refusePlan(goal: HeldGoal, plan: GoalPlan): Promise<Refusal | undefined> {
    const [problem] = criteriaProblems('criteria', plan.criteria);
    if (problem) return refuse('validation_error', `${problem.path}: ${problem.message}`, { field: problem.path });
    const workflow = await plans.current(subjectOf(goal.row), plan.workflowId);
    if (!workflow) return refuse('validation_error', 'There is no such workflow.', { field: 'workflowId' });
    const inputs = { ...plan.inputs, goal: briefing(goal) };
    return runs.check({ isTest: false }, { inputs, configurable: {} }, workflow.plan);
  }

  /** What the workflow says is sensitive is given to runs and shown to nobody. */
  async function shownPlan({ row }: HeldGoal, { inputs, ...plan }: GoalPlan): Promise<GoalPlan> {
    const workflow = inputs && (await plans.current(subjectOf(row), plan.workflowId));
    if (!workflow) return plan;
    const { sensitive, maskingMode } = workflow.plan;
    return { ...plan, inputs: maskMembers(inputs, (name) => sensitive.has(name), maskingMode, sha256Hex) };
  }

  /** Another wording is another objective: the old one is kept, and verdicts say which one they are about. */
  function reword(goal: HeldGoal, { subject }: Caller, given: string | undefined) {
    const objective = given === undefined ? goal.objective : redactText(given);
    if (objective === goal.objective) return { objective: {}, writes: [] };
    const reworded = { objective, objectiveVersion: goal.objectiveVersion + 1 };
    const row = objectiveRow({ ...goal, ...reworded }, subject.principal, clock.now());
    return { objective: reworded, writes: [insertObjective(row)] };
  }
}

/** What a tenant may have only so many of: goals that go on, and what can be their arms. */
const LIMITED: readonly string[] = ['goals', 'schedules', 'heartbeats', 'commitments'];

function refuseFull(error: unknown): Refusal {
  if (!(error instanceof UnitRefused)) throw error;
  if (LIMITED.includes(error.broke)) return refuse('conflict', `There is no room for more ${error.broke}.`);
  // What was to be lent has just been changed by somebody.
  if (error.broke === 'revision') return refuse('conflict', 'The arm is being changed by others. Try again.');
  throw error;
}

/** Another way to go on; nothing where it is the one that there is. An arm of one kind is none of another. */
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

function refuseClosed({ progress: { state } }: HeldGoal): Refusal {
  return refuse('conflict', `A goal that is ${state} has no use for a plan.`, { state });
}
