import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { TraceHeaders } from '../../../protocol/format/trace.ts';
import { digits } from '../../../system/ids.ts';
import type { DeliverableEvent } from './records.ts';

const SECRET_BYTES = 32;
const FINGERPRINT_CHARACTERS = 8;
const SEQUENCE_DIGITS = 6;
/** The version of the signature scheme, as discovery and deliveries name it. */
export const SIGNATURE_ALGORITHM = 'v1';

/** A new signing secret: 64 hex characters, which receivers use as text. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('hex');
}

/** The beginning of the secret's hash, by which secrets can be told apart. */
export function fingerprintOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, FINGERPRINT_CHARACTERS);
}

/** The id of a delivery. It is derived from what is delivered, so it is the same in every attempt and on every host. */
export function deliveryIdOf(webhookId: string, runId: string, sequence: number): string {
  return `dlv-${opaque(webhookId)}${opaque(runId)}${digits(sequence, SEQUENCE_DIGITS)}`;
}

function opaque(id: string): string {
  return id.slice(id.indexOf('-') + 1);
}

/** How the receiver of a callback can answer an interrupt, without other credentials. */
export interface AnswerAddress {
  readonly interruptToken: string;
  readonly callbackUrl: string;
}

/** An event to be delivered to a webhook. */
interface OutgoingEvent {
  readonly webhookId: string;
  readonly scopeName: string;
  readonly secret: string;
  readonly runId: string;
  readonly deliveryId: string;
  readonly event: DeliverableEvent;
  readonly answer?: AnswerAddress | undefined;
  readonly trace?: TraceHeaders | undefined;
  /** When it is sent, not when it happened: receivers reject old timestamps. */
  readonly sentAt: number;
  readonly agent: string;
}

/** The signed request. The event is sent in the bytes that the log has. */
export function signedRequest(outgoing: OutgoingEvent): {
  readonly headers: Record<string, string>;
  readonly body: string;
} {
  const { webhookId, scopeName, secret, runId, deliveryId, event, answer, trace, sentAt, agent } = outgoing;
  const about = JSON.stringify({
    type: event.type,
    runId,
    workspaceId: scopeName,
    ...(answer ? { interrupt: answer } : {}),
  });
  const body = `${about.slice(0, -1)},"event":${event.body}}`;
  const timestamp = String(Math.floor(sentAt / 1_000));
  const mac = createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
  const signed = {
    'Webhook-Id': webhookId,
    'Event-Type': event.type,
    Timestamp: timestamp,
    Signature: `sha256=${mac}`,
    'Signature-Algorithm': SIGNATURE_ALGORITHM,
    'Delivery-Id': deliveryId,
  };
  const named = Object.entries(signed).flatMap(([name, value]) => [
    [`X-openwop-${name}`, value],
    [`OpenWOP-${name}`, value],
  ]);
  return {
    headers: { 'Content-Type': 'application/json', 'User-Agent': agent, ...trace, ...Object.fromEntries(named) },
    body,
  };
}
