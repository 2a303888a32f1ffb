import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, type LocalJWKSet } from 'jose';
import { isObject } from '../../../protocol/format/json.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Egress, EgressRequest } from '../../../system/egress.ts';
import type { Log } from '../../../system/log.ts';
import { isSafeSource } from './keys.ts';
import type { OidcSettings } from './settings.ts';

/** The issuer's key set could not be fetched, so a token can be neither accepted nor rejected. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable';
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super("the issuer's key set could not be fetched");
    this.retryAfterMs = retryAfterMs;
  }
}

/** What the key set is fetched and cached with. */
export interface IssuerSystem {
  readonly clock: Clock;
  readonly egress: Pick<Egress, 'send'>;
  readonly log: Log;
}

/** An older key set is refreshed in the background, and used meanwhile. */
const FRESH_MS = 10 * 60_000;
/** A key set that could not be refreshed for this long is not used any more. */
const BELIEVED_MS = 24 * 60 * 60_000;
/** A token can name any key, so unknown key ids cause a fetch no more often than this. */
const COOLDOWN_MS = 30_000;
const RETRY_MS = 5_000;
const FETCH_MS = 5_000;
const DOCUMENT_BYTES_MAX = 262_144;

/**
 * A cache of the issuer's public keys. It outlasts an outage of the issuer, and limits requests to it: one fetch at a
 * time, and a pause after each.
 */
export class IssuerKeys {
  readonly #settings: OidcSettings;
  readonly #system: IssuerSystem;
  #known: { readonly find: LocalJWKSet; readonly at: number } | undefined;
  #last: { readonly at: number; readonly isFailed: boolean } | undefined;
  #fetching: Promise<void> | undefined;

  constructor(settings: OidcSettings, system: IssuerSystem) {
    this.#settings = settings;
    this.#system = system;
  }

  /** The key that a token names. Throws KeysUnavailable if the key set could not be fetched. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const ageMs = this.#now - (this.#known?.at ?? Number.NEGATIVE_INFINITY);
    if (ageMs > BELIEVED_MS) await this.#refresh();
    else if (ageMs > FRESH_MS) this.#refresh().catch(() => {});
    try {
      return await this.#known!.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#refresh();
      return await this.#known!.find(header, token);
    }
  };

  get #now(): number {
    return this.#system.clock.now();
  }

  /** Settles when the key set was fetched, or was fetched just before; a failure is logged. */
  #refresh(): Promise<void> {
    this.#fetching ??= this.#fetchUnlessJustTried().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchUnlessJustTried(): Promise<void> {
    const { at, isFailed } = this.#last ?? { at: Number.NEGATIVE_INFINITY, isFailed: false };
    const pauseMs = isFailed ? RETRY_MS : COOLDOWN_MS;
    const passedMs = this.#now - at;
    // A clock that was set back must not make the pause longer.
    if (passedMs >= 0 && passedMs < pauseMs) {
      if (isFailed) throw new KeysUnavailable(pauseMs - passedMs);
      return;
    }
    try {
      const document = await readFromIssuer(this.#system, await this.#address());
      if (!isKeySet(document)) throw new Error('the issuer did not answer with a key set');
      this.#known = { find: createLocalJWKSet(document), at: this.#now };
      this.#last = { at: this.#now, isFailed: false };
    } catch (error) {
      this.#last = { at: this.#now, isFailed: true };
      const { issuer } = this.#settings;
      this.#system.log.warn({ issuer, err: error }, "the issuer's key set could not be fetched; trying again later");
      throw new KeysUnavailable(RETRY_MS);
    }
  }

  /** The URL of the key set: as configured, or from the issuer's discovery document. */
  async #address(): Promise<string> {
    const { jwksUrl } = this.#settings;
    if (jwksUrl !== undefined) return jwksUrl;
    const about = await discoverIssuer(this.#settings, this.#system);
    if (typeof about.jwks_uri !== 'string' || !isSafeSource(about.jwks_uri)) {
      throw new Error('the discovery document has no jwks_uri with https://');
    }
    return about.jwks_uri;
  }
}

/** What the issuer says of itself. Throws if it is about somebody else. */
export async function discoverIssuer(
  { issuer }: Pick<OidcSettings, 'issuer'>,
  system: Pick<IssuerSystem, 'egress'>,
): Promise<Record<string, unknown>> {
  const about = await readFromIssuer(system, `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if (about.issuer !== issuer) throw new Error('the discovery document is about another issuer');
  return about;
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
