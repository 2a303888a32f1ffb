import { isObject } from '../../../protocol/format/json.ts';
import { McpConnection } from '../../../runtime/effects/mcp-connection.ts';
import { type CallableTool, ToolFailure, type ToolSource, type ToolTraits } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { inTime } from '../../../system/clock.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import { storageTenant } from '../../trust/authorization/door.ts';
import type { McpServerSettings } from './settings.ts';

export { type McpServerSettings, readMcpServers } from './settings.ts';

export type McpClientService = ReturnType<typeof mcpClientService>;

interface Server {
  readonly settings: McpServerSettings;
  readonly connection: McpConnection;
}

type ListedTool = Awaited<ReturnType<McpConnection['tools']>>[number];

const SCOPE = 'mcp:';
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
const DESCRIPTION_CHARACTERS_MAX = 1_024;
const TITLE_CHARACTERS_MAX = 128;
/** Whoever wants to know all tools is not kept waiting for longer by a server that does not answer. */
const LIST_MS = 5_000;

/** Tools of servers that the operator has named, for the tenants that may use them. */
export function mcpClientService({ runtime: { clock, egress, log }, settings }: Host) {
  const servers: readonly Server[] = settings.mcpServers.map((each) => ({
    settings: each,
    connection: new McpConnection(each, { clock, egress, version: settings.version }),
  }));

  return {
    names: servers.map(({ settings: { name } }) => name),

    source: {
      scope: 'mcp',
      kind: 'mcp',
      find: async (user, name) => {
        const meant = candidates(user, name.slice(SCOPE.length));
        for (const { server, tool, isNamed } of meant) {
          const found = await lookUp(server, tool, name);
          if (found && !('failure' in found)) return found;
          if (found && isNamed) return absentTool(server, name, found.failure);
        }
        return undefined;
      },
      list: async (user) => {
        const open = servers.filter((server) => mayUse(server.settings, user));
        return (await Promise.all(open.map(offersOf))).flat();
      },
    } satisfies ToolSource,

    stop: async (): Promise<void> => {
      await Promise.all(servers.map(({ connection }) => connection.stop()));
    },
  };

  /** A name says which server it means, or means the first that has a tool of this name. */
  function candidates(user: Visibility, name: string): { server: Server; tool: string; isNamed: boolean }[] {
    const open = servers.filter((server) => mayUse(server.settings, user));
    const named = open.find(({ settings: each }) => name.startsWith(`${each.name}.`));
    const meant = named
      ? [{ server: named, tool: name.slice(named.settings.name.length + 1), isNamed: true }]
      : open.map((server) => ({ server, tool: name, isNamed: false }));
    return meant.filter(({ server, tool }) => isOffered(server.settings, tool));
  }

  /** What may be called of what a server has; nothing where it cannot be asked. */
  async function offersOf(server: Server): Promise<CallableTool[]> {
    const { name } = server.settings;
    try {
      const listed = await inTime(clock, LIST_MS, server.connection.tools());
      if (!listed) throw new ToolFailure(`It gave no answer within ${LIST_MS} ms.`);
      const offered = listed.filter((tool) => isOffered(server.settings, tool.name));
      return offered.map((tool) => toolOf(server, tool, `${SCOPE}${name}.${tool.name}`));
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      log.warn({ server: name, reason: error.message }, 'left the tools of an MCP server out of the catalogue');
      return [];
    }
  }
}

/** What is of a tenant is of its tests, too. */
function mayUse({ tenants }: McpServerSettings, { tenant }: Visibility): boolean {
  return !tenants || tenants.some((name) => [false, true].some((isTest) => storageTenant(name, isTest) === tenant));
}

function isOffered({ tools }: McpServerSettings, tool: string): boolean {
  return TOOL_NAME.test(tool) && (!tools || tools.includes(tool));
}

async function lookUp(
  server: Server,
  tool: string,
  name: string,
): Promise<CallableTool | { readonly failure: ToolFailure } | undefined> {
  try {
    const listed = (await server.connection.tools()).find((each) => each.name === tool);
    return listed && toolOf(server, listed, name);
  } catch (error) {
    if (error instanceof ToolFailure) return { failure: error };
    throw error;
  }
}

/** What a server has that cannot be asked now, nobody knows. Whoever calls it hears why. */
function absentTool({ settings }: Server, name: string, failure: ToolFailure): CallableTool {
  return {
    name,
    description: 'This tool cannot be reached at the moment.',
    inputSchema: { type: 'object' },
    transport: 'mcp',
    ...traitsOf(settings),
    isAway: true,
    call: () => Promise.reject(failure),
  };
}

function toolOf({ settings, connection }: Server, listed: ListedTool, name: string): CallableTool {
  const { title, description = '', inputSchema } = listed;
  return {
    name,
    title: title && redactText(title).slice(0, TITLE_CHARACTERS_MAX),
    description: redactText(description).slice(0, DESCRIPTION_CHARACTERS_MAX),
    inputSchema: isObject(inputSchema) ? redactValue(inputSchema) : {},
    transport: 'mcp',
    ...traitsOf(settings),
    call: (args, { effectId, signal, timeoutMs = settings.timeoutMs }) =>
      connection.call({ name: listed.name, arguments: args, key: effectId, timeoutMs, signal }),
  };
}

/** A server's own word on how harmless its tools are is nothing to go by. A program here has ways out of its own. */
function traitsOf({ url }: McpServerSettings): ToolTraits {
  const egress = url === undefined ? 'host-owned' : 'host-mediated';
  return { safetyTier: 'write', egress, replayPolicy: 'non-deterministic' };
}
