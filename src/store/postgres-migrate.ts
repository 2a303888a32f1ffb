import pg from 'pg';
import { sleep } from '../system/clock.ts';
import { type AppliedMigration, checksumOf, planMigrations } from './migrations.ts';
import { jittered, type Link, openClient, waitedOut } from './postgres-connections.ts';
import { type Migration, StoreFailure, statementsFor } from './store.ts';

/** The function that checks expectations in the database, and the SQLSTATE with which it refuses. */
export const EXPECT = 'capstan_expect';
/** The SQLSTATE of a failed expectation. */
export const EXPECTATION_FAILED = 'CP001';
/** The SQLSTATE of a lock that was waited for in vain. */
export const LOCK_NOT_AVAILABLE = '55P03';

const MIGRATION_LOCK = 0x0ca95;
/** Whoever waits for a table keeps all others waiting behind it, so a migration gives way and tries again. */
const LOCK_WAIT_MS = '1000';
const LOCK_ATTEMPTS_MAX = 60;
const LOCK_PAUSE_MS = 500;

/** Fails the statement that calls it unless the number of rows is the expected one. */
const EXPECT_FUNCTION = `
  CREATE OR REPLACE FUNCTION ${EXPECT}(touched BIGINT, expected BIGINT, expectation TEXT) RETURNS VOID
  LANGUAGE plpgsql AS $$ BEGIN
    IF touched <> expected THEN
      RAISE EXCEPTION USING ERRCODE = '${EXPECTATION_FAILED}',
        MESSAGE = format('capstan: "%s" expected %s rows and found %s; it is decided again', expectation, expected, touched);
    END IF;
  END $$`;

/**
 * Applies missing migrations, each in a transaction of its own under an advisory lock, so that hosts that start at the
 * same time do not apply one twice.
 */
export async function migrate(link: Link, migrations: readonly Migration[]): Promise<void> {
  // A migration takes as long as it takes.
  const { client } = await waitedOut(link.clock, () => openClient(link, {}, { query_timeout: 0 }));
  try {
    await transact(client, async () => {
      await client.query('CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
      await client.query(EXPECT_FUNCTION);
      await client.query('ALTER TABLE migrations ADD COLUMN IF NOT EXISTS checksum TEXT');
    });
    const { missing, withoutChecksum } = planMigrations('postgres', migrations, await appliedMigrations(client));
    for (const migration of withoutChecksum) {
      const values = [migration.id, checksumOf('postgres', migration)];
      await client.query('UPDATE migrations SET checksum = $2 WHERE id = $1', values);
    }
    for (const migration of missing) await apply(link, client, migration);
  } finally {
    await client.end();
  }
}

/** The migrations that a database has seen; none if it is empty. */
export async function appliedMigrations(client: pg.Client): Promise<AppliedMigration[]> {
  return (await client.query<AppliedMigration>('SELECT id, checksum FROM migrations')).rows;
}

async function apply({ clock }: Link, client: pg.Client, migration: Migration): Promise<void> {
  for (let attempts = 1; ; attempts++) {
    try {
      await transact(client, () => applyOnce(client, migration, clock.now()));
      return;
    } catch (error) {
      const isLocked = error instanceof pg.DatabaseError && error.code === LOCK_NOT_AVAILABLE;
      if (!isLocked) throw error;
      if (attempts === LOCK_ATTEMPTS_MAX) {
        const advice = 'Look for a long transaction, such as a backup, and start again when it is over.';
        throw new StoreFailure(`${migration.id} could not lock its tables. ${advice}`, { cause: error });
      }
    }
    await sleep(clock, jittered(LOCK_PAUSE_MS));
  }
}

/** Does nothing if another host has applied it meanwhile. */
async function applyOnce(client: pg.Client, migration: Migration, now: number): Promise<void> {
  const { rowCount } = await client.query(
    'INSERT INTO migrations (id, checksum, applied_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING',
    [migration.id, checksumOf('postgres', migration), now],
  );
  if (rowCount === 0) return;
  await client.query(`SELECT set_config('lock_timeout', $1, true)`, [LOCK_WAIT_MS]);
  for (const statement of statementsFor('postgres', migration)) {
    await client.query(statement.replaceAll('$clustered', ''));
  }
}

/** One transaction of one host at a time. The lock ends with it, whichever session a pooler gives it. */
async function transact(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query('BEGIN');
  try {
    await client.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    await work();
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}
