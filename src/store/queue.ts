import { type Statement, sql, type Write } from './sql.ts';

/** Something that will happen: executing a run, a retry, a timeout, a delivery. A row, never a timer alone. */
export interface WorkItem {
  readonly work_id: string;
  readonly kind: string;
  readonly tenant: string;
  readonly payload: string;
  readonly epoch: number;
  readonly wakes: number;
  /** Times in a row that a host died, or failed, while it held this item. */
  readonly crashes: number;
  /** Set where the item was taken over from a host that died holding it. */
  readonly previous_owner?: string | null;
}

/** The right to work on an item. A write that carries it is refused once somebody else has claimed the item. */
export interface Lease {
  readonly workId: string;
  readonly owner: string;
  readonly epoch: number;
}

export interface NewWork {
  readonly workId: string;
  readonly kind: string;
  readonly tenant: string;
  readonly payload?: string;
  readonly dueAt: number | null;
  /** Claimed by its maker from the start: no other host need look at it. */
  readonly owner?: string | undefined;
}

export const FIRST_EPOCH = 1;

export function addWork({ workId, kind, tenant, payload = '', dueAt, owner }: NewWork): Write {
  return {
    sql: `INSERT INTO work (work_id, kind, tenant, payload, due_at, owner, epoch, wakes, crashes)
          VALUES ($1, $2, $3, $4, $5, $6, $7, 0, 0)`,
    params: [workId, kind, tenant, payload, dueAt, owner ?? null, FIRST_EPOCH],
  };
}

/** Like addWork, and leaves an item of that id as it is: for work that there is one of. */
export function ensureWork(work: NewWork): Write {
  const write = addWork(work);
  return { ...write, sql: `${write.sql} ON CONFLICT (work_id) DO NOTHING` };
}

/** Claims items that are due and free, of kinds that there is not enough of in hand. */
export function claimDue(owner: string, limit: number, except: readonly string[]): Write {
  return {
    sql: `UPDATE work SET owner = $1, epoch = epoch + 1, due_at = NULL WHERE work_id IN (
            SELECT work_id FROM work WHERE owner IS NULL AND due_at <= $now ${notOf(except, 3)}
            ORDER BY due_at LIMIT $2 $skipLocked
          ) AND owner IS NULL RETURNING work_id, kind, tenant, payload, epoch, wakes, crashes`,
    params: [owner, limit, ...except],
    returns: true,
  };
}

function notOf(kinds: readonly string[], firstPlace: number): string {
  return kinds.length === 0 ? '' : `AND kind NOT IN (${kinds.map((_, index) => `$${firstPlace + index}`).join(', ')})`;
}

export function claimOrphans(owner: string, limit: number): Write {
  return {
    sql: `UPDATE work SET owner = $1, epoch = epoch + 1, due_at = NULL, crashes = crashes + 1 WHERE work_id IN (
            SELECT work_id FROM work WHERE owner IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM hosts WHERE host_id = work.owner AND alive_until >= $now)
            LIMIT $2 $skipLocked
          ) RETURNING work_id, kind, tenant, payload, epoch, wakes, crashes, 'lost' AS previous_owner`,
    params: [owner, limit],
    returns: true,
  };
}

/** Still mine? The guard of every write made under a lease. `progressed` forgets earlier crashes. */
export function holdLease({ workId, owner, epoch }: Lease, progressed: boolean): Write {
  return {
    sql: `UPDATE work SET crashes = ${progressed ? '0' : 'crashes'} WHERE work_id = $1 AND owner = $2 AND epoch = $3`,
    params: [workId, owner, epoch],
    expect: 1,
    keeps: 'lease',
  };
}

/**
 * Gives the item back until `dueAt`, or until somebody wakes it. Refused when it was woken since `wakes` was read:
 * whoever woke it had a reason that the holder may not have seen.
 */
export function releaseLease({ workId, owner, epoch }: Lease, dueAt: number | null, wakes: number): Write {
  return {
    sql: `UPDATE work SET owner = NULL, due_at = $1, crashes = 0
          WHERE work_id = $2 AND owner = $3 AND epoch = $4 AND wakes = $5`,
    params: [dueAt, workId, owner, epoch, wakes],
    expect: 1,
    keeps: 'lease',
  };
}

