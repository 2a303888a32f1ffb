import type { LegacyCapability as Capability } from '../../legacy.ts';
import { invokeTool } from './nodes.ts';
import { type McpClientService, mcpClientService } from './service.ts';

/** Tools of MCP servers, for agents and for workflows. */
export const mcpClient: Capability<'mcpClient', McpClientService> = {
  name: 'mcpClient',
  advertise: ({ mcpServers }) => (mcpServers.length > 0 ? { mcp: { supported: true, serverUrls: ['/v1/mcp'] } } : {}),
  service: mcpClientService,
  nodes: () => [invokeTool],
  tools: (_host, { source }) => [source],
  stop: ({ stop }) => stop(),
};
