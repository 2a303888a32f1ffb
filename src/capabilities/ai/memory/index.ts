import { MEMORY_LIMITS } from '../../../runtime/effects/memory.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { MEMORY_NODES } from './nodes.ts';
import { MEMORY_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type MemoryService, memoryService } from './service.ts';
import { memoryTools } from './tools.ts';

/** What agents remember from one run to the next. */
export const memory: Capability<'memory', MemoryService> = {
  name: 'memory',
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
  migrations: MEMORY_TABLES,
  service: memoryService,
  routes,
  nodes: () => MEMORY_NODES,
  seams: (_host, { perform }) => ({ memory: (request, firing) => perform(firing, request) }),
  tools: ({ runtime: { reader } }, service) => [memoryTools(service, reader)],
};