/** Gives the item back after a failure, to be tried again at `dueAt`. */
export function retryWork({ workId, owner, epoch }: Lease, dueAt: number): Write {
  return {
    sql: `UPDATE work SET owner = NULL, due_at = $1, crashes = crashes + 1
          WHERE work_id = $2 AND owner = $3 AND epoch = $4`,
    params: [dueAt, workId, owner, epoch],
  };
}

export function finishWork({ workId, owner, epoch }: Lease): Write {
  return {
    sql: 'DELETE FROM work WHERE work_id = $1 AND owner = $2 AND epoch = $3',
    params: [workId, owner, epoch],
    expect: 1,
    keeps: 'lease',
  };
}

/** Like finishWork, and refused like releaseLease when somebody woke the item since `wakes` was read. */
export function finishUnlessWoken({ workId, owner, epoch }: Lease, wakes: number): Write {
  return {
    sql: 'DELETE FROM work WHERE work_id = $1 AND owner = $2 AND epoch = $3 AND wakes = $4',
    params: [workId, owner, epoch, wakes],
    expect: 1,
    keeps: 'lease',
  };
}

/** Still mine? Then this is how far it has come, and whoever takes it over goes on from there. */
export function noteProgress({ workId, owner, epoch }: Lease, payload: string): Write {
  return {
    sql: 'UPDATE work SET payload = $1, crashes = 0 WHERE work_id = $2 AND owner = $3 AND epoch = $4',
    params: [payload, workId, owner, epoch],
    expect: 1,
    keeps: 'lease',
  };
}

export function dropWork(workId: string): Write {
  return { sql: 'DELETE FROM work WHERE work_id = $1', params: [workId] };
}

/** Asks for attention now, whoever holds the item. */
export function wake(workId: string): Write {
  return { sql: 'UPDATE work SET due_at = $now, wakes = wakes + 1 WHERE work_id = $1', params: [workId] };
}

/** Makes an item due now unless somebody has it in hand; gives a row if it did. */
export function hasten(workId: string): Write {
  return {
    sql: 'UPDATE work SET due_at = $now WHERE work_id = $1 AND owner IS NULL RETURNING work_id',
    params: [workId],
    returns: true,
  };
}

/** Everything this owner holds; `due_at` is set on what somebody woke. */
export function ownedWork(owner: string): Statement {
  return sql('SELECT work_id, kind, tenant, payload, epoch, wakes, crashes, due_at FROM work WHERE owner = $1', owner);
}

export function readWakes(workId: string): Statement {
  return sql('SELECT wakes, owner, epoch, payload FROM work WHERE work_id = $1', workId);
}

export function nextDue(except: readonly string[]): Statement {
  return sql(
    `SELECT MIN(due_at) AS due_at FROM work WHERE owner IS NULL AND due_at IS NOT NULL ${notOf(except, 1)}`,
    ...except,
  );
}

export function keepAlive(hostId: string, leaseMs: number): Write {
  return {
    sql: `INSERT INTO hosts (host_id, alive_until) VALUES ($1, $now + $2)
          ON CONFLICT (host_id) DO UPDATE SET alive_until = excluded.alive_until`,
    params: [hostId, leaseMs],
  };
}

export function countHosts(): Statement {
  return sql('SELECT COUNT(*) AS count FROM hosts WHERE alive_until >= $now');
}

export function leaveHosts(hostId: string): Write {
  return { sql: 'DELETE FROM hosts WHERE host_id = $1', params: [hostId] };
}

/** For a store with one owner: whoever was here before is gone. */
export function forgetOtherHosts(hostId: string): Write {
  return { sql: 'DELETE FROM hosts WHERE host_id <> $1', params: [hostId] };
}

export function forgetDeadHosts(): Write {
  return {
    sql: `DELETE FROM hosts WHERE alive_until < $now - 86400000
          AND NOT EXISTS (SELECT 1 FROM work WHERE work.owner = hosts.host_id)`,
    params: [],
  };
}
