import { createHash, randomBytes } from 'node:crypto';
import { jwtVerify } from 'jose';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { SignIn, SignInSecret } from './door.ts';
import { type Issuer, type IssuerSystem, IssuerUnavailable, readFromIssuer } from './issuer.ts';
import type { OidcSettings } from './settings.ts';
import { ALGORITHMS } from './tokens.ts';

const SECRET_BYTES = 32;

const UNAVAILABLE = refuse(
  'service_unavailable',
  'The identity provider is not available or sent an unexpected response. Try again.',
);
const NOT_SIGNED_IN = refuse('unauthenticated', 'The identity provider did not confirm the sign-in. Try again.');

/** The client that the host is at the issuer. */
export type SignInSettings = OidcSettings & { readonly signIn: NonNullable<OidcSettings['signIn']> };

/**
 * Signs people in at the issuer: authorization code with PKCE. `state` ties the answer to the browser that asked, and
 * `nonce` ties the token to the question.
 */
export class OidcSignIn implements SignIn {
  readonly #settings: SignInSettings;
  readonly #system: IssuerSystem;
  readonly #issuer: Pick<Issuer, 'find' | 'endpoint'>;

  constructor(settings: SignInSettings, system: IssuerSystem, issuer: Pick<Issuer, 'find' | 'endpoint'>) {
    this.#settings = settings;
    this.#system = system;
    this.#issuer = issuer;
  }

  get issuer(): string {
    return this.#settings.issuer;
  }

  async begin(redirectUri: string): Promise<{ readonly url: string; readonly secret: SignInSecret } | Refusal> {
    const endpoint = await this.#endpoint('authorization_endpoint');
    if (endpoint === undefined) return UNAVAILABLE;
    const [state, nonce, verifier] = [random(), random(), random()];
    const { clientId, scopes } = this.#settings.signIn;
    const url = new URL(endpoint);
    const parameters = {
      response_type: 'code',
      client_id: clientId,
      redirect_uri: redirectUri,
      scope: scopes,
      // Some issuers make tokens for an API only if they are told which.
      audience: this.#settings.audience,
      state,
      nonce,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { url: url.href, secret: { state, nonce, verifier } };
  }

  async finish(redirectUri: string, code: string, secret: SignInSecret): Promise<readonly string[] | Refusal> {
    const endpoint = await this.#endpoint('token_endpoint');
    if (endpoint === undefined) return UNAVAILABLE;
    try {
      const { id_token, access_token } = await this.#exchange(endpoint, redirectUri, code, secret.verifier);
      if (typeof id_token !== 'string' || !(await this.#isAnswer(id_token, secret.nonce))) return NOT_SIGNED_IN;
      return [access_token, id_token].filter((token) => typeof token === 'string');
    } catch (error) {
      this.#system.log.warn({ issuer: this.issuer, err: error }, 'a sign-in at the issuer failed');
      return NOT_SIGNED_IN;
    }
  }

  async #exchange(endpoint: string, redirectUri: string, code: string, verifier: string) {
    const { clientId, clientSecret } = this.#settings.signIn;
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: redirectUri,
      client_id: clientId,
      code_verifier: verifier,
      ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
    });
    return readFromIssuer(this.#system, endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: body.toString(),
    });
  }

  /** Whether the token is the issuer's answer to this question, for this client. */
  async #isAnswer(token: string, nonce: string): Promise<boolean> {
    const { issuer, clockSkewS, signIn } = this.#settings;
    const { payload } = await jwtVerify(token, this.#issuer.find, {
      algorithms: ALGORITHMS,
      issuer,
      audience: signIn.clientId,
      requiredClaims: ['exp', 'iat', 'sub', 'nonce'],
      clockTolerance: clockSkewS,
      currentDate: new Date(this.#system.clock.now()),
    });
    return payload.nonce === nonce;
  }

  /** Without an answer of the issuer there is none; why has been logged. */
  async #endpoint(name: 'authorization_endpoint' | 'token_endpoint'): Promise<string | undefined> {
    try {
      return await this.#issuer.endpoint(name);
    } catch (error) {
      if (error instanceof IssuerUnavailable) return undefined;
      throw error;
    }
  }
}

function random(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}
