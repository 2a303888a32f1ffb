import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { mcpClientSettings } from '../mcp-client/settings.ts';
import { routes } from './routes.ts';
import { ToolCatalog } from './service.ts';

/** The catalogue of tools: what authors of agents may put on an allow-list. */
export const tools = defineCapability({
  name: 'tools',
  settings: mcpClientSettings,
  build: ({ runtime }, _needs, { mcpServers }) => ({
    advertise: () => ({
      toolCatalog: {
        supported: true,
        sources: ['node-pack', 'workflow', 'host-extension', ...(mcpServers.length > 0 ? ['mcp'] : [])],
      },
    }),
    routes: bindRoutes(routes, { tools: new ToolCatalog(runtime) }),
  }),
});
