import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import {
  ADA,
  performWithRival,
  SCHEDULE_TABLES,
  STARTER_NEEDS,
  schedulesOn,
  TENANT,
} from '../../../../test/support/starters.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { Goal, GoalPlan, GoalRequest } from '../../../protocol/learning/goals.ts';
import { type Change, changeOf, type Decide, perform, unchanged } from '../../../runtime/change.ts';
import { sql, type Write } from '../../../store/sql.ts';
import { NODES } from '../../running/nodes/standard.ts';
import type { Judgement } from '../verifiers/door.ts';
import { Agreement } from './agreement.ts';
import { type ArmNeeds, Arms } from './arms.ts';
import { GoalChanges } from './changes.ts';
import { ContributingRuns, goalRunStarter } from './contributing-runs.ts';
import { GoalJudging } from './judging.ts';
import { GoalPlans } from './plans.ts';
import { noteAnswer, noteEnd, noteQuestion } from './question-records.ts';
import { GoalReader } from './reader.ts';
import { GOAL_TABLES } from './records.ts';
import { SecondJudges } from './second-judge.ts';
import { GoalService } from './service.ts';
import { GoalWorker } from './work.ts';

const work = workflow([node('a')], [], { id: 'work' });
const opened = await openServiceHost({ tables: [...SCHEDULE_TABLES, ...GOAL_TABLES], nodes: NODES });
const { host, store, clock } = opened;
const { runtime } = host;
await registerShared(runtime, work);
afterAll(opened.close);

const silent = (): Change => unchanged(undefined);
const schedules = schedulesOn(opened);
// Goals of these tests continue by schedules or by hand; the other families are the same mechanism.
const arms = new Arms({ schedules } as Partial<ArmNeeds> as ArmNeeds);
const changes = new GoalChanges(runtime, { audit: { entry: silent }, feed: { publish: silent }, arms });
const reader = new GoalReader(store);
const contributing = new ContributingRuns(runtime, STARTER_NEEDS.runs, changes);
let judgement: Judgement = { satisfied: false, judge: 'test', evidence: [] };
const verifiers = {
  get: async () => ({ refused: 'not_found', message: 'no' }) as const,
  judge: async () => judgement,
  tryJudging: async () => ({ costUsd: 0 }),
  judgedRun: async () => ({ snapshot: {} as never, outputs: {}, variables: {}, annotations: [] }),
};
const secondJudges = new SecondJudges(runtime.store, verifiers);
const goals = new GoalService(host, {
  audit: { entry: silent },
  feed: { publish: silent },
  verifiers,
  arms,
  changes,
  contributing,
  reader,
  agreement: new Agreement(runtime, { verifiers, secondJudges, audit: { entry: silent } }),
  plans: new GoalPlans(runtime, STARTER_NEEDS.runs),
});
const settings = { standstillMax: 3, judgeTries: 2, judgeRetryMs: 1_000 };
const judging = new GoalJudging(runtime, { verifiers, secondJudges, changes, settings });
const worker = new GoalWorker(runtime, { reader, changes, arms, judging });

const REQUEST: GoalRequest = {
  objective: 'Get it done',
  completion: { check: 'host' },
  continuation: { mode: 'manual' },
  bounds: { maxLoopIterations: 2 },
};
const PLAN: GoalPlan = { workflowId: work.id, criteria: [], schedule: { cron: '0 * * * *' } };

