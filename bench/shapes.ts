/** Runs of several shapes: what a step, a branch, an item and a child cost where there are few and where there are many. */
import type { WorkflowDefinition, WorkflowNode } from '../src/protocol/running/workflows.ts';
import { chain, endedRun, oneOf, register } from './api.ts';
import {
  type Cost,
  costOf,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  partOf,
  withHost,
} from './growth.ts';
import type { BenchServer } from './servers.ts';

const CONCURRENCY = 32;

/** Runs in a line of two lengths. */
export const steps: GrowthBench = {
  name: 'steps',
  about: 'runs of two and of twenty steps, 32 at once',
  measure: (options) =>
    withHost(options, async (host) => {
      await register(host, [2, 3, 20].map(chain));
      const cost = (length: number): Promise<Cost> =>
        costOfRuns(host, `chain-${length}`, { runs: partOf(options, 4_000 / length), units: length });
      const growth = await growthOf(options, { what: 'steps of a run', each: 'step', sizes: [2, 20], cost });
      const { seconds, units, cpuUs } = await cost(3);
      console.log(`  three steps: ${(units / 3 / seconds).toFixed(0)} runs/s, ${cpuUs.toFixed(0)} µs for each step`);
      return [growth];
    }),
};

/** A node that many others follow, and one that waits for all of them. */
export const fanOut: GrowthBench = {
  name: 'fan-out',
  about: 'fan-out and fan-in: cost of each branch',
  measure: (options) =>
    withHost(options, async (host) => {
      await register(host, [10, 100].map(fan));
      const cost = (width: number): Promise<Cost> =>
        costOfRuns(host, `fan-${width}`, { runs: partOf(options, 4_000 / width), units: width, concurrency: 8 });
      return [await growthOf(options, { what: 'branches of a run', each: 'branch', sizes: [10, 100], cost })];
    }),
};

/** A workflow for each item of a list. */
export const forEachItem: GrowthBench = {
  name: 'for-each',
  about: 'for-each: cost of each item, with a run for each',
  measure: (options) =>
    withHost(options, async (host) => {
      await register(host, [chain(1), ...[100, 1_000].map(forEach)]);
      const cost = (items: number): Promise<Cost> =>
        costOfRuns(host, `for-each-${items}`, { runs: partOf(options, 1_000 / items), units: items, concurrency: 1 });
      return [await growthOf(options, { what: 'items of a for-each', each: 'item', sizes: [100, 1_000], cost })];
    }),
};

/** How many sub-workflows a tree has on each of its two levels, by the number of its descendants. */
const TREES: Record<number, { readonly children: number; readonly grandchildren: number }> = {
  110: { children: 10, grandchildren: 10 },
  1100: { children: 20, grandchildren: 54 },
};

/** Sub-workflows that start sub-workflows: a wide tree, and a line of them that is as deep as a host allows. */
export const tree: GrowthBench = {
  name: 'tree',
  about: 'trees of sub-workflows: cost of each descendant',
  measure: (options) =>
    withHost(options, async (host) => {
      await register(host, [chain(1), ...Object.keys(TREES).flatMap((size) => treeOf(Number(size)))]);
      await register(
        host,
        Array.from({ length: 30 }, (_, depth) => nested(depth + 1)),
      );
      return [await growthOfTrees(host, options), await growthOfDepth(host, options)];
    }),
};

function growthOfTrees(host: BenchServer, options: GrowthOptions) {
  const cost = (size: number): Promise<Cost> =>
    costOfRuns(host, `tree-${size}`, { runs: partOf(options, 1_100 / size), units: size, concurrency: 1 });
  return growthOf(options, { what: 'descendants of a run', each: 'descendant', sizes: [110, 1_100], cost });
}

function growthOfDepth(host: BenchServer, options: GrowthOptions) {
  const cost = (depth: number): Promise<Cost> =>
    costOfRuns(host, `nested-${depth}`, { runs: partOf(options, 900 / depth), units: depth, concurrency: 8 });
  return growthOf(options, { what: 'levels of sub-workflows', each: 'level', sizes: [3, 30], cost });
}

/** What each unit of some runs costs, from their start to their end. */
function costOfRuns(
  host: BenchServer,
  workflowId: string,
  { runs, units, concurrency = CONCURRENCY }: { runs: number; units: number; concurrency?: number },
): Promise<Cost> {
  return costOf(host, runs * units, () => inParallel(runs, concurrency, () => endedRun(host, workflowId)));
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

/** The workflows of a tree: those of the lower level first, since definitions name what they start. */
function treeOf(size: number): WorkflowDefinition[] {
  const { children, grandchildren } = TREES[size]!;
  const branch = `branch-${size}`;
  return [subWorkflows(branch, grandchildren, 'chain-1'), subWorkflows(`tree-${size}`, children, branch)];
}

/** A workflow with so many levels of sub-workflows below it. */
function nested(depth: number): WorkflowDefinition {
  return subWorkflows(`nested-${depth}`, 1, depth === 1 ? 'chain-1' : `nested-${depth - 1}`);
}

function subWorkflows(id: string, count: number, workflowId: string): WorkflowDefinition {
  const nodes = Array.from({ length: count }, (_, index) => ({
    ...oneOf(`n${index}`, 'core.subWorkflow'),
    config: { workflowId },
  }));
  return { ...chain(1), id, nodes, edges: [] };
}
