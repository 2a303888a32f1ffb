import { isObject } from '../../../protocol/format/json.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { StoredSealingKey } from '../../../runtime/stored-sealing-key.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import type { ConsoleSessions } from './door.ts';
import { ensureSessionSecret, readSessionSecret } from './records.ts';

const PURPOSE = 'capstan console sessions';
const CONTEXT = 'session';
const COOKIE = 'capstan_session';
/** Longer ones would not fit beside other headers. */
const COOKIE_CHARACTERS_MAX = 12_288;

/** Where the browser sends the cookie: below this path, and over TLS alone if the page came over TLS. */
interface CookiePlace {
  readonly path: string;
  readonly isSecure: boolean;
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
    const sealed = cookieIn(cookies);
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
    return cookie(sealed, this.#lifetimeMs / 1_000, place);
  }

  /** The cookie that takes the session from the browser. */
  close(place: CookiePlace): string {
    return cookie('', 0, place);
  }

  async #key(): Promise<SealingKey> {
    return this.#configured ?? this.#stored.get();
  }
}

function cookieIn(cookies: string): string | undefined {
  return cookies
    .split(';')
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);
}

/** Strict: the page itself needs no cookie, and only its own requests get it. */
function cookie(value: string, maxAgeS: number, { path, isSecure }: CookiePlace): string {
  return `${COOKIE}=${value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`;
}
