import type { Plan } from '../../../engine/definition/plan.ts';
import type { AgentManifest } from '../../../protocol/ai/agents.ts';
import { agentsOf, chainsOf, type FragmentNode, type PackManifest } from '../../../protocol/ai/packs.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import type { PortValue, WorkflowDefinition, WorkflowNode } from '../../../protocol/running/workflows.ts';
import { nodesAlong } from '../synthesis/door.ts';

/** What a source run did, as far as it matters where a draft goes. */
export interface SourceTrace {
  readonly plan: Plan;
  /** Nodes that completed. */
  readonly done: ReadonlySet<string>;
  /** The tools that each node used. */
  readonly tools: ReadonlyMap<string, ReadonlySet<string>>;
}

/** The definition with the draft in place, or why there is no place for it. */
type Placed = { readonly definition: WorkflowDefinition } | { readonly reason: string };

const RUN_AGENT = 'core.agents.run';

/**
 * Puts a draft into the definition of a source run. A template and an agent that nodes name already are found when the
 * run looks them up, so for those the definition stays as it is.
 */
export function placeDraft(kind: ArtifactKind, artifact: PackManifest, trace: SourceTrace): Placed {
  if (kind === 'workflow-chain-pack') return placeChain(artifact, trace);
  if (kind === 'agent-pack') return placeAgents(agentsOf(artifact), trace);
  return { definition: trace.plan.definition };
}

/** Replaces the steps of the first chain that the run took; its parameters get the values that the run had there. */
function placeChain(artifact: PackManifest, trace: SourceTrace): Placed {
  for (const { dag } of chainsOf(artifact)) {
    const types = dag.nodes.map(({ typeId }) => typeId);
    const nodeIds = nodesAlong(types, trace);
    if (!nodeIds) continue;
    const ids = new Map(dag.nodes.map(({ id }, step) => [id, nodeIds[step]!]));
    const steps = new Map(dag.nodes.map((step) => [ids.get(step.id)!, step]));
    return replaced(trace, (node) => {
      const step = steps.get(node.id);
      return step ? filledNode(step, node, ids) : node;
    });
  }
  return { reason: 'the run did not take the steps of the chain' };
}

function filledNode(step: FragmentNode, node: WorkflowNode, ids: ReadonlyMap<string, string>): WorkflowNode {
  const inputs = Object.entries((step.inputs ?? {}) as Record<string, unknown>).flatMap(([port, value]) => {
    const filled = filledPort(value, node.inputs[port], ids);
    return filled === undefined ? [] : [[port, filled] as const];
  });
  return {
    ...node,
    config: (fill(step.config ?? {}, node.config) ?? {}) as JsonObject,
    inputs: Object.fromEntries(inputs),
  };
}

function filledPort(
  value: unknown,
  actual: PortValue | undefined,
  ids: ReadonlyMap<string, string>,
): PortValue | undefined {
  if (!isObject(value)) return actual;
  const port = value as PortValue;
  if (port.type === 'connection') return { ...port, nodeId: ids.get(port.nodeId) ?? port.nodeId };
  if (port.type !== 'static') return port;
  return { ...port, value: fill(port.value, actual?.type === 'static' ? actual.value : undefined) };
}

/** A value of a chain; where it has a parameter, the value that the run had in that place. */
function fill(value: unknown, actual: unknown): unknown {
  if (typeof value === 'string') return value.includes('{{params.') ? actual : value;
  if (Array.isArray(value))
    return value.map((each, index) => fill(each, Array.isArray(actual) ? actual[index] : undefined));
  if (!isObject(value)) return value;
  const members = Object.entries(value).map(([key, each]) => [
    key,
    fill(each, isObject(actual) ? actual[key] : undefined),
  ]);
  return Object.fromEntries(members.filter(([, each]) => each !== undefined));
}

/** Has an agent take over the nodes that used nothing but tools which it may use. */
function placeAgents(agents: readonly AgentManifest[], trace: SourceTrace): Placed {
  const takeovers = new Map<string, AgentManifest>();
  for (const { node } of trace.plan.nodes) {
    const agent = node.typeId === RUN_AGENT ? agentFor(node, agents, trace.tools.get(node.id)) : undefined;
    if (agent) takeovers.set(node.id, agent);
  }
  if (takeovers.size === 0) return { reason: 'the run has no step that the agent would take over' };
  return replaced(trace, (node) => {
    const agent = takeovers.get(node.id);
    return agent ? takenOver(node, agent) : node;
  });
}

function agentFor(
  node: WorkflowNode,
  agents: readonly AgentManifest[],
  used: ReadonlySet<string> = new Set(),
): AgentManifest | undefined {
  const { agentId = node.config.agentId } = node.agent ?? {};
  const named = agents.find((agent) => agent.agentId === agentId);
  const mayUse = ({ toolAllowlist = [] }: AgentManifest): boolean =>
    used.size > 0 && [...used].every((tool) => toolAllowlist.includes(tool));
  return named ?? agents.find(mayUse);
}

/** The node without a prompt and tools of its own: those of the agent apply. */
function takenOver(node: WorkflowNode, { agentId }: AgentManifest): WorkflowNode {
  const { agent: _agent, ...rest } = node;
  const { systemPrompt: _prompt, systemPromptRef: _ref, tools: _tools, ...config } = node.config;
  return { ...rest, config: { ...config, agentId } };
}

function replaced({ plan }: SourceTrace, place: (node: WorkflowNode) => WorkflowNode): Placed {
  return { definition: { ...plan.definition, nodes: plan.definition.nodes.map(place) } };
}
