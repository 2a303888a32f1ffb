import { createHash, randomUUID } from 'node:crypto';
import pg from 'pg';
import type { Cancel, Clock } from '../system/clock.ts';
import { GroupCommit } from './group-commit.ts';
import type { CommitOutcome, Param, Row, Statement, Unit } from './sql.ts';
import { type Migration, type Store, StoreFailure, statementsFor } from './store.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** Tests that move time hand it in; otherwise the database's clock decides, so that all hosts agree. */
  readonly useOwnClock?: boolean;
}

const READERS_MAX = 8;
const CONNECT_TIMEOUT_MS = 10_000;
/** A statement that takes longer than this is not coming back. */
const QUERY_TIMEOUT_MS = 30_000;
const MIGRATION_LOCK = 0x0ca95;
const HINT_CHANNEL = 'capstan';
/** PostgreSQL takes payloads of up to 8000 bytes. */
const HINT_BYTES_MAX = 7_900;
const LISTEN_AGAIN_MS = 1_000;
const RETRYABLE_CODES: readonly unknown[] = ['40001', '40P01'];
const TRIES_MAX = 5;
const DATABASE_NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const TRANSACTION = 'pg_current_xact_id()::text::bigint';
const SETTLED = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
const BIGINT_OID = 20;

/** Many hosts, one database. */
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
  // A connection that breaks while nobody uses it is replaced when somebody does.
  readers.on('error', () => {});
  const hints = new Hints(settings, clock, (payload) =>
    readers.query('SELECT pg_notify($1, $2)', [HINT_CHANNEL, payload]),
  );
  try {
    await migrate(settings, migrations, clock.now());
    await hints.listen();
  } catch (error) {
    await Promise.allSettled([hints.close(), readers.end()]);
    throw new StoreFailure(`The database cannot be used: ${(error as Error).message}`, { cause: error });
  }

  const group = new GroupCommit((units) => writer.commitGroup(units), clock);
  let closed: Promise<void> | undefined;
  return {
    kind: 'postgres',
    read: async <R>(statement: Statement) => {
      try {
        return (await readers.query(render(statement))).rows as R[];
      } catch (error) {
        throw new StoreFailure('The store could not be read.', { cause: error });
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

/** Hosts that start at the same time take turns: the first applies what is missing, the others find it done. */
async function migrate(settings: pg.ClientConfig, migrations: readonly Migration[], now: number): Promise<void> {
  const client = new pg.Client(settings);
  client.on('error', () => {});
  await client.connect();
  try {
    // The lock ends with the connection.
    await client.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    await client.query('CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
    const applied = new Set((await client.query('SELECT id FROM migrations')).rows.map(({ id }) => id));
    for (const migration of migrations.filter(({ id }) => !applied.has(id))) {
      await client.query('BEGIN');
      for (const statement of statementsFor('postgres', migration)) {
        await client.query(statement.replaceAll('$clustered', ''));
      }
      await client.query('INSERT INTO migrations (id, applied_at) VALUES ($1, $2)', [migration.id, now]);
      await client.query('COMMIT');
    }
  } finally {
    await client.end();
  }
}

interface Query {
  /** Statements are prepared once for each connection, under a name that is theirs. */
  readonly name: string;
  readonly text: string;
  readonly values: Param[];
}
type Render = (statement: Statement) => Query;

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

/** Text of this database cannot hold NUL. What is looked up with one is not there; what is kept loses it. */
function storable(param: Param): Param {
  return typeof param === 'string' && param.includes('\0') ? param.replaceAll('\0', '\ufffd') : param;
}

/** The one connection that writes. When it breaks it is given up, and the next group gets a new one. */
class Writer {
  readonly #settings: pg.ClientConfig;
  readonly #render: Render;
  #client: pg.Client | undefined;

  constructor(settings: pg.ClientConfig, render: Render) {
    this.#settings = { ...settings, pipeline: true } as pg.ClientConfig;
    this.#render = render;
  }

  /**
   * All units in one transaction when nothing stands in the way, which is nearly always. If one of them breaks an
   * expectation or fails, the transaction is undone and each unit gets one of its own, so that it alone is refused.
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
      // What was being committed may have happened or not. Only the store can tell.
      await this.close();
      throw new StoreFailure('The store could not be reached.', { cause: error });
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

/** The database asks to try again when two transactions stood in each other's way. */
async function commitAlone(client: pg.Client, unit: Unit, render: Render): Promise<CommitOutcome | Error> {
  for (let tries = 1; ; tries++) {
    const [outcome] = await transact(client, [unit], render);
    if (!isRetryable(outcome) || tries === TRIES_MAX) return outcome!;
  }
}

function isRetryable(outcome: CommitOutcome | Error | undefined): boolean {
  const cause = outcome instanceof Error ? (outcome.cause as { code?: unknown } | undefined) : undefined;
  return RETRYABLE_CODES.includes(cause?.code);
}

function isCommitted(outcome: CommitOutcome | Error): boolean {
  return !(outcome instanceof Error) && outcome.committed;
}

/** Sends every statement without waiting for the one before, then commits if all of them did what was expected. */
async function transact(client: pg.Client, units: readonly Unit[], render: Render): Promise<(CommitOutcome | Error)[]> {
  const begun = client.query('BEGIN');
  const sent = units.map((unit) => unit.map((write) => client.query(render(write))));
  const [, ...settled] = await Promise.all([begun, ...sent.map((results) => Promise.allSettled(results))]);
  const outcomes = units.map((unit, index) => outcomeOf(unit, settled[index]!));
  await client.query(outcomes.every(isCommitted) ? 'COMMIT' : 'ROLLBACK');
  return outcomes;
}

/** The first thing that went wrong counts: after it, statements were sent that should not have been. */
function outcomeOf(unit: Unit, results: readonly PromiseSettledResult<pg.QueryResult>[]): CommitOutcome | Error {
  const rows: Row[][] = [];
  for (const [index, { expect, keeps = '', returns }] of unit.entries()) {
    const result = results[index]!;
    if (result.status === 'rejected') return new StoreFailure('The store could not commit.', { cause: result.reason });
    if (expect !== undefined && result.value.rowCount !== expect) return { committed: false, broke: keeps };
    if (returns) rows.push(result.value.rows as Row[]);
  }
  return { committed: true, rows };
}

/** Tells other hosts what moved, many topics at a time. What does not arrive costs a reader a moment, no more. */
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
    // Listening is nothing but waiting.
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
    client.on('error', () => this.#listenAgain(client));
    client.on('end', () => this.#listenAgain(client));
    client.on('notification', ({ payload = '' }) => this.#hear(payload));
    await client.connect();
    await client.query(`LISTEN ${HINT_CHANNEL}`);
    this.#client = client;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel();
    await this.#client?.end();
  }

  #listenAgain(lost: pg.Client): void {
    if (this.#isClosed || this.#client !== lost) return;
    this.#client = undefined;
    this.#tryLater();
  }

  #tryLater(): void {
    if (this.#isClosed) return;
    this.#cancel = this.#clock.after(LISTEN_AGAIN_MS, () => {
      this.listen().catch(() => this.#tryLater());
    });
  }

  /** Our own words come back to us too. */
  #hear(payload: string): void {
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
