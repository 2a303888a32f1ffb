import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The secret that seals sessions where the operator sets none. Sessions themselves are not stored. */
export const CONSOLE_TABLES: readonly Migration[] = [
  {
    id: 'console/0001',
    statements: [
      `CREATE TABLE console_keys (
        name TEXT PRIMARY KEY,
        secret TEXT NOT NULL
      ) $clustered`,
    ],
  },
];

const SESSIONS = 'sessions';

/** Stores the secret unless there is one: hosts that start together agree on one. */
export function ensureSessionSecret(secret: string): Write {
  return {
    sql: 'INSERT INTO console_keys (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
    params: [SESSIONS, secret],
  };
}

/** The secret. */
export function readSessionSecret(): Statement {
  return sql('SELECT secret FROM console_keys WHERE name = $1', SESSIONS);
}
