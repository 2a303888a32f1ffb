import type { Plan } from '../../../engine/definition/plan.ts';
import { type PromptResolved, parsePromptRef } from '../../../protocol/ai/prompts.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { EventType, RunEvent } from '../../../protocol/running/events.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { RunRow } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { firstIdAt } from '../../../system/ids.ts';
import { type Correction, type MinedRun, type ShapeRow, type ToolUse, type UsedPrompt, WHOLE_RUN } from './records.ts';

/** The event types that miners need. Nearly all of them are small, whatever data passed through the nodes. */
export const MINED_EVENTS: readonly EventType[] = [
  'node.started',
  'node.failed',
  'node.cancelled',
  'agent.promptResolved',
  'agent.toolReturned',
  'approval.received',
];

/** The facts about a run that are stored for miners. */
export interface MinedFacts {
  readonly run: MinedRun;
  readonly shape: ShapeRow | undefined;
  readonly prompts: readonly UsedPrompt[];
  readonly uses: readonly ToolUse[];
  readonly edits: readonly Correction[];
}

/** Extracts the facts about an ended run from its log. */
export function minedFactsOf(row: RunRow, events: readonly RunEvent[], plan: Plan | undefined): MinedFacts {
  const { tenant, run_id, workspace, workflow_id } = row;
  const { fork } = factsOf(row);
  // A fork repeats another run, so it is not another observation.
  const counted = fork ? [] : events;
  const shape = row.status === 'completed' && !fork ? shapeOf(row, counted) : undefined;
  const prompts = promptsOf(row, counted);
  return {
    run: { tenant, run_id, workspace, workflow_id, shape: shape?.shape ?? null, inputs: inputsOf(row) },
    shape,
    prompts,
    uses: usesOf(row, counted, plan),
    edits: editsOf(row, counted, plan, prompts),
  };
}

/** Members of a run's metadata that name what started it. */
const STARTERS = ['scheduleId', 'goalId', 'heartbeatId', 'commitmentId', 'verifier', 'trustBoundary'];

/** A digest of the inputs of a run that a person started; null for other runs. */
function inputsOf(row: RunRow): string | null {
  const { parent, fork, metadata = {}, inputs } = factsOf(row);
  const isByPerson = !parent && !fork && !STARTERS.some((name) => Object.hasOwn(metadata, name));
  return isByPerson ? digestOfInputs(inputs) : null;
}

function digestOfInputs(inputs: JsonObject): string {
  return digest(canonicalJson(inputs));
}

/** Half of a SHA-256: enough within one tenant, and there are many to store. */
function digest(text: string): string {
  return sha256Hex(text).slice(0, 32);
}

function shapeOf(row: RunRow, events: readonly RunEvent[]): ShapeRow {
  const { tenant, workflow_owner, workflow_id, workflow_version } = row;
  const done = new Set<string>();
  for (const event of events) {
    if (event.type === 'node.started') done.add(event.payload.nodeId);
    else if (event.type === 'node.failed' || event.type === 'node.cancelled') done.delete(event.payload.nodeId);
  }
  const nodes = JSON.stringify([...done].sort());
  const shape = digest(JSON.stringify([workflow_owner, workflow_id, workflow_version, nodes]));
  return { tenant, shape, workflow_owner, workflow_id, workflow_version, nodes };
}

function promptsOf({ tenant, run_id }: RunRow, events: readonly RunEvent[]): UsedPrompt[] {
  const given = new Map<string, UsedPrompt>();
  for (const event of events) {
    if (event.type !== 'agent.promptResolved') continue;
    const { nodeId: node_id, resolved } = event.payload;
    const { templateId, version } = parsePromptRef(resolved) ?? {};
    if (templateId === undefined || version === undefined) continue;
    given.set(JSON.stringify([node_id, templateId]), { tenant, run_id, node_id, template_id: templateId, version });
  }
  return [...given.values()];
}

/**
 * What people changed at gates before they accepted it, as corrections of the node with a prompt that the gate shows the
 * output of, or else of the whole run. Their ids sort among those of annotations, by the end of the run.
 */
function editsOf(
  { tenant, run_id, workspace, workflow_id, ended_at }: RunRow,
  events: readonly RunEvent[],
  plan: Plan | undefined,
  prompts: readonly UsedPrompt[],
): Correction[] {
  return events.flatMap((event) => {
    if (event.type !== 'approval.received' || event.payload.action !== 'edit-accept') return [];
    const { sequence } = event;
    const shown = shownAt(plan, event.payload.nodeId).filter((id) => prompts.some(({ node_id }) => node_id === id));
    const annotation_id = `${firstIdAt(ended_at ?? 0, 'ann-')}${digest(JSON.stringify([run_id, sequence]))}`;
    const node_id = shown.length === 1 ? shown[0]! : WHOLE_RUN;
    return [{ tenant, annotation_id, run_id, workspace, workflow_id, node_id, sequence }];
  });
}

/** The nodes whose outputs a gate shows. */
function shownAt(plan: Plan | undefined, gateId: string): string[] {
  const ports = Object.values(plan?.node(gateId)?.node.inputs ?? {});
  return [...new Set(ports.flatMap((port) => (port.type === 'connection' ? [port.nodeId] : [])))];
}

function usesOf({ tenant, run_id }: RunRow, events: readonly RunEvent[], plan: Plan | undefined): ToolUse[] {
  const systemPrompts = new Map<string, string | undefined>();
  const used = new Map<string, { readonly agentId: string; readonly tools: Set<string> }>();
  for (const event of events) {
    if (event.type === 'agent.promptResolved' && event.payload.kind === 'system') {
      systemPrompts.set(event.payload.nodeId, resolvedPrompt(event.payload));
    } else if (event.type === 'agent.toolReturned' && event.nodeId !== undefined && wasUsed(event.payload)) {
      const { agentId, toolName } = event.payload;
      const use = used.get(event.nodeId) ?? { agentId, tools: new Set() };
      use.tools.add(toolName);
      used.set(event.nodeId, use);
    }
  }
  return [...used].map(([node_id, { agentId, tools }]) => ({
    tenant,
    run_id,
    node_id,
    prompt: systemPrompts.get(node_id) ?? inlinePromptKey(plan, node_id) ?? AGENT_PREFIX + agentId,
    tools: JSON.stringify([...tools].sort()),
  }));
}

/** The prompt: that of the agent itself, or one of the library. */
function resolvedPrompt({ chain, resolved, agentId }: PromptResolved): string | undefined {
  const isIntrinsic = chain.some(({ layer, applied }) => applied && layer === 'agent-intrinsic');
  return (isIntrinsic && agentId !== undefined ? AGENT_PREFIX + agentId : resolved) ?? undefined;
}

/** A call that was refused did not use the tool. */
function wasUsed({ status = 'ok' }: { readonly status?: string }): boolean {
  return status === 'ok' || status === 'error';
}

/** Prefix of the key of a prompt that is written into a definition. */
export const INLINE_PREFIX = 'text:';

/** Prefix of the key of an agent's own prompt. */
export const AGENT_PREFIX = 'agent:';

function inlinePromptKey(plan: Plan | undefined, nodeId: string): string | undefined {
  const text = inlineSystemPrompt(plan, nodeId);
  return text === undefined ? undefined : INLINE_PREFIX + sha256Hex(text);
}

/** The system prompt that a definition contains for a node. */
export function inlineSystemPrompt(plan: Plan | undefined, nodeId: string): string | undefined {
  const text = plan?.node(nodeId)?.node.config.systemPrompt;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
}
