import { isObject } from '../../../protocol/format/json.ts';
import { McpConnection } from '../../../runtime/effects/mcp-connection.ts';
import { NodeFailure } from '../../../runtime/node-failure.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { TenantSlots } from '../../../runtime/tenant-slots.ts';
import { type CallableTool, ToolFailure, type ToolSource, type ToolTraits } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { withTimeout } from '../../../system/clock.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import { storageTenants } from '../../storage-tenant.ts';
import type { McpServerSettings } from './settings.ts';

interface Server {
  readonly settings: McpServerSettings;
  readonly connection: McpConnection;
  /** Calls of each tenant at the same time; more wait, so that the server has time for other tenants. */
  readonly calls: TenantSlots;
}

type ListedTool = Awaited<ReturnType<McpConnection['tools']>>[number];

const SCOPE = 'mcp:';
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
const DESCRIPTION_CHARACTERS_MAX = 1_024;
const TITLE_CHARACTERS_MAX = 128;
/** Calls of one tenant to one server at the same time. */
const CALLS_PER_TENANT = 8;
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
      calls: new TenantSlots(settings.callsPerTenant ?? CALLS_PER_TENANT),
    }));
  }

  /** A tool by name. If a server that may have it cannot be reached, the tool is there and its calls say why. */
  async find(user: Visibility, name: string, signal?: AbortSignal): Promise<CallableTool | undefined> {
    let unavailable: CallableTool | undefined;
    const candidates = this.#candidates(user, name.slice(SCOPE.length));
    // Nobody waits for one server while another one may have the tool.
    const patience = candidates.length === 1 ? signal : undefined;
    for (const { server, tool, isLikely } of candidates) {
      const found = await lookUp(server, tool, name, patience);
      if (found && !('failure' in found)) return found;
      if (found && isLikely) unavailable ??= unavailableTool(server, name, found.failure);
    }
    return unavailable;
  }

  async list(user: Visibility): Promise<readonly CallableTool[]> {
    const open = this.#servers.filter((server) => mayUse(server.settings, user));
    return (await Promise.all(open.map((server) => this.#toolsOf(server)))).flat();
  }

  /** Closes every connection and ends the servers that are programs. */
  async stop(): Promise<void> {
    await Promise.all(this.#servers.map(({ connection }) => connection.stop()));
  }

  /**
   * `<server>.<tool>` names a server; a plain tool name means the first server that has such a tool. A name with a dot
   * and no server of that name is more likely a mistake than a tool of a server that cannot be reached.
   */
  #candidates(user: Visibility, name: string): { server: Server; tool: string; isLikely: boolean }[] {
    const open = this.#servers.filter((server) => mayUse(server.settings, user));
    const named = open.find(({ settings }) => name.startsWith(`${settings.name}.`));
    const candidates = named
      ? [{ server: named, tool: name.slice(named.settings.name.length + 1), isLikely: true }]
      : open.map((server) => ({ server, tool: name, isLikely: !name.includes('.') }));
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
      if (!isFailure(error)) throw error;
      log.warn({ server: name, reason: error.message }, 'MCP server not reached: its tools are not in the catalogue');
      return [];
    }
  }
}

/** A tenant's servers are there for its test keys too. */
function mayUse({ tenants }: McpServerSettings, { tenant }: Visibility): boolean {
  return !tenants || tenants.some((name) => storageTenants(name).includes(tenant));
}

function isOffered({ tools }: McpServerSettings, tool: string): boolean {
  return TOOL_NAME.test(tool) && (!tools || tools.includes(tool));
}

async function lookUp(
  server: Server,
  tool: string,
  name: string,
  signal: AbortSignal | undefined,
): Promise<CallableTool | { readonly failure: Error } | undefined> {
  try {
    const listed = (await server.connection.tools(signal)).find((each) => each.name === tool);
    return listed && toolOf(server, listed, name);
  } catch (error) {
    if (isFailure(error)) return { failure: error };
    throw error;
  }
}

function isFailure(error: unknown): error is ToolFailure | NodeFailure {
  return error instanceof ToolFailure || error instanceof NodeFailure;
}

/** Stands for a tool of a server that cannot be reached now; its calls fail with the reason. */
function unavailableTool({ settings }: Server, name: string, failure: Error): CallableTool {
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

function toolOf({ settings, connection, calls }: Server, listed: ListedTool, name: string): CallableTool {
  const { title, description = '', inputSchema } = listed;
  return {
    name,
    title: title && redactText(title).slice(0, TITLE_CHARACTERS_MAX),
    description: redactText(description).slice(0, DESCRIPTION_CHARACTERS_MAX),
    inputSchema: isObject(inputSchema) ? redactValue(inputSchema) : {},
    transport: 'mcp',
    ...traitsOf(settings),
    call: (args, { tenant, effectId, trace, signal, timeoutMs = settings.timeoutMs }) =>
      calls.within(tenant, signal, () =>
        connection.call({ tenant, name: listed.name, arguments: args, key: effectId, trace, timeoutMs, signal }),
      ),
  };
}

/** What a server says about the safety of its tools is not trusted. A local program has network access of its own. */
function traitsOf({ url }: McpServerSettings): ToolTraits {
  const egress = url === undefined ? 'host-owned' : 'host-mediated';
  return { safetyTier: 'write', egress, replayPolicy: 'non-deterministic' };
}
