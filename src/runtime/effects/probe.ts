import type { Migration, Store } from '../../store/store.ts';
import type { SeamDrivers } from './seams.ts';

export const PROBE_TABLES: readonly Migration[] = [
  {
    id: 'probe/0001',
    statements: [
      `CREATE TABLE effect_probes (
        effect_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        fired BIGINT NOT NULL
      ) $clustered`,
    ],
  },
];

/** An effect that can be counted: each time it is really performed, its row says one more. */
export function probeSeam(store: Store): SeamDrivers['probe'] {
  return async (_request, { effectId, tenant, runId }) => {
    await store.commit([
      {
        sql: `INSERT INTO effect_probes (effect_id, tenant, run_id, fired) VALUES ($1, $2, $3, 1)
              ON CONFLICT (effect_id) DO UPDATE SET fired = effect_probes.fired + 1`,
        params: [effectId, tenant, runId],
      },
    ]);
    return { effectId };
  };
}
