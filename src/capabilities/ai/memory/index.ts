import { MEMORY_LIMITS } from '../../../runtime/effects/memory.ts';
import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { modelSettings } from '../models/settings.ts';
import { Memory } from './door.ts';
import { MEMORY_NODES } from './nodes.ts';
import { MEMORY_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { MemoryService } from './service.ts';
import { memoryTools } from './tools.ts';

/** What agents remember from one run to the next. */
export const memory = defineCapability({
  name: 'memory',
  provides: Memory,
  needs: [Audit],
  settings: modelSettings,
  tables: MEMORY_TABLES,
  nodes: () => MEMORY_NODES,
  build: (host, needs, settings) => {
    const service = new MemoryService(host, needs, settings);
    return {
      service,
      advertise: () => ({
        memory: {
          supported: true,
          writable: true,
          maxEntrySizeBytes: MEMORY_LIMITS.contentBytes,
          ttlSupported: true,
          search: { supported: true, modes: ['filter'] },
          attribution: { supported: true, emitsWriteEvents: true },
          retention: { ttl: true, forget: true },
        },
        agents: { memoryBackends: ['long-term'], memoryConsolidation: { supported: true, schedule: 'on-demand' } },
      }),
      routes: bindRoutes(routes, { memory: service }),
      seams: { memory: (request, firing) => service.perform(firing, request) },
      tools: [memoryTools(service, host.runtime.reader)],
    };
  },
});
