import { isObject } from '../../../protocol/format/json.ts';
import { McpConnection } from '../../../runtime/effects/mcp-connection.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { type CallableTool, ToolFailure, type ToolSource, type ToolTraits } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { withTimeout } from '../../../system/clock.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import { storageTenant } from '../../storage-tenant.ts';
import type { McpServerSettings } from './settings.ts';

interface Server {
  readonly settings: McpServerSettings;
  readonly connection: McpConnection;
}

type ListedTool = Awaited<ReturnType<McpConnection['tools']>>[number];

const SCOPE = 'mcp:';
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
const DESCRIPTION_CHARACTERS_MAX = 1_024;
const TITLE_CHARACTERS_MAX = 128;
/** How long the list of all tools waits for a server that does not answer. */
const LIST_MS = 5_000;

/** The tools of the configured MCP servers, for the tenants that may use them. */
export class McpClientService implements ToolSource {
  readonly scope = 'mcp';
  readonly kind = 'mcp';
  readonly #runtime: Pick<Runtime, 'clock' | 'egress' | 'log'>;
  readonly #servers: readonly Server[];

  constructor(
    runtime: Pick<Runtime, 'clock' | 'egress' | 'log'>,
    servers: readonly McpServerSettings[],
    version: string,
  ) {
    const { clock, egress } = runtime;
    this.#runtime = runtime;
    this.#servers = servers.map((settings) => ({
      settings,
      connection: new McpConnection(settings, { clock, egress, version }),
    }));
  }

  /** A tool by name. If its server is named and cannot be reached, the tool is there and its calls say why. */
  async find(user: Visibility, name: string): Promise<CallableTool | undefined> {
    for (const { server, tool, isNamed } of this.#candidates(user, name.slice(SCOPE.length))) {
      const found = await lookUp(server, tool, name);
      if (found && !('failure' in found)) return found;
      if (found && isNamed) return unavailableTool(server, name, found.failure);
    }
    return undefined;
  }

  async list(user: Visibility): Promise<readonly CallableTool[]> {
    const open = this.#servers.filter((server) => mayUse(server.settings, user));
    return (await Promise.all(open.map((server) => this.#toolsOf(server)))).flat();
  }

  /** Closes every connection and ends the servers that are programs. */
  async stop(): Promise<void> {
    await Promise.all(this.#servers.map(({ connection }) => connection.stop()));
  }

  /** `<server>.<tool>` names a server; a plain tool name means the first server that has such a tool. */
  #candidates(user: Visibility, name: string): { server: Server; tool: string; isNamed: boolean }[] {
    const open = this.#servers.filter((server) => mayUse(server.settings, user));
    const named = open.find(({ settings }) => name.startsWith(`${settings.name}.`));
    const candidates = named
      ? [{ server: named, tool: name.slice(named.settings.name.length + 1), isNamed: true }]
      : open.map((server) => ({ server, tool: name, isNamed: false }));
    return candidates.filter(({ server, tool }) => isOffered(server.settings, tool));
  }

  /** The tools of a server that may be called; none, with a warning in the log, if it cannot be reached. */
  async #toolsOf(server: Server): Promise<CallableTool[]> {
    const { clock, log } = this.#runtime;
    const { name } = server.settings;
    try {
      const listed = await withTimeout(clock, LIST_MS, server.connection.tools());
      if (!listed) throw new ToolFailure(`It gave no answer within ${LIST_MS} ms.`);
      const offered = listed.filter((tool) => isOffered(server.settings, tool.name));
      return offered.map((tool) => toolOf(server, tool, `${SCOPE}${name}.${tool.name}`));
    } catch (error) {
      if (!(error instanceof ToolFailure)) throw error;
      log.warn({ server: name, reason: error.message }, 'MCP server not reached: its tools are not in the catalogue');
      return [];
    }
  }
}

/** A tenant's servers are there for its test keys too. */
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

/** Stands for a tool of a server that cannot be reached now; its calls fail with the reason. */
function unavailableTool({ settings }: Server, name: string, failure: ToolFailure): CallableTool {
  return {
    name,
    description: 'This tool cannot be reached at the moment.',
    inputSchema: { type: 'object' },
    transport: 'mcp',
    ...traitsOf(settings),
    isUnavailable: true,
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

/** What a server says about the safety of its tools is not trusted. A local program has network access of its own. */
function traitsOf({ url }: McpServerSettings): ToolTraits {
  const egress = url === undefined ? 'host-owned' : 'host-mediated';
  return { safetyTier: 'write', egress, replayPolicy: 'non-deterministic' };
}
