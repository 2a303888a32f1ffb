import { type Statement, sql, type Write } from '../../store/sql.ts';
import type { Migration } from '../../store/store.ts';

const ENTRY_COLUMNS = `
  batch BIGINT NOT NULL,
  tenant TEXT NOT NULL,
  workspace TEXT,
  at BIGINT NOT NULL,
  event TEXT NOT NULL,
  data TEXT NOT NULL`;

export const FEED_TABLES: readonly Migration[] = [
  {
    id: 'feed/0001',
    statements: [
      // Tenants whose feed somebody reads, or read a moment ago. Only for these are entries kept. A feed is complete
      // from its floor on; it has one once every transaction that may not have known of it is over.
      `CREATE TABLE feeds (
        tenant TEXT PRIMARY KEY,
        feed_id TEXT NOT NULL,
        until BIGINT NOT NULL,
        floor_batch BIGINT,
        floor_position BIGINT NOT NULL
      ) $clustered`,
      // What happened, in the order in which it was committed: by transaction, then by place in it.
      {
        sqlite: `CREATE TABLE feed_entries (position INTEGER PRIMARY KEY AUTOINCREMENT, ${ENTRY_COLUMNS})`,
        postgres: `CREATE TABLE feed_entries (
                     position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ${ENTRY_COLUMNS})`,
      },
      'CREATE INDEX feed_entries_in_order ON feed_entries (tenant, batch, position)',
    ],
  },
];

/** A place in a feed: behind the entry that it names. */
export interface FeedPlace {
  readonly batch: number;
  readonly position: number;
}

export interface FeedRow {
  readonly tenant: string;
  readonly feed_id: string;
  readonly until: number;
  readonly floor_batch: number | null;
  readonly floor_position: number;
  readonly is_settled: number;
}

export interface EntryRow extends FeedPlace {
  readonly workspace: string | null;
  readonly at: number;
  readonly event: string;
  readonly data: string;
}

/** Begins a feed, or keeps one from ending. */
export function keepFeed(tenant: string, feedId: string, keptMs: number): Write {
  return {
    sql: `INSERT INTO feeds (tenant, feed_id, until, floor_batch, floor_position) VALUES ($1, $2, $now + $3, NULL, 0)
          ON CONFLICT (tenant) DO UPDATE SET until = excluded.until`,
    params: [tenant, feedId, keptMs],
  };
}

/** Must be committed after the feed itself: transactions that are numbered higher know of the feed. */
export function setFloor(tenant: string): Write {
  return {
    sql: 'UPDATE feeds SET floor_batch = $transaction WHERE tenant = $1 AND floor_batch IS NULL',
    params: [tenant],
  };
}

export function findFeed(tenant: string): Statement {
  return sql(
    'SELECT *, CASE WHEN floor_batch < $settled THEN 1 ELSE 0 END AS is_settled FROM feeds WHERE tenant = $1',
    tenant,
  );
}

export function listFeeds(): Statement {
  return sql('SELECT *, CASE WHEN until < $now THEN 1 ELSE 0 END AS is_over FROM feeds ORDER BY tenant');
}

export interface NewEntry {
  readonly tenant: string;
  readonly workspace: string | undefined;
  readonly at: number;
  readonly event: string;
  readonly data: string;
}

/** Nothing, unless the tenant has a feed. */
export function insertEntry({ tenant, workspace, at, event, data }: NewEntry): Write {
  return {
    sql: `INSERT INTO feed_entries (batch, tenant, workspace, at, event, data)
          SELECT $transaction, $1, $2, CAST($3 AS BIGINT), $4, $5 WHERE EXISTS (SELECT 1 FROM feeds WHERE tenant = $1)`,
    params: [tenant, workspace ?? null, at, event, data],
  };
}

/** The next entries. Those of a transaction are there only when all that are numbered lower are over, too. */
export function entriesAfter(tenant: string, { batch, position }: FeedPlace, limit: number): Statement {
  return sql(
    `SELECT batch, position, workspace, at, event, data FROM feed_entries
     WHERE tenant = $1 AND (batch, position) > ($2, $3) AND batch < $settled ORDER BY batch, position LIMIT $4`,
    tenant,
    batch,
    position,
    limit,
  );
}

export function lastEntry(tenant: string): Statement {
  return sql(
    `SELECT batch, position FROM feed_entries WHERE tenant = $1 AND batch < $settled
     ORDER BY batch DESC, position DESC LIMIT 1`,
    tenant,
  );
}

export function firstEntries(tenant: string, limit: number): Statement {
  return sql(
    `SELECT batch, position, at FROM feed_entries WHERE tenant = $1 AND batch < $settled
     ORDER BY batch, position LIMIT $2`,
    tenant,
    limit,
  );
}

export function countEntries(tenant: string): Statement {
  return sql('SELECT COUNT(*) AS count FROM feed_entries WHERE tenant = $1', tenant);
}

/** Forgets everything up to a place, and that it was ever there. */
export function raiseFloor(tenant: string, { batch, position }: FeedPlace): Write[] {
  return [
    {
      sql: 'UPDATE feeds SET floor_batch = $1, floor_position = $2 WHERE tenant = $3',
      params: [batch, position, tenant],
    },
    {
      sql: 'DELETE FROM feed_entries WHERE tenant = $1 AND (batch, position) <= ($2, $3)',
      params: [tenant, batch, position],
    },
  ];
}

/** Ends a feed that nobody has read for so long, unless somebody has just come back. */
export function endFeed(tenant: string): Write[] {
  return [
    { sql: 'DELETE FROM feeds WHERE tenant = $1 AND until < $now', params: [tenant], expect: 1, keeps: 'feed' },
    { sql: 'DELETE FROM feed_entries WHERE tenant = $1', params: [tenant] },
  ];
}
