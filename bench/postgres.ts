import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port.ts';
import { PostgresServer } from '../test/support/postgres-server.ts';
import { load, type Way } from './load.ts';
import { cpuOfTree } from './processor.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

/** A PostgreSQL server that flushes every commit to the disk, as it does by default. */
export interface BenchPostgres {
  readonly pid: number;
  /** Makes an empty database and says where it is. */
  createDatabase(name: string): Promise<string>;
  /** What it has done since it was made. */
  totals(): Promise<PostgresTotals>;
  stop(): Promise<void>;
}

/** What a server has done so far. */
interface PostgresTotals {
  /** Bytes that were written to the write-ahead log. */
  readonly walBytes: number;
  readonly walFlushes: number;
  /** Transactions that were committed, those that only read included. */
  readonly transactions: number;
}

const SETTINGS = ['fsync=on', 'synchronous_commit=on', 'shared_buffers=128MB', 'max_connections=200'];

/** Starts one on a folder of its own, on the disk that the embedded store of the others is on too. */
export async function startPostgres(): Promise<BenchPostgres> {
  // Made by the server itself, so that it belongs to whichever user the server runs as.
  const parent = mkdtempSync(join(tmpdir(), 'capstan-bench-'));
  const server = new PostgresServer(`${parent}-postgres`, await freePort());
  rmSync(parent, { recursive: true });
  await server.initialise();
  await server.start(SETTINGS);
  return {
    pid: server.pid,
    createDatabase: async (name) => {
      await server.withClient((client) => client.query(`CREATE DATABASE ${name}`));
      return new URL(`/${name}`, server.url).href;
    },
    totals: () =>
      server.withClient(async (client) => {
        const { rows } = await client.query(TOTALS);
        return {
          walBytes: Number(rows[0].bytes),
          walFlushes: Number(rows[0].flushes),
          transactions: Number(rows[0].transactions),
        };
      }),
    stop: () => server.remove(),
  };
}

/** One PostgreSQL server for all who need one, started when the first does; each has a database of its own. */
export class LazyPostgres {
  #server: Promise<BenchPostgres> | undefined;
  #databases = 0;

  get(): Promise<BenchPostgres> {
    this.#server ??= startPostgres();
    return this.#server;
  }

  /** A host on a new database. */
  async startCapstan(environment: Record<string, string> = {}): Promise<BenchServer> {
    const postgres = await this.get();
    const url = await postgres.createDatabase(`capstan_${++this.#databases}`);
    return { ...(await startCapstan({ DATABASE_URL: url, ...environment })), databasePid: postgres.pid };
  }

  async stop(): Promise<void> {
    await (await this.#server)?.stop();
  }
}

const TOTALS = `SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS bytes,
  (SELECT SUM(fsyncs) FROM pg_stat_io WHERE object = 'wal')::bigint AS flushes,
  (SELECT SUM(xact_commit) FROM pg_stat_database)::bigint AS transactions`;

const CONCURRENCY = 32;
const RUNS = 3_000;
const WARM_UP_RUNS = 1_000;
/** Counts of PostgreSQL are complete when its processes have been idle for a moment. */
const SETTLE_MS = 1_500;

/** What a run of one node costs PostgreSQL and the host on it. */
export async function benchPostgres(): Promise<void> {
  console.log(`\nruns on PostgreSQL, ${CONCURRENCY} at once, ${RUNS} of them`);
  const postgres = await startPostgres();
  try {
    const { runsPerSecond, logBytes, transactions, flushes, hostUs, databaseUs } = await measureWrites(
      postgres,
      'ended',
      RUNS,
    );
    console.log(
      `  ${runsPerSecond.toFixed(0)} runs/s; for each run ${logBytes.toFixed(0)} bytes of log,` +
        ` ${transactions.toFixed(2)} transactions, ${flushes.toFixed(2)} flushes,` +
        ` ${hostUs.toFixed(0)} µs of the host, ${databaseUs.toFixed(0)} µs of PostgreSQL`,
    );
  } finally {
    await postgres.stop();
  }
}

/** What a host does with a PostgreSQL server, for each run. */
interface PostgresWrites {
  readonly runsPerSecond: number;
  readonly logBytes: number;
  readonly transactions: number;
  readonly flushes: number;
  /** Processor time. */
  readonly hostUs: number;
  readonly databaseUs: number;
}

/** Measures some runs of a new host on a server, after some that do not count. */
export async function measureWrites(postgres: BenchPostgres, way: Way, runs: number): Promise<PostgresWrites> {
  const capstan = await startCapstan({ DATABASE_URL: await postgres.createDatabase('capstan') });
  const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const run = (count: number) => load({ url: capstan.url, key: KEY, way, concurrency: CONCURRENCY, runs: count });
  try {
    await run(Math.min(runs, WARM_UP_RUNS));
    await settled();
    const [before, host, database] = [await postgres.totals(), cpuOfTree(capstan.pid), cpuOfTree(postgres.pid)];
    const { runsPerSecond } = await run(runs);
    const used = { host: cpuOfTree(capstan.pid) - host, database: cpuOfTree(postgres.pid) - database };
    await settled();
    const after = await postgres.totals();
    const each = (what: keyof PostgresTotals): number => (after[what] - before[what]) / runs;
    return {
      runsPerSecond,
      logBytes: each('walBytes'),
      transactions: each('transactions'),
      flushes: each('walFlushes'),
      hostUs: (used.host * 1_000) / runs,
      databaseUs: (used.database * 1_000) / runs,
    };
  } finally {
    await capstan.stop();
  }
}
