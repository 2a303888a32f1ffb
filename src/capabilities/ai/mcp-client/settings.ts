import { type Static, Type } from 'typebox';
import { Closed, MapOf, NonEmpty } from '../../../protocol/format/schema.ts';
import type { McpServerAddress } from '../../../runtime/effects/mcp-server-address.ts';
import { type Environment, readOperatorList, unsetReference } from '../../operator-list.ts';
import { defineSettings } from '../../settings.ts';

/** An MCP server as the operator configured it. */
export interface McpServerSettings extends McpServerAddress {
  /** The tenants that may use it, and which of its tools; all by default. */
  readonly tenants?: readonly string[] | undefined;
  readonly tools?: readonly string[] | undefined;
  /** Calls of one tenant at the same time. */
  readonly callsPerTenant?: number | undefined;
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
  callsPerTenant: Optional(Type.Integer({ minimum: 1, maximum: 1_000 })),
});
type Entry = Static<typeof Entry>;

const TIMEOUT_MS = 30_000;
const SERVERS_MAX = 20;

/** Reads the configured servers, with their secrets from the environment. */
export function readMcpServers(
  text: string,
  environment: Environment,
): { readonly servers: readonly McpServerSettings[]; readonly problems: readonly string[] } {
  const check = (entry: Entry): string[] => problemsOf(entry, environment);
  const { entries, problems } = readOperatorList<Entry>(text, {
    schema: Entry,
    unique: { what: 'server', name: 'name' },
    check,
  });
  if (entries.length > SERVERS_MAX) return { servers: [], problems: [` names more than ${SERVERS_MAX} servers.`] };
  return { servers: entries.map((entry) => settingsOf(entry, environment)), problems };
}

function problemsOf({ url, command, credentialRef, args, env = {} }: Entry, environment: Environment): string[] {
  const unset = Object.entries(env).filter(([, reference]) => !environment[reference]);
  return [
    ...((url === undefined) === (command === undefined) ? [' must have either a url or a command.'] : []),
    ...(url === undefined && credentialRef !== undefined ? ['.credentialRef is for servers with a url.'] : []),
    ...(url !== undefined && (args ?? Object.keys(env)[0]) ? ['.args and env are for servers with a command.'] : []),
    ...unsetReference(environment, credentialRef),
    ...unset.map(([variable]) => `.env.${variable} names an environment variable that is not set.`),
  ];
}

function settingsOf(entry: Entry, environment: Environment): McpServerSettings {
  const {
    name,
    url,
    command,
    credentialRef,
    args = [],
    env = {},
    tenants,
    tools,
    timeoutMs = TIMEOUT_MS,
    callsPerTenant,
  } = entry;
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
    callsPerTenant,
  };
}

/** The MCP servers whose tools agents and workflows may call. */
export const mcpClientSettings = defineSettings({
  variables: {
    mcpServers: {
      variable: 'CAPSTAN_MCP_SERVERS',
      meaning:
        'JSON array of MCP servers: { name, url, credentialRef? } or { name, command, args?, env? }, and tenants?, tools?, timeoutMs?, callsPerTenant?',
    },
  },
  read: (read) => {
    const { servers, problems } = readMcpServers(read.text('mcpServers') ?? '[]', read.environment);
    read.report('mcpServers', ...problems);
    return { mcpServers: servers };
  },
});
