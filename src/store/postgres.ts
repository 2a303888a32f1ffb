import type { Clock } from '../system/clock.ts';
import type { Log } from '../system/log.ts';
import type { Meter } from '../system/meter.ts';
import { GroupCommit } from './group-commit.ts';
import { type Link, linkOf, Readers, waitedOut } from './postgres-connections.ts';
import { isOutdatedPlan } from './postgres-errors.ts';
import { HINT_CHANNEL, Hints } from './postgres-hints.ts';
import { Lookups } from './postgres-lookups.ts';
import { migrate } from './postgres-migrate.ts';
import { Renderer } from './postgres-render.ts';
import { Session } from './postgres-session.ts';
import { Writer } from './postgres-writer.ts';
import { type Statement, sql, type Unit } from './sql.ts';
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

/** Hosts that share the database go on within so many milliseconds after one of them freezes. */
const STALL_MS = 4_000;

/** How often a query is tried whose tables change meanwhile. */
const ATTEMPTS_MAX = 5;

/**
 * Opens the PostgreSQL store: one connection writes, one more writes what is urgent, one looks for single rows, a pool
 * reads everything else, and one connection listens for hints. All lead to the server that takes writes.
 */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { clock, migrations, meter, useOwnClock, log, stallMs = STALL_MS } = options;
  const link = linkOf(options.url, clock);
  const renderer = new Renderer(link, useOwnClock ? clock : undefined);
  const writers = [1, 2].map(() => new Writer(new Session(link, stallMs), renderer));
  let isClosed = false;
  // Whoever comes late would open connections again, and the process would not end.
  const checkOpen = (): void => {
    if (isClosed) throw new StoreFailure('PostgreSQL: the store is closed.');
  };
  const [group, urgent] = writers.map((writer) => {
    const commitGroup = async (units: readonly Unit[]) => {
      checkOpen();
      return writer.commitGroup(units);
    };
    return new GroupCommit(commitGroup, clock, meter);
  });
  const readers = new Readers(link);
  const readAlone = async <R>(statement: Statement): Promise<R[]> => {
    checkOpen();
    return read<R>(link, readers, renderer, statement);
  };
  // All that is written there are hints to other hosts, and those need not be on the disk.
  const lookupSession = new Session(link, stallMs, { synchronous_commit: 'off' });
  const lookups = new Lookups(lookupSession, renderer, clock, readAlone);
  const hints = new Hints(link, (payload) => lookups.ask(sql('SELECT pg_notify($1, $2)', HINT_CHANNEL, payload)));
  try {
    // Whoever brings no tables only wants to read those that are there.
    if (migrations.length > 0) await migrate(link, migrations);
    await waitedOut(clock, () => hints.listen());
    await lookups.open();
  } catch (error) {
    await Promise.allSettled([hints.close(), lookups.close(), readers.close()]);
    throw new StoreFailure(`PostgreSQL: could not connect or migrate the schema: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (link.isPooled) log?.info({}, 'connection pooler detected: polling replaces LISTEN/NOTIFY');
  link.servers.onMove(({ name }) => log?.warn({ server: name }, 'another database server accepts writes now'));

  let closed: Promise<void> | undefined;
  return {
    kind: 'postgres',
    isShared: true,
    read: <R>(statement: Statement) =>
      statement.isLookup ? (lookups.ask(statement) as Promise<R[]>) : readAlone<R>(statement),
    commit: (unit, { isUrgent = false, tenant } = {}) => (isUrgent ? urgent! : group!).commit(unit, tenant),
    hint: (topics) => hints.add(topics),
    onHint: (listener) => hints.onTopic(listener),
    reclaim: async () => {},
    close: () => {
      closed ??= Promise.all([group!.drained(), urgent!.drained()]).then(async () => {
        isClosed = true;
        await Promise.allSettled([hints, ...writers, lookups, readers].map((connections) => connections.close()));
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
