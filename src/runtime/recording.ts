import type { Plan } from '../engine/definition/plan.ts';
import { type Digest, hasSensitiveParts, maskPayload } from '../engine/masking/mask.ts';
import type { RunFacts } from '../engine/run/run.ts';
import { ENVELOPE_NODE_ID_MAX, type NewEvent, type RunEvent } from '../protocol/running/events.ts';
import { EVENT_SCHEMA_VERSION } from '../protocol/running/runs.ts';
import type { StoredEvent } from '../store/log.ts';
import { digits } from '../system/ids.ts';
import { redactValue } from '../system/redaction.ts';

/** An event with its identity: as the fold takes it, and as it is kept. */
export interface Recorded {
  readonly event: RunEvent;
  readonly stored: StoredEvent;
}

/** What readers must not see and the fold must: the unmasked payload, a node id too long for the envelope. */
interface Hidden {
  readonly payload?: unknown;
  readonly nodeId?: string;
}

const SEQUENCE_DIGITS = 6;

/** Gives an event its place in the log. Encoded here, once: storage, streams and deliveries share these bytes. */
export function recordEvent(
  { plan, facts }: { readonly plan: Plan; readonly facts: RunFacts },
  newEvent: NewEvent,
  at: { readonly sequence: number; readonly time: number },
  digest: Digest,
): Recorded {
  // The one gate for text: whatever a caller, a node or a model put in here passes it before it is kept.
  const { payload, nodeId, causationId, type } = redactPayload(newEvent);
  const event = {
    eventId: eventIdOf(facts.runId, at.sequence),
    runId: facts.runId,
    sequence: at.sequence,
    type,
    payload,
    timestamp: new Date(at.time).toISOString(),
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(causationId === undefined ? {} : { causationId }),
    schemaVersion: EVENT_SCHEMA_VERSION,
    engineVersion: String(facts.engineVersion),
  } as RunEvent;
  const shown = hasSensitiveParts(plan) ? maskPayload(plan, { type, payload, nodeId } as NewEvent, digest) : payload;
  const fitsEnvelope = nodeId === undefined || nodeId.length <= ENVELOPE_NODE_ID_MAX;
  const isMasked = shown !== payload;
  const body =
    isMasked || !fitsEnvelope ? { ...event, payload: shown, nodeId: fitsEnvelope ? nodeId : undefined } : event;
  const hidden: Hidden = { ...(isMasked ? { payload } : {}), ...(fitsEnvelope ? {} : { nodeId }) };
  return {
    event,
    stored: {
      sequence: at.sequence,
      type,
      body: JSON.stringify(body),
      hidden: isMasked || !fitsEnvelope ? JSON.stringify(hidden) : null,
    },
  };
}

function redactPayload(event: NewEvent): NewEvent {
  const payload = redactValue(event.payload);
  return payload === event.payload ? event : ({ ...event, payload } as NewEvent);
}

/** Derived, so it needs no chance and sorts like the log: the run's id without its prefix, then the sequence. */
export function eventIdOf(runId: string, sequence: number): string {
  return `evt-${runId.slice(runId.indexOf('-') + 1)}${digits(sequence, SEQUENCE_DIGITS)}`;
}

/** The place in its log that an id of ours names. */
export function sequenceOf(eventId: string): number {
  return Number.parseInt(eventId.slice(-SEQUENCE_DIGITS), 36);
}

/** The event as the fold takes it. */
export function decodeEvent({ body, hidden }: StoredEvent): RunEvent {
  const event = JSON.parse(body) as RunEvent;
  return hidden === null ? event : ({ ...event, ...(JSON.parse(hidden) as Hidden) } as RunEvent);
}
