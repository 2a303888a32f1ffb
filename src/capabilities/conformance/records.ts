import type { Write } from '../../store/sql.ts';
import type { Migration } from '../../store/store.ts';

/** The tables of the scaffolding. The migration keeps the id that it had when every host applied it. */
export const CONFORMANCE_TABLES: readonly Migration[] = [
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

/** The effect that a probe counts. */
export interface ProbedEffect {
  readonly effectId: string;
  readonly tenant: string;
  readonly runId: string;
}

/** Adds one to the number of times that an effect was performed. */
export function countEffect({ effectId, tenant, runId }: ProbedEffect): Write {
  return {
    sql: `INSERT INTO effect_probes (effect_id, tenant, run_id, fired) VALUES ($1, $2, $3, 1)
          ON CONFLICT (effect_id) DO UPDATE SET fired = effect_probes.fired + 1`,
    params: [effectId, tenant, runId],
  };
}
