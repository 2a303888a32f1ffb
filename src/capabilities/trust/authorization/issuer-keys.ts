import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey, type LocalJWKSet } from 'jose';
import { isObject } from '../../../protocol/format/json.ts';
import type { Clock } from '../../../system/clock.ts';
import type { Egress } from '../../../system/egress.ts';
import type { Log } from '../../../system/log.ts';
import { isSafeSource } from './keys.ts';
import type { OidcSettings } from './settings.ts';

/** Without the issuer's keys nothing can be said about a token, neither yes nor no. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable';
  readonly retryAfterMs: number;

  constructor(retryAfterMs: number) {
    super('the keys of the issuer are not to be had');
    this.retryAfterMs = retryAfterMs;
  }
}

export interface IssuerSystem {
  readonly clock: Clock;
  readonly egress: Pick<Egress, 'send'>;
  readonly log: Log;
}

/** Keys that are older are fetched anew, while tokens are still judged by them. */
const FRESH_MS = 10 * 60_000;
/** Keys that the issuer has not confirmed for so long are not believed any more. */
const BELIEVED_MS = 24 * 60 * 60_000;
/** A token can name any key, so the issuer is asked about unknown ones no more often than this. */
const COOLDOWN_MS = 30_000;
const RETRY_MS = 5_000;
const FETCH_MS = 5_000;
const DOCUMENT_BYTES_MAX = 262_144;

/**
 * The issuer's public keys. They outlive an outage of the issuer, and nobody makes the host hammer at it: there is one
 * fetch at a time, and a pause after each.
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

  /** The key that a token says it was signed with. Throws KeysUnavailable when that cannot be found out. */
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

  /** Settles when the keys are as new as they may be; the failure to fetch them is in the log by then. */
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
    // A clock that was set back does not make the pause longer.
    if (passedMs >= 0 && passedMs < pauseMs) {
      if (isFailed) throw new KeysUnavailable(pauseMs - passedMs);
      return;
    }
    try {
      const document = await this.#read(await this.#address());
      this.#known = { find: createLocalJWKSet(document as unknown as JSONWebKeySet), at: this.#now };
      this.#last = { at: this.#now, isFailed: false };
    } catch (error) {
      this.#last = { at: this.#now, isFailed: true };
      const { issuer } = this.#settings;
      this.#system.log.warn({ issuer, err: error }, 'the keys of the issuer could not be fetched; trying again later');
      throw new KeysUnavailable(RETRY_MS);
    }
  }

  /** Where the keys are: as configured, or as the issuer says of itself. */
  async #address(): Promise<string> {
    const { issuer, jwksUrl } = this.#settings;
    if (jwksUrl !== undefined) return jwksUrl;
    const about = await this.#read(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
    if (about.issuer !== issuer) throw new Error('the discovery document is about another issuer');
    if (typeof about.jwks_uri !== 'string' || !isSafeSource(about.jwks_uri)) {
      throw new Error('the discovery document names no place for keys that can be trusted');
    }
    return about.jwks_uri;
  }

  async #read(url: string): Promise<Record<string, unknown>> {
    const { status, body } = await this.#system.egress.send({
      url,
      headers: { accept: 'application/json' },
      timeoutMs: FETCH_MS,
      maxBytes: DOCUMENT_BYTES_MAX,
      trusted: true,
    });
    if (status !== 200) throw new Error(`the issuer answered with status ${status}`);
    const document: unknown = JSON.parse(body.toString('utf8'));
    if (!isObject(document)) throw new Error('the issuer answered with something else than a document');
    return document;
  }
}
