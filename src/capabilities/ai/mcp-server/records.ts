import { HOST_OWNER, notShadowed, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Statement, sql } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** SQL condition for an exposed definition. The LIKE works because stored definitions have no whitespace. */
const IS_EXPOSED = `body LIKE '%"exposeAsTool":true%'`;

/**
 * The owner as an expression, in the index and in the query. The primary key of definitions begins with the owner, too,
 * and SQLite would prefer it, although it then reads every definition.
 */
const OWNER = `(definitions.owner || '')`;

/** The index of definitions that are exposed as tools, which are few among all versions of all workflows. */
export const MCP_SERVER_TABLES: readonly Migration[] = [
  {
    id: 'mcp/0001',
    statements: [
      `CREATE INDEX definitions_exposed ON definitions ((owner || ''), workflow_id, version) WHERE ${IS_EXPOSED}`,
    ],
  },
];

/** Workflows that are exposed as tools, sorted by name. */
export function listExposed(from: Visibility, after: string, limit: number): Statement {
  return sql(
    `SELECT definitions.body FROM (
       SELECT owner, workflow_id, version FROM definitions JOIN workflows USING (owner, workflow_id, version)
       WHERE ${IS_EXPOSED} AND ${OWNER} IN ($1, $2, '${HOST_OWNER}') AND workflow_id > $3
         AND ${notShadowed('workflows', 'workflow_id')}
       ORDER BY workflow_id LIMIT $4) exposed
     JOIN definitions USING (owner, workflow_id, version) ORDER BY workflow_id`,
    ownerOf(from),
    from.tenant,
    after,
    limit,
  );
}
