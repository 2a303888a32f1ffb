import { defined, type JsonObject } from '../../protocol/format/json.ts';
import { EVENT_LOG_SCHEMA_VERSION, type NodeStateDoc, type RunSnapshot } from '../../protocol/running/runs.ts';
import { maskKnown } from '../masking/learning.ts';
import { type Digest, maskMembers, maskOutputs, maskQuestion, maskValue } from '../masking/mask.ts';
import { type NodeState, type Run, statusOf } from './run.ts';
import { visibleVariables } from './visible-variables.ts';

/** The run as callers see it: sensitive values masked, times in ISO 8601. */
export function snapshotOf(run: Run, digest: Digest): RunSnapshot {
  const snapshot = maskedByPlace(run, digest);
  if (!run.known) return snapshot;
  const { inputs, variables, channels, nodeStates: states, error, interrupt, tags, metadata } = snapshot;
  const nodes = Object.entries(states ?? {}).map(([nodeId, state]) => [nodeId, maskKnown(run.known!, state)]);
  const shown = maskKnown(run.known, defined({ inputs, variables, channels, error, tags, metadata }));
  const asked = interrupt && { interrupt: maskKnown(run.known, interrupt) };
  return { ...snapshot, ...shown, ...asked, nodeStates: Object.fromEntries(nodes) } as RunSnapshot;
}

function maskedByPlace(run: Run, digest: Digest): RunSnapshot {
  const { facts, plan } = run;
  const sensitive = (name: string): boolean => plan.sensitive.has(name);
  const endedAt = iso(run.endedAt);
  return defined({
    runId: facts.runId,
    workflowId: facts.workflowId,
    workflowVersion: plan.version,
    status: statusOf(run),
    owner: facts.owner,
    ...waitsFor(run, digest),
    createdAt: iso(facts.createdAt),
    startedAt: iso(run.startedAt),
    completedAt: endedAt,
    endedAt,
    nodeStates: nodeStates(run, digest),
    inputs: maskMembers(facts.inputs, sensitive, plan.maskingMode, digest),
    variables: maskMembers(visibleVariables(run), sensitive, plan.maskingMode, digest),
    channels: plan.definition.channels && declaredChannels(run, digest),
    error: run.error && withoutRetryable(run.error),
    engineVersion: String(facts.engineVersion),
    eventLogSchemaVersion: EVENT_LOG_SCHEMA_VERSION,
    tags: facts.tags && [...facts.tags],
    metadata: facts.metadata,
    configurable: Object.keys(facts.configurable).length > 0 ? facts.configurable : undefined,
    metrics: run.spending.cost ? { openwopCost: run.spending.cost } : undefined,
    agent: currentAgent(run),
    runOrchestrator: run.orchestrator,
    forkedFrom: facts.fork && {
      runId: facts.fork.sourceRunId,
      fromSeq: facts.fork.fromSeq,
      mode: facts.fork.mode,
    },
    parentRunId: facts.parent?.runId,
    parentNodeId: facts.parent?.nodeId,
  }) as RunSnapshot;
}

/** The node that the run waits at, with its open interrupt. */
function waitsFor(run: Run, digest: Digest): JsonObject {
  if (!statusOf(run).startsWith('waiting-')) return {};
  const [asked] = run.suspended;
  const [first = -1] = asked === undefined ? run.active : [asked];
  const { node } = run.plan.nodes[first]!;
  const { interrupt } = run.nodes[first]!;
  if (!interrupt) return { currentNodeId: node.id };
  const { interruptId, kind, key, expiresAt } = interrupt;
  const data = maskQuestion(run.plan, node.id, interrupt.data, digest);
  return {
    currentNodeId: node.id,
    interrupt: defined({ interruptId, kind, key, nodeId: node.id, data, expiresAt: iso(expiresAt) }),
  };
}

function nodeStates(run: Run, digest: Digest): Record<string, NodeStateDoc> {
  const begun = run.plan.nodes.filter(({ index }) => !['pending', 'ready'].includes(run.nodes[index]!.status));
  return Object.fromEntries(
    begun.map(({ node, index }) => [node.id, nodeState(run, node.id, run.nodes[index]!, digest)]),
  );
}

function nodeState(run: Run, nodeId: string, state: NodeState, digest: Digest): NodeStateDoc {
  return defined({
    status: state.status,
    attempt: state.startedAt === undefined ? undefined : state.attempt,
    startedAt: iso(state.startedAt),
    endedAt: iso(state.endedAt),
    outputs: state.outputs && maskOutputs(run.plan, nodeId, state.outputs, digest),
    error: state.error,
    reason: state.reason,
    childRunId: state.children?.length === 1 ? state.children[0]!.runId : undefined,
  }) as NodeStateDoc;
}

function declaredChannels(run: Run, digest: Digest): JsonObject {
  const channels = Object.entries(run.plan.definition.channels ?? {}).map(([name, { sensitive }]) => {
    const state = run.channels.get(name);
    return [name, sensitive ? maskValue(state, run.plan.maskingMode, digest) : state];
  });
  return Object.fromEntries(channels.filter(([, state]) => state !== undefined));
}

/** The agent pinned by the most recently started node that has one. */
function currentAgent(run: Run): unknown {
  const pinned = run.plan.nodes.filter(({ node, index }) => node.agent && run.nodes[index]!.startedAt !== undefined);
  return pinned.sort((a, b) => run.nodes[b.index]!.startedAt! - run.nodes[a.index]!.startedAt!)[0]?.node.agent;
}

/** The snapshot's error schema is closed and has no `retryable`, which only the scheduler needs. */
function withoutRetryable({ code, message, details }: NonNullable<Run['error']>): RunSnapshot['error'] {
  return details ? { code, message, details } : { code, message };
}

function iso(time: number | undefined): string | undefined {
  return time === undefined ? undefined : new Date(time).toISOString();
}
