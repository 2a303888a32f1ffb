import { defineNode, fatal, retryable, Type } from 'capstan/build';
import pg from 'pg';
import { setting } from './http.ts';

/** Remembers which effects have happened. Its rows can be deleted once the runs that they belong to have ended. */
const TABLE = 'CREATE TABLE IF NOT EXISTS capstan_effects (key TEXT PRIMARY KEY, rows JSONB NOT NULL)';

type Row = Record<string, unknown>;

/** Does something with a connection, within one transaction. */
async function inTransaction<T>(perform: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: setting('EXAMPLE_DATABASE_URL') });
  try {
    await client.connect();
    await client.query('BEGIN');
    const result = await perform(client);
    await client.query('COMMIT');
    return result;
  } catch (error) {
    const { code = '', message } = error as { code?: string; message: string };
    // Classes 22, 23 and 42: the statement, or what it was given, is wrong and stays wrong.
    if (/^(22|23|42)/.test(code)) throw fatal('postgres_refused', message);
    throw retryable('postgres_failed', message);
  } finally {
    await client.end();
  }
}

/**
 * Executes a statement exactly once, whatever dies when: the key of the effect is stored in the transaction of the
 * statement, so whoever attempts it again finds that it has happened, and what it resulted in.
 */
export async function once(key: string, statement: string, parameters: readonly unknown[]): Promise<Row[]> {
  return inTransaction(async (client) => {
    await client.query(TABLE);
    const claimed = await client.query(
      "INSERT INTO capstan_effects (key, rows) VALUES ($1, '[]') ON CONFLICT DO NOTHING RETURNING key",
      [key],
    );
    if (claimed.rowCount === 0) {
      const { rows } = await client.query<{ rows: Row[] }>('SELECT rows FROM capstan_effects WHERE key = $1', [key]);
      return rows[0]!.rows;
    }
    const { rows } = await client.query<Row>(statement, [...parameters]);
    await client.query('UPDATE capstan_effects SET rows = $2 WHERE key = $1', [key, JSON.stringify(rows)]);
    return rows;
  });
}

/** Executes a statement that its author wrote; what runs pass in are parameters, and never part of the text. */
export const postgresQuery = defineNode({
  typeId: 'postgres.query',
  description: 'Executes a statement on a PostgreSQL database, exactly once.',
  safety: 'write',
  config: Type.Object({ statement: Type.String({ description: 'SQL, with $1, $2 … for the parameters' }) }),
  inputs: Type.Object({ parameters: Type.Optional(Type.Array(Type.Unknown())) }),
  outputs: Type.Object({ rows: Type.Array(Type.Record(Type.String(), Type.Unknown())) }),
  timeoutMs: 60_000,
  run: async ({ config, inputs: { parameters = [] }, effect }) => ({
    rows: await effect('query', ({ idempotencyKey }) => once(idempotencyKey, config.statement, parameters)),
  }),
});
