import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { MaskingMode } from '../../protocol/running/workflows.ts';
import type { Plan } from '../definition/plan.ts';

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

/** The payload that readers get. The log stores the unmasked payload separately, for the fold only. */
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

/** Payload members of agent events that may repeat what the agent was shown. */
const AGENT_CONTENT: readonly string[] = ['reasoning', 'delta', 'inputs', 'outcome', 'error', 'decision'];

/** An agent may rephrase whatever it received, so all its output is masked if any of its ports is sensitive. */
function maskAgent(plan: Plan, nodeId: string | undefined, payload: JsonObject): JsonObject {
  if (plan.maskingMode === 'passthrough' || !plan.sensitivePorts.has(nodeId ?? '')) return payload;
  const shown = Object.entries(payload).map(([name, value]) => [name, AGENT_CONTENT.includes(name) ? REDACTED : value]);
  return Object.fromEntries(shown);
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

/** An answer becomes the node's outputs and is masked like them. */
function maskAnswer(plan: Plan, nodeId: string, value: unknown, digest: Digest): unknown {
  if (isObject(value)) return maskOutputs(plan, nodeId, value, digest);
  return plan.sensitivePorts.get(nodeId)?.has('output') ? maskValue(value, plan.maskingMode, digest) : value;
}

/** Masks the sensitive ports of one node's outputs. */
export function maskOutputs(plan: Plan, nodeId: string, outputs: JsonObject, digest: Digest): JsonObject {
  const ports = plan.sensitivePorts.get(nodeId);
  if (!ports) return outputs;
  return maskMembers(outputs, (port) => ports.has(port), plan.maskingMode, digest);
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
