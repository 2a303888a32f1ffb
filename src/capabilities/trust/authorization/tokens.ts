import { decodeJwt, errors, type JWTPayload, jwtVerify } from 'jose';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { Caller } from '../../request.ts';
import { callerOfClaims } from './claims.ts';
import { type Issuer, type IssuerSystem, IssuerUnavailable } from './issuer.ts';
import type { OidcSettings } from './settings.ts';

/** Asymmetric algorithms only: with a shared secret, whoever can verify could also sign. */
export const ALGORITHMS = [
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

/** Accepted `typ` headers. Other tokens of the same issuer, such as logout tokens, are not access tokens. */
const TYPES: readonly unknown[] = [undefined, 'jwt', 'at+jwt', 'application/at+jwt'];

/** Whether a credential has the form of a JWT. Keys that this host generates have no dots. */
export function looksLikeToken(text: string): boolean {
  return /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text);
}

/** Verifies tokens of the configured issuer. A token that cannot be verified, for whatever reason, is refused. */
export function tokenVerifier(
  settings: OidcSettings,
  system: Pick<IssuerSystem, 'clock' | 'log'>,
  keys: Pick<Issuer, 'find'>,
): (token: string) => Promise<Caller | Refusal> {
  return async (token) => {
    try {
      return callerOfClaims(await verified(token), settings) ?? invalid('claims');
    } catch (error) {
      if (error instanceof IssuerUnavailable) return unavailable(error);
      return error instanceof errors.JWTExpired ? EXPIRED : invalid(reasonOf(error));
    }
  };

  async function verified(token: string): Promise<JWTPayload> {
    const { issuer, audience, clockSkewS } = settings;
    const now = system.clock.now();
    // Checked before the signature, so that tokens of other issuers do not cause fetches of this issuer's keys.
    if (decodeJwt(token).iss !== issuer) throw claimError('iss');
    const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
      algorithms: ALGORITHMS,
      issuer,
      audience,
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: clockSkewS,
      currentDate: new Date(now),
    });
    if (!TYPES.includes(protectedHeader.typ?.toLowerCase())) throw claimError('typ');
    if (payload.iat! > now / 1_000 + clockSkewS) throw claimError('iat');
    return payload;
  }

  function invalid(reason: string): Refusal {
    system.log.debug({ issuer: settings.issuer, reason }, 'a token was refused');
    return INVALID;
  }
}

const INVALID = refuse('unauthenticated', 'This token is not valid. Get a new token from the configured issuer.');
const EXPIRED = refuse('unauthenticated', 'This token has expired. Get a new one.');

function claimError(claim: string): Error {
  return new errors.JWTClaimValidationFailed(`unexpected ${claim}`, {}, claim, 'check_failed');
}

/** Which check failed, without any content of the token. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) return error.claim;
  return error instanceof errors.JOSEError ? error.code : (error as Error).message;
}

function unavailable({ retryAfterMs }: IssuerUnavailable): Refusal {
  const retryAfter = Math.max(1, Math.ceil(retryAfterMs / 1_000));
  return {
    ...refuse(
      'service_unavailable',
      'Tokens cannot be verified, because the key set of the issuer could not be fetched. Try again.',
      { retryAfter },
    ),
    headers: { 'Retry-After': String(retryAfter) },
  };
}
