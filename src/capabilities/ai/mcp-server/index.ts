import type { LegacyCapability as Capability } from '../../legacy.ts';
import { routes } from './routes.ts';
import { type McpServerService, mcpServerService } from './service.ts';

/** Workflows as tools for whoever speaks MCP. */
export const mcpServer: Capability<'mcpServer', McpServerService> = {
  name: 'mcpServer',
  advertise: () => ({
    supportedTransports: ['mcp'],
    mcp: {
      // That this host calls tools of others is for the client half to say.
      supported: false,
      serverMount: {
        supported: true,
        transports: ['streamable-http'],
        samplingBridge: false,
        elicitationBridge: false,
      },
    },
  }),
  service: mcpServerService,
  routes,
};
