import { expect, it } from 'vitest';
import { type HeldGoal, holdGoal } from '../../src/capabilities/learning/goals/document.ts';
import { GOAL_TABLES, type GoalRow, type GoalRunRow } from '../../src/capabilities/learning/goals/records.ts';
import { VERIFIER_TABLES } from '../../src/capabilities/learning/verifiers/records.ts';
import { INTERRUPT_TABLES } from '../../src/capabilities/people/interrupts/records.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { SCHEDULE_TABLES, type ScheduleRow } from '../../src/capabilities/starting/schedules/records.ts';
import { isClosed } from '../../src/engine/judging/goal.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import type { GoalPlan, GoalRequest } from '../../src/protocol/learning/goals.ts';
import { isTerminalStatus } from '../../src/protocol/running/runs.ts';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { type Decide, perform } from '../../src/runtime/change.ts';
import type { RunRow } from '../../src/store/log.ts';
import type { WorkItem } from '../../src/store/queue.ts';
import { sql } from '../../src/store/sql.ts';
import type { Store } from '../../src/store/store.ts';
import { expression, line, node, workflow } from '../support/definitions.ts';
import { interrupt } from '../support/interrupts.ts';
import { registerShared } from '../support/register-shared.ts';
import { seeds } from './seeds.ts';
import type { SimHost } from './sim-host.ts';
import { inStorm, type Scene, type Storm } from './storm.ts';
import type { World } from './world.ts';

/**
 * Goal: whatever happens to hosts, store and clock, and whoever starts, pauses, resumes, changes and gives up goals
 * meanwhile: no goal has more runs than it may have or one after it stopped, only a verdict satisfies it, each stop is
 * told once, and what ended is judged once. Method: seeds decide the weather, the kills and what people do.
 */

const SEEDS = seeds(3);
const STORM_MS = 120_000;
/** Long enough for leases to run out, retries to be due and deadlines to pass. */
const RECOVERY_MS = 120_000;
/** Longer than it takes to look at the queue. */
const A_MOMENT_MS = 2_000;

const working = workflow(
  [
    node('pause', 'sim.slow', { config: { ms: 700 } }),
    node('work', 'core.identity', { inputs: { iteration: expression('inputs.goal.iteration') } }),
  ],
  line('pause', 'work'),
  { id: 'working' },
);
const asking = workflow(
  [interrupt('ask', 'low-confidence', { agentId: 'a.b.c', threshold: 0.7, observed: 0.1 }), node('work')],
  line('ask', 'work'),
  { id: 'asking' },
);
const failing = workflow([node('work', 'core.fail')], [], { id: 'failing' });

it.each(SEEDS)('bounds are exact and every stop is told once: seed %i', (seed) => {
  const tables = [...INTERRUPT_TABLES, ...SCHEDULE_TABLES, ...VERIFIER_TABLES, ...GOAL_TABLES];
  return inStorm(seed, tables, (scene) => new BadDays(scene).pass(), { hasGoals: true });
});

class BadDays {
  readonly #world: World;
  readonly #store: Store;
  readonly #storm: Storm;
  readonly #goalIds: string[] = [];
  #accepted = 0;

  constructor({ world, store, storm }: Scene) {
    this.#world = world;
    this.#store = store;
    this.#storm = storm;
  }

  async pass(): Promise<void> {
    const world = this.#world;
    const storm = this.#storm;
    await world.settle(this.#open());
    const people = Array.from({ length: 4 }, () => (host: SimHost) => this.#act(host));
    await storm.rage(people, STORM_MS, RECOVERY_MS);
    // Reading takes time; nothing may move meanwhile.
    storm.over();
    await this.#judge(world.now());
  }

  async #open(): Promise<void> {
    for (let count = 0; count < 3; count++) await this.#storm.startHost();
    const host = this.#storm.hosts[0]!;
    await registerShared(host.runtime, working, asking, failing);
    for (let count = 0; count < 6; count++) await this.#create(host);
  }

  async #create({ runtime, goals }: SimHost): Promise<void> {
    const { random } = this.#world;
    const mode = random.pick(['manual', 'schedule'] as const);
    const request: GoalRequest = {
      objective: 'Get it done',
      completion: { check: 'host' },
      continuation: { mode },
      bounds: {
        maxLoopIterations: random.between(1, 5),
        ...(random.chance(0.4) ? { runTimeoutMs: random.between(5_000, 150_000) } : {}),
      },
    };
    const made = await perform(runtime, () => goals.create(CALLER, request));
    if (isRefusal(made)) throw new Error(made.message);
    this.#goalIds.push(made.id);
    const plan = this.#plan();
    await perform(runtime, () => goals.setPlan(CALLER, made.id, plan));
  }

