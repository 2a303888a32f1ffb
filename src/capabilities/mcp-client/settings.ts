import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { Closed, MapOf, NonEmpty } from '../../protocol/schema.ts';
import type { McpServerAddress } from '../../runtime/effects/mcp-connection.ts';

/** Somebody's MCP server, as the operator has set it up. */
export interface McpServerSettings extends McpServerAddress {
  /** Who may use it, and which of its tools: everybody and all, where nothing is said. */
  readonly tenants?: readonly string[] | undefined;
  readonly tools?: readonly string[] | undefined;
}

const Optional = Type.Optional;
const Reference = Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' });

const Entry = Closed({
  name: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
  url: Optional(Type.String({ pattern: '^https?://' })),
  credentialRef: Optional(Reference),
  command: Optional(NonEmpty),
  args: Optional(Type.Array(Type.String())),
  env: Optional(MapOf(Reference)),
  tenants: Optional(Type.Array(NonEmpty)),
  tools: Optional(Type.Array(NonEmpty)),
  timeoutMs: Optional(Type.Integer({ minimum: 100, maximum: 300_000 })),
});
type Entry = Static<typeof Entry>;
type Environment = Readonly<Record<string, string | undefined>>;

const TIMEOUT_MS = 30_000;
const SERVERS_MAX = 20;

/**
 * What the operator says of MCP servers, with the secrets that it names taken from the environment. No message repeats
 * a value: somebody may have put a secret where its name belongs.
 */
export function readMcpServers(
  text: string,
  environment: Environment,
): { readonly servers: readonly McpServerSettings[]; readonly problems: readonly string[] } {
  const list = parse(text);
  if (!Array.isArray(list)) return { servers: [], problems: [' must be a JSON array.'] };
  const problems = list.flatMap((entry, index) =>
    problemsOf(entry, environment).map((problem) => `[${index}]${problem}`),
  );
  if (list.length > SERVERS_MAX) problems.push(` names more than ${SERVERS_MAX} servers.`);
  const names = (list as readonly Partial<Entry>[]).map((entry) => entry?.name);
  if (problems.length === 0 && new Set(names).size < names.length) problems.push(' names a server twice.');
  if (problems.length > 0) return { servers: [], problems };
  return { servers: (list as Entry[]).map((entry) => settingsOf(entry, environment)), problems };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function problemsOf(entry: unknown, environment: Environment): string[] {
  const misfits = [...Value.Errors(Entry, entry)];
  if (misfits.length > 0) {
    return misfits.map(({ instancePath, message }) => `${instancePath.replaceAll('/', '.')} ${message}.`);
  }
  const { url, command, credentialRef, args, env = {} } = entry as Entry;
  const unset = Object.entries(env).filter(([, reference]) => !environment[reference]);
  return [
    ...((url === undefined) === (command === undefined) ? [' must have either a url or a command.'] : []),
    ...(url === undefined && credentialRef !== undefined ? ['.credentialRef is for servers with a url.'] : []),
    ...(url !== undefined && (args ?? Object.keys(env)[0]) ? ['.args and env are for servers with a command.'] : []),
    ...(credentialRef !== undefined && !environment[credentialRef]
      ? ['.credentialRef names an environment variable that is not set.']
      : []),
    ...unset.map(([variable]) => `.env.${variable} names an environment variable that is not set.`),
  ];
}

function settingsOf(entry: Entry, environment: Environment): McpServerSettings {
  const { name, url, command, credentialRef, args = [], env = {}, tenants, tools, timeoutMs = TIMEOUT_MS } = entry;
  const references = [...Object.values(env), ...(credentialRef === undefined ? [] : [credentialRef])];
  return {
    name,
    url,
    command,
    args,
    env: Object.fromEntries(Object.entries(env).map(([variable, reference]) => [variable, environment[reference]!])),
    secrets: references.map((id) => ({ id, value: environment[id]! })),
    token: credentialRef === undefined ? undefined : environment[credentialRef],
    timeoutMs,
    tenants,
    tools,
  };
}
