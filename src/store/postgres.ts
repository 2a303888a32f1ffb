import { createHash } from 'node:crypto';
import pg from 'pg';
import { type Clock, sleep } from '../system/clock.ts';
import type { Meter } from '../system/meter.ts';
import { Blocked, GroupCommit } from './group-commit.ts';
import { type AppliedMigration, checksumOf, planMigrations } from './migrations.ts';
import { HINT_CHANNEL, Hints } from './postgres-hints.ts';
import { executeTogether, type PreparedStatement, type PreparingClient, StatementFailed } from './postgres-pipeline.ts';
import type { CommitOutcome, Param, Row, Statement, Unit, Write } from './sql.ts';
import { type Migration, type Store, StoreFailure, statementsFor } from './store.ts';

/** Options of the PostgreSQL store, which several hosts may share. */
interface PostgresOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** Where transactions are counted. */
  readonly meter?: Meter | undefined;
  /**
   * If true, `$now` is the given clock, for tests that control time. Otherwise it is the database's clock, so that all
   * hosts agree on leases.
   */
  readonly useOwnClock?: boolean;
  /** How long a transaction may take, and how long its locks outlive a host that stops in the middle of it. */
  readonly stallMs?: number;
}

/** How often a lock is waited for within that time. */
const LOCK_WAITS = 4;

/** Hosts that share the database go on within so many milliseconds after one of them freezes. */
const STALL_MS = 4_000;

const READERS_MAX = 8;
const CONNECT_TIMEOUT_MS = 10_000;
/** After this long a query counts as lost and its connection is replaced. */
const QUERY_TIMEOUT_MS = 30_000;
/** How long an answer may be on its way. */
const ANSWER_MS = 5_000;
/** How long the database takes to notice that the machine of a host is gone: after silence, and between attempts. */
const KEEPALIVE_S = { tcp_keepalives_idle: '5', tcp_keepalives_interval: '2', tcp_keepalives_count: '3' };
const UNREAD_MAX_MS = '10000';
/** How long a database that takes no connections now, or none at all, is waited for before a request fails. */
const PATIENCE_MS = 3_000;
const PAUSE_MS = 100;
const MIGRATION_LOCK = 0x0ca95;
/** Serialization failure and deadlock: PostgreSQL asks the client to retry the transaction. */
const RETRYABLE_CODES: readonly unknown[] = ['40001', '40P01'];
const LOCK_NOT_AVAILABLE = '55P03';
const ATTEMPTS_MAX = 5;
/** Units that a group leaves out one by one before each of the others is committed separately too. */
const ASIDE_MAX = 4;
/** Units of a group that may wait for a lock in vain before the others are left for the next one. */
const BLOCKED_PER_GROUP = 2;
/** The function that checks expectations in the database, and the SQLSTATE with which it refuses. */
const EXPECT = 'capstan_expect';
const EXPECTATION_FAILED = 'CP001';
const DATABASE_NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const TRANSACTION = 'pg_current_xact_id()::text::bigint';
const SETTLED = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
const BIGINT_OID = 20;

const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/** How connections are made. */
interface Settings {
  readonly client: pg.ClientConfig;
  readonly types: pg.CustomTypesConfig;
  readonly clock: Clock;
  readonly stallMs: number;
}

