import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

const ENTRY_COLUMNS = `
  tenant TEXT NOT NULL,
  number BIGINT,
  workspace TEXT,
  at BIGINT NOT NULL,
  event TEXT NOT NULL,
  data TEXT NOT NULL`;

/** The tables of feeds. */
export const FEED_TABLES: readonly Migration[] = [
  {
    id: 'feed/0001',
    statements: [
      // Tenants whose feed somebody reads or has read recently; entries are stored for these only. `begun_in` is a
      // transaction: those with higher numbers know of the feed. Entries with numbers above the floor are stored.
      `CREATE TABLE feeds (
        tenant TEXT PRIMARY KEY,
        feed_id TEXT NOT NULL,
        until BIGINT NOT NULL,
        begun_in BIGINT,
        last_number BIGINT NOT NULL,
        floor BIGINT NOT NULL
      ) $clustered`,
      // Entries are numbered after their commit, so that the numbers are in the order of commits.
      {
        sqlite: `CREATE TABLE feed_entries (position INTEGER PRIMARY KEY AUTOINCREMENT, ${ENTRY_COLUMNS})`,
        postgres: `CREATE TABLE feed_entries (
                     position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ${ENTRY_COLUMNS})`,
      },
      'CREATE INDEX feed_entries_numbered ON feed_entries (tenant, number) WHERE number IS NOT NULL',
      'CREATE INDEX feed_entries_new ON feed_entries (tenant, position) WHERE number IS NULL',
    ],
  },
];

/** The feed of a tenant. */
export interface FeedRow {
  readonly tenant: string;
  readonly feed_id: string;
  readonly until: number;
  readonly last_number: number;
  readonly floor: number;
  /** 1 if every transaction that may not have known of the feed is over. */
  readonly is_settled: number;
}

/** A numbered entry. */
export interface EntryRow {
  readonly number: number;
  readonly workspace: string | null;
  readonly at: number;
  readonly event: string;
  readonly data: string;
}

/** Deletes entries of transactions that did not know that an earlier feed had ended. */
export function forgetStrays(tenant: string): Write {
  return {
    sql: `DELETE FROM feed_entries WHERE tenant = $1 AND NOT EXISTS (SELECT 1 FROM feeds WHERE tenant = $1)`,
    params: [tenant],
  };
}

/** Begins a feed, or extends its time. */
export function keepFeed(tenant: string, feedId: string, keptMs: number): Write {
  return {
    sql: `INSERT INTO feeds (tenant, feed_id, until, begun_in, last_number, floor) VALUES ($1, $2, $now + $3, NULL, 0, 0)
          ON CONFLICT (tenant) DO UPDATE SET until = excluded.until`,
    params: [tenant, feedId, keptMs],
  };
}

/** Notes the transaction from which on the feed is known; it must be committed after the feed itself. */
export function noteBeginning(tenant: string): Write {
  return {
    sql: 'UPDATE feeds SET begun_in = $transaction WHERE tenant = $1 AND begun_in IS NULL',
    params: [tenant],
  };
}

/** The feed of a tenant. */
export function findFeed(tenant: string): Statement {
  return sql(
    'SELECT *, CASE WHEN begun_in < $settled THEN 1 ELSE 0 END AS is_settled FROM feeds WHERE tenant = $1',
    tenant,
  );
}

/** All feeds; `is_over` is 1 for those that nobody has read for too long. */
export function listFeeds(): Statement {
  return sql('SELECT *, CASE WHEN until < $now THEN 1 ELSE 0 END AS is_over FROM feeds ORDER BY tenant');
}

/** An entry to be stored. */
interface NewEntry {
  readonly tenant: string;
  readonly workspace: string | undefined;
  readonly at: number;
  readonly event: string;
  readonly data: string;
}

/** Stores an entry if the tenant has a feed. */
export function insertEntry({ tenant, workspace, at, event, data }: NewEntry): Write {
  return {
    sql: `INSERT INTO feed_entries (tenant, workspace, at, event, data)
          SELECT $1, $2, CAST($3 AS BIGINT), $4, $5 WHERE EXISTS (SELECT 1 FROM feeds WHERE tenant = $1)`,
    params: [tenant, workspace ?? null, at, event, data],
    onlyIf: { table: 'feeds', tenant },
  };
}

/** An entry that has no number yet. */
export function findNew(tenant: string): Statement {
  return sql('SELECT position FROM feed_entries WHERE tenant = $1 AND number IS NULL LIMIT 1', tenant);
}

/**
 * Numbers committed entries that have no number yet. The first write locks the feed, so that concurrent hosts number one
 * after the other.
 */
export function numberEntries(tenant: string, limit: number): Write[] {
  return [
    { sql: 'UPDATE feeds SET last_number = last_number WHERE tenant = $1', params: [tenant] },
    {
      sql: `UPDATE feed_entries SET number = feeds.last_number + new.place
            FROM feeds, (SELECT position, ROW_NUMBER() OVER (ORDER BY position) AS place FROM feed_entries
                         WHERE tenant = $1 AND number IS NULL ORDER BY position LIMIT $2) AS new
            WHERE feed_entries.position = new.position AND feeds.tenant = $1`,
      params: [tenant, limit],
    },
    {
      sql: `UPDATE feeds SET last_number = COALESCE(
              (SELECT MAX(number) FROM feed_entries WHERE tenant = $1 AND number IS NOT NULL), last_number)
            WHERE tenant = $1`,
      params: [tenant],
    },
  ];
}

/** Entries after a number, in order. */
export function entriesAfter(tenant: string, number: number, limit: number): Statement {
  return sql(
    `SELECT number, workspace, at, event, data FROM feed_entries
     WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3`,
    tenant,
    number,
    limit,
  );
}

/** Deletes all entries up to a number. */
export function raiseFloor(tenant: string, number: number): Write[] {
  return [
    { sql: 'UPDATE feeds SET floor = $1 WHERE tenant = $2', params: [number, tenant] },
    { sql: 'DELETE FROM feed_entries WHERE tenant = $1 AND number <= $2', params: [tenant, number] },
  ];
}

/** Ends a feed whose time is over. The expectation `feed` fails if a reader has just come back. */
export function endFeed(tenant: string): Write[] {
  return [
    { sql: 'DELETE FROM feeds WHERE tenant = $1 AND until < $now', params: [tenant], expect: 1, expectation: 'feed' },
    { sql: 'DELETE FROM feed_entries WHERE tenant = $1', params: [tenant] },
  ];
}