async function done<T>(decide: Decide<T>): Promise<T> {
  const outcome = await perform(runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
}
async function create(request: Partial<GoalRequest> = {}): Promise<Goal> {
  const goal = await done(() => goals.create(ADA, { ...REQUEST, ...request }));
  await done(() => goals.setPlan(ADA, goal.id, PLAN));
  return goal;
}
const find = async (id: string): Promise<Goal> => (await goals.find(ADA, id)) as Goal;
const start = (id: string) => perform(runtime, () => goals.start(ADA, id, undefined));
const handle = (id: string) =>
  worker.handle({ work_id: id, tenant: TENANT, kind: '', payload: '', epoch: 0, wakes: 0, crashes: 0, strikes: 0 });

/** Has a contributing run end, without running it, and its goal's work item handled. */
async function endRun(goalId: string, runId: string) {
  await store.commit(noteEnd({ tenant: TENANT, runId }, clock.now()));
  return handle(goalId);
}
async function startAndEnd(id: string) {
  const run = await start(id);
  if (isRefusal(run)) throw new Error(run.message);
  return endRun(id, run.runId);
}
async function logOf(id: string): Promise<string[]> {
  const goal = (await reader.load(ADA.subject, id))!;
  const statement = sql('SELECT type FROM events WHERE run_id = $1 ORDER BY sequence', goal.row.run_id);
  return (await store.read<{ type: string }>(statement)).map(({ type }) => type);
}

describe('a goal', () => {
  it('starts as many runs as its bound says', async () => {
    const { id } = await create();
    await start(id);
    await start(id);
    expect(await start(id)).toMatchObject({ refused: 'conflict', details: { reason: 'maxLoopIterations' } });
  });

  it('is satisfied by a verdict alone, and its management run ends with it', async () => {
    const { id } = await create();
    judgement = { satisfied: true, judge: 'test', evidence: [] };
    expect(await startAndEnd(id)).toEqual({ dueAgainAt: undefined });
    expect(await find(id)).toMatchObject({ state: 'satisfied', progress: { iterations: 1 } });
    expect(await logOf(id)).toEqual(['run.started', 'goal.evaluated', 'goal.closed', 'run.completed']);
    expect(await start(id)).toMatchObject({ details: { reason: 'stopped' } });
  });

  it('is escalated when its judge stays undecided', async () => {
    const { id } = await create();
    judgement = { undecided: true, reason: 'Hard to tell.' };
    expect(await startAndEnd(id)).toEqual({ dueAgainAt: clock.now() + settings.judgeRetryMs });
    expect(await find(id)).toMatchObject({ state: 'active' });
    clock.advance(settings.judgeRetryMs);
    await handle(id);
    expect(await find(id)).toMatchObject({ state: 'escalated' });
    await done(() => goals.resume(ADA, id, 'Try harder'));
    expect(await find(id)).toMatchObject({ state: 'active' });
  });

  it.each([
    ['in their order', ['int-1', 'int-2']],
    ['in another order', ['int-2', 'int-1']],
  ])('stays escalated until all questions of a run are answered, %s', async (_what, [first, second]) => {
    const { id } = await create();
    const run = await start(id);
    if (isRefusal(run)) throw new Error(run.message);
    const ref = { tenant: TENANT, runId: run.runId };
    const stateAfter = async (...writes: Write[]): Promise<string> => {
      await store.commit(writes);
      await handle(id);
      return (await find(id)).state;
    };
    expect(await stateAfter(...noteQuestion(ref, 'int-1'))).toBe('escalated');
    expect(await stateAfter(...noteQuestion(ref, 'int-2'))).toBe('escalated');
    expect(await stateAfter(...noteAnswer(ref, first!)), 'one is open').toBe('escalated');
    expect(await stateAfter(...noteAnswer(ref, second!)), 'none is open').toBe('active');
    const stops = (await logOf(id)).filter((type) => type === 'goal.closed');
    expect(stops, 'escalated once').toHaveLength(1);
  });

  it('is closed when its time is over', async () => {
    const { id } = await create({ bounds: { runTimeoutMs: 60_000 } });
    expect(await handle(id)).toEqual({ dueAgainAt: clock.now() + 60_000 });
    clock.advance(60_000);
    await handle(id);
    expect(await find(id)).toMatchObject({ state: 'bound-exceeded' });
  });

  it('is changed by a decision that is taken again after a conflict', async () => {
    const { id } = await create();
    const rival = () => goals.edit(ADA, id, { objective: 'Get it done today' });
    const { outcome, decisions } = await performWithRival(opened, () => goals.pause(ADA, id), rival);
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ objective: 'Get it done today' });
  });

  it('that was closed in between refuses the change that was decided before', async () => {
    const { id } = await create();
    const rival = () => goals.abandon(ADA, id);
    const { outcome, decisions } = await performWithRival(opened, () => goals.abandon(ADA, id), rival);
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ refused: 'conflict', details: { state: 'abandoned' } });
    expect((await logOf(id)).filter((type) => type === 'goal.closed')).toHaveLength(1);
  });
});