  #plan(): GoalPlan {
    const { random } = this.#world;
    const { id: workflowId } = random.pick([working, working, asking, failing]);
    const expressions = [`outputs.work.iteration >= ${random.between(1, 6)}`, 'false', `run.status == 'completed'`];
    return {
      workflowId,
      // A plan without criteria is one that nobody can judge by.
      criteria: random.chance(0.9) ? [{ key: 'done', expression: random.pick(expressions) }] : [],
      schedule: { cron: random.pick(['*/2 * * * * *', '*/5 * * * * *']) },
      ...(random.chance(0.3) ? { maxParallel: random.between(1, 3) } : {}),
    };
  }

  async #act(host: SimHost): Promise<void> {
    const { random } = this.#world;
    const { goals, runtime } = host;
    const change = <T>(decide: Decide<T>) => perform(runtime, decide);
    const id = random.pick(this.#goalIds);
    const deed = random.next();
    if (deed < 0.1) return this.#create(host);
    if (deed < 0.2) return void (await change(() => goals.pause(CALLER, id)));
    if (deed < 0.4) return void (await change(() => goals.resume(CALLER, id, undefined)));
    if (deed < 0.43) return void (await change(() => goals.abandon(CALLER, id)));
    if (deed < 0.5) {
      const plan = this.#plan();
      return void (await change(() => goals.setPlan(CALLER, id, plan)));
    }
    if (deed < 0.6) return this.#answer(host);
    if (deed < 0.75) return this.#handleWithoutLease(host, id);
    const started = await change(() => goals.start(CALLER, id, undefined));
    if (!isRefusal(started)) this.#accepted++;
  }

  /** Like a host that was thought dead and is not: others handle the goal's work item at the same time. */
  async #handleWithoutLease({ kinds }: SimHost, goalId: string): Promise<void> {
    await kinds.get('goal')!.handle({ work_id: goalId, tenant: CALLER.subject.tenant } as WorkItem);
  }

  async #answer({ interrupts, runtime }: SimHost): Promise<void> {
    const waiting = await runtime.store.read<RunRow>(sql(`SELECT * FROM runs WHERE workflow_id = 'asking'`));
    const open = waiting.filter(({ status }) => !isTerminalStatus(status));
    if (open.length === 0) return;
    const { run_id } = this.#world.random.pick(open);
    const resolve = () => interrupts.resolve(CALLER, run_id, 'ask', { answer: 'go on' });
    await perform(runtime, resolve, { mutexKey: run_id });
  }

  async #judge(now: number): Promise<void> {
    const rows = await this.#all<GoalRow>('SELECT * FROM goals');
    const runs = await this.#all<GoalRunRow>('SELECT * FROM goal_runs ORDER BY number');
    const schedules = await this.#all<ScheduleRow>('SELECT * FROM schedules');
    expect(this.#storm.kills).toBeGreaterThan(3);
    expect(this.#accepted).toBeGreaterThan(5);
    expect(new Set(rows.map(({ state }) => state)).size).toBeGreaterThan(2);
    for (const row of rows) {
      const goal = holdGoal(row);
      const its = runs.filter(({ goal_id }) => goal_id === row.goal_id);
      await this.#judgeRuns(goal, its, now);
      await this.#judgeLog(goal, its);
      this.#judgeArm(goal, schedules);
    }
    const strays = schedules.filter(({ belongs_to }) => !rows.some(({ goal_id }) => belongs_to === `goal:${goal_id}`));
    expect(strays).toEqual([]);
  }

  async #judgeRuns({ row, progress }: HeldGoal, its: readonly GoalRunRow[], now: number): Promise<void> {
    const name = row.goal_id;
    const { maxLoopIterations = 0 } = progress.bounds;
    expect(its.length, name).toBeLessThanOrEqual(maxLoopIterations);
    expect(its.length, name).toBe(progress.started);
    expect(
      its.map(({ number }) => number),
      name,
    ).toEqual(its.map((_, index) => index + 1));
    const judged = its.filter(({ judged_at }) => judged_at !== null);
    expect(judged.length, name).toBe(progress.iterations);
    if (isClosed(progress)) {
      for (const { started_at } of its) expect(started_at, `${name} had stopped`).toBeLessThanOrEqual(row.stopped_at!);
    }
    if (progress.state !== 'active') return;
    const tagged = await this.#all<RunRow>(`SELECT * FROM runs WHERE run_id IN
      (SELECT run_id FROM goal_runs WHERE goal_id = '${name}' AND judged_at IS NULL)`);
    expect(
      tagged.filter(({ ended_at }) => ended_at !== null && ended_at < now - A_MOMENT_MS),
      `${name}: what ended is judged`,
    ).toEqual([]);
    const { deadlineAt = Number.POSITIVE_INFINITY } = progress;
    expect(now, `${name} is over time`).toBeLessThan(deadlineAt + A_MOMENT_MS);
  }

  async #judgeLog({ row, progress }: HeldGoal, its: readonly GoalRunRow[]): Promise<void> {
    const name = row.goal_id;
    const stored = await this.#all<{ type: string; body: string }>(
      `SELECT type, body FROM events WHERE run_id = '${row.run_id}' ORDER BY sequence`,
    );
    const events = stored.map(({ type, body }) => ({ type, payload: JSON.parse(body).payload }));
    const evaluated = events.filter(({ type }) => type === 'goal.evaluated').map(({ payload }) => payload);
    const judged = its.filter(({ judged_at }) => judged_at !== null).map(({ run_id }) => run_id);
    expect(evaluated.map(({ runId }) => runId).sort(), name).toEqual([...judged].sort());
    expect(
      evaluated.map(({ iterations }) => iterations),
      name,
    ).toEqual(evaluated.map((_, index) => index + 1));
    expect(evaluated.filter(({ satisfied }) => satisfied).length, name).toBe(progress.state === 'satisfied' ? 1 : 0);

    const closed = events.filter(({ type }) => type === 'goal.closed').map(({ payload }) => payload.finalState);
    const [last, ...earlier] = closed.toReversed();
    expect(
      earlier.filter((state) => state !== 'escalated'),
      name,
    ).toEqual([]);
    if (progress.state !== 'active') expect([progress.state, 'escalated'], name).toContain(last);
    expect(events.at(-1)!.type === 'run.completed', name).toBe(isClosed(progress));
  }

  /** A goal that is to go on by itself has its schedule, and no other has one. */
  #judgeArm({ row, progress, continuation, plan, arm }: HeldGoal, schedules: readonly ScheduleRow[]): void {
    const its = schedules.filter(({ belongs_to }) => belongs_to === `goal:${row.goal_id}`);
    const isArmed = progress.state === 'active' && !progress.isPaused && continuation.mode === 'schedule' && plan;
    expect(
      its.map(({ schedule_id }) => schedule_id),
      row.goal_id,
    ).toEqual(isArmed ? [arm!.ref] : []);
  }

  #all<R>(text: string): Promise<R[]> {
    return this.#world.settle(this.#store.read<R>(sql(text)));
  }
}

const CALLER: Caller = {
  subject: { tenant: 'alpha', tenantName: 'alpha', principal: 'p', issuer: 'i', lane: 'l' },
  scopes: new Set(SCOPES),
  keyId: 'key',
  isTest: false,
};
