import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose';
import type { Config } from '../../src/config.ts';

export interface Signing {
  readonly kid?: string | undefined;
  readonly alg?: string;
  /** Signs with this instead of the key that `kid` names. */
  readonly key?: CryptoKey | Uint8Array;
  readonly header?: object;
}

const HOUR_S = 3_600;

/** The keys of an issuer, public and private. */
export class IssuerKeyRing {
  readonly #keys = new Map<string, { readonly alg: string; readonly privateKey: CryptoKey; readonly jwk: JWK }>();
  readonly #published = new Set<string>();

  /** Makes a key; one that is not published is known to nobody else. */
  async add(kid: string, alg: string, { isPublished = true } = {}): Promise<this> {
    const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
    this.#keys.set(kid, { alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } });
    if (isPublished) this.#published.add(kid);
    return this;
  }

  publish(...kids: string[]): void {
    this.#published.clear();
    for (const kid of kids) this.#published.add(kid);
  }

  get jwks(): JSONWebKeySet {
    return { keys: [...this.#published].map((kid) => this.#keys.get(kid)!.jwk) };
  }

  /** A token with these claims, good for an hour from `nowS` unless they say otherwise; undefined leaves one out. */
  sign(claims: JWTPayload, nowS: number, { kid = [...this.#keys.keys()][0]!, ...how }: Signing = {}): Promise<string> {
    const known = this.#keys.get(kid);
    const defined = Object.entries({ iat: nowS, exp: nowS + HOUR_S, ...claims }).filter(
      ([, value]) => value !== undefined,
    );
    return new SignJWT(Object.fromEntries(defined))
      .setProtectedHeader({ alg: how.alg ?? known!.alg, kid, ...how.header })
      .sign(how.key ?? known!.privateKey);
  }
}

export interface TestIssuer {
  readonly url: string;
  readonly keys: IssuerKeyRing;
  /** Times that the keys were asked for. */
  readonly fetches: number;
  /** Times that it was asked about itself. */
  readonly discoveries: number;
  /** Lets every connection drop, or takes them again. */
  setDown(isDown: boolean): void;
  stop(): Promise<void>;
}

/** What a browser came with to sign in. */
type Question = Readonly<Record<string, string>>;

/** Signs everybody in who comes, as the person that `claims` describe, and remembers what it was asked. */
export class IdentityProvider {
  readonly #keys: IssuerKeyRing;
  readonly #codes = new Map<string, Question>();
  /** The claims of both tokens; those of the id token may differ. */
  claims: JWTPayload = {};
  idClaims: JWTPayload = {};
  /** What the last browser and the last host came with. */
  asked: Question = {};
  exchanged: Question = {};

  constructor(keys: IssuerKeyRing) {
    this.#keys = keys;
  }

  authorize({ searchParams }: URL, response: ServerResponse): void {
    this.asked = Object.fromEntries(searchParams);
    const code = `code-${this.#codes.size}`;
    this.#codes.set(code, this.asked);
    const back = new URL(this.asked.redirect_uri!);
    back.searchParams.set('code', code);
    back.searchParams.set('state', this.asked.state!);
    response.writeHead(302, { location: back.href }).end();
  }

  async token(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    this.exchanged = Object.fromEntries(new URLSearchParams(body));
    const { code = '', code_verifier = '', redirect_uri } = this.exchanged;
    const asked = this.#codes.get(code);
    this.#codes.delete(code);
    const challenge = createHash('sha256').update(code_verifier).digest('base64url');
    const isGood = asked?.code_challenge === challenge && asked.redirect_uri === redirect_uri;
    response.writeHead(isGood ? 200 : 400, { 'content-type': 'application/json' });
    if (!isGood) return void response.end('{"error":"invalid_grant"}');
    const nowS = Math.floor(Date.now() / 1_000);
    const { client_id = '', nonce = '', audience = '' } = asked ?? {};
    const access_token = await this.#keys.sign({ aud: audience, ...this.claims }, nowS);
    const id_token = await this.#keys.sign({ aud: client_id, nonce, ...this.claims, ...this.idClaims }, nowS);
    response.end(JSON.stringify({ token_type: 'Bearer', access_token, id_token }));
  }
}

/** An issuer as far as a host can see it: what it says of itself, and its keys. */
export async function startIssuer(keys: IssuerKeyRing, provider = new IdentityProvider(keys)): Promise<TestIssuer> {
  let fetches = 0;
  let discoveries = 0;
  let isDown = false;
  const server = createServer((request, response) => {
    if (isDown) return request.socket.destroy();
    const asked = new URL(request.url ?? '', url);
    if (asked.pathname === '/authorize') return provider.authorize(asked, response);
    if (asked.pathname === '/token') return void provider.token(request, response);
    const documents: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => {
        discoveries++;
        return {
          issuer: url,
          jwks_uri: `${url}/keys`,
          authorization_endpoint: `${url}/authorize`,
          token_endpoint: `${url}/token`,
        };
      },
      '/keys': () => {
        fetches++;
        return keys.jwks;
      },
    };
    const document = documents[request.url ?? '']?.();
    response.writeHead(document ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    keys,
    get fetches() {
      return fetches;
    },
    get discoveries() {
      return discoveries;
    },
    setDown: (next) => {
      isDown = next;
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The settings of a host whose people sign in at an issuer. */
export function oidcOf({ url }: Pick<TestIssuer, 'url'>): NonNullable<Config['oidc']> {
  return {
    issuer: url,
    audience: 'https://capstan.example.com',
    tenantClaim: 'tenant',
    roleClaim: 'role',
    groupClaim: 'groups',
    workspaceClaim: 'workspace',
    clockSkewS: 60,
    signIn: { clientId: 'capstan-console', clientSecret: 'shh', scopes: 'openid email' },
  };
}
