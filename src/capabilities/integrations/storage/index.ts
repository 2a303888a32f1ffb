import { KV_LIMITS } from '../../../runtime/effects/kv.ts';
import { settleEffect } from '../../../store/effects.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { KV_NODES } from './nodes.ts';
import { STORAGE_TABLES } from './records.ts';
import { type StorageService, storageService } from './service.ts';

/** What workflows remember from one run to the next. */
export const storage: Capability<'storage', StorageService> = {
  name: 'storage',
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
  migrations: STORAGE_TABLES,
  service: storageService,
  nodes: () => KV_NODES,
  seams: (_host, service) => ({
    kv: (request, { tenant, workspace = '', effectId }) =>
      service.perform({ tenant, workspace }, request, (result) => [
        settleEffect(tenant, effectId, 'done', JSON.stringify(result)),
      ]),
  }),
};
