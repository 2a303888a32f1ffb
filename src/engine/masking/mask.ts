import { isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import { eventRows } from '../../protocol/running/event-rows.ts';
import type { EventPayload, EventType, NewEvent } from '../../protocol/running/events.ts';
import type { MaskingMode } from '../../protocol/running/workflows.ts';
import type { Plan } from '../definition/plan.ts';
import { EveryPort } from './sensitivity.ts';

/** Computes a hex digest of a text; passed in because the engine is pure and has no crypto. */
export type Digest = (text: string) => string;

/** The replacement for a masked value. */
export const REDACTED = '[REDACTED]';
/** Port with the artifact as edited by the approver. */
const EDITED = 'editedArtifactData';

/** The replacement that readers see for a sensitive value; undefined means that it is omitted. */
export function maskValue(value: unknown, mode: MaskingMode, digest: Digest): unknown {
  switch (mode) {
    case 'mask':
      return REDACTED;
    case 'omit':
      return undefined;
    case 'hash':
      return `sha256:${digest(JSON.stringify(value) ?? 'null')}`;
    case 'passthrough':
      return value;
  }
}

/** Masks the members of an object for which `isSensitive` is true; returns the same object if there are none. */
export function maskMembers(
  values: JsonObject,
  isSensitive: (name: string, value: unknown) => boolean,
  mode: MaskingMode,
  digest: Digest,
): JsonObject {
  const entries = Object.entries(values);
  if (mode === 'passthrough' || !entries.some(([name, value]) => isSensitive(name, value))) return values;
  const masked = entries.map(([name, value]) => [
    name,
    isSensitive(name, value) ? maskValue(value, mode, digest) : value,
  ]);
  return Object.fromEntries(masked.filter(([, value]) => value !== undefined));
}

/** The payload that readers get. The log stores the unmasked payload separately, for the fold only. */
export function maskPayload(plan: Plan, event: NewEvent, digest: Digest): unknown {
  // A fork may copy types that a newer host wrote and this one does not know.
  const mask = maskOf(event.type);
  return mask ? mask(plan, event, digest) : event.payload;
}

/** An event as far as masking goes. */
interface Unmasked<T extends EventType> {
  readonly payload: EventPayload<T>;
  readonly nodeId?: string;
}

type Mask<T extends EventType> = (plan: Plan, event: Unmasked<T>, digest: Digest) => unknown;

/** Readers get the payload as it is. */
const unmasked: Mask<EventType> = (_plan, { payload }) => payload;

/** What readers get to see of each event, in the order of the event registry. */
export const MASKS: { readonly [T in EventType]: Mask<T> } = {
  'run.started': unmasked,
  'run.completed': (plan, { payload }, digest) =>
    payload.outputs ? { ...payload, outputs: maskRunOutputs(plan, payload.outputs, digest) } : payload,
  'run.failed': unmasked,
  'run.cancelled': unmasked,
  'run.paused': unmasked,
  'run.resumed': unmasked,
  'node.started': unmasked,
  'node.completed': (plan, { payload }, digest) =>
    payload.outputs ? { ...payload, outputs: maskOutputs(plan, payload.nodeId, payload.outputs, digest) } : payload,
  'node.failed': (plan, { payload }) => withMember(payload, 'error', maskError(plan, payload, payload.error)),
  'node.retried': (plan, { payload }) => withMember(payload, 'lastError', maskError(plan, payload, payload.lastError)),
  'node.skipped': unmasked,
  'node.cancelled': unmasked,
  'node.suspended': unmasked,
  'node.resumed': maskAnswered,
  'node.dispatched': unmasked,
  'interrupt.requested': (plan, { payload, nodeId = '' }, digest) =>
    withMember(payload, 'data', maskQuestion(plan, nodeId, payload.data, digest)),
  'interrupt.resolved': maskAnswered,
  'approval.granted': unmasked,
  'approval.rejected': unmasked,
  'approval.overridden': unmasked,
  'authorization.decided': unmasked,
  'approval.requested': unmasked,
  'approval.received': (plan, event, digest) =>
    maskMembers(event.payload, (member) => member === EDITED && isPort(plan, event, member), plan.maskingMode, digest),
  'clarification.requested': unmasked,
  'clarification.resolved': (plan, event, digest) => {
    const { answers } = event.payload;
    const shown = isPort(plan, event, 'answers') ? maskMembers(answers, () => true, plan.maskingMode, digest) : answers;
    return withMember(event.payload, 'answers', shown);
  },
  'artifact.created': unmasked,
  'variable.changed': (plan, { payload }, digest) =>
    plan.sensitive.has(payload.name)
      ? maskMembers(payload, (member) => member === 'previous' || member === 'next', plan.maskingMode, digest)
      : payload,
  'channel.written': (plan, { payload }, digest) =>
    plan.sensitive.has(payload.channel)
      ? { ...payload, value: maskValue(payload.value, plan.maskingMode, digest) ?? null }
      : payload,
  'output.chunk': (plan, { payload }) =>
    withMember(payload, 'chunk', hidesAll(plan, payload.nodeId) ? REDACTED : payload.chunk),
  'log.appended': unmasked,
  'agent.promptResolved': unmasked,
  'prompt.composed': unmasked,
  'version.pinned': unmasked,
  'provider.usage': unmasked,
  'envelope.retry.attempted': unmasked,
  'envelope.retry.exhausted': unmasked,
  'envelope.refusal': unmasked,
  'envelope.truncated': unmasked,
  'envelope.recovery.applied': unmasked,
  'model.capability.insufficient': unmasked,
  'budget.reserved': unmasked,
  'budget.consumed': unmasked,
  'budget.threshold.crossed': unmasked,
  'budget.exhausted': unmasked,
  'memory.written': unmasked,
  'agent.memory.consolidated': unmasked,
  'agent.invocation.started': unmasked,
  'agent.reasoned': maskAgentEvent,
  'agent.reasoning.delta': maskAgentEvent,
  'agent.toolCalled': maskAgentEvent,
  'agent.toolReturned': maskAgentEvent,
  'agent.handoff': unmasked,
  'agent.decided': maskAgentEvent,
  'runOrchestrator.decided': unmasked,
  'core.workflowChain.event': unmasked,
  'core.workflowChain.confidence-escalated': unmasked,
  'agent.verified': unmasked,
  'agent.invocation.completed': unmasked,
  'proposal.created': unmasked,
  'proposal.activated': unmasked,
  'goal.evaluated': unmasked,
  'goal.closed': unmasked,
  'commitment.fired': unmasked,
  'cap.breached': unmasked,
  'replay.diverged': unmasked,
  'replay.divergedAtRefusal': unmasked,
  'workflow.loopback-limit': unmasked,
  'capstan.child.changed': unmasked,
  'capstan.pause.requested': unmasked,
  'capstan.principal.identified': unmasked,
};
const maskOf = eventRows<Mask<EventType>>(MASKS);

/** Whether everything that a node says is masked, because it computes with something sensitive. */
function hidesAll(plan: Plan, nodeId: string): boolean {
  return plan.maskingMode !== 'passthrough' && plan.sensitivePorts.get(nodeId) instanceof EveryPort;
}

/** The code of an error whose message a program of the author words. */
const WORDED_BY_PROGRAM = 'code_error';

/** Whether the error of a node that failed may repeat, in other words, what it computed with. */
export function leaksThroughError(plan: Plan, payload: JsonObject): boolean {
  const error = payload.error ?? payload.lastError;
  return hidesAll(plan, String(payload.nodeId)) && isObject(error) && error.code === WORDED_BY_PROGRAM;
}

function maskError<E extends object | undefined>(plan: Plan, payload: JsonObject, error: E): E {
  return error && leaksThroughError(plan, payload) ? { ...error, message: REDACTED } : error;
}

/** Payload members of agent events that may repeat what the agent was shown. */
const AGENT_CONTENT: readonly string[] = ['reasoning', 'delta', 'inputs', 'outcome', 'error', 'decision'];

/** An agent may rephrase whatever it received, so all its output is masked if any of its ports is sensitive. */
function maskAgent(plan: Plan, nodeId: string | undefined, payload: JsonObject): JsonObject {
  if (plan.maskingMode === 'passthrough' || !plan.sensitivePorts.has(nodeId ?? '')) return payload;
  const shown = Object.entries(payload).map(([name, value]) => [name, AGENT_CONTENT.includes(name) ? REDACTED : value]);
  return Object.fromEntries(shown);
}

function maskAgentEvent(plan: Plan, { nodeId, payload }: { nodeId?: string; payload: JsonObject }): JsonObject {
  return maskAgent(plan, nodeId, payload);
}

function isPort(plan: Plan, { payload }: { payload: { nodeId: string } }, port: string): boolean {
  return plan.sensitivePorts.get(payload.nodeId)?.has(port) === true;
}

/** Replaces one member; returns the same object if the member is unchanged. */
function withMember<T extends object>(values: T, member: keyof T, value: unknown): T {
  return values[member] === value ? values : { ...values, [member]: value };
}

/**
 * Masks the data of an interrupt: an approval shows what came in on the node's ports, and an agent's decision derives
 * from it.
 */
export function maskQuestion(plan: Plan, nodeId: string, data: JsonObject, digest: Digest): JsonObject {
  const { artifactData, decision } = data;
  if (decision !== undefined) return maskAgent(plan, nodeId, data);
  return isObject(artifactData)
    ? withMember(data, 'artifactData', maskOutputs(plan, nodeId, artifactData, digest))
    : data;
}

/** Masks the answer inside an event that carries one. */
function maskAnswered<T extends { readonly nodeId: string; readonly resumeValue?: unknown }>(
  plan: Plan,
  { payload }: { readonly payload: T },
  digest: Digest,
): T {
  return withMember(payload, 'resumeValue', maskAnswer(plan, payload.nodeId, payload.resumeValue, digest));
}

/** An answer becomes the node's outputs and is masked like them. */
function maskAnswer(plan: Plan, nodeId: string, value: unknown, digest: Digest): unknown {
  if (isObject(value)) return maskOutputs(plan, nodeId, value, digest);
  return plan.sensitivePorts.get(nodeId)?.has('output') ? maskValue(value, plan.maskingMode, digest) : value;
}

/** Masks the sensitive ports of one node's outputs. */
export function maskOutputs(plan: Plan, nodeId: string, outputs: JsonObject, digest: Digest): JsonObject {
  const ports = plan.sensitivePorts.get(nodeId);
  if (!ports) return outputs;
  const isShown = (port: string, value: unknown): boolean =>
    (typeof value === 'boolean' || value === null) && isComputed(plan, nodeId, port);
  return maskMembers(outputs, (port, value) => ports.has(port) && !isShown(port, value), plan.maskingMode, digest);
}

/** Whether a port is sensitive because it is computed. A yes or no is shown then: the path that the run takes shows it too. */
function isComputed(plan: Plan, nodeId: string, port: string): boolean {
  if (plan.sensitivePorts.get(nodeId) instanceof EveryPort) return true;
  const { node } = plan.node(nodeId) ?? {};
  return node?.outputSensitivity?.[port] !== true && own(node?.inputs, port)?.type === 'expression';
}

/** Masks the outputs of a run, which are grouped by node id. */
export function maskRunOutputs(plan: Plan, outputs: JsonObject, digest: Digest): JsonObject {
  return Object.fromEntries(
    Object.entries(outputs).map(([nodeId, values]) => [
      nodeId,
      isObject(values) ? maskOutputs(plan, nodeId, values, digest) : values,
    ]),
  );
}

/** Whether anything in this definition is ever masked; if not, events skip masking altogether. */
export function hasSensitiveParts(plan: Plan): boolean {
  return plan.sensitive.size > 0 || plan.sensitivePorts.size > 0;
}
