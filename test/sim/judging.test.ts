import { expect, it } from 'vitest';
import { GOAL_TABLES, type GoalRunRow } from '../../src/capabilities/learning/goals/records.ts';
import { VERIFIER_TABLES } from '../../src/capabilities/learning/verifiers/records.ts';
import { INTERRUPT_TABLES } from '../../src/capabilities/people/interrupts/records.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { perform } from '../../src/runtime/change.ts';
import { factsOf } from '../../src/runtime/run-row.ts';
import type { RunRow } from '../../src/store/log.ts';
import { sql } from '../../src/store/sql.ts';
import type { Store } from '../../src/store/store.ts';
import { expression, line, node, workflow } from '../support/definitions.ts';
import { registerShared } from '../support/register-shared.ts';
import { seeds } from './seeds.ts';
import type { SimHost } from './sim-host.ts';
import { inStorm, type Scene, type Storm } from './storm.ts';
import type { World } from './world.ts';

/**
 * Goal: a judge that takes a run of its own gives one verdict on each run, whoever dies when, and whoever waits for it is
 * called when it is there. Method: goals that are judged by a workflow, in a storm; recovery is shorter than the time
 * after which a goal would look for a lost verdict by itself.
 */

const SEEDS = seeds(2);
const STORM_MS = 60_000;
const RECOVERY_MS = 60_000;
const GOALS = 8;
const CALLER: Caller = {
  subject: { tenant: 'alpha', tenantName: 'alpha', principal: 'p', issuer: 'i', lane: 'l' },
  scopes: new Set(SCOPES),
  keyId: 'key',
  isTest: false,
};

const working = workflow(
  [node('work', 'core.identity', { inputs: { iteration: expression('inputs.goal.iteration') } })],
  [],
  { id: 'working' },
);
const VERDICT = '{"satisfied": inputs.run.outputs.work.iteration >= 3, "evidence": [{"key": "third", "met": true}]}';
const judging = workflow(
  [
    node('think', 'sim.slow', { config: { ms: 900 } }),
    node('say', 'core.identity', { inputs: { verdict: expression(VERDICT) } }),
  ],
  line('think', 'say'),
  { id: 'judging' },
);

it.each(SEEDS)('each run is judged once, by one run: seed %i', (seed) =>
  inStorm(seed, [...INTERRUPT_TABLES, ...VERIFIER_TABLES, ...GOAL_TABLES], pass, { hasGoals: true }),
);

async function pass({ world, store, storm }: Scene): Promise<void> {
  const goalIds = await world.settle(open(storm));
  const work = async ({ runtime, goals }: SimHost): Promise<void> => {
    const goalId = world.random.pick(goalIds);
    await perform(runtime, () => goals.start(CALLER, goalId, undefined));
  };
  await storm.rage([work, work, work], STORM_MS, RECOVERY_MS);
  storm.over();
  expect(storm.kills).toBeGreaterThan(3);
  await judge(world, store);
}

async function open(storm: Storm): Promise<string[]> {
  for (let count = 0; count < 3; count++) await storm.startHost();
  const { runtime, verifiers, goals } = storm.hosts[0]!;
  await registerShared(runtime, working, judging);
  const slow = { id: 'slow', kind: 'workflow', workflowId: judging.id } as const;
  await perform(runtime, () => verifiers.put(CALLER, slow));
  const goalIds: string[] = [];
  for (let count = 0; count < GOALS; count++) {
    const completion = { check: 'verifier', verifierRef: 'slow' } as const;
    const bounds = { maxLoopIterations: 5 };
    const request = { objective: 'Get it done', completion, continuation: { mode: 'manual' }, bounds } as const;
    const made = await perform(runtime, () => goals.create(CALLER, request));
    if (isRefusal(made)) throw new Error(made.message);
    const plan = { workflowId: working.id, criteria: [] };
    await perform(runtime, () => goals.setPlan(CALLER, made.id, plan));
    goalIds.push(made.id);
  }
  return goalIds;
}

async function judge(world: World, store: Store): Promise<void> {
  const all = <R>(text: string): Promise<R[]> => world.settle(store.read<R>(sql(text)));
  const its = await all<GoalRunRow>('SELECT * FROM goal_runs ORDER BY run_id');
  const runs = await all<RunRow>(`SELECT * FROM runs WHERE workflow_id = 'judging'`);
  const judged = its.filter(({ verdict }) => verdict !== null);
  expect(judged.length).toBeGreaterThan(8);
  // The third run satisfies its goal, and those that had begun by then are not judged any more.
  const left = its.filter(({ verdict }) => verdict === null);
  expect(left.filter(({ number }) => number <= 3)).toEqual([]);
  for (const { verdict, number } of judged) {
    const { judge: by, evidence, satisfied } = JSON.parse(verdict!);
    expect([by, evidence]).toEqual(['slow@1', [{ key: 'third', met: true }]]);
    expect(satisfied).toBe(number >= 3);
  }
  const about = runs.map((row) => factsOf(row).metadata!.judgedRunId as string);
  expect(about.sort(), 'one judging run each').toEqual(judged.map(({ run_id }) => run_id));
  expect(runs.every(({ status }) => status === 'completed')).toBe(true);
  const goals = await all<{ state: string }>('SELECT state FROM goals');
  expect(goals.filter(({ state }) => state === 'satisfied').length).toBeGreaterThan(0);
  expect(await all('SELECT * FROM judging_runs')).toEqual([]);
}