describe('the arm of a goal', () => {
  const armOf = async (id: string) => (await find(id)).continuation.armRef;

  it('is created with a plan, removed by a pause and created again', async () => {
    const { id } = await create({ continuation: { mode: 'schedule' } });
    const first = await armOf(id);
    expect(await schedules.find(ADA, first!)).toMatchObject({ belongsTo: `goal:${id}` });
    await done(() => goals.pause(ADA, id));
    expect(await schedules.find(ADA, first!)).toMatchObject({ refused: 'not_found' });
    await done(() => goals.resume(ADA, id, undefined));
    expect(await armOf(id)).not.toBe(first);
  });

  it('that was lent is given back, disabled, when the goal is over', async () => {
    const own = await done(() => schedules.create(ADA, { workflowId: work.id, cron: '0 * * * *' }));
    const { id } = await create({ continuation: { mode: 'schedule', armRef: own.id } });
    expect(await schedules.find(ADA, own.id)).toMatchObject({ belongsTo: `goal:${id}`, enabled: true });
    await done(() => goals.abandon(ADA, id));
    expect(await schedules.find(ADA, own.id)).toMatchObject({ enabled: false });
  });

  it('that is spent stays a stall when the goal is changed, until the goal has another arm', async () => {
    const own = await done(() => schedules.create(ADA, { workflowId: work.id, cron: '0 * * * *' }));
    const { id } = await create({ continuation: { mode: 'schedule', armRef: own.id } });
    const stallOf = async () => (await reader.load(ADA.subject, id))?.stall;
    const setNext = (at: number | null) =>
      store.commit([{ sql: 'UPDATE schedules SET next_run_at = $1 WHERE schedule_id = $2', params: [at, own.id] }]);
    await setNext(null);
    await handle(id);
    const spent = await stallOf();
    expect(spent).toMatchObject({ status: 'no-arm' });
    clock.advance(1_000);
    await done(() => goals.edit(ADA, id, { objective: 'Get it done this week' }));
    expect(await stallOf(), 'reworded').toEqual(spent);
    await done(() => goals.setPlan(ADA, id, PLAN));
    expect(await stallOf(), 'planned').toEqual(spent);
    await setNext(clock.now() + 60_000);
    await done(() => goals.edit(ADA, id, { objective: 'Get it done this month' }));
    expect(await stallOf(), 'armed again').toBeUndefined();
    await setNext(null);
    await handle(id);
    expect(await stallOf(), 'spent again').toMatchObject({ status: 'no-arm' });
    await done(() => goals.edit(ADA, id, { continuation: { mode: 'schedule' } }));
    expect(await stallOf(), 'with another arm').toBeUndefined();
  });

  it('starts one run at a time, and its start conflicts with a change of the goal', async () => {
    const { id } = await create({ continuation: { mode: 'schedule' } });
    const starter = goalRunStarter(runtime, reader, contributing);
    const due = { starterId: (await armOf(id))!, ownerId: id, subject: ADA.subject, at: clock.now() };
    const outdated = await starter.start(due);
    await done(() => goals.pause(ADA, id));
    if (isRefusal(outdated)) throw new Error(outdated.message);
    expect(await store.commit(outdated.change!.writes)).toMatchObject({ committed: false, failedExpectation: 'goal' });
    await done(() => goals.resume(ADA, id, undefined));
    const started = await starter.start(due);
    if (isRefusal(started)) throw new Error(started.message);
    await done(async () => changeOf(undefined, started.change!.writes));
    expect(await starter.start(due)).toMatchObject({ refused: 'conflict', details: { reason: 'in-flight' } });
    expect(await starter.observe(id, ADA.subject)).toEqual({ state: 'active', iterations: 0 });
  });
});
