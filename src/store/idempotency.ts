import { lookup, type Statement, type Write } from './sql.ts';

/** The stored response to a request with an idempotency key. */
export interface IdempotencyRow {
  readonly record_key: string;
  /** Hash of the request, to detect a key that is reused for another request. */
  readonly digest: string;
  readonly status: number;
  readonly body: string;
  /** JSON of the response headers that a retry must also get. */
  readonly headers?: string | null;
  /** JSON of the rights that the caller had; absent where nobody signed in, and in rows of earlier releases. */
  readonly rights?: string | null;
}

/**
 * Finds the stored response for a key, unless it has expired. `formerKey` is what earlier releases stored it under; a
 * row that this release wrote comes first.
 */
export function findIdempotencyRecord(recordKey: string, formerKey: string = recordKey): Statement {
  return lookup(
    `SELECT record_key, digest, status, body, headers, rights FROM idempotency
     WHERE record_key IN ($1, $2) AND expires_at > $now ORDER BY CASE WHEN record_key = $1 THEN 0 ELSE 1 END`,
    recordKey,
    formerKey,
  );
}

/**
 * Stores a response for later retries, in the same unit as the write it reports. Fails the expectation `idempotency` if
 * a concurrent request with the same key committed first; then nothing of this request is applied.
 */
export function saveIdempotencyRecord(row: IdempotencyRow, retentionMs: number): Write {
  return {
    sql: `INSERT INTO idempotency (record_key, digest, status, body, headers, rights, expires_at)
          VALUES ($1, $2, $3, $4, $5, $6, $now + $7)
          ON CONFLICT (record_key) DO UPDATE SET
            digest = excluded.digest, status = excluded.status, body = excluded.body, headers = excluded.headers,
            rights = excluded.rights, expires_at = excluded.expires_at
          WHERE idempotency.expires_at <= $now`,
    params: [row.record_key, row.digest, row.status, row.body, row.headers ?? null, row.rights ?? null, retentionMs],
    expect: 1,
    expectation: 'idempotency',
  };
}

/** Deletes expired idempotency records, at most `limit`. */
export function deleteExpiredIdempotencyRecords(limit: number): Write {
  return {
    sql: `DELETE FROM idempotency WHERE record_key IN (
            SELECT record_key FROM idempotency WHERE expires_at <= $now LIMIT $1)`,
    params: [limit],
  };
}
