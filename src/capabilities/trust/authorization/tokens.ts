import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { Caller } from '../../request.ts';
import { callerOfClaims } from './claims.ts';
import { IssuerKeys, type IssuerSystem, KeysUnavailable } from './issuer-keys.ts';
import type { OidcSettings } from './settings.ts';

/** Whoever can check a signature must not be able to make one: no shared secrets, and never no signature at all. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

/** Other types of tokens, such as those that end a session, say something else about the same person. */
const TYPES: readonly unknown[] = [undefined, 'jwt', 'at+jwt', 'application/at+jwt'];

/** Three parts with dots between them. Keys that this host makes have none. */
export function looksLikeToken(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** Tells who bears a token of the configured issuer. Nobody gets in whose token cannot be verified, for whatever reason. */
export function tokenVerifier(
  settings: OidcSettings,
  system: IssuerSystem,
): (token: string) => Promise<Caller | Refusal> {
  const keys = new IssuerKeys(settings, system);
  return async (token) => {
    try {
      return callerOfClaims(await verified(token), settings) ?? invalid('claims');
    } catch (error) {
      if (error instanceof KeysUnavailable) return unavailable(error);
      return error instanceof errors.JWTExpired ? EXPIRED : invalid(reasonOf(error));
    }
  };

  async function verified(token: string): Promise<JWTPayload> {
    const { issuer, audience, clockSkewS } = settings;
    const now = system.clock.now();
    // Before any signature, and only to save the issuer from questions about tokens of others.
    if (decodeJwt(token).iss !== issuer) throw misfit('iss');
    const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
      algorithms: ALGORITHMS,
      issuer,
      audience,
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: clockSkewS,
      currentDate: new Date(now),
    });
    if (!TYPES.includes(protectedHeader.typ?.toLowerCase())) throw misfit('typ');
    if (payload.iat! > now / 1_000 + clockSkewS) throw misfit('iat');
    return payload;
  }

  function invalid(reason: string): Refusal {
    system.log.debug({ issuer: settings.issuer, reason }, 'a token was refused');
    return INVALID;
  }
}

const INVALID = refuse('unauthenticated', 'This token is not valid here.');
const EXPIRED = refuse('unauthenticated', 'This token has expired.');

function misfit(claim: string): Error {
  return new errors.JWTClaimValidationFailed(`unexpected ${claim}`, {}, claim, 'check_failed');
}

/** Which check failed, in words that are ours or the library's: nothing of the token. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) return error.claim;
  return error instanceof errors.JOSEError ? error.code : (error as Error).message;
}

function unavailable({ retryAfterMs }: KeysUnavailable): Refusal {
  const retryAfter = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  return {
    ...refuse('service_unavailable', 'Tokens cannot be verified now. Try again in a moment.', { retryAfter }),
    headers: { 'Retry-After': String(retryAfter) },
  };
}
