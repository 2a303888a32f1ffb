import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { line, node, workflow } from '../../test/support/definitions.ts';
import { registerShared } from '../../test/support/register-shared.ts';
import { callerOf, openServiceHost } from '../../test/support/service-host.ts';
import { makePlan } from '../engine/definition/plan.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import { sql } from '../store/sql.ts';
import { and, changeOf, perform, type UnitRefused } from './change.ts';
import { type CreatedRun, createRun } from './creation.ts';
import type { NodeType } from './node-type.ts';

let looks = 0;
let takesTime = true;
/** Whether the run was stored when the node was called. */
const stored: boolean[] = [];
/** Pure, and yet it may take its time. */
const look: NodeType = {
  typeId: 'test.look',
  description: 'For tests.',
  role: 'pure',
  run: () => {
    looks++;
    const outcome = { done: { outputs: { looks } } };
    return takesTime ? Promise.resolve(outcome) : outcome;
  },
};
const noop: NodeType = { typeId: 'core.noop', description: 'For tests.', role: 'pure', run: () => ({ done: {} }) };
const fail: NodeType = {
  typeId: 'core.fail',
  description: 'For tests.',
  role: 'pure',
  run: () => ({ failed: { code: 'as_told', message: 'This node always fails.' } }),
};
const unseen: NodeType = { ...noop, typeId: 'test.unseen' };
/** Answers at once, after longer than first steps may take. */
const slow: NodeType = {
  typeId: 'test.slow',
  description: 'For tests.',
  role: 'pure',
  run: () => {
    clock.advance(10);
    return { done: {} };
  },
};
const act: NodeType = {
  typeId: 'test.act',
  description: 'For tests.',
  role: 'side-effect',
  run: async ({ runId }) => {
    stored.push((await statusOf(runId)) !== undefined);
    return { done: {} };
  },
};
const { host, store, clock, close } = await openServiceHost({ nodes: [noop, fail, unseen, slow, look, act] });
const { runtime, executor } = host;
await executor.start();
afterAll(async () => {
  await executor.stop(0);
  await close();
});

async function statusOf(runId: string): Promise<string | undefined> {
  const [row] = await store.read<{ status: string }>(sql('SELECT status FROM runs WHERE run_id = $1', runId));
  return row?.status;
}

async function typesOf(runId: string): Promise<string[]> {
  const rows = await store.read<{ type: string }>(
    sql('SELECT type FROM events WHERE run_id = $1 ORDER BY sequence', runId),
  );
  return rows.map(({ type }) => type);
}

function workOf(runId: string): Promise<unknown[]> {
  return store.read(sql('SELECT work_id FROM work WHERE work_id = $1', runId));
}

async function created(definition: WorkflowDefinition): Promise<CreatedRun> {
  await registerShared(runtime, definition);
  return createRun(runtime, {
    subject: callerOf('alpha').subject,
    workflow: { owner: HOST_OWNER, plan: makePlan(definition, 1) },
    inputs: {},
    configurable: {},
    depth: 0,
  });
}

async function start(definition: WorkflowDefinition, way: 'startWithFirstSteps' | 'startRun' = 'startWithFirstSteps') {
  const run = await created(definition);
  const started = await perform(runtime, async () => executor[way](run));
  return { runId: run.held.run.facts.runId, started };
}

async function ended(runId: string): Promise<string[]> {
  while ((await workOf(runId)).length > 0) {
    clock.advance(100);
    await new Promise<void>((resolve) => clock.soon(resolve));
  }
  return typesOf(runId);
}

const chain = (length: number, ...more: NodeType[]): WorkflowDefinition => {
  const plain = Array.from({ length }, (_, place) => node(`n${place}`));
  const others = more.map(({ typeId }, place) => node(`m${place}`, typeId));
  const nodes = [...plain, ...others];
  return workflow(nodes, line(...nodes.map(({ id }) => id)));
};

