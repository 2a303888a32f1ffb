import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  type JWK,
  type JWTPayload,
  SignJWT,
} from 'jose';

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
  /** Lets every connection drop, or takes them again. */
  setDown(isDown: boolean): void;
  stop(): Promise<void>;
}

/** An issuer as far as a host can see it: what it says of itself, and its keys. */
export async function startIssuer(keys: IssuerKeyRing): Promise<TestIssuer> {
  let fetches = 0;
  let isDown = false;
  const server = createServer((request, response) => {
    if (isDown) return request.socket.destroy();
    const documents: Record<string, () => object> = {
      '/.well-known/openid-configuration': () => ({ issuer: url, jwks_uri: `${url}/keys` }),
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
