import { randomUUID } from 'node:crypto';
import postgres, { type ReservedSql, type Sql } from 'postgres';
import type { Clock } from '../system/clock.ts';
import { GroupCommit } from './group-commit.ts';
import type { CommitOutcome, Row, Statement, Unit } from './sql.ts';
import { type Migration, type Store, StoreFailure } from './store.ts';

export interface PostgresOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** Tests that move time hand it in; otherwise the database's clock decides, so that all hosts agree. */
  readonly useOwnClock?: boolean;
}

/** How many statements may be on their way at once; an option that the library's types leave out. */
const PIPELINE = { max_pipeline: 10_000 };
const READERS_MAX = 8;
const CONNECT_TIMEOUT_S = 10;
const MIGRATION_LOCK = 0x0ca95;
const HINT_CHANNEL = 'capstan';
/** PostgreSQL takes payloads of up to 8000 bytes. */
const HINT_BYTES_MAX = 7_900;
const RETRYABLE_CODES: readonly unknown[] = ['40001', '40P01'];
const TRIES_MAX = 5;
const DATABASE_NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

/** Many hosts, one database. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { url, clock, migrations } = options;
  const render = renderer(options.useOwnClock ? clock : undefined);
  const connect = (max: number): Sql =>
    postgres(url, {
      max,
      ...PIPELINE,
      connect_timeout: CONNECT_TIMEOUT_S,
      onnotice: () => {},
      types: { bigint: { to: 20, from: [20], serialize: String, parse: Number } },
      connection: { application_name: 'capstan' },
    });
  const writer = connect(1);
  const readers = connect(READERS_MAX);
  const listeners: ((topic: string) => void)[] = [];
  const hints = new HintQueue(clock, (payload) => readers.notify(HINT_CHANNEL, payload));
  try {
    await migrate(writer, migrations, clock.now());
    await readers.listen(HINT_CHANNEL, (payload) => {
      for (const topic of hints.topicsOfOthers(payload)) for (const listener of listeners) listener(topic);
    });
  } catch (error) {
    await Promise.all([writer.end({ timeout: 1 }), readers.end({ timeout: 1 })]);
    throw new StoreFailure(`The database cannot be used: ${(error as Error).message}`, { cause: error });
  }

  const group = new GroupCommit((units) => commitGroup(writer, units, render), clock);
  let closed: Promise<void> | undefined;
  return {
    kind: 'postgres',
    read: async <R>(statement: Statement) => {
      const { text, params } = render(statement);
      try {
        return [...(await readers.unsafe(text, params as never[], { prepare: true }))] as unknown as R[];
      } catch (error) {
        throw new StoreFailure('The store could not be read.', { cause: error });
      }
    },
    commit: (unit) => group.commit(unit),
    hint: (topics) => hints.add(topics),
    onHint: (listener) => {
      listeners.push(listener);
    },
    close: () => {
      closed ??= group.drained().then(async () => {
        await Promise.all([writer.end({ timeout: 5 }), readers.end({ timeout: 5 })]);
      });
      return closed;
    },
  };
}

/** Hosts that start at the same time take turns: the first applies what is missing, the others find it done. */
async function migrate(database: Sql, migrations: readonly Migration[], now: number): Promise<void> {
  const connection = await database.reserve();
  try {
    await connection`SELECT pg_advisory_lock(${MIGRATION_LOCK})`;
    await connection.unsafe('CREATE TABLE IF NOT EXISTS migrations (id TEXT PRIMARY KEY, applied_at BIGINT NOT NULL)');
    const applied = new Set((await connection`SELECT id FROM migrations`).map(({ id }) => id));
    for (const { id, statements } of migrations.filter((migration) => !applied.has(migration.id))) {
      const text = statements.map((statement) => statement.replaceAll('$clustered', ''));
      await connection.unsafe(['BEGIN', ...text].join(';\n'));
      await connection.unsafe('INSERT INTO migrations (id, applied_at) VALUES ($1, $2)', [id, now] as never[]);
      await connection.unsafe('COMMIT');
    }
  } finally {
    await connection`SELECT pg_advisory_unlock(${MIGRATION_LOCK})`.catch(() => {});
    connection.release();
  }
}

type Render = (statement: Statement) => { text: string; params: readonly unknown[] };

