import { type Statement, sql, type Write } from './sql.ts';

/** Records a host's heartbeat and its version: its leases stay valid for another `leaseMs` by the store's clock. */
export function keepAlive(hostId: string, leaseMs: number, version: string | null = null): Write {
  return {
    sql: `INSERT INTO hosts (host_id, alive_until, version) VALUES ($1, $now + $2, $3)
          ON CONFLICT (host_id) DO UPDATE SET alive_until = excluded.alive_until`,
    params: [hostId, leaseMs, version],
  };
}

/**
 * Writes something, to see whether the store takes writes: a row of its own, so that heartbeats never wait for it. It
 * goes with the dead hosts.
 */
export function probeWrite(hostId: string): Write {
  return {
    sql: `INSERT INTO hosts (host_id, alive_until) VALUES ($1, 0)
          ON CONFLICT (host_id) DO UPDATE SET alive_until = excluded.alive_until`,
    params: [`${hostId}/probe`],
  };
}

/** A host with a valid heartbeat. */
export interface LiveHost {
  readonly host_id: string;
  readonly version: string | null;
  readonly held: number;
}

/** The hosts with a valid heartbeat, each with how many items it holds. */
export function findHosts(): Statement {
  return sql(
    `SELECT host_id, version, (SELECT COUNT(*) FROM work WHERE work.owner = hosts.host_id) AS held
     FROM hosts WHERE alive_until >= $now ORDER BY host_id`,
  );
}

/** What the database takes on its disk, in bytes. */
export function storeSize(): Statement {
  return sql('SELECT $storeBytes AS bytes');
}

/** Counts the hosts with a valid heartbeat. */
export function countHosts(): Statement {
  return sql('SELECT COUNT(*) AS count FROM hosts WHERE alive_until >= $now');
}

/** Removes a host's heartbeat at shutdown, so that others take over its items at once. */
export function removeHost(hostId: string): Write {
  return { sql: 'DELETE FROM hosts WHERE host_id = $1', params: [hostId] };
}

/** Removes the heartbeats of all other hosts. For a store with a single owner, where any earlier host has ended. */
export function deleteOtherHosts(hostId: string): Write {
  return { sql: 'DELETE FROM hosts WHERE host_id <> $1', params: [hostId] };
}

/** Removes heartbeats that expired more than a day ago, unless items still name the host as owner. */
export function deleteDeadHosts(): Write {
  return {
    sql: `DELETE FROM hosts WHERE alive_until < $now - 86400000
          AND NOT EXISTS (SELECT 1 FROM work WHERE work.owner = hosts.host_id)`,
    params: [],
  };
}
