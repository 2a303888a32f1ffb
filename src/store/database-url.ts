/** One server of a database URL. */
export interface DatabaseServer {
  /** Its address without credentials, for messages. */
  readonly name: string;
  /** Its own URL. */
  readonly url: string;
}

/** What a database URL says: one server, or several of which one takes writes. */
export interface DatabaseUrl {
  readonly servers: readonly DatabaseServer[];
  /** How long to wait for a server that does not answer, if the URL says so. */
  readonly connectTimeoutMs: number | undefined;
}

/** A host writes, so a server that only answers queries is of no use to it. */
const ATTRIBUTES: readonly (string | null)[] = [null, 'any', 'read-write', 'primary'];
/** What libpq calls them; the driver knows neither. */
const OURS = ['target_session_attrs', 'connect_timeout'];

/**
 * Reads a database URL, in which several servers may be listed as libpq has it: `postgres://a:5432,b:5433/db`. Returns
 * what is wrong with it as text that follows the name of the setting.
 */
export function parseDatabaseUrl(text: string): DatabaseUrl | string {
  const [, scheme = '', authority = '', rest = ''] = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/is.exec(text) ?? [];
  const at = authority.lastIndexOf('@') + 1;
  const urls = authority
    .slice(at)
    .split(',')
    .map((address) => scheme + authority.slice(0, at) + address + rest);
  if (scheme === '' || !urls.every((url) => URL.canParse(url))) {
    return ' must be a URL that starts with postgres:// or postgresql://.';
  }
  const { searchParams } = new URL(urls[0]!);
  if (!ATTRIBUTES.includes(searchParams.get('target_session_attrs'))) {
    return ' must have target_session_attrs=read-write, or none: a host writes.';
  }
  const timeout = Number(searchParams.get('connect_timeout') ?? 0);
  if (!Number.isInteger(timeout) || timeout < 0) return ' must have whole seconds as connect_timeout.';
  return { servers: urls.map(serverOf), connectTimeoutMs: timeout === 0 ? undefined : timeout * 1_000 };
}

function serverOf(text: string): DatabaseServer {
  const url = new URL(text);
  const { host } = url;
  if (!OURS.some((name) => url.searchParams.has(name))) return { name: host, url: text };
  for (const name of OURS) url.searchParams.delete(name);
  return { name: host, url: url.href };
}