function renderer(ownClock: Clock | undefined): Render {
  const texts = new Map<string, string>();
  return ({ sql, params }) => {
    let text = texts.get(sql);
    if (text === undefined) {
      const now = ownClock ? `$${params.length + 1}::bigint` : DATABASE_NOW;
      text = sql.replaceAll('$now', now).replaceAll('$skipLocked', 'FOR UPDATE SKIP LOCKED');
      texts.set(sql, text);
    }
    return { text, params: ownClock && sql.includes('$now') ? [...params, ownClock.now()] : params };
  };
}

/**
 * All units in one transaction when nothing stands in the way, which is nearly always. If one of them breaks an
 * expectation or fails, the transaction is undone and each unit gets one of its own, so that it alone is refused.
 */
async function commitGroup(
  database: Sql,
  units: readonly Unit[],
  render: Render,
): Promise<readonly (CommitOutcome | Error)[]> {
  const connection = await reserve(database);
  try {
    const together = await transact(connection, units, render);
    if (together.every(isCommitted)) return together;
    const alone: (CommitOutcome | Error)[] = [];
    for (const unit of units) alone.push(await commitAlone(connection, unit, render));
    return alone;
  } catch (error) {
    // The connection broke: what was being committed may have happened or not. Only the store can tell.
    throw new StoreFailure('The store could not be reached.', { cause: error });
  } finally {
    connection.release();
  }
}

async function reserve(database: Sql): Promise<ReservedSql> {
  try {
    return await database.reserve();
  } catch (error) {
    throw new StoreFailure('The store could not be reached.', { cause: error });
  }
}

/** The database asks to try again when two transactions stood in each other's way. */
async function commitAlone(connection: ReservedSql, unit: Unit, render: Render): Promise<CommitOutcome | Error> {
  for (let tries = 1; ; tries++) {
    const [outcome] = await transact(connection, [unit], render);
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
async function transact(
  connection: ReservedSql,
  units: readonly Unit[],
  render: Render,
): Promise<(CommitOutcome | Error)[]> {
  // Queries are sent when they are first asked for; here the order of sending is the order of doing.
  const begun = connection.unsafe('BEGIN').execute();
  const sent = units.map((unit) =>
    unit.map((write) => {
      const { text, params } = render(write);
      return connection.unsafe(text, params as never[], { prepare: true }).execute();
    }),
  );
  const settled = await Promise.all([begun, ...sent.map((results) => Promise.allSettled(results))]);
  const outcomes = units.map((unit, index) => outcomeOf(unit, settled[index + 1] as Settled[]));
  await connection.unsafe(outcomes.every(isCommitted) ? 'COMMIT' : 'ROLLBACK');
  return outcomes;
}

type Settled = PromiseSettledResult<readonly Row[] & { count: number }>;

/** The first thing that went wrong counts: after it, statements were sent that should not have been. */
function outcomeOf(unit: Unit, results: readonly Settled[]): CommitOutcome | Error {
  const rows: Row[][] = [];
  for (const [index, { expect, keeps = '', returns }] of unit.entries()) {
    const result = results[index]!;
    if (result.status === 'rejected') return new StoreFailure('The store could not commit.', { cause: result.reason });
    if (expect !== undefined && result.value.count !== expect) return { committed: false, broke: keeps };
    if (returns) rows.push([...result.value]);
  }
  return { committed: true, rows };
}

/** Gathers hints and sends them in few notifications. A hint that does not arrive costs a reader a moment, no more. */
class HintQueue {
  readonly #origin = randomUUID();
  readonly #clock: Clock;
  readonly #send: (payload: string) => Promise<unknown>;
  readonly #topics = new Set<string>();

  constructor(clock: Clock, send: (payload: string) => Promise<unknown>) {
    this.#clock = clock;
    this.#send = send;
  }

  add(topics: readonly string[]): void {
    if (this.#topics.size === 0) this.#clock.soon(() => this.#flush());
    for (const topic of topics) this.#topics.add(topic);
  }

  /** What another host says; our own words come back to us too. */
  topicsOfOthers(payload: string): string[] {
    const [origin, ...topics] = payload.split(' ');
    return origin === this.#origin ? [] : topics;
  }

  #flush(): void {
    let payload = this.#origin;
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
