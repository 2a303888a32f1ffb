import { isObject } from '../../../protocol/format/json.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { StoredSealingKey } from '../../../runtime/stored-sealing-key.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import type { SignInSecret } from '../../trust/authorization/door.ts';
import type { ConsoleSessions } from './door.ts';
import { ensureSessionSecret, readSessionSecret } from './records.ts';

const PURPOSE = 'capstan console sessions';
const CONTEXT = 'session';
const COOKIE = 'capstan_session';
const SIGN_IN_COOKIE = 'capstan_sign_in';
const SIGN_IN_CONTEXT = 'sign-in';
/** How long a person may take at the identity provider. */
const SIGN_IN_MS = 10 * 60_000;
/** Longer ones would not fit beside other headers. */
const COOKIE_CHARACTERS_MAX = 12_288;

/** Where the browser sends the cookie: below this path, and over TLS alone if the page came over TLS. */
interface CookiePlace {
  readonly path: string;
  readonly isSecure: boolean;
}

/** A sign-in that waits for the identity provider: what the answer has to fit, and where to go then. */
interface PendingSignIn extends SignInSecret {
  readonly next: string;
}

/**
 * A session is the caller's credential, sealed into a cookie that scripts cannot read. Each request is checked as if it
 * had sent the credential itself, so a key that is revoked ends its sessions, and nothing is stored that could sign
 * anybody in.
 */
export class ConsoleSessionService implements ConsoleSessions {
  readonly #runtime: Pick<Runtime, 'clock'>;
  readonly #configured: SealingKey | undefined;
  readonly #stored: StoredSealingKey;
  readonly #lifetimeMs: number;

  constructor(
    runtime: Pick<Runtime, 'clock' | 'store'>,
    { secret, sessionMs }: { readonly secret?: string | undefined; readonly sessionMs: number },
  ) {
    this.#runtime = runtime;
    this.#configured = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
    const row = { read: readSessionSecret, ensure: ensureSessionSecret };
    this.#stored = new StoredSealingKey(runtime.store, row, PURPOSE);
    this.#lifetimeMs = sessionMs;
  }

  async credentialIn(cookies: string): Promise<string | undefined> {
    const sealed = cookieIn(cookies, COOKIE);
    if (sealed === undefined || sealed.length > COOKIE_CHARACTERS_MAX) return undefined;
    const text = unseal(sealed, [await this.#key()], CONTEXT);
    const session: unknown = text === undefined ? undefined : JSON.parse(text);
    if (!isObject(session) || typeof session.credential !== 'string') return undefined;
    return Number(session.until) > this.#runtime.clock.now() ? session.credential : undefined;
  }

  /** The cookie that signs the bearer of a credential in. */
  async open(credential: string, place: CookiePlace): Promise<string> {
    const until = this.#runtime.clock.now() + this.#lifetimeMs;
    const sealed = seal(JSON.stringify({ credential, until }), await this.#key(), CONTEXT);
    return cookie(COOKIE, sealed, { ...place, maxAgeS: this.#lifetimeMs / 1_000, sameSite: 'Strict' });
  }

  /** The cookie that goes along while a person is at the identity provider, who sends the browser back from there. */
  async pendingSignInCookie(pending: PendingSignIn, place: CookiePlace): Promise<string> {
    const until = this.#runtime.clock.now() + SIGN_IN_MS;
    const sealed = seal(JSON.stringify({ ...pending, until }), await this.#key(), SIGN_IN_CONTEXT);
    return cookie(SIGN_IN_COOKIE, sealed, { ...place, maxAgeS: SIGN_IN_MS / 1_000, sameSite: 'Lax' });
  }

  /** What went along, if it is ours and not too old. */
  async readPendingSignIn(cookies: string): Promise<PendingSignIn | undefined> {
    const sealed = cookieIn(cookies, SIGN_IN_COOKIE);
    const text = sealed === undefined ? undefined : unseal(sealed, [await this.#key()], SIGN_IN_CONTEXT);
    if (text === undefined) return undefined;
    const pending = JSON.parse(text) as PendingSignIn & { readonly until: number };
    return pending.until > this.#runtime.clock.now() ? pending : undefined;
  }

  /** The cookie that takes the session from the browser. */
  close(place: CookiePlace): string {
    return cookie(COOKIE, '', { ...place, maxAgeS: 0, sameSite: 'Strict' });
  }

  async #key(): Promise<SealingKey> {
    return this.#configured ?? this.#stored.get();
  }
}

function cookieIn(cookies: string, name: string): string | undefined {
  return cookies
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${name}=`))
    ?.slice(name.length + 1);
}

interface CookieRules extends CookiePlace {
  readonly maxAgeS: number;
  /** Strict: the page itself needs no cookie, and only its own requests get it. Lax: it comes back from elsewhere. */
  readonly sameSite: 'Strict' | 'Lax';
}

function cookie(name: string, value: string, { path, isSecure, maxAgeS, sameSite }: CookieRules): string {
  const secure = isSecure ? '; Secure' : '';
  return `${name}=${value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=${sameSite}${secure}`;
}
