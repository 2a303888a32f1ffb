import type { LegacyCapability as Capability } from '../../legacy.ts';
import { routes } from './routes.ts';
import { type ToolService, toolService } from './service.ts';

/** What authors of agents may put on an allow-list. */
export const tools: Capability<'tools', ToolService> = {
  name: 'tools',
  advertise: ({ mcpServers }) => ({
    toolCatalog: {
      supported: true,
      sources: ['workflow', 'host-extension', ...(mcpServers.length > 0 ? ['mcp'] : [])],
    },
  }),
  service: toolService,
  routes,
};
