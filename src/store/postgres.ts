import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Cancel, Clock } from '../system/clock.ts';
import { GroupCommit } from './group-commit.ts';
import { type AppliedMigration, checksumOf, planMigrations } from './migrations.ts';
import type { CommitOutcome, Param, Row, Statement, Unit } from './sql.ts';
import { type Migration, type Store, StoreFailure, statementsFor } from './store.ts';

/** Options of the PostgreSQL store, which several hosts may share. */
interface PostgresOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /**
   * If true, `$now` is the given clock, for tests that control time. Otherwise it is the database's clock, so that all
   * hosts agree on leases.
   */
  readonly useOwnClock?: boolean;
}

const READERS_MAX = 8;
const CONNECT_TIMEOUT_MS = 10_000;
/** After this long a statement counts as lost and its connection is replaced. */
const QUERY_TIMEOUT_MS = 30_000;
const MIGRATION_LOCK = 0x0ca95;
const HINT_CHANNEL = 'capstan';
/** PostgreSQL limits a NOTIFY payload to 8000 bytes. */
const HINT_BYTES_MAX = 7_900;
const RECONNECT_MS = 1_000;
/** Serialization failure and deadlock: PostgreSQL asks the client to retry the transaction. */
const RETRYABLE_CODES: readonly unknown[] = ['40001', '40P01'];
const ATTEMPTS_MAX = 5;
const DATABASE_NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const TRANSACTION = 'pg_current_xact_id()::text::bigint';
const SETTLED = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
const BIGINT_OID = 20;

/** Opens the PostgreSQL store: one connection writes, a pool reads, and one connection listens for hints. */
export async function openPostgres({ url, clock, migrations, useOwnClock }: PostgresOptions): Promise<Store> {
  const settings: pg.ClientConfig = {
    connectionString: url,
    application_name: 'capstan',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    types: { getTypeParser: (oid, format) => (oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format)) },
  };
  const render = renderer(useOwnClock ? clock : undefined);
  const writer = new Writer(settings, render);
  const readers = new pg.Pool({ ...settings, max: READERS_MAX });
  // The pool replaces a connection that fails while idle, so the error needs no handling.
  readers.on('error', () => {});
  const hints = new Hints(settings, clock, (payload) =>
    readers.query('SELECT pg_notify($1, $2)', [HINT_CHANNEL, payload]),
  );
  try {
    await migrate(settings, migrations, clock.now());
    await hints.listen();
  } catch (error) {
    await Promise.allSettled([hints.close(), readers.end()]);
    throw new StoreFailure(`PostgreSQL: could not connect or migrate the schema: ${(error as Error).message}`, {
      cause: error,
    });
  }

  const group = new GroupCommit((units) => writer.commitGroup(units), clock);
  let closed: Promise<void> | undefined;
  return {
    isShared: true,
    read: async <R>(statement: Statement) => {
      try {
        return (await readers.query(render(statement))).rows as R[];
      } catch (error) {
        throw new StoreFailure('PostgreSQL: the query failed.', { cause: error });
      }
    },
    commit: (unit) => group.commit(unit),
    hint: (topics) => hints.add(topics),
    onHint: (listener) => hints.onTopic(listener),
    reclaim: async () => {},
    close: () => {
      closed ??= group.drained().then(async () => {
        await Promise.allSettled([hints.close(), writer.close(), readers.end()]);
      });
      return closed;
    },
  };
}

/**
 * Applies missing migrations under an advisory lock, so that hosts that start at the same time do not apply one twice.
 */
async function migrate(settings: pg.ClientConfig, migrations: readonly Migration[], now: number): Promise<void> {
  const client = new pg.Client(settings);
  client.on('error', () => {});
  await client.connect();
  try {
    // PostgreSQL releases the lock when the connection closes.
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await client.query('CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
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
      await note('INSERT INTO migrations (id, checksum, applied_at) VALUES ($1, $2, $3)', migration, now);
      await client.query('COMMIT');
    }
  } finally {
    await client.end();
  }
}

