import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { hashKey } from './keys.ts';

export { callerOf, KEY_LANE, type KeyRecord, TEST_KEY_PREFIX } from './keys.ts';

/** API keys and tokens: who is calling, and what they may do. */
export interface Authorization {
  /** The caller that a credential stands for. A refusal says what is wrong in its code and never repeats the credential. */
  authenticate(credential: Credential): Promise<Caller | Refusal>;
  /** Signs people in at the issuer; undefined if the operator has set up no client there. */
  readonly signIn: SignIn | undefined;
  /** Whether any key exists, configured or stored. */
  hasKeys(): Promise<boolean>;
  /** Creates the key of the first start; undefined if another host that starts at the same time created it. */
  createOwner(tenant: string, name: string): Promise<string | undefined>;
  /** Creates another owner's key, for an operator who has the store itself and no key. */
  recoverOwner(tenant: string, name: string): Promise<string>;
}

/** What the browser keeps while its person is at the issuer. Nobody else may read it. */
export interface SignInSecret {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** Signing in at the issuer, by redirect. */
export interface SignIn {
  readonly issuer: string;
  /** Where to send the browser, and what it has to bring back. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly secret: SignInSecret } | Refusal>;
  /** The tokens of whoever came back, in the order in which to try them as a credential. */
  finish(redirectUri: string, code: string, secret: SignInSecret): Promise<readonly string[] | Refusal>;
}

/** The door to authorization. */
export const Authorization = door<Authorization>()('authorization');

/** What the Authorization header has after `Bearer`, and its hash. */
export interface Credential {
  readonly text: string;
  readonly hash: string;
}

/** Hashes a credential, which then identifies it in the store and in the rate limiter. */
export function credentialOf(text: string): Credential {
  return { text, hash: hashKey(text) };
}

const BEARER = /^Bearer +([\x21-\x7e]{1,8192})$/i;

/** The credential in an Authorization header, if there is one. */
export function bearerOf(header: string | undefined): string | undefined {
  return BEARER.exec(header ?? '')?.[1];
}

/** The refusal of a request without a known credential. */
export const UNAUTHENTICATED = refuse('unauthenticated', 'Send a valid key as `Authorization: Bearer <key>`.');
