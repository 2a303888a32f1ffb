import { addCount, type NewRows, type Statement, sql, type Write } from './sql.ts';

/** Whose bytes are counted, and in which row: hosts that counted in one row would wait for each other. */
export interface StorageShard {
  readonly tenant: string;
  readonly shard: string;
}

/** Where the counts of hosts that are gone are added up. */
const MERGED = '*';

const ADD = 'ON CONFLICT (tenant, shard) DO UPDATE SET bytes = tenant_storage.bytes + excluded.bytes';

const COUNTED: NewRows = { insert: 'INSERT INTO tenant_storage (tenant, shard, bytes)', columns: 3, onConflict: ADD };

/** Counts bytes that a tenant stores with this unit. */
export function countBytes({ tenant, shard }: StorageShard, bytes: number): Write {
  return addCount(COUNTED, [tenant, shard, bytes]);
}

/** Gives back the bytes of a run's row. It must still exist: this comes before its deletion. */
export function releaseRunBytes({ tenant, shard }: StorageShard, runId: string): Write {
  return {
    sql: `INSERT INTO tenant_storage (tenant, shard, bytes)
          SELECT tenant, CAST($2 AS TEXT), -octet_length(facts) FROM runs WHERE run_id = $3 AND tenant = $1 ${ADD}`,
    params: [tenant, shard, runId],
  };
}

/** Gives back the bytes of a run's events from a sequence on. They must still exist. */
export function releaseEventBytes({ tenant, shard }: StorageShard, runId: string, fromSequence: number): Write {
  return {
    sql: `INSERT INTO tenant_storage (tenant, shard, bytes)
          SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), -COALESCE(SUM(octet_length(body) + COALESCE(octet_length(hidden), 0)), 0)
          FROM events WHERE run_id = $3 AND sequence >= $4 ${ADD}`,
    params: [tenant, shard, runId, fromSequence],
  };
}

/** The bytes that a tenant has stored. */
export function bytesOfTenant(tenant: string): Statement {
  return sql('SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes FROM tenant_storage WHERE tenant = $1', tenant);
}

/** The most that one tenant has stored, and how many have at least `limit`. */
export function mostBytes(limit: number): Statement {
  return sql(
    `SELECT CAST(COALESCE(MAX(bytes), 0) AS BIGINT) AS most,
            CAST(COALESCE(SUM(CASE WHEN bytes >= $1 THEN 1 ELSE 0 END), 0) AS BIGINT) AS full_tenants
     FROM (SELECT SUM(bytes) AS bytes FROM tenant_storage GROUP BY tenant) AS tenants`,
    limit,
  );
}

/** Adds up the counts of hosts that are gone. */
export function mergeShards(): Write[] {
  const gone = `shard LIKE 'host-%' AND NOT EXISTS (SELECT 1 FROM hosts WHERE host_id = shard)`;
  return [
    {
      sql: `INSERT INTO tenant_storage (tenant, shard, bytes)
            SELECT tenant, '${MERGED}', SUM(bytes) FROM tenant_storage WHERE ${gone} GROUP BY tenant ${ADD}`,
      params: [],
    },
    { sql: `DELETE FROM tenant_storage WHERE ${gone}`, params: [] },
  ];
}
