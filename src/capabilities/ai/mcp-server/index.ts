import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { Interrupts } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { Events } from '../../running/events/door.ts';
import { Runs } from '../../running/runs/door.ts';
import { Workflows } from '../../running/workflows/door.ts';
import { Prompts } from '../prompts/door.ts';
import { McpEndpoint } from './door.ts';
import { MCP_SERVER_TABLES } from './records.ts';
import { answerMessage, routes } from './routes.ts';
import { McpServerService } from './service.ts';

/** Workflows as tools for MCP clients. */
export const mcpServer = defineCapability({
  name: 'mcpServer',
  provides: McpEndpoint,
  needs: [Workflows, Runs, Events, Prompts, Interrupts],
  settings: hostSettings,
  tables: MCP_SERVER_TABLES,
  build: ({ runtime, version }, needs, { publicUrl }) => {
    const services = { service: new McpServerService(runtime, needs), version, publicUrl, log: runtime.log };
    return {
      service: { exchange: (request) => answerMessage(request, services) },
      advertise: () => ({
        supportedTransports: ['mcp'],
        mcp: {
          // Whether the host calls tools of other servers is advertised by the MCP client.
          supported: false,
          serverMount: {
            supported: true,
            transports: ['streamable-http'],
            samplingBridge: false,
            elicitationBridge: false,
          },
        },
      }),
      routes: bindRoutes(routes, services),
    };
  },
});