/**
 * Opens the PostgreSQL store: one connection writes, one more writes what is urgent, a pool reads, and one connection
 * listens for hints.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { clock, migrations, meter, useOwnClock } = options;
  const settings = settingsOf(options);
  const render = renderer(useOwnClock ? clock : undefined);
  const writers = [new Writer(settings, render), new Writer(settings, render)] as const;
  const [group, urgent] = writers.map((writer) => new GroupCommit((units) => writer.commitGroup(units), clock, meter));
  const readers = readerPool(settings);
  const hints = new Hints(settings.client, clock, (payload) =>
    readers.query('SELECT pg_notify($1, $2)', [HINT_CHANNEL, payload]),
  );
  try {
    await migrate(settings, migrations);
    await waitedOut(clock, () => hints.listen());
  } catch (error) {
    await Promise.allSettled([hints.close(), readers.end()]);
    throw new StoreFailure(`PostgreSQL: could not connect or migrate the schema: ${(error as Error).message}`, {
      cause: error,
    });
  }

  let closed: Promise<void> | undefined;
  return {
    isShared: true,
    read: async <R>(statement: Statement) => {
      const { name, text, values } = render(statement);
      try {
        return (await waitedOut(clock, () => readers.query({ name, text, values: [...values] }))).rows as R[];
      } catch (error) {
        throw new StoreFailure('PostgreSQL: the query failed.', { cause: error });
      }
    },
    commit: (unit, { isUrgent = false, tenant } = {}) => (isUrgent ? urgent! : group!).commit(unit, tenant),
    hint: (topics) => hints.add(topics),
    onHint: (listener) => hints.onTopic(listener),
    reclaim: async () => {},
    close: () => {
      closed ??= Promise.all([group!.drained(), urgent!.drained()]).then(async () => {
        await Promise.allSettled([hints.close(), ...writers.map((writer) => writer.close()), readers.end()]);
      });
      return closed;
    },
  };
}

function settingsOf({ url, clock, stallMs = STALL_MS }: PostgresOptions): Settings {
  const client = {
    connectionString: url,
    application_name: 'capstan',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: Number(KEEPALIVE_S.tcp_keepalives_idle) * 1_000,
    types: TYPES,
  };
  return { client, types: TYPES, clock, stallMs };
}

function readerPool({ client: settings }: Settings): pg.Pool {
  const onConnect = async (client: pg.ClientBase): Promise<void> => {
    await client.query(configure({ statement_timeout: String(QUERY_TIMEOUT_MS) }));
  };
  const readers = new pg.Pool({ ...settings, max: READERS_MAX, onConnect });
  // The pool replaces a connection that fails while idle, so the error needs no handling.
  readers.on('error', () => {});
  return readers;
}

/**
 * Opens a connection that writes. The database ends its transactions if this process stops in the middle of one: their
 * locks must not stop the other hosts. A unit that needs such a lock gives way to others several times within that time.
 */
async function openClient({ client: settings, stallMs }: Settings): Promise<pg.Client> {
  // By then the database itself has given up; no answer means that there is no way to it.
  const client = new pg.Client({ ...settings, query_timeout: stallMs + ANSWER_MS });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query(
      configure({
        lock_timeout: String(Math.ceil(stallMs / LOCK_WAITS)),
        statement_timeout: String(stallMs),
        idle_in_transaction_session_timeout: String(stallMs),
        transaction_timeout: String(stallMs),
      }),
    );
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
  return client;
}

/** Sets what this server knows of these settings: older ones have no `transaction_timeout`. */
function configure(settings: Readonly<Record<string, string>>): { text: string; values: string[][] } {
  const all = { ...KEEPALIVE_S, tcp_user_timeout: UNREAD_MAX_MS, ...settings };
  return {
    text: `SELECT set_config(name, wanted.value, false) FROM pg_settings
           JOIN unnest($1::text[], $2::text[]) AS wanted(setting_name, value) ON wanted.setting_name = name`,
    values: [Object.keys(all), Object.values(all)],
  };
}

/** Repeats a query or an attempt to connect that failed because no connection was to be had: that passes. */
async function waitedOut<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.now() + PATIENCE_MS;
  for (let pauseMs = PAUSE_MS; ; pauseMs *= 2) {
    try {
      return await attempt();
    } catch (error) {
      if (!isWithoutConnection(error) || clock.now() + pauseMs > giveUpAt) throw error;
    }
    await sleep(clock, pauseMs);
  }
}

/** Too many connections, and a server that stops, has crashed or starts. */
const NO_CONNECTION: readonly unknown[] = ['53300', '57P01', '57P02', '57P03'];

/** Whatever the server does not say itself is a matter of the way to it. */
function isWithoutConnection(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || NO_CONNECTION.includes(error.code);
}

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
 * Applies missing migrations under an advisory lock, so that hosts that start at the same time do not apply one twice.
 */
