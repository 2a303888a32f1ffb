import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
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
  const mode = plan.maskingMode;
  switch (event.type) {
    case 'variable.changed':
      return plan.sensitive.has(event.payload.name)
        ? maskMembers(event.payload, (member) => member === 'previous' || member === 'next', mode, digest)
        : event.payload;
    case 'channel.written':
      return plan.sensitive.has(event.payload.channel)
        ? { ...event.payload, value: maskValue(event.payload.value, mode, digest) ?? null }
        : event.payload;
    case 'node.completed':
      return event.payload.outputs
        ? { ...event.payload, outputs: maskOutputs(plan, event.payload.nodeId, event.payload.outputs, digest) }
        : event.payload;
    case 'run.completed':
      return event.payload.outputs
        ? { ...event.payload, outputs: maskRunOutputs(plan, event.payload.outputs, digest) }
        : event.payload;
    case 'interrupt.requested':
      return withMember(event.payload, 'data', maskQuestion(plan, event.nodeId ?? '', event.payload.data, digest));
    case 'interrupt.resolved':
    case 'node.resumed': {
      const { nodeId, resumeValue } = event.payload;
      return withMember(event.payload, 'resumeValue', maskAnswer(plan, nodeId, resumeValue, digest));
    }
    case 'approval.received':
      return maskMembers(event.payload, (member) => member === EDITED && isPort(plan, event, member), mode, digest);
    case 'clarification.resolved': {
      const { answers } = event.payload;
      const shown = isPort(plan, event, 'answers') ? maskMembers(answers, () => true, mode, digest) : answers;
      return withMember(event.payload, 'answers', shown);
    }
    case 'agent.reasoned':
    case 'agent.reasoning.delta':
    case 'agent.toolCalled':
    case 'agent.toolReturned':
    case 'agent.decided':
      return maskAgent(plan, event.nodeId, event.payload);
    default:
      return event.payload;
  }
}

/** What an agent says that was shown something sensitive. */
const AGENT_CONTENT: readonly string[] = ['reasoning', 'delta', 'inputs', 'outcome', 'error', 'decision'];

/** An agent may say again what came in on any port, and in its own words. */
function maskAgent(plan: Plan, nodeId: string | undefined, payload: JsonObject): JsonObject {
  if (plan.maskingMode === 'passthrough' || !plan.sensitivePorts.has(nodeId ?? '')) return payload;
  const shown = Object.entries(payload).map(([name, value]) => [name, AGENT_CONTENT.includes(name) ? REDACTED : value]);
  return Object.fromEntries(shown);
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