/** A query for the `pg` driver. */
interface Query {
  /** Name of the prepared statement, which `pg` prepares once per connection. */
  readonly name: string;
  readonly text: string;
  readonly values: Param[];
}
type Render = (statement: Statement) => Query;

/** Expands the macros of `Statement` and caches the result by its text. */
function renderer(ownClock: Clock | undefined): Render {
  const texts = new Map<string, { readonly name: string; readonly text: string; readonly usesNow: boolean }>();
  const prepare = (sql: string, count: number) => {
    const now = ownClock ? `$${count + 1}::bigint` : DATABASE_NOW;
    const text = sql
      .replaceAll('$now', now)
      .replaceAll('$skipLocked', 'FOR UPDATE SKIP LOCKED')
      .replaceAll('$transaction', TRANSACTION)
      .replaceAll('$settled', SETTLED);
    return { name: createHash('sha1').update(text).digest('hex'), text, usesNow: sql.includes('$now') };
  };
  return ({ sql, params }) => {
    const known = texts.get(sql) ?? prepare(sql, params.length);
    texts.set(sql, known);
    const values = params.map(storable);
    if (ownClock && known.usesNow) values.push(ownClock.now());
    return { name: known.name, text: known.text, values };
  };
}

/** Replaces NUL, which PostgreSQL text cannot hold, by U+FFFD, in stored values and in lookups alike. */
function storable(param: Param): Param {
  return typeof param === 'string' && param.includes('\0') ? param.replaceAll('\0', '\ufffd') : param;
}

/** The connection that writes. After an error it is discarded, and the next group opens a new one. */
class Writer {
  readonly #settings: pg.ClientConfig;
  readonly #render: Render;
  #client: pg.Client | undefined;

  constructor(settings: pg.ClientConfig, render: Render) {
    this.#settings = { ...settings, pipeline: true } as pg.ClientConfig;
    this.#render = render;
  }

