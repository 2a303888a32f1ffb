import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, type LocalJWKSet } from 'jose';
import { isObject } from '../../../protocol/format/json.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Egress, EgressRequest } from '../../../system/egress.ts';
import type { Log } from '../../../system/log.ts';
import { isSafeSource } from './keys.ts';
import type { OidcSettings } from './settings.ts';

/** What the issuer publishes could not be fetched, so a token can be neither accepted nor rejected. */
export class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('what the issuer publishes could not be fetched');
    this.retryAfterMs = retryAfterMs;
  }
}

/** What the issuer is asked with. */
export interface IssuerSystem {
  readonly clock: Clock;
  readonly egress: Pick<Egress, 'send'>;
  readonly log: Log;
}

/** What is older is refreshed in the background, and used meanwhile. */
const FRESH_MS = 10 * 60_000;
/** What could not be refreshed for this long is not used any more. */
const BELIEVED_MS = 24 * 60 * 60_000;
/** A token can name any key, so unknown key ids cause a fetch no more often than this. */
const COOLDOWN_MS = 30_000;
const RETRY_MS = 5_000;
const FETCH_MS = 5_000;
const DOCUMENT_BYTES_MAX = 262_144;

/**
 * One thing that the issuer publishes. It outlasts an outage of the issuer, and limits requests to it: one fetch at a
 * time, and a pause after each.
 */
class Published<T> {
  readonly #system: IssuerSystem;
  readonly #about: { readonly issuer: string; readonly name: string };
  readonly #fetch: () => Promise<T>;
  #known: { readonly value: T; readonly at: number } | undefined;
  #last: { readonly at: number; readonly isFailed: boolean } | undefined;
  #fetching: Promise<T> | undefined;

  constructor(system: IssuerSystem, about: { issuer: string; name: string }, fetch: () => Promise<T>) {
    this.#system = system;
    this.#about = about;
    this.#fetch = fetch;
  }

  /** As it is known; fetched first if it is not, or not any more. Throws IssuerUnavailable. */
  async get(): Promise<T> {
    const known = this.#known;
    const ageMs = this.#now - (known?.at ?? Number.NEGATIVE_INFINITY);
    if (!known || ageMs > BELIEVED_MS) return this.refresh();
    if (ageMs > FRESH_MS) this.refresh().catch(() => {});
    return known.value;
  }

  /** As it is now, or was just before. A failure is logged. Throws IssuerUnavailable. */
  refresh(): Promise<T> {
    this.#fetching ??= this.#fetchUnlessJustTried().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  get #now(): number {
    return this.#system.clock.now();
  }

  async #fetchUnlessJustTried(): Promise<T> {
    const { at, isFailed } = this.#last ?? { at: Number.NEGATIVE_INFINITY, isFailed: false };
    const pauseMs = isFailed ? RETRY_MS : COOLDOWN_MS;
    const passedMs = this.#now - at;
    // A clock that was set back must not make the pause longer.
    if (passedMs >= 0 && passedMs < pauseMs) {
      if (isFailed || !this.#known) throw new IssuerUnavailable(pauseMs - passedMs);
      return this.#known.value;
    }
    try {
      const value = await this.#fetch();
      this.#known = { value, at: this.#now };
      this.#last = { at: this.#now, isFailed: false };
      return value;
    } catch (error) {
      this.#last = { at: this.#now, isFailed: true };
      const { issuer, name } = this.#about;
      // What it was fetched by has said why already.
      if (!(error instanceof IssuerUnavailable)) {
        this.#system.log.warn({ issuer, err: error }, `the issuer's ${name} could not be fetched; trying again later`);
      }
      throw new IssuerUnavailable(RETRY_MS);
    }
  }
}

/** The issuer as the host knows it: what it says of itself, and its public keys. */
export class Issuer {
  readonly #settings: OidcSettings;
  readonly #system: IssuerSystem;
  readonly #discovery: Published<Record<string, unknown>>;
  readonly #keys: Published<LocalJWKSet>;

  constructor(settings: OidcSettings, system: IssuerSystem) {
    const { issuer } = settings;
    this.#settings = settings;
    this.#system = system;
    this.#discovery = new Published(system, { issuer, name: 'discovery document' }, () => this.#fetchDiscovery());
    this.#keys = new Published(system, { issuer, name: 'key set' }, () => this.#fetchKeys());
  }

  /** The key that a token names. Throws IssuerUnavailable if the key set could not be fetched. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const find = await this.#keys.get();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      const findNow = await this.#keys.refresh();
      return await findNow(header, token);
    }
  };

  /** An address that the issuer gives for this purpose; undefined if it gives none that is safe. Throws IssuerUnavailable. */
  async endpoint(name: 'authorization_endpoint' | 'token_endpoint'): Promise<string | undefined> {
    const { [name]: url } = await this.#discovery.get();
    return typeof url === 'string' && isSafeSource(url) ? url : undefined;
  }

  async #fetchKeys(): Promise<LocalJWKSet> {
    const document = await readFromIssuer(this.#system, await this.#keysUrl());
    if (!isKeySet(document)) throw new Error('the issuer did not answer with a key set');
    return createLocalJWKSet(document);
  }

  /** The URL of the key set: as configured, or from the issuer's discovery document. */
  async #keysUrl(): Promise<string> {
    const { jwksUrl } = this.#settings;
    if (jwksUrl !== undefined) return jwksUrl;
    const about = await this.#discovery.refresh();
    if (typeof about.jwks_uri !== 'string' || !isSafeSource(about.jwks_uri)) {
      throw new Error('the discovery document has no jwks_uri with https://');
    }
    return about.jwks_uri;
  }

  async #fetchDiscovery(): Promise<Record<string, unknown>> {
    const { issuer } = this.#settings;
    const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const about = await readFromIssuer(this.#system, url);
    if (about.issuer !== issuer) throw new Error('the discovery document is about another issuer');
    return about;
  }
}

/** A JSON object that the issuer answers with. Throws if it answers with anything else. */
export async function readFromIssuer(
  { egress }: Pick<IssuerSystem, 'egress'>,
  url: string,
  { headers = {}, ...request }: Pick<EgressRequest, 'method' | 'headers' | 'body'> = {},
): Promise<Record<string, unknown>> {
  const { status, body } = await egress.send({
    url,
    ...request,
    headers: { accept: 'application/json', ...headers },
    timeoutMs: FETCH_MS,
    maxBytes: DOCUMENT_BYTES_MAX,
    trusted: true,
  });
  if (status !== 200) throw new Error(`the issuer answered with status ${status}`);
  const document: unknown = JSON.parse(body.toString('utf8'));
  if (!isObject(document)) throw new Error('the issuer did not answer with a JSON object');
  return document;
}

/** Only the outer form: the library checks each key when a token names it. */
function isKeySet(document: object): document is JSONWebKeySet {
  return 'keys' in document && Array.isArray(document.keys);
}
