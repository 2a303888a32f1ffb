import type { TriggerOutcome } from '../../../protocol/format/choices.ts';
import type { RunRef } from '../../../store/log.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The delivery log of triggers. */
export const DELIVERY_TABLES: Migration = {
  id: 'triggers/0002',
  statements: [
    // What came of requests, and nothing of what was in them. `count` is how many requests a row stands for.
    `CREATE TABLE trigger_deliveries (
      entry_id TEXT PRIMARY KEY,
      trigger_id TEXT NOT NULL,
      tenant TEXT NOT NULL,
      at BIGINT NOT NULL,
      outcome TEXT NOT NULL,
      delivery_id TEXT,
      run_id TEXT,
      code TEXT,
      field TEXT,
      count BIGINT NOT NULL
    ) $clustered`,
    'CREATE INDEX trigger_deliveries_by_trigger ON trigger_deliveries (trigger_id, entry_id)',
    'CREATE INDEX trigger_deliveries_by_time ON trigger_deliveries (at)',
    'CREATE INDEX trigger_deliveries_by_run ON trigger_deliveries (run_id) WHERE run_id IS NOT NULL',
  ],
};

/** A line of the log. Ids sort by time. */
export interface DeliveryRow {
  readonly entry_id: string;
  readonly trigger_id: string;
  readonly tenant: string;
  readonly at: number;
  readonly outcome: TriggerOutcome;
  readonly delivery_id: string | null;
  readonly run_id: string | null;
  readonly code: string | null;
  readonly field: string | null;
  readonly count: number;
}

const SELECTED = `CAST($1 AS TEXT), trigger_id, tenant, CAST($4 AS BIGINT), CAST($5 AS TEXT), CAST($6 AS TEXT),
  CAST($7 AS TEXT), CAST($8 AS TEXT), CAST($9 AS TEXT), CAST($10 AS BIGINT)`;

function paramsOf(row: DeliveryRow): Param[] {
  const { entry_id, trigger_id, tenant, at, outcome, delivery_id, run_id, code, field, count } = row;
  return [entry_id, trigger_id, tenant, at, outcome, delivery_id, run_id, code, field, count];
}

/** Adds a line, unless the trigger is gone. */
export function insertDelivery(row: DeliveryRow): Write {
  return {
    sql: `INSERT INTO trigger_deliveries (entry_id, trigger_id, tenant, at, outcome, delivery_id, run_id, code, field, count)
          SELECT ${SELECTED} FROM triggers WHERE trigger_id = $2 AND tenant = $3`,
    params: paramsOf(row),
  };
}

/**
 * Adds a line in place of those that say the same, with all that they count. Hosts that count for the same trigger wait for
 * each other: each has to see what the other has summed up.
 */
export function addToCount(row: DeliveryRow): Write[] {
  const same = 'trigger_id = $2 AND outcome = $5 AND code = $8';
  return [
    {
      sql: 'UPDATE triggers SET trigger_id = trigger_id WHERE trigger_id = $1 AND tenant = $2',
      params: [row.trigger_id, row.tenant],
    },
    {
      sql: `INSERT INTO trigger_deliveries (entry_id, trigger_id, tenant, at, outcome, delivery_id, run_id, code, field, count)
            SELECT ${SELECTED} + (SELECT CAST(COALESCE(SUM(count), 0) AS BIGINT) FROM trigger_deliveries WHERE ${same})
            FROM triggers WHERE trigger_id = $2 AND tenant = $3`,
      params: paramsOf(row),
    },
    {
      sql: 'DELETE FROM trigger_deliveries WHERE trigger_id = $1 AND outcome = $2 AND code = $3 AND entry_id <> $4',
      params: [row.trigger_id, row.outcome, row.code, row.entry_id],
    },
  ];
}

/** Deletes all but the newest lines of a trigger. */
export function trimDeliveries(triggerId: string, kept: number): Write {
  return {
    sql: `DELETE FROM trigger_deliveries WHERE trigger_id = $1 AND entry_id <= (
            SELECT entry_id FROM trigger_deliveries WHERE trigger_id = $1 ORDER BY entry_id DESC LIMIT 1 OFFSET $2)`,
    params: [triggerId, kept],
  };
}

/** Deletes old lines, a limited number of them. */
export function deleteOldDeliveries(olderThanMs: number, limit: number): Write {
  return {
    sql: `DELETE FROM trigger_deliveries WHERE entry_id IN (
            SELECT entry_id FROM trigger_deliveries WHERE at < $now - $1 LIMIT $2) RETURNING entry_id`,
    params: [olderThanMs, limit],
    returns: true,
  };
}

/** Deletes the log of a trigger. */
export function deleteDeliveriesOf(triggerId: string): Write {
  return { sql: 'DELETE FROM trigger_deliveries WHERE trigger_id = $1', params: [triggerId] };
}

/** Deletes what the logs say about a run. */
export function forgetDeliveredRun({ tenant, runId }: RunRef): Write {
  return { sql: 'DELETE FROM trigger_deliveries WHERE run_id = $1 AND tenant = $2', params: [runId, tenant] };
}

/** Which lines of a log are listed. */
export interface DeliveryFilter {
  readonly outcome?: TriggerOutcome | undefined;
  readonly before?: string | undefined;
}

/** Lines of the log of a trigger, newest first. */
export function listDeliveries(
  { tenant, trigger_id }: { readonly tenant: string; readonly trigger_id: string },
  { outcome, before }: DeliveryFilter,
  limit: number,
): Statement {
  const params: Param[] = [trigger_id, tenant];
  const where = ['trigger_id = $1', 'tenant = $2'];
  if (outcome !== undefined) where.push(`outcome = $${params.push(outcome)}`);
  if (before !== undefined) where.push(`entry_id < $${params.push(before)}`);
  return sql(
    `SELECT * FROM trigger_deliveries WHERE ${where.join(' AND ')} ORDER BY entry_id DESC LIMIT $${params.push(limit)}`,
    ...params,
  );
}
