import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { isObject } from '../../../protocol/format/json.ts';

/** What a token allows: to see one interrupt, or to see and answer it. */
export interface TokenClaims {
  readonly runId: string;
  readonly nodeId: string;
  readonly interruptId: string;
  readonly expiresAt: number;
  readonly intent: 'resolve' | 'inspect';
}

/** A key that signs tokens. */
export interface TokenKey {
  readonly keyId: string;
  readonly secret: string;
}

const TOKEN_CHARACTERS_MAX = 8_192;
const SECRET_BYTES = 32;

/** A random secret for a new key. */
export function newTokenSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** A token: the claims as base64url JSON, a dot, and the MAC of that text. It is a bearer credential. */
export function mintToken(claims: TokenClaims, key: TokenKey): string {
  const body = Buffer.from(JSON.stringify({ ...claims, kid: key.keyId })).toString('base64url');
  return `${body}.${macOf(body, key)}`;
}

/** The claims of a token that one of the keys signed. Callers do not learn why a token is invalid. */
export function readToken(token: string, keys: readonly TokenKey[]): TokenClaims | undefined {
  if (token.length > TOKEN_CHARACTERS_MAX) return undefined;
  const [body = '', mac = '', ...rest] = token.split('.');
  const claims = rest.length === 0 ? decode(body) : undefined;
  const key = keys.find(({ keyId }) => keyId === claims?.kid);
  if (!claims || !key || !isSame(mac, macOf(body, key))) return undefined;
  return claims as TokenClaims;
}

function decode(body: string): Partial<TokenClaims & { readonly kid: string }> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}

function macOf(body: string, { secret }: TokenKey): string {
  return createHmac('sha256', secret).update(body).digest('base64url');
}

function isSame(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