beforeAll(async () => {
  const { runId } = await start(workflow([node('a', noop.typeId), node('b', fail.typeId), node('c', slow.typeId)]));
  await ended(runId);
});

it('a run of a type that nobody has seen in a stored run is stored before it is called', async () => {
  const { runId } = await start(workflow([node('a', unseen.typeId)]));
  expect(await typesOf(runId)).toEqual(['run.started', 'node.started']);
  expect((await ended(runId)).at(-1)).toBe('run.completed');
});

describe('a run of pure nodes that answer at once', () => {
  it('has ended when it is stored, and was never queued', async () => {
    const { runId, started } = await start(chain(3));
    expect(started).toMatchObject({ runId, status: 'running' });
    expect(await statusOf(runId)).toBe('completed');
    expect(await workOf(runId)).toEqual([]);
  });

  it.each([
    ['a chain', chain(3)],
    ['two at a time', workflow([node('a'), node('b')])],
    ['one that fails', workflow([node('a', 'core.fail'), node('b')], line('a', 'b'))],
    ['one that is tried again', workflow([node('a', 'core.fail', { settings: { retry: { maxRetries: 1 } } })])],
  ])('has the log of a run that is driven: %s', async (_what, definition) => {
    const alone = await start(definition);
    expect(await typesOf(alone.runId)).not.toEqual(['run.started']);
    const driven = await start({ ...definition, id: `${definition.id}-driven` }, 'startRun');
    expect(await ended(alone.runId)).toEqual(await ended(driven.runId));
  });

  it('is driven on after some steps, so that others get a word in', async () => {
    const { runId } = await start(chain(60));
    expect(await statusOf(runId)).toBe('running');
    expect((await ended(runId)).filter((type) => type === 'node.completed')).toHaveLength(60);
  });

  it('is driven on after some milliseconds', async () => {
    const inARow = workflow([node('a', slow.typeId), node('b')], line('a', 'b'));
    for (const definition of [inARow, workflow([node('a', slow.typeId), node('b')])]) {
      const { runId } = await start(definition);
      expect(await typesOf(runId)).toEqual(['run.started', 'node.started', 'node.completed']);
      expect((await ended(runId)).at(-1)).toBe('run.completed');
    }
  });

  it('leaves nothing behind if something else in its unit is refused', async () => {
    const run = await created(chain(1));
    const nothing = sql("UPDATE runs SET status = status WHERE run_id = 'none'");
    const refused = changeOf(undefined, [{ ...nothing, expect: 1, expectation: 'never' }]);
    const outcome = perform(runtime, async () => and(executor.startWithFirstSteps(run), refused));
    await expect(outcome).rejects.toMatchObject({ failedExpectation: 'never' } satisfies Partial<UnitRefused>);
    expect(await typesOf(run.held.run.facts.runId)).toEqual([]);
  });
});

describe('a run whose first nodes answer at once', () => {
  it('calls a node with effects only when it is stored', async () => {
    const { runId } = await start(chain(2, act));
    expect((await ended(runId)).at(-1)).toBe('run.completed');
    expect(stored).toEqual([true]);
  });

  it('calls no node past one that is only started, which must not see what later ones change', async () => {
    const { runId } = await start(workflow([node('a', act.typeId), node('b'), node('c')], line('b', 'c')));
    expect(await typesOf(runId)).toEqual(['run.started', 'node.started', 'node.started']);
    expect((await ended(runId)).filter((type) => type === 'node.completed')).toHaveLength(3);
  });

  it('has a pure node that takes its time this time called again, and the next time only once', async () => {
    const calls = async (definition: WorkflowDefinition): Promise<number> => {
      const before = looks;
      expect((await ended((await start(definition)).runId)).at(-1)).toBe('run.completed');
      return looks - before;
    };
    expect(await calls(chain(1, look))).toBe(1);
    takesTime = false;
    expect(await calls(chain(1, look))).toBe(1);
    takesTime = true;
    expect(await calls(chain(1, look))).toBe(2);
    expect(await calls(chain(1, look))).toBe(1);
  });
});
