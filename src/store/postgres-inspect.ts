import type pg from 'pg';
import type { Clock } from '../system/clock.ts';
import { linkOf, openClient, waitedOut } from './postgres-connections.ts';
import { appliedMigrations } from './postgres-migrate.ts';
import type { LiveHost, StoreState } from './upgrade.ts';

/** Looks at a PostgreSQL database without changing it, whichever version has made its tables. */
export async function inspectPostgres(url: string, clock: Clock): Promise<StoreState> {
  const link = linkOf(url, clock);
  const { client } = await waitedOut(clock, () => openClient(link, {}));
  try {
    const isThere = async (table: string): Promise<boolean> =>
      (await client.query('SELECT to_regclass($1) AS id', [table])).rows[0].id !== null;
    return {
      kind: 'postgres',
      applied: (await isThere('migrations')) ? await appliedMigrations(client) : [],
      hosts: (await isThere('hosts')) ? await liveHosts(client) : [],
    };
  } finally {
    await client.end();
  }
}

/** Older stores have no column for the version. */
async function liveHosts(client: pg.Client): Promise<LiveHost[]> {
  const { rows } = await client.query<LiveHost>(
    `SELECT host_id AS "hostId", to_jsonb(hosts) ->> 'version' AS version FROM hosts
     WHERE alive_until >= extract(epoch from clock_timestamp()) * 1000 ORDER BY host_id`,
  );
  return rows;
}
