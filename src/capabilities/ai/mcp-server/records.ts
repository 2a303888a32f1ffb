import { notShadowed, ownerOf, VISIBLE_OWNERS } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import { type Statement, sql } from '../../../store/sql.ts';

/** Workflows that are exposed as tools, sorted by name. The LIKE works because stored definitions have no whitespace. */
export function listExposed(from: Visibility, after: string, limit: number): Statement {
  return sql(
    `SELECT definitions.body FROM workflows JOIN definitions USING (owner, workflow_id, version)
     WHERE ${VISIBLE_OWNERS} AND workflow_id > $3 AND body LIKE '%"exposeAsTool":true%'
       AND ${notShadowed('workflows', 'workflow_id')}
     ORDER BY workflow_id LIMIT $4`,
    ownerOf(from),
    from.tenant,
    after,
    limit,
  );
}