async function migrate({ client: settings, clock }: Settings, migrations: readonly Migration[]): Promise<void> {
  const client = await waitedOut(clock, async () => {
    const opened = new pg.Client(settings);
    opened.on('error', () => {});
    await opened.connect();
    return opened;
  });
  try {
    // PostgreSQL releases the lock when the connection closes.
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await client.query('CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
    await client.query(EXPECT_FUNCTION);
    await client.query('ALTER TABLE migrations ADD COLUMN IF NOT EXISTS checksum TEXT');
    const { rows: applied } = await client.query<AppliedMigration>('SELECT id, checksum FROM migrations');
    const { missing, withoutChecksum } = planMigrations('postgres', migrations, applied);
    const note = (text: string, migration: Migration, ...rest: number[]): Promise<unknown> =>
      client.query(text, [migration.id, checksumOf('postgres', migration), ...rest]);
    for (const migration of withoutChecksum) await note('UPDATE migrations SET checksum = $2 WHERE id = $1', migration);
    for (const migration of missing) {
      await client.query('BEGIN');
      for (const statement of statementsFor('postgres', migration)) {
        await client.query(statement.replaceAll('$clustered', ''));
      }
      await note('INSERT INTO migrations (id, checksum, applied_at) VALUES ($1, $2, $3)', migration, clock.now());
      await client.query('COMMIT');
    }
  } finally {
    await client.end();
  }
}

type Render = (statement: Write) => PreparedStatement;

/** A statement text with its macros expanded. */
interface Rendered {
  readonly name: string;
  readonly text: string;
  readonly usesNow: boolean;
}

/** Expands the macros of `Statement` and caches the result by its text, and by what is expected of it. */
function renderer(ownClock: Clock | undefined): Render {
  const texts = new Map<string, Map<string, Rendered>>();
  const prepare = ({ sql, params, expect, expectation = '' }: Write): Rendered => {
    const now = ownClock ? `$${params.length + 1}::bigint` : DATABASE_NOW;
    const expanded = sql
      .replaceAll('$now', now)
      .replaceAll('$skipLocked', 'FOR UPDATE SKIP LOCKED')
      .replaceAll('$transaction', TRANSACTION)
      .replaceAll('$settled', SETTLED);
    const text = expect === undefined ? expanded : demanding(expanded, expect, expectation);
    return { name: createHash('sha1').update(text).digest('hex'), text, usesNow: sql.includes('$now') };
  };
  return (write) => {
    const { sql, params, expect, expectation, returns } = write;
    const variants = texts.get(sql) ?? new Map<string, Rendered>();
    texts.set(sql, variants);
    const key = expect === undefined ? '' : `${expect} ${expectation}`;
    const known = variants.get(key) ?? prepare(write);
    variants.set(key, known);
    const values = params.map(storable);
    if (ownClock && known.usesNow) values.push(ownClock.now());
    return { name: known.name, text: known.text, values, returns };
  };
}

/**
 * The statement, failing unless it touches so many rows. PostgreSQL checks this by itself, so that the commit can be
 * sent along and no lock waits for our verdict.
 */
function demanding(text: string, expect: number, expectation: string): string {
  return `WITH touched AS (${text} RETURNING 1)
          SELECT ${EXPECT}(COUNT(*), ${expect}, ${pg.escapeLiteral(expectation)}) FROM touched`;
}

/** Replaces NUL, which PostgreSQL text cannot hold, by U+FFFD, in stored values and in lookups alike. */
function storable(param: Param): Param {
  return typeof param === 'string' && param.includes('\0') ? param.replaceAll('\0', '\ufffd') : param;
}

/** The connection that writes. After an error it is discarded, and the next group opens a new one. */
class Writer {
  readonly #settings: Settings;
  readonly #render: Render;
  #connection: PreparingClient | undefined;

  constructor(settings: Settings, render: Render) {
    this.#settings = settings;
    this.#render = render;
  }

  /**
   * Commits all units in one transaction, which nearly always succeeds. A unit that fails is put aside and the others
   * are tried again without it; those that were put aside are committed separately at the end, so that only the failing
   * ones are affected.
   */
  async commitGroup(units: readonly Unit[]): Promise<readonly UnitOutcome[]> {
    const outcomes = new Map<number, UnitOutcome>();
    try {
      for (const index of await this.#commitTogether(units, outcomes)) {
        outcomes.set(index, await this.#commitAlone(units[index]!));
      }
    } catch (error) {
      // The connection may have failed before or after the commit; only the database knows.
      await this.close();
      const failure = new StoreFailure('PostgreSQL: the connection failed during a commit.', { cause: error });
      if (outcomes.size === 0) throw failure;
      return units.map((_, index) => outcomes.get(index) ?? failure);
    }
    return units.map((_, index) => outcomes.get(index)!);
  }

  /** Returns the units that are to be committed separately. */
  async #commitTogether(units: readonly Unit[], outcomes: Map<number, UnitOutcome>): Promise<number[]> {
    let together = units.map((_, index) => index);
    const aside: number[] = [];
    for (let blocked = 0; together.length + aside.length > 1 && together.length > 0 && aside.length < ASIDE_MAX; ) {
      const outcome = await this.#transact(together.map((index) => units[index]!));
      if ('rows' in outcome) {
        together.forEach((index, place) => void outcomes.set(index, { committed: true, rows: outcome.rows[place]! }));
        return aside;
      }
      const failing = together[outcome.failing]!;
      together = together.filter((index) => index !== failing);
      if (!(outcome.outcome instanceof Blocked)) aside.push(failing);
      else outcomes.set(failing, outcome.outcome);
      // Each costs the others the time that a lock is waited for.
      if (outcome.outcome instanceof Blocked && ++blocked === BLOCKED_PER_GROUP) {
        for (const index of together.splice(0)) outcomes.set(index, outcome.outcome);
      }
    }
    return [...together, ...aside];
  }

  /** Commits one unit, retrying when PostgreSQL reports a serialization failure or a deadlock. */
  async #commitAlone(unit: Unit): Promise<UnitOutcome> {
    for (let attempts = 1; ; attempts++) {
      const outcome = await this.#transact([unit]);
      if ('rows' in outcome) return { committed: true, rows: outcome.rows[0]! };
      if (!RETRYABLE_CODES.includes(outcome.code) || attempts === ATTEMPTS_MAX) return outcome.outcome;
    }
  }

  async #transact(units: readonly Unit[]): Promise<Transacted> {
    const connection = await this.#connected();
    const statements = units.flatMap((unit) => unit.map(this.#render));
    try {
      const rows = await executeTogether(connection, statements, this.#settings.types);
      let first = 0;
      return {
        rows: units.map((unit) => {
          const start = first;
          first += unit.length;
          return unit.flatMap(({ returns }, index) => (returns ? [rows[start + index]!] : []));
        }),
      };
    } catch (error) {
      if (!(error instanceof StatementFailed)) throw error;
      return failureOf(units, error);
    }
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.client.end().catch(() => {});
  }

  async #connected(): Promise<PreparingClient> {
    if (this.#connection) return this.#connection;
    const client = await waitedOut(this.#settings.clock, () => openClient(this.#settings));
    const connection = { client, prepared: new Set<string>() };
    const forget = (): void => {
      if (this.#connection === connection) this.#connection = undefined;
    };
    client.on('error', forget);
    client.on('end', forget);
    this.#connection = connection;
    return connection;
  }
}

/** What a transaction came to: the rows of each unit, or the unit that failed and how. */
type Transacted =
  | { readonly rows: readonly (readonly (readonly Row[])[])[] }
  | { readonly failing: number; readonly outcome: UnitOutcome; readonly code: string | undefined };

type UnitOutcome = CommitOutcome | Error | Blocked;

/** Finds the unit of the statement that failed. */
function failureOf(units: readonly Unit[], error: StatementFailed): Transacted {
  let index = error.index;
  let failing = 0;
  for (; index >= units[failing]!.length; failing++) index -= units[failing]!.length;
  const { expectation = '' } = units[failing]![index]!;
  const { code } = error;
  if (code === EXPECTATION_FAILED) {
    return { failing, outcome: { committed: false, failedExpectation: expectation }, code };
  }
  const failure = new StoreFailure('PostgreSQL: a statement failed.', { cause: error });
  return { failing, outcome: code === LOCK_NOT_AVAILABLE ? new Blocked(failure) : failure, code };
}
