import { defineCapability } from '../../capability.ts';
import { invokeTool } from './nodes.ts';
import { McpClientService } from './service.ts';
import { mcpClientSettings } from './settings.ts';

/** Tools of MCP servers that the operator has configured, for agents and for workflows. */
export const mcpClient = defineCapability({
  name: 'mcpClient',
  settings: mcpClientSettings,
  nodes: () => [invokeTool],
  build: ({ runtime, version }, _needs, { mcpServers }) => {
    const service = new McpClientService(runtime, mcpServers, version);
    return {
      advertise: () => (mcpServers.length > 0 ? { mcp: { supported: true } } : {}),
      tools: [service],
      stop: () => service.stop(),
    };
  },
});
