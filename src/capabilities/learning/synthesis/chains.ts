import type { JsonObject } from '../../../protocol/format/json.ts';
import { turnOf } from '../../../system/breaks.ts';
import { chainPackOf, type Occurrence } from './chain-pack.ts';
import { BEGINNING_MIN, EVIDENCE_MAX, type Found, type MiningContext, needsMore } from './habit.ts';
import { type CountedShape, countShapes, findShape, runsOfShape } from './mining-records.ts';
import { isGood, isMostlyGood } from './outcomes.ts';
import { packIdentity } from './pack-identity.ts';
import { nodesAlong, PathCounter, type RecurringPath, type RunTrace } from './paths.ts';
import { counted, named } from './phrases.ts';

/** Shapes that are compared: those that most runs have. */
const SHAPES_MAX = 2_000;
/** Shapes that a chain is made from, and whose runs are listed; more would only add parameters. */
const OCCURRENCES_MAX = 50;
/** Steps that a title names. */
const WORDS_MAX = 6;

/** Finds paths of node types that runs of several workflows share, and drafts a chain that could replace them. */
export async function* findChains(mining: MiningContext): AsyncGenerator<Found> {
  const { runtime, selection, rules } = mining;
  const count = new PathCounter<Shape>();
  for (const row of await runtime.store.read<CountedShape>(countShapes(selection, SHAPES_MAX))) {
    const trace = await traceOf(mining, row);
    if (trace) count.add({ ...row, workflowId: row.workflow_id }, trace);
    // Let other work of the host run in between.
    await turnOf(runtime.clock);
  }
  for (const path of count.recurring(BEGINNING_MIN)) {
    const of = { kind: 'workflow-chain-pack', what: `doing ${path.types.join(', ')}` } as const;
    if (path.support < rules.supportMin) {
      yield needsMore(of, path.support, rules.supportMin, 'run');
      continue;
    }
    const all = await latestRuns(mining, path);
    const ended = await mining.outcomes.of(all.map(({ runId }) => runId));
    const runs = all.filter(({ runId }) => isGood(ended.get(runId) ?? { status: 'expired' }));
    const support = path.support - (all.length - runs.length);
    if (support < rules.supportMin || !isMostlyGood([...ended.values()])) {
      const bad = all.length - runs.length;
      yield { ...of, reason: 'ended-badly', message: `${bad} of ${all.length} runs were not what people wanted` };
      continue;
    }
    const key = JSON.stringify(['path', path.types]);
    yield {
      ...of,
      key,
      support,
      evidence: runs.map(({ runId, workflowId }) => ({
        id: runId,
        runId,
        why: `A run of ${workflowId} that did ${path.types.join(', ')}, one after the other.`,
      })),
      draft: () => draftChain(mining, key, { ...path, support }, runs),
    };
  }
}

/** The latest runs of a path. Shapes are read one after the other: each query is indexed, and they are few. */
async function latestRuns(
  { runtime, selection }: MiningContext,
  { runGroups }: RecurringPath<Shape>,
): Promise<TracedRun[]> {
  const runs: TracedRun[] = [];
  for (const { shape, workflowId } of runGroups.slice(0, OCCURRENCES_MAX)) {
    const rows = await runtime.store.read<{ run_id: string }>(runsOfShape(selection, shape, EVIDENCE_MAX));
    runs.push(...rows.map(({ run_id: runId }) => ({ runId, workflowId })));
  }
  return runs.sort((a, b) => (a.runId < b.runId ? 1 : -1)).slice(0, EVIDENCE_MAX);
}

interface TracedRun {
  readonly runId: string;
  readonly workflowId: string;
}

type Shape = CountedShape & { readonly workflowId: string };

async function traceOf(
  { runtime, subject }: MiningContext,
  { shape, workflow_owner, workflow_id, workflow_version }: CountedShape,
): Promise<RunTrace | undefined> {
  const plan = await runtime.plans.find(workflow_owner, workflow_id, workflow_version);
  const [row] = await runtime.store.read<{ nodes: string }>(findShape(subject.tenant, shape));
  return plan && row && { plan, done: new Set(JSON.parse(row.nodes) as string[]) };
}

/** The nodes of the path in some of the workflows that have it. */
async function occurrencesOf(mining: MiningContext, { types, runGroups }: RecurringPath<Shape>): Promise<Occurrence[]> {
  const occurrences: Occurrence[] = [];
  for (const shape of runGroups.slice(0, OCCURRENCES_MAX)) {
    const trace = await traceOf(mining, shape);
    const nodeIds = trace && nodesAlong(types, trace);
    if (nodeIds) occurrences.push({ plan: trace.plan, nodeIds });
  }
  return occurrences;
}

async function draftChain(mining: MiningContext, key: string, path: RecurringPath<Shape>, runs: readonly TracedRun[]) {
  const words = path.types.map((type) => type.split('.').at(-1)!);
  const identity = await packIdentity(mining, key, words);
  const title = `Reuse ${inShort(words).join(' → ')}`;
  const workflows = new Set(path.runGroups.map(({ workflowId }) => workflowId));
  const artifact = chainPackOf(
    { ...path, occurrences: await occurrencesOf(mining, path) },
    identity,
    title,
    mining.redact,
  );
  const lifted = Object.keys((artifact.chains[0]!.parameters.properties ?? {}) as JsonObject);
  const steps = path.types.length;
  return {
    artifact: artifact,
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
      // One chain in place of several steps.
      stepsSaved: path.support * (steps - 1),
    }),
  };
}

function inShort(words: readonly string[]): readonly string[] {
  return words.length <= WORDS_MAX ? words : [...words.slice(0, WORDS_MAX - 2), '…', words.at(-1)!];
}
