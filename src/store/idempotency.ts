import { type Statement, sql, type Write } from './sql.ts';

export interface IdempotencyRow {
  readonly record_key: string;
  readonly digest: string;
  readonly status: number;
  readonly body: string;
  /** JSON, where there are any worth saying again. */
  readonly headers?: string | null;
}

export function findAnswer(recordKey: string): Statement {
  return sql(
    'SELECT record_key, digest, status, body, headers FROM idempotency WHERE record_key = $1 AND expires_at > $now',
    recordKey,
  );
}

/**
 * Keeps an answer for later retries, in the transaction of the write that it answers. Refused when a request with
 * the same key was quicker: then nothing of this one happens.
 */
export function keepAnswer(row: IdempotencyRow, retentionMs: number): Write {
  return {
    sql: `INSERT INTO idempotency (record_key, digest, status, body, headers, expires_at)
          VALUES ($1, $2, $3, $4, $5, $now + $6)
          ON CONFLICT (record_key) DO UPDATE SET
            digest = excluded.digest, status = excluded.status, body = excluded.body, headers = excluded.headers,
            expires_at = excluded.expires_at
          WHERE idempotency.expires_at <= $now`,
    params: [row.record_key, row.digest, row.status, row.body, row.headers ?? null, retentionMs],
    expect: 1,
    keeps: 'idempotency',
  };
}

export function forgetAnswers(limit: number): Write {
  return {
    sql: `DELETE FROM idempotency WHERE record_key IN (
            SELECT record_key FROM idempotency WHERE expires_at <= $now LIMIT $1)`,
    params: [limit],
  };
}
