import { createHash, createHmac, randomBytes } from 'node:crypto';
import { digits } from '../../../system/ids.ts';
import type { LaneEvent } from './records.ts';

const SECRET_BYTES = 32;
const FINGERPRINT_CHARACTERS = 8;
const SEQUENCE_DIGITS = 6;
export const SIGNATURE_ALGORITHM = 'v1';

/** 64 hex characters; receivers use them as text. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('hex');
}

/** Enough of a secret to tell it from others, and of no use otherwise. */
export function fingerprintOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, FINGERPRINT_CHARACTERS);
}

/** Derived from what is delivered, so it is the same in every attempt, on every host. */
export function deliveryIdOf(webhookId: string, runId: string, sequence: number): string {
  return `dlv-${opaque(webhookId)}${opaque(runId)}${digits(sequence, SEQUENCE_DIGITS)}`;
}

function opaque(id: string): string {
  return id.slice(id.indexOf('-') + 1);
}

export interface Addressed {
  readonly webhookId: string;
  readonly scopeName: string;
  readonly secret: string;
  readonly runId: string;
  readonly deliveryId: string;
  readonly event: LaneEvent;
  /** When it is sent, not when it happened: receivers turn away what is old. */
  readonly sentAt: number;
  readonly agent: string;
}

/** The request that a receiver gets. The event goes out in the bytes that the log has. */
export function signedRequest(addressed: Addressed): {
  readonly headers: Record<string, string>;
  readonly body: string;
} {
  const { webhookId, scopeName, secret, runId, deliveryId, event, sentAt, agent } = addressed;
  const body = `{"type":${JSON.stringify(event.type)},"runId":${JSON.stringify(runId)},"workspaceId":${JSON.stringify(scopeName)},"event":${event.body}}`;
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
    headers: { 'Content-Type': 'application/json', 'User-Agent': agent, ...Object.fromEntries(named) },
    body,
  };
}