  /**
   * Commits all units in one transaction, which nearly always succeeds. If a unit fails, the transaction is rolled back
   * and each unit is committed separately, so that only the failing one is affected.
   */
  async commitGroup(units: readonly Unit[]): Promise<readonly (CommitOutcome | Error)[]> {
    try {
      const client = await this.#connected();
      const together = await transact(client, units, this.#render);
      if (together.every(isCommitted)) return together;
      const alone: (CommitOutcome | Error)[] = [];
      for (const unit of units) alone.push(await commitAlone(client, unit, this.#render));
      return alone;
    } catch (error) {
      // The connection may have failed before or after the commit; only the database knows.
      await this.close();
      throw new StoreFailure('PostgreSQL: the connection failed during a commit.', { cause: error });
    }
  }

  async close(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => {});
  }

  async #connected(): Promise<pg.Client> {
    if (this.#client) return this.#client;
    const client = new pg.Client(this.#settings);
    client.on('error', () => {
      if (this.#client === client) this.#client = undefined;
    });
    await client.connect();
    this.#client = client;
    return client;
  }
}

/** Commits one unit, retrying when PostgreSQL reports a serialization failure or a deadlock. */
async function commitAlone(client: pg.Client, unit: Unit, render: Render): Promise<CommitOutcome | Error> {
  for (let attempts = 1; ; attempts++) {
    const [outcome] = await transact(client, [unit], render);
    if (!isRetryable(outcome) || attempts === ATTEMPTS_MAX) return outcome!;
  }
}

function isRetryable(outcome: CommitOutcome | Error | undefined): boolean {
  const cause = outcome instanceof Error ? (outcome.cause as { code?: unknown } | undefined) : undefined;
  return RETRYABLE_CODES.includes(cause?.code);
}

function isCommitted(outcome: CommitOutcome | Error): boolean {
  return !(outcome instanceof Error) && outcome.committed;
}

/** Pipelines every statement without waiting for replies, then commits if all met their expectations. */
async function transact(client: pg.Client, units: readonly Unit[], render: Render): Promise<(CommitOutcome | Error)[]> {
  const begun = client.query('BEGIN');
  const sent = units.map((unit) => unit.map((write) => client.query(render(write))));
  const [, ...settled] = await Promise.all([begun, ...sent.map((results) => Promise.allSettled(results))]);
  const outcomes = units.map((unit, index) => unitOutcome(unit, settled[index]!));
  await client.query(outcomes.every(isCommitted) ? 'COMMIT' : 'ROLLBACK');
  return outcomes;
}

/** The first failure decides: later statements were already in the pipeline and their results mean nothing. */
function unitOutcome(unit: Unit, results: readonly PromiseSettledResult<pg.QueryResult>[]): CommitOutcome | Error {
  const rows: Row[][] = [];
  for (const [index, { expect, expectation = '', returns }] of unit.entries()) {
    const result = results[index]!;
    if (result.status === 'rejected')
      return new StoreFailure('PostgreSQL: a statement failed.', { cause: result.reason });
    if (expect !== undefined && result.value.rowCount !== expect)
      return { committed: false, failedExpectation: expectation };
    if (returns) rows.push(result.value.rows as Row[]);
  }
  return { committed: true, rows };
}

/**
 * Sends topics to other hosts with NOTIFY, batched, and receives theirs. A lost hint only delays a reader until its
 * next poll.
 */
class Hints {
  readonly #settings: pg.ClientConfig;
  readonly #clock: Clock;
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #origin = randomUUID();
  readonly #topics = new Set<string>();
  readonly #listeners: ((topic: string) => void)[] = [];
  #client: pg.Client | undefined;
  #cancel: Cancel = () => {};
  #isClosed = false;

  constructor(settings: pg.ClientConfig, clock: Clock, send: (payload: string) => Promise<unknown>) {
    // A LISTEN connection is idle for long periods, so the query timeout must not apply.
    this.#settings = { ...settings, query_timeout: undefined } as pg.ClientConfig;
    this.#clock = clock;
    this.#send = send;
  }

  onTopic(listener: (topic: string) => void): void {
    this.#listeners.push(listener);
  }

  add(topics: readonly string[]): void {
    if (this.#topics.size === 0) this.#clock.soon(() => this.#flush());
    for (const topic of topics) this.#topics.add(topic);
  }

  async listen(): Promise<void> {
    const client = new pg.Client(this.#settings);
    client.on('error', () => this.#onDisconnect(client));
    client.on('end', () => this.#onDisconnect(client));
    client.on('notification', ({ payload = '' }) => this.#onNotification(payload));
    await client.connect();
    await client.query(`LISTEN ${HINT_CHANNEL}`);
    this.#client = client;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#client?.end();
  }

  #onDisconnect(lost: pg.Client): void {
    if (this.#isClosed || this.#client !== lost) return;
    this.#client = undefined;
    this.#scheduleReconnect();
  }

  #scheduleReconnect(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#clock.after(RECONNECT_MS, () => {
      this.listen().catch(() => this.#scheduleReconnect());
    });
  }

  /** PostgreSQL also delivers a host's own notifications back to it; those are skipped. */
  #onNotification(payload: string): void {
    const [origin, ...topics] = payload.split(' ');
    if (origin === this.#origin) return;
    for (const topic of topics) for (const listener of this.#listeners) listener(topic);
  }

  #flush(): void {
    let payload = this.#origin as string;
    for (const topic of this.#topics) {
      if (payload.length + topic.length >= HINT_BYTES_MAX) {
        this.#send(payload).catch(() => {});
        payload = this.#origin;
      }
      payload += ` ${topic}`;
    }
    this.#topics.clear();
    this.#send(payload).catch(() => {});
  }
}
