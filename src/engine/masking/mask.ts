import { isObject, type JsonObject, own } from '../../protocol/format/json.ts';
import type { EventPayload, EventType, NewEvent } from '../../protocol/running/events.ts';
import type { MaskingMode } from '../../protocol/running/workflows.ts';
import type { Plan } from '../definition/plan.ts';

/** A hex digest of a text; handed in because hashing belongs to the machine. */
export type Digest = (text: string) => string;

export const REDACTED = '[REDACTED]';
/** What an approver made of the artifact. */
const EDITED = 'editedArtifactData';

/** What others get to see of a value that the definition marks as sensitive. `undefined` leaves it out. */
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

/** An object with the members that `isSensitive` names masked; the same object when there are none. */
export function maskMembers(
  values: JsonObject,
  isSensitive: (name: string) => boolean,
  mode: MaskingMode,
  digest: Digest,
): JsonObject {
  if (mode === 'passthrough' || !Object.keys(values).some(isSensitive)) return values;
  const masked = Object.entries(values).map(([name, value]) => [
    name,
    isSensitive(name) ? maskValue(value, mode, digest) : value,
  ]);
  return Object.fromEntries(masked.filter(([, value]) => value !== undefined));
}

/** The payload that readers get. The log keeps the real one beside it, for the fold alone. */
export function maskPayload(plan: Plan, event: NewEvent, digest: Digest): unknown {
  // A fork may copy types that a newer host wrote and this one does not know.
  const mask = own(MASKS as Record<string, unknown>, event.type) as Mask<EventType> | undefined;
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
  'node.failed': unmasked,
  'node.retried': unmasked,
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
  'output.chunk': unmasked,
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
  'agent.invocation.completed': unmasked,
  'proposal.created': unmasked,
  'proposal.activated': unmasked,
  'goal.evaluated': unmasked,
  'goal.closed': unmasked,
  'commitment.fired': unmasked,
  'cap.breached': unmasked,
  'replay.diverged': unmasked,
  'workflow.loopback-limit': unmasked,
  'capstan.child.changed': unmasked,
  'capstan.pause.requested': unmasked,
};

/** What an agent says that was shown something sensitive. */
const AGENT_CONTENT: readonly string[] = ['reasoning', 'delta', 'inputs', 'outcome', 'error', 'decision'];

/** An agent may say again what came in on any port, and in its own words. */
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

/** The same object where the member is what it was. */
function withMember<T extends object>(values: T, member: keyof T, value: unknown): T {
  return values[member] === value ? values : { ...values, [member]: value };
}

/** What an approval shows came in on the ports of its node, and what an agent decided came of them. */
export function maskQuestion(plan: Plan, nodeId: string, data: JsonObject, digest: Digest): JsonObject {
  const { artifactData, decision } = data;
  if (decision !== undefined) return maskAgent(plan, nodeId, data);
  return isObject(artifactData)
    ? withMember(data, 'artifactData', maskOutputs(plan, nodeId, artifactData, digest))
    : data;
}

function maskAnswered<T extends { readonly nodeId: string; readonly resumeValue?: unknown }>(
  plan: Plan,
  { payload }: { readonly payload: T },
  digest: Digest,
): T {
  return withMember(payload, 'resumeValue', maskAnswer(plan, payload.nodeId, payload.resumeValue, digest));
}

/** What somebody answered becomes the outputs of the node. */
function maskAnswer(plan: Plan, nodeId: string, value: unknown, digest: Digest): unknown {
  if (isObject(value)) return maskOutputs(plan, nodeId, value, digest);
  return plan.sensitivePorts.get(nodeId)?.has('output') ? maskValue(value, plan.maskingMode, digest) : value;
}

export function maskOutputs(plan: Plan, nodeId: string, outputs: JsonObject, digest: Digest): JsonObject {
  const ports = plan.sensitivePorts.get(nodeId);
  if (!ports) return outputs;
  return maskMembers(outputs, (port) => ports.has(port), plan.maskingMode, digest);
}

export function maskRunOutputs(plan: Plan, outputs: JsonObject, digest: Digest): JsonObject {
  return Object.fromEntries(
    Object.entries(outputs).map(([nodeId, values]) => [
      nodeId,
      isObject(values) ? maskOutputs(plan, nodeId, values, digest) : values,
    ]),
  );
}

/** Whether anything in this definition is ever masked, so that most events need no second look. */
export function hasSensitiveParts(plan: Plan): boolean {
  return plan.sensitive.size > 0 || plan.sensitivePorts.size > 0;
}
