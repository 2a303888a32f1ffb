import type { Refusal } from '../../../protocol/errors.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Caller } from '../../request.ts';
import type { Credential } from './door.ts';
import { callerOf, type KeyRecord } from './keys.ts';
import { refusalOf } from './rules.ts';
import { StoredKeys } from './stored-keys.ts';
import { looksLikeToken } from './tokens.ts';

/** What the authenticator uses of the runtime. */
export type AuthenticatorRuntime = Pick<Runtime, 'store' | 'clock' | 'log' | 'egress'>;

/** Finds the caller behind a credential: a configured key, a token of the issuer, or a stored key, in this order. */
export class Authenticator {
  readonly #clock: AuthenticatorRuntime['clock'];
  readonly #configured: ReadonlyMap<string, { readonly key: KeyRecord; readonly caller: Caller }>;
  readonly #verifyToken: ((token: string) => Promise<Caller | Refusal>) | undefined;
  readonly #storedKeys: StoredKeys;

  constructor(
    runtime: AuthenticatorRuntime,
    apiKeys: readonly KeyRecord[],
    verifyToken?: (token: string) => Promise<Caller | Refusal>,
  ) {
    this.#clock = runtime.clock;
    this.#configured = new Map(apiKeys.map((key) => [key.hash, { key, caller: callerOf(key) }]));
    this.#verifyToken = verifyToken;
    this.#storedKeys = new StoredKeys(runtime);
  }

  async authenticate({ text, hash }: Credential): Promise<Caller | Refusal> {
    const configured = this.#configured.get(hash);
    if (configured) return refusalOf(configured.key, hash, this.#clock.now()) ?? configured.caller;
    if (this.#verifyToken && looksLikeToken(text)) return this.#verifyToken(text);
    return this.#storedKeys.caller(hash);
  }

  /** To be called when a stored key was revoked. */
  readonly forgetKeys = (): void => this.#storedKeys.forget();
}
