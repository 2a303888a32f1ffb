import { createHmac, timingSafeEqual } from 'node:crypto';
import type { HmacConfig, WebhookTriggerConfig } from '../../../protocol/starting/triggers.ts';

/** A request as it was sent. */
interface SentRequest {
  header(name: string): string | undefined;
  readonly bytes: Uint8Array;
}

/** What a request is checked against. */
interface Verification {
  readonly config: Pick<WebhookTriggerConfig, 'scheme' | 'hmac' | 'toleranceSeconds'>;
  readonly secrets: readonly string[];
  readonly now: number;
}

/** How old, or how far ahead, a signed time may be. */
const TOLERANCE_S = 300;
/** Signatures that one header may carry: senders add one for each secret that is valid at the time. */
const SIGNATURES_MAX = 8;
const HMAC_DEFAULTS = { algorithm: 'sha256', encoding: 'hex', prefix: '' } as const;

/** What a scheme finds in a request: the signatures, what they must sign, and when that was, if the sender says so. */
interface Claim {
  readonly signatures: readonly string[];
  readonly signed: readonly (string | Uint8Array)[];
  readonly algorithm: 'sha256' | 'sha512';
  readonly encoding: 'hex' | 'base64';
  /** Epoch seconds as they were sent; undefined where the scheme signs no time. */
  readonly time?: string | undefined;
}

/** Whether a request was signed with one of the secrets, lately enough. The bytes of the body count, not their meaning. */
export function isSigned(request: SentRequest, { config, secrets, now }: Verification): boolean {
  if (config.scheme === 'path') return true;
  const claim = claimOf(request, config);
  if (!claim || (claim.time !== undefined && !isRecent(claim.time, config.toleranceSeconds ?? TOLERANCE_S, now))) {
    return false;
  }
  const { algorithm, encoding, signed } = claim;
  const given = claim.signatures.slice(0, SIGNATURES_MAX).map((text) => decoded(text, encoding));
  // Every pair is compared, so that the time does not tell which secret, or which signature, was the right one.
  let isRight = false;
  for (const secret of secrets) {
    const hmac = createHmac(algorithm, secret);
    for (const part of signed) hmac.update(part);
    const expected = hmac.digest();
    for (const each of given) isRight = (each.length === expected.length && timingSafeEqual(each, expected)) || isRight;
  }
  return isRight;
}

/** Headers that carry signatures; expressions do not get to see them. */
export function signatureHeaders({ hmac }: Pick<WebhookTriggerConfig, 'hmac'>): readonly string[] {
  return [
    'x-hub-signature',
    'x-hub-signature-256',
    'stripe-signature',
    'x-slack-signature',
    ...(hmac ? [hmac.header.toLowerCase()] : []),
  ];
}

function claimOf(request: SentRequest, { scheme, hmac }: Verification['config']): Claim | undefined {
  if (scheme === 'github') return ofGitHub(request);
  if (scheme === 'stripe') return ofStripe(request);
  if (scheme === 'slack') return ofSlack(request);
  return hmac && ofOthers(request, hmac);
}

function ofGitHub({ header, bytes }: SentRequest): Claim | undefined {
  const signature = after('sha256=', header('x-hub-signature-256'));
  return signature === undefined ? undefined : claim([signature], [bytes]);
}

/** `t=1614556800,v1=…,v1=…`: there are two signatures while Stripe rolls a secret. */
function ofStripe({ header, bytes }: SentRequest): Claim | undefined {
  const parts = (header('stripe-signature') ?? '').split(',').map((part) => part.trim());
  const [time] = parts.flatMap((part) => after('t=', part) ?? []);
  const signatures = parts.flatMap((part) => after('v1=', part) ?? []);
  return time === undefined ? undefined : { ...claim(signatures, [`${time}.`, bytes]), time };
}

function ofSlack({ header, bytes }: SentRequest): Claim | undefined {
  const time = header('x-slack-request-timestamp');
  const signature = after('v0=', header('x-slack-signature'));
  if (time === undefined || signature === undefined) return undefined;
  return { ...claim([signature], [`v0:${time}:`, bytes]), time };
}

function ofOthers({ header, bytes }: SentRequest, config: HmacConfig): Claim | undefined {
  const { algorithm, encoding, prefix, timestampHeader } = { ...HMAC_DEFAULTS, ...config };
  const signature = after(prefix, header(config.header.toLowerCase()));
  const time = timestampHeader === undefined ? undefined : header(timestampHeader.toLowerCase());
  if (signature === undefined || (timestampHeader !== undefined && time === undefined)) return undefined;
  const signed = time === undefined ? [bytes] : [`${time}.`, bytes];
  return { ...claim([signature], signed), algorithm, encoding, time };
}

function claim(signatures: Claim['signatures'], signed: Claim['signed']): Claim {
  return { signatures, signed, algorithm: HMAC_DEFAULTS.algorithm, encoding: HMAC_DEFAULTS.encoding };
}

function isRecent(time: string, toleranceSeconds: number, now: number): boolean {
  return /^\d{1,12}$/.test(time) && Math.abs(now - Number(time) * 1_000) <= toleranceSeconds * 1_000;
}

function after(prefix: string, text: string | undefined): string | undefined {
  return text?.startsWith(prefix) ? text.slice(prefix.length) : undefined;
}

function decoded(text: string, encoding: Claim['encoding']): Buffer {
  return Buffer.from(text, encoding);
}
