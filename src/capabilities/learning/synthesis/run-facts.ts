import type { Plan } from '../../../engine/definition/plan.ts';
import { type PromptResolved, parsePromptRef } from '../../../protocol/ai/prompts.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { EventType, RunEvent } from '../../../protocol/running/events.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { RunRow } from '../../../store/log.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { GivenPrompt, ReadRun, ShapeRow, ToolUse } from './records.ts';

/** The events that say what a run did. All of them are small, however much passed through its nodes. */
export const TELLING: readonly EventType[] = [
  'node.started',
  'node.failed',
  'node.cancelled',
  'agent.promptResolved',
  'agent.toolReturned',
];

/** What is kept of a run for those who look for habits. */
export interface RunFindings {
  readonly run: ReadRun;
  readonly shape: ShapeRow | undefined;
  readonly prompts: readonly GivenPrompt[];
  readonly uses: readonly ToolUse[];
}

/** What a run that is over shows of the habits of those who work with it. */
export function findingsOf(row: RunRow, events: readonly RunEvent[], plan: Plan | undefined): RunFindings {
  const { tenant, run_id, workspace, workflow_id } = row;
  const { fork } = factsOf(row);
  // A copy of another run is no second witness.
  const counted = fork ? [] : events;
  const shape = row.status === 'completed' && !fork ? shapeOf(row, counted) : undefined;
  return {
    run: { tenant, run_id, workspace, workflow_id, shape: shape?.shape ?? null, inputs: inputsOf(row) },
    shape,
    prompts: promptsOf(row, counted),
    uses: usesOf(row, counted, plan),
  };
}

/** Members of a run's metadata that name what has started it. */
const STARTERS = ['scheduleId', 'goalId', 'heartbeatId', 'commitmentId', 'verifier', 'trustBoundary'];

/** A digest of the inputs, where somebody from outside has started the run with them. */
function inputsOf(row: RunRow): string | null {
  const { parent, fork, metadata = {}, inputs } = factsOf(row);
  const isByPerson = !parent && !fork && !STARTERS.some((name) => Object.hasOwn(metadata, name));
  return isByPerson ? digestOfInputs(inputs) : null;
}

function digestOfInputs(inputs: JsonObject): string {
  return digest(canonicalJson(inputs));
}

/** Half of it is enough to tell things of one tenant apart, and there are many. */
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

function promptsOf({ tenant, run_id }: RunRow, events: readonly RunEvent[]): GivenPrompt[] {
  const given = new Map<string, GivenPrompt>();
  for (const event of events) {
    if (event.type !== 'agent.promptResolved') continue;
    const { nodeId: node_id, resolved } = event.payload;
    const { templateId, version } = parsePromptRef(resolved) ?? {};
    if (templateId === undefined || version === undefined) continue;
    given.set(JSON.stringify([node_id, templateId]), { tenant, run_id, node_id, template_id: templateId, version });
  }
  return [...given.values()];
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
    prompt: systemPrompts.get(node_id) ?? inlinePrompt(plan, node_id) ?? AGENT + agentId,
    tools: JSON.stringify([...tools].sort()),
  }));
}

/** Which prompt that was: the agent's own, one of the library, or one that is nowhere but in the definition. */
function resolvedPrompt({ chain, resolved, agentId }: PromptResolved): string | undefined {
  const isIntrinsic = chain.some(({ layer, applied }) => applied && layer === 'agent-intrinsic');
  return (isIntrinsic && agentId !== undefined ? AGENT + agentId : resolved) ?? undefined;
}

/** A call that was turned away was no use of the tool. */
function wasUsed({ status = 'ok' }: { readonly status?: string }): boolean {
  return status === 'ok' || status === 'error';
}

/** What stands for a prompt that is written into a definition, and for that of an agent. */
export const INLINE = 'text:';
export const AGENT = 'agent:';

function inlinePrompt(plan: Plan | undefined, nodeId: string): string | undefined {
  const text = systemPromptOf(plan, nodeId);
  return text === undefined ? undefined : INLINE + sha256Hex(text);
}

/** The system prompt that a definition has for a node. */
export function systemPromptOf(plan: Plan | undefined, nodeId: string): string | undefined {
  const text = plan?.node(nodeId)?.node.config.systemPrompt;
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
}
