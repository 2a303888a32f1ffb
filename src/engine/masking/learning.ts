import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { Plan } from '../definition/plan.ts';
import { KnownValues } from './known-values.ts';
import { hasSensitiveParts, leaksThroughError } from './mask.ts';
import type { Ports } from './sensitivity.ts';

/** What a run knows to be sensitive before its first event; undefined if its definition marks nothing. */
export function knownAtStart(plan: Plan, variables: JsonObject, channels: ReadonlyMap<string, unknown>) {
  if (!hasSensitiveParts(plan) || plan.maskingMode === 'passthrough') return undefined;
  const known = new KnownValues();
  for (const name of plan.sensitive) {
    known.learn(variables[name]);
    known.learn(channels.get(name));
  }
  return known;
}

/** Tracks in a run what is sensitive in another one. */
export function learnValues(run: { known?: KnownValues }, values: KnownValues): void {
  run.known ??= new KnownValues();
  run.known.learnFrom(values);
}

/** Tracks the sensitive values that an event brings. It is given unmasked. */
export function learnFromEvent(plan: Plan, known: KnownValues, { type, payload }: Pick<NewEvent, 'type' | 'payload'>) {
  if (plan.maskingMode === 'passthrough') return;
  const values: JsonObject = payload;
  const ports = plan.sensitivePorts.get(String(values.nodeId));
  if (type === 'variable.changed' && plan.sensitive.has(String(values.name)))
    known.learn([values.previous, values.next]);
  else if (type === 'channel.written' && plan.sensitive.has(String(values.channel))) known.learn(values.value);
  else if (type === 'node.completed' && ports) learnPorts(known, ports, values.outputs);
  else if ((type === 'interrupt.resolved' || type === 'node.resumed') && ports) {
    learnPorts(known, ports, isObject(values.resumeValue) ? values.resumeValue : { output: values.resumeValue });
  } else if ((type === 'node.failed' || type === 'node.retried') && leaksThroughError(plan, values)) {
    const { message } = (values.error ?? values.lastError) as { message: string };
    known.learn(message);
  }
}

function learnPorts(known: KnownValues, ports: Ports, outputs: unknown): void {
  if (!isObject(outputs)) return;
  for (const [port, value] of Object.entries(outputs)) if (ports.has(port)) known.learn(value);
}

/**
 * Members of payloads that name parts of the workflow or are words of the protocol. They are never masked: an event must
 * stay readable when a sensitive value happens to be the same word.
 */
const STRUCTURE: ReadonlySet<string> = new Set([
  ...['nodeId', 'typeId', 'runId', 'workflowId', 'childRunId', 'childWorkflowId', 'parentRunId', 'workerId'],
  ...['interruptId', 'eventId', 'artifactId', 'artifactType', 'agentId', 'callId', 'toolId', 'goalId', 'proposalId'],
  ...['kind', 'key', 'phase', 'status', 'type', 'transport', 'owner', 'engineVersion', 'version', 'level', 'mode'],
  ...['channel', 'reducer', 'writtenAt', 'provider', 'model', 'hash', 'variableHashes', 'refs', 'contentTrust', 'code'],
]);

/** Masks what is known to be sensitive in the payload that readers get; the same object if there is nothing. */
export function maskKnown(known: KnownValues, payload: JsonObject): JsonObject {
  let isChanged = false;
  const shown = Object.entries(payload).map(([member, value]) => {
    const masked = STRUCTURE.has(member) ? value : maskMember(known, member, value);
    isChanged ||= masked !== value;
    return [member, masked];
  });
  return isChanged ? Object.fromEntries(shown) : payload;
}

/** An error keeps its code; outputs keep the names of their nodes and ports. */
function maskMember(known: KnownValues, member: string, value: unknown): unknown {
  if ((member === 'error' || member === 'lastError') && isObject(value)) return maskKnown(known, value);
  if (member === 'name' && typeof value === 'string') return value;
  return known.mask(value);
}
