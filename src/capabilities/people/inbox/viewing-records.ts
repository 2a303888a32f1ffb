import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import type { View } from './viewing-rules.ts';

/** The table through which hosts tell each other who looks at what. A host without others keeps that in memory alone. */
export const INBOX_TABLES: readonly Migration[] = [
  {
    id: 'inbox/0001',
    statements: [
      // A row for each host that received the view, until it expires. `run_id` is '' for an item
      // without a run.
      `CREATE TABLE inbox_views (
        tenant TEXT NOT NULL,
        principal TEXT NOT NULL,
        view_id TEXT NOT NULL,
        host TEXT NOT NULL,
        workspace TEXT,
        kind TEXT NOT NULL,
        item_id TEXT NOT NULL,
        run_id TEXT NOT NULL,
        since BIGINT NOT NULL,
        until BIGINT NOT NULL,
        PRIMARY KEY (tenant, principal, view_id, host)
      ) $clustered`,
      'CREATE INDEX inbox_views_until ON inbox_views (until)',
    ],
  },
];

/** A view that a host has stored. */
interface ViewRow {
  readonly tenant: string;
  readonly principal: string;
  readonly view_id: string;
  readonly workspace: string | null;
  readonly kind: View['item']['kind'];
  readonly item_id: string;
  readonly run_id: string;
  readonly since: number;
}

/** Tells the other hosts of a view, for so long by the store's clock. */
export function saveView({ tenant, principal, viewId, item, since }: View, host: string, forMs: number): Write {
  return {
    sql: `INSERT INTO inbox_views (tenant, principal, view_id, host, workspace, kind, item_id, run_id, since, until)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $now + $10)
          ON CONFLICT (tenant, principal, view_id, host) DO UPDATE SET workspace = excluded.workspace,
            kind = excluded.kind, item_id = excluded.item_id, run_id = excluded.run_id, since = excluded.since,
            until = excluded.until`,
    params: [tenant, principal, viewId, host, item.workspace, item.kind, item.id, item.runId ?? '', since, forMs],
  };
}

/** Deletes the views that have expired: their hosts have died. */
export function deleteOldViews(): Write {
  return { sql: 'DELETE FROM inbox_views WHERE until < $now', params: [] };
}

/** Deletes the row that one host has for a view. */
export function deleteView(
  { tenant, principal, viewId }: Pick<View, 'tenant' | 'principal' | 'viewId'>,
  host: string,
): Write {
  return {
    sql: 'DELETE FROM inbox_views WHERE tenant = $1 AND principal = $2 AND view_id = $3 AND host = $4',
    params: [tenant, principal, viewId, host],
  };
}

/** Ends a view, whichever hosts have rows for it. */
export function endView({ tenant, principal, viewId }: Pick<View, 'tenant' | 'principal' | 'viewId'>): Write {
  return {
    sql: 'DELETE FROM inbox_views WHERE tenant = $1 AND principal = $2 AND view_id = $3',
    params: [tenant, principal, viewId],
  };
}

/** Deletes all rows of one host. */
export function deleteViewsOf(host: string): Write {
  return { sql: 'DELETE FROM inbox_views WHERE host = $1', params: [host] };
}

/** The views of a tenant that last; if several hosts have a row for one, the latest. */
export function listViews(tenant: string, limit: number): Statement {
  return sql(
    `SELECT tenant, principal, view_id, workspace, kind, item_id, run_id, since FROM inbox_views AS view
     WHERE tenant = $1 AND until >= $now AND NOT EXISTS (
       SELECT 1 FROM inbox_views AS later WHERE later.tenant = view.tenant AND later.principal = view.principal
         AND later.view_id = view.view_id AND (later.until, later.host) > (view.until, view.host))
     ORDER BY since LIMIT $2`,
    tenant,
    limit,
  );
}

/** The view of a row. */
export function viewFrom(row: ViewRow): View {
  const { tenant, principal, view_id: viewId, workspace, kind, item_id: id, run_id: runId, since } = row;
  return { tenant, principal, viewId, item: { kind, id, workspace, ...(runId === '' ? {} : { runId }) }, since };
}
