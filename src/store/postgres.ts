import { createHash } from 'node:crypto';
import pg from 'pg';
import type { Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import type { Meter } from '../system/meter.ts';
import { Blocked, GroupCommit } from './group-commit.ts';
import {
  type Connected,
  type Link,
  linkOf,
  openClient,
  Readers,
  TYPES,
  transactionSettings,
  waitedOut,
} from './postgres-connections.ts';
import { isNotNow, isOutdatedPlan } from './postgres-errors.ts';
import { HINT_CHANNEL, Hints } from './postgres-hints.ts';
import { EXPECT, EXPECTATION_FAILED, LOCK_NOT_AVAILABLE, migrate } from './postgres-migrate.ts';
import { executeTogether, type PreparedStatement, type PreparingClient, StatementFailed } from './postgres-pipeline.ts';
import type { CommitOutcome, Param, Row, Statement, Unit, Write } from './sql.ts';
import { type Migration, type Store, StoreFailure } from './store.ts';

/** Options of the PostgreSQL store, which several hosts may share. */
interface PostgresOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly migrations: readonly Migration[];
  /** Told of what operators want to know about the database: that another server took over, that there is a pooler. */
  readonly log?: Log;
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

/** How long an answer may be on its way. */
const ANSWER_MS = 5_000;
/** Serialization failure and deadlock: PostgreSQL asks the client to retry the transaction. */
const RETRYABLE_CODES: readonly unknown[] = ['40001', '40P01'];
const ATTEMPTS_MAX = 5;
/** Units that a group leaves out one by one before each of the others is committed separately too. */
const ASIDE_MAX = 4;
/** Units of a group that may wait for a lock in vain before the others are left for the next one. */
const BLOCKED_PER_GROUP = 2;
const DATABASE_NOW = '(extract(epoch from clock_timestamp()) * 1000)::bigint';
const TRANSACTION = 'pg_current_xact_id()::text::bigint';
const SETTLED = 'pg_snapshot_xmin(pg_current_snapshot())::text::bigint';
/**
 * Opens the PostgreSQL store: one connection writes, one more writes what is urgent, a pool reads, and one connection
 * listens for hints. All lead to the server that takes writes.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { clock, migrations, meter, useOwnClock, log, stallMs = STALL_MS } = options;
  const link = linkOf(options.url, clock);
  const renderer = new Renderer(link, useOwnClock ? clock : undefined);
  const writers = [new Writer(link, renderer, stallMs), new Writer(link, renderer, stallMs)] as const;
  const [group, urgent] = writers.map((writer) => new GroupCommit((units) => writer.commitGroup(units), clock, meter));
  const readers = new Readers(link);
  const hints = new Hints(link, (payload) =>
    readers.query({ text: 'SELECT pg_notify($1, $2)', values: [HINT_CHANNEL, payload] }),
  );
  try {
    // Whoever brings no tables only wants to read those that are there.
    if (migrations.length > 0) await migrate(link, migrations);
    await waitedOut(clock, () => hints.listen());
  } catch (error) {
    await Promise.allSettled([hints.close(), readers.close()]);
    throw new StoreFailure(`PostgreSQL: could not connect or migrate the schema: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (link.isPooled) log?.info({}, 'a pooler gives out sessions of the database: news of other hosts is polled for');
  link.servers.onMove(({ name }) => log?.warn({ server: name }, 'another server of the database takes the writes now'));

  let closed: Promise<void> | undefined;
  return {
    isShared: true,
    read: <R>(statement: Statement) => read<R>(link, readers, renderer, statement),
    commit: (unit, { isUrgent = false, tenant } = {}) => (isUrgent ? urgent! : group!).commit(unit, tenant),
    hint: (topics) => hints.add(topics),
    onHint: (listener) => hints.onTopic(listener),
    reclaim: async () => {},
    close: () => {
      closed ??= Promise.all([group!.drained(), urgent!.drained()]).then(async () => {
        await Promise.allSettled([hints.close(), ...writers.map((writer) => writer.close()), readers.close()]);
      });
      return closed;
    },
  };
}

async function read<R>(link: Link, readers: Readers, renderer: Renderer, statement: Statement): Promise<R[]> {
  for (let attempts = 1; ; attempts++) {
    const { name, text, values } = renderer.render(statement);
    const query = { text, values: [...values], ...(name === '' ? {} : { name }) };
    try {
      return (await waitedOut(link.clock, () => readers.query(query))).rows as R[];
    } catch (error) {
      if (!isOutdatedPlan(error) || attempts === ATTEMPTS_MAX) {
        throw new StoreFailure('PostgreSQL: the query failed.', { cause: error });
      }
      renderer.prepareAnew(name);
    }
  }
}

/**
 * The settings of connections that write. The database ends their transactions if this process stops in the middle of
 * one: their locks must not stop the other hosts. A unit that needs such a lock gives way to others several times within
 * that time.
 */
function writingSettings(stallMs: number): Readonly<Record<string, string>> {
  return {
    lock_timeout: String(Math.ceil(stallMs / LOCK_WAITS)),
    statement_timeout: String(stallMs),
    idle_in_transaction_session_timeout: String(stallMs),
    transaction_timeout: String(stallMs),
  };
}

/** A statement text with its macros expanded. */
interface Rendered {
  readonly name: string;
  readonly text: string;
  readonly usesNow: boolean;
}

/** Expands the macros of `Statement` and caches the result by its text, and by what is expected of it. */
class Renderer {
  readonly #link: Pick<Link, 'isPooled'>;
  readonly #ownClock: Clock | undefined;
  readonly #texts = new Map<string, Map<string, Rendered>>();
  /** Part of every name, so that all statements are prepared anew once it is another. */
  #generation = 0;

  constructor(link: Pick<Link, 'isPooled'>, ownClock: Clock | undefined) {
    this.#link = link;
    this.#ownClock = ownClock;
  }

  readonly render = (write: Write): PreparedStatement => {
    const { sql, params, expect, expectation, returns } = write;
    const variants = this.#texts.get(sql) ?? new Map<string, Rendered>();
    this.#texts.set(sql, variants);
    const key = expect === undefined ? '' : `${expect} ${expectation}`;
    const known = variants.get(key) ?? this.#expand(write);
    variants.set(key, known);
    const values = params.map(storable);
    if (this.#ownClock && known.usesNow) values.push(this.#ownClock.now());
    const name = this.#link.isPooled ? '' : `${known.name}-${this.#generation}`;
    return { name, text: known.text, values, returns };
  };

  /** To be called when a prepared statement was refused because a table has changed. */
  prepareAnew(name: string): void {
    if (name.endsWith(`-${this.#generation}`)) this.#generation++;
  }

  #expand({ sql, params, expect, expectation = '' }: Write): Rendered {
    const now = this.#ownClock ? `$${params.length + 1}::bigint` : DATABASE_NOW;
    const expanded = sql
      .replaceAll('$now', now)
      .replaceAll('$skipLocked', 'FOR UPDATE SKIP LOCKED')
      .replaceAll('$transaction', TRANSACTION)
      .replaceAll('$settled', SETTLED)
      .replaceAll('$storeBytes', 'pg_database_size(current_database())');
    const text = expect === undefined ? expanded : demanding(expanded, expect, expectation);
    return { name: createHash('sha1').update(text).digest('hex'), text, usesNow: sql.includes('$now') };
  }
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
  readonly #link: Link;
  readonly #renderer: Renderer;
  readonly #stallMs: number;
  #connection: (PreparingClient & Connected) | undefined;

  constructor(link: Link, renderer: Renderer, stallMs: number) {
    this.#link = link;
    this.#renderer = renderer;
    this.#stallMs = stallMs;
    link.servers.onMove((server) => {
      if (this.#connection?.server !== server) void this.close();
    });
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
    for (let attempts = 1; ; attempts++) {
      const connection = await this.#connected();
      const statements = units.flatMap((unit) => unit.map(this.#renderer.render));
      try {
        return { rows: rowsOf(units, await this.#execute(connection, statements)) };
      } catch (error) {
        if (!(error instanceof StatementFailed) || isNotNow(error.cause)) throw error;
        if (!isOutdatedPlan(error.cause) || attempts === ATTEMPTS_MAX) return failureOf(units, error);
        this.#renderer.prepareAnew(statements[error.index]!.name);
      }
    }
  }

  /** In a session that may belong to others, the settings hold for the transaction. */
  async #execute(
    connection: PreparingClient,
    statements: readonly PreparedStatement[],
  ): Promise<readonly (readonly Row[])[]> {
    if (!this.#link.isPooled) return executeTogether(connection, statements, TYPES);
    const settings = { name: '', ...transactionSettings(writingSettings(this.#stallMs)) };
    try {
      return (await executeTogether(connection, [settings, ...statements], TYPES)).slice(1);
    } catch (error) {
      throw error instanceof StatementFailed && error.index > 0 ? error.at(error.index - 1) : error;
    }
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.client.end().catch(() => {});
  }

  async #connected(): Promise<PreparingClient & Connected> {
    if (this.#connection) return this.#connection;
    // By then the database itself has given up; no answer means that there is no way to it.
    const overrides = { query_timeout: this.#stallMs + ANSWER_MS };
    const connected = await waitedOut(this.#link.clock, () =>
      openClient(this.#link, writingSettings(this.#stallMs), overrides),
    );
    const connection = { ...connected, prepared: new Set<string>() };
    const forget = (): void => {
      if (this.#connection === connection) this.#connection = undefined;
    };
    connection.client.on('error', forget);
    connection.client.on('end', forget);
    this.#connection = connection;
    return connection;
  }
}

/** What a transaction came to: the rows of each unit, or the unit that failed and how. */
type Transacted =
  | { readonly rows: readonly (readonly (readonly Row[])[])[] }
  | { readonly failing: number; readonly outcome: UnitOutcome; readonly code: string | undefined };

type UnitOutcome = CommitOutcome | Error | Blocked;

/** The rows of each unit, of those of its statements that return any. */
function rowsOf(units: readonly Unit[], rows: readonly (readonly Row[])[]): readonly (readonly (readonly Row[])[])[] {
  let first = 0;
  return units.map((unit) => {
    const start = first;
    first += unit.length;
    return unit.flatMap(({ returns }, index) => (returns ? [rows[start + index]!] : []));
  });
}

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
