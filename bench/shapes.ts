/** Runs of several shapes: what a step, a node and an item cost where there are few and where there are many. */
import type { WorkflowDefinition, WorkflowNode } from '../src/protocol/running/workflows.ts';
import { api, chain, endedRun, oneOf } from './api.ts';
import { type Cost, costOf, inParallel, printGrowth } from './growth.ts';
import { type BenchServer, startCapstan } from './servers.ts';

const CONCURRENCY = 32;

/** Runs in a line of two lengths: steps. */
export async function benchSteps(): Promise<void> {
  console.log('\nruns of two and of twenty steps, 32 at once');
  await withCapstan(async (capstan) => {
    for (const length of [2, 3, 20]) await api(capstan, 'POST', WORKFLOWS, chain(length));
    const cost = (length: number, runs: number): Promise<Cost> =>
      costOf(capstan, runs * length, () => inParallel(runs, CONCURRENCY, () => endedRun(capstan, `chain-${length}`)));
    await cost(20, 200);
    const three = await cost(3, 1_000);
    console.log(
      `  three steps: ${(1_000 / three.seconds).toFixed(0)} runs/s, ${three.cpuUs.toFixed(0)} µs for each step`,
    );
    printGrowth('steps in a line', await cost(2, 1_000), await cost(20, 500));
  });
}

/** A node that many others follow, and one that waits for all of them. */
export async function benchFanOut(): Promise<void> {
  console.log('\nfan-out and fan-in: cost of each branch');
  await withCapstan(async (capstan) => {
    for (const width of [10, 100]) await api(capstan, 'POST', WORKFLOWS, fan(width));
    const cost = (width: number, runs: number): Promise<Cost> =>
      costOf(capstan, runs * width, () => inParallel(runs, 8, () => endedRun(capstan, `fan-${width}`)));
    await cost(100, 20);
    printGrowth('branches', await cost(10, 300), await cost(100, 100));
  });
}

/** A workflow for each item of a list. */
export async function benchForEach(): Promise<void> {
  console.log('\nfor-each: cost of each item, with a run for each');
  await withCapstan(async (capstan) => {
    await api(capstan, 'POST', WORKFLOWS, chain(1));
    for (const items of [100, 1_000]) await api(capstan, 'POST', WORKFLOWS, forEach(items));
    const cost = (items: number, runs: number): Promise<Cost> =>
      costOf(capstan, runs * items, () => inParallel(runs, 1, () => endedRun(capstan, `for-each-${items}`)));
    await cost(100, 3);
    printGrowth('items', await cost(100, 10), await cost(1_000, 2));
  });
}

const WORKFLOWS = '/v1/host/capstan/workflows';

async function withCapstan(act: (capstan: BenchServer) => Promise<void>): Promise<void> {
  const capstan = await startCapstan();
  try {
    await act(capstan);
  } finally {
    await capstan.stop();
  }
}

function fan(width: number): WorkflowDefinition {
  const branches = Array.from({ length: width }, (_, index) => `n${index}`);
  const edges = branches.flatMap((id) => [
    { id: `out-${id}`, sourceNodeId: 'first', targetNodeId: id },
    { id: `in-${id}`, sourceNodeId: id, targetNodeId: 'last' },
  ]);
  const nodes = ['first', ...branches, 'last'].map((id) => oneOf(id, 'core.noop'));
  return { ...chain(1), id: `fan-${width}`, nodes, edges };
}

function forEach(items: number): WorkflowDefinition {
  const array = Array.from({ length: items }, (_, index) => index);
  const node: WorkflowNode = {
    ...oneOf('each', 'vendor.capstan.flow.for-each'),
    config: { workflowId: 'chain-1', concurrency: 32 },
    inputs: { array: { type: 'static', value: array } },
  };
  return { ...chain(1), id: `for-each-${items}`, nodes: [node], edges: [] };
}
