import type { Plan } from '../engine/definition/plan.ts';
import { KnownValues } from '../engine/masking/known-values.ts';
import { learnFromEvent, maskKnown } from '../engine/masking/learning.ts';
import { type Digest, hasSensitiveParts, maskPayload } from '../engine/masking/mask.ts';
import { apply } from '../engine/run/fold.ts';
import type { Run, RunFacts } from '../engine/run/run.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { ENVELOPE_NODE_ID_MAX, type NewEvent, type RunEvent } from '../protocol/running/events.ts';
import { EVENT_SCHEMA_VERSION } from '../protocol/running/runs.ts';
import type { EventEnds } from '../store/event-ends.ts';
import type { StoredEvent } from '../store/log.ts';
import { nextLogDigest } from '../store/log-digest.ts';
import { digits } from '../system/ids.ts';
import { isoTime } from '../system/iso-time.ts';
import { redactValue } from '../system/redaction.ts';
import { traitsOf } from './event-traits.ts';

/** An event with its id and sequence, in two forms: complete for the fold, and encoded for storage and readers. */
export interface Recorded {
  readonly event: RunEvent;
  readonly stored: StoredEvent;
}

/** The parts of an event that only the fold gets: the unmasked payload, and a node id too long for the envelope. */
interface Hidden {
  readonly payload?: unknown;
  readonly nodeId?: string;
}

const SEQUENCE_DIGITS = 6;

/** Redacts, masks and encodes a new event. It is encoded once: storage, streams and deliveries use the same text. */
export function recordEvent(
  { plan, facts, known }: { readonly plan: Plan; readonly facts: RunFacts; readonly known?: KnownValues },
  newEvent: NewEvent,
  at: { readonly sequence: number; readonly time: number },
  digest: Digest,
): Recorded {
  // Every event passes here before it is stored, so this is the one place that redacts secrets in payloads.
  const { payload, nodeId, causationId, contentTrust, type } = redactPayload(newEvent);
  const event = {
    eventId: eventIdOf(facts.runId, at.sequence),
    runId: facts.runId,
    sequence: at.sequence,
    type,
    payload,
    timestamp: isoTime(at.time),
    // All events have the same members, though some are undefined: the text lacks those, and V8 handles one form best.
    nodeId,
    causationId,
    contentTrust,
    schemaVersion: EVENT_SCHEMA_VERSION,
    engineVersion: String(facts.engineVersion),
  } as RunEvent;
  const byPlace = hasSensitiveParts(plan) ? maskPayload(plan, { type, payload, nodeId } as NewEvent, digest) : payload;
  if (known) learnFromEvent(plan, known, event);
  const visible = known ? maskKnown(known, byPlace as JsonObject) : byPlace;
  const fitsEnvelope = nodeId === undefined || nodeId.length <= ENVELOPE_NODE_ID_MAX;
  const isMasked = visible !== payload;
  const { sequence } = at;
  if (!isMasked && fitsEnvelope)
    return { event, stored: { sequence, type, body: JSON.stringify(event), hidden: null } };
  const body = { ...event, payload: visible, nodeId: fitsEnvelope ? nodeId : undefined };
  const hidden: Hidden = { ...(isMasked ? { payload } : {}), ...(fitsEnvelope ? {} : { nodeId }) };
  return { event, stored: { sequence, type, body: JSON.stringify(body), hidden: JSON.stringify(hidden) } };
}

function redactPayload(event: NewEvent): NewEvent {
  const payload = redactValue(event.payload);
  return payload === event.payload ? event : ({ ...event, payload } as NewEvent);
}

/** The id of an event: its run's id without the prefix, then the sequence, so that ids sort in log order. */
export function eventIdOf(runId: string, sequence: number): string {
  return `evt-${runId.slice(runId.indexOf('-') + 1)}${digits(sequence, SEQUENCE_DIGITS)}`;
}

/** The sequence that is encoded in an event id of this host. */
export function sequenceOf(eventId: string): number {
  return Number.parseInt(eventId.slice(-SEQUENCE_DIGITS), 36);
}

/** Whether a text is the id of an event of this run. */
export function isEventIdOf(runId: string, text: string): boolean {
  return text.startsWith(eventIdOf(runId, 0).slice(0, -SEQUENCE_DIGITS)) && eventIdOf(runId, sequenceOf(text)) === text;
}

/**
 * Decodes a stored event for the fold. What its text masks is sensitive, even if the definition does not say so: it may
 * have come from a child run.
 */
export function learnStored(run: Pick<Run, 'known'>, stored: StoredEvent): RunEvent {
  const event = decodeEvent(stored);
  if (stored.hidden !== null && traitsOf(stored.type).bringsValues) {
    run.known ??= new KnownValues();
    run.known.learnMasked(event.payload, (JSON.parse(stored.body) as RunEvent).payload);
  }
  return event;
}

/** Applies a stored event to a run. */
export function applyStored(run: Run, stored: StoredEvent): void {
  apply(run, learnStored(run, stored));
  countStored(run, stored);
}

/** Adds a stored event to the length and the digest of the run's log. */
export function countStored(run: Run, stored: StoredEvent): void {
  run.logCharacters += stored.body.length + (stored.hidden?.length ?? 0);
  run.logDigest = nextLogDigest(run.logDigest, stored);
}

/** Decodes a stored event for the fold, with its hidden parts; never show the result to a caller. */
export function decodeEvent({ body, hidden }: StoredEvent): RunEvent {
  const event = JSON.parse(body) as RunEvent;
  return hidden === null ? event : ({ ...event, ...(JSON.parse(hidden) as Hidden) } as RunEvent);
}

/** The end of a hidden part that has a node id, which is its last member. */
const HIDDEN_NODE_ID = /"nodeId":("(?:[^"\\]|\\.)*")\}$/;

/**
 * Reads when an event happened and at which node from the ends of its texts: `recordEvent` writes both after the
 * payload, which may be large. Undefined if the ends are too short for that.
 */
export function decodeEventEnd({
  body_end: bodyEnd,
  hidden_end: hiddenEnd,
}: Pick<EventEnds, 'body_end' | 'hidden_end'>): { readonly timestamp: string; readonly nodeId: string } | undefined {
  // Quotes within strings are escaped, so this is a member; the last such member is that of the envelope.
  const from = bodyEnd.lastIndexOf(',"timestamp":"');
  if (from < 0) return undefined;
  const { timestamp, nodeId = nodeIdAt(hiddenEnd) } = JSON.parse(`{${bodyEnd.slice(from + 1)}`) as Partial<RunEvent>;
  return timestamp === undefined || nodeId === undefined ? undefined : { timestamp, nodeId };
}

function nodeIdAt(hiddenEnd: string | null): string | undefined {
  const [, text] = (hiddenEnd && HIDDEN_NODE_ID.exec(hiddenEnd)) || [];
  return text === undefined ? undefined : (JSON.parse(text) as string);
}
