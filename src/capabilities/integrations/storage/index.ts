import { KV_LIMITS } from '../../../runtime/effects/kv.ts';
import { defineCapability } from '../../capability.ts';
import { Storage } from './door.ts';
import { KV_NODES } from './nodes.ts';
import { STORAGE_TABLES } from './records.ts';
import { StorageService } from './service.ts';

/** Key-value storage that workflows share from one run to the next. */
export const storage = defineCapability({
  name: 'storage',
  provides: Storage,
  tables: STORAGE_TABLES,
  nodes: () => KV_NODES,
  build: ({ runtime }) => {
    const service = new StorageService(runtime);
    return {
      service,
      advertise: () => ({
        kvStorage: {
          supported: true,
          maxKeyBytes: KV_LIMITS.keyBytes,
          maxValueBytes: KV_LIMITS.valueBytes,
          maxTtlSeconds: KV_LIMITS.ttlSeconds,
          atomicIncrement: true,
          compareAndSwap: true,
        },
      }),
      seams: { kv: service.seam },
    };
  },
});
