import type { JsonObject } from '../../../protocol/format/json.ts';
import { chainPackOf, type Occurrence } from './chain-pack.ts';
import { type CountedShape, countShapes, findShape, runsOfShape } from './counts.ts';
import { counted, EVIDENCE_MAX, type Habit, type Mining, named } from './habit.ts';
import { packIdentity } from './pack-identity.ts';
import { nodesAlong, PathCount, type RecurringPath, type Walked } from './paths.ts';

/** Shapes that are held against each other: those that most runs have. */
const SHAPES_MAX = 2_000;
/** Shapes that a chain is made from, and whose runs are named; more would only make more parameters. */
const OCCURRENCES_MAX = 50;
/** Steps that a title names. */
const WORDS_MAX = 6;

/** The same path of node types in runs of several workflows: a chain that all of them could be made from. */
export async function* findChains(mining: Mining): AsyncGenerator<Habit> {
  const { runtime, among, rules } = mining;
  const count = new PathCount<Shape>();
  for (const row of await runtime.store.read<CountedShape>(countShapes(among, SHAPES_MAX))) {
    const walked = await walkedBy(mining, row);
    if (walked) count.add({ ...row, workflowId: row.workflow_id }, walked);
    // Others get their turn in between.
    await new Promise<void>((resolve) => runtime.clock.soon(resolve));
  }
  for (const path of count.recurring(rules.supportMin)) {
    const runs = await latestRuns(mining, path);
    const key = JSON.stringify(['path', path.types]);
    yield {
      kind: 'workflow-chain-pack',
      key,
      support: path.support,
      evidence: runs.map(({ runId, workflowId }) => ({
        id: runId,
        runId,
        why: `A run of ${workflowId} that did ${path.types.join(', ')}, one after the other.`,
      })),
      draft: () => draftChain(mining, key, path, runs),
    };
  }
}

/** One shape after the other: each has its own by time, and they are few. */
async function latestRuns({ runtime, among }: Mining, { walkers }: RecurringPath<Shape>): Promise<WalkedRun[]> {
  const runs: WalkedRun[] = [];
  for (const { shape, workflowId } of walkers.slice(0, OCCURRENCES_MAX)) {
    const rows = await runtime.store.read<{ run_id: string }>(runsOfShape(among, shape, EVIDENCE_MAX));
    runs.push(...rows.map(({ run_id: runId }) => ({ runId, workflowId })));
  }
  return runs.sort((a, b) => (a.runId < b.runId ? 1 : -1)).slice(0, EVIDENCE_MAX);
}

interface WalkedRun {
  readonly runId: string;
  readonly workflowId: string;
}

type Shape = CountedShape & { readonly workflowId: string };

async function walkedBy(
  { runtime, subject }: Mining,
  { shape, workflow_owner, workflow_id, workflow_version }: CountedShape,
): Promise<Walked | undefined> {
  const plan = await runtime.plans.find(workflow_owner, workflow_id, workflow_version);
  const [row] = await runtime.store.read<{ nodes: string }>(findShape(subject.tenant, shape));
  return plan && row && { plan, done: new Set(JSON.parse(row.nodes) as string[]) };
}

/** Where the path lies in some of the workflows that have it. */
async function occurrencesOf(mining: Mining, { types, walkers }: RecurringPath<Shape>): Promise<Occurrence[]> {
  const occurrences: Occurrence[] = [];
  for (const shape of walkers.slice(0, OCCURRENCES_MAX)) {
    const walked = await walkedBy(mining, shape);
    const nodeIds = walked && nodesAlong(types, walked);
    if (nodeIds) occurrences.push({ plan: walked.plan, nodeIds });
  }
  return occurrences;
}

async function draftChain(mining: Mining, key: string, path: RecurringPath<Shape>, runs: readonly WalkedRun[]) {
  const words = path.types.map((type) => type.split('.').at(-1)!);
  const identity = await packIdentity(mining, key, words);
  const title = `Reuse ${inShort(words).join(' → ')}`;
  const workflows = new Set(path.walkers.map(({ workflowId }) => workflowId));
  const artifact = chainPackOf({ ...path, occurrences: await occurrencesOf(mining, path) }, identity, title);
  const lifted = Object.keys((artifact.chains[0]!.parameters.properties ?? {}) as JsonObject);
  const steps = path.types.length;
  return {
    artifact: artifact as unknown as JsonObject,
    title,
    rationale: [
      `${counted(path.support, 'run')} of ${counted(workflows.size, 'workflow')} (${named(workflows)}) did the same ` +
        `${steps} steps: ${path.types.join(', ')}.`,
      lifted.length === 0
        ? 'They did them in the same way everywhere.'
        : `What they did differently is a parameter: ${named(lifted)}.`,
      `Among them ${named(runs.map(({ runId }) => runId))}.`,
    ].join(' '),
    preview: async () => ({
      kind: 'workflow-chain-pack',
      matchingRuns: path.support,
      runs: runs.slice(0, 20).map(({ runId }) => runId),
      workflows: [...workflows].slice(0, 20),
      stepsPerRun: steps,
      // One thing to put into a workflow instead of so many.
      stepsSaved: path.support * (steps - 1),
    }),
  };
}

function inShort(words: readonly string[]): readonly string[] {
  return words.length <= WORDS_MAX ? words : [...words.slice(0, WORDS_MAX - 2), '…', words.at(-1)!];
}
