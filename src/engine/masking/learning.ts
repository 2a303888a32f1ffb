import { isObject, type JsonObject } from '../../protocol/format/json.ts';
import { eventRows } from '../../protocol/running/event-rows.ts';
import type { EventPayload, EventType, NewEvent } from '../../protocol/running/events.ts';
import type { Plan } from '../definition/plan.ts';
import { KnownValues } from './known-values.ts';
import { hasSensitiveParts, leaksThroughError } from './mask.ts';

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
  if (plan.maskingMode !== 'passthrough') lessonOf(type)?.(plan, known, payload);
}

type Lesson<T extends EventType> = (plan: Plan, known: KnownValues, payload: EventPayload<T>) => void;

const learnAnswer: Lesson<'interrupt.resolved' | 'node.resumed'> = (plan, known, { nodeId, resumeValue }) =>
  learnPorts(plan, known, nodeId, isObject(resumeValue) ? resumeValue : { output: resumeValue });

/** The events that bring values from outside the log, and what is sensitive in each. */
const LESSONS: { readonly [T in EventType]?: Lesson<T> } = {
  'variable.changed': (plan, known, { name, previous, next }) => {
    if (plan.sensitive.has(name)) known.learn([previous, next]);
  },
  'channel.written': (plan, known, { channel, value }) => {
    if (plan.sensitive.has(channel)) known.learn(value);
  },
  'node.completed': (plan, known, { nodeId, outputs }) => learnPorts(plan, known, nodeId, outputs),
  'interrupt.resolved': learnAnswer,
  'node.resumed': learnAnswer,
  'node.failed': learnError,
  'node.retried': learnError,
};
const lessonOf = eventRows<Lesson<EventType>>(LESSONS);

function learnPorts(plan: Plan, known: KnownValues, nodeId: string | undefined, outputs: unknown): void {
  const ports = nodeId === undefined ? undefined : plan.sensitivePorts.get(nodeId);
  if (!ports || !isObject(outputs)) return;
  for (const [port, value] of Object.entries(outputs)) if (ports.has(port)) known.learn(value);
}

function learnError(plan: Plan, known: KnownValues, payload: EventPayload<'node.failed' | 'node.retried'>): void {
  const error = 'error' in payload ? payload.error : payload.lastError;
  if (leaksThroughError(plan, payload)) known.learn(error.message);
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
