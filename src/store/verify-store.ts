import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../system/clock.ts';
import { coveredBy } from './log-digest.ts';
import { type Statement, sql } from './sql.ts';
import { Connection } from './sqlite-connection.ts';
import { databaseFile, lockFolder } from './sqlite-folder.ts';
import { type Store, StoreFailure } from './store.ts';
import { damageOf, type SealedRow } from './verify-log.ts';

/** What the logs of a store came to. */
export interface LogReport {
  readonly runs: number;
  readonly events: number;
  /** Runs that are older than digests: only gaps can be told of them. */
  readonly withoutDigest: number;
  readonly damaged: readonly { readonly runId: string; readonly problem: string }[];
}

/** A store that is only read. */
export interface ReadOnlyStore extends Pick<Store, 'read'> {
  /** What the database says about its own pages; empty if nothing is wrong. */
  readonly problems: readonly string[];
  close(): void;
}

const RUNS_PER_PAGE = 500;
/** Findings of SQLite about its pages that are shown. */
const PROBLEMS_MAX = 20;

/** Reads the log of every run. A log that cannot be read is damaged too; the others are checked all the same. */
export async function verifyLogs(store: Pick<Store, 'read'>): Promise<LogReport> {
  const report = { runs: 0, events: 0, withoutDigest: 0, damaged: [] as { runId: string; problem: string }[] };
  for (let after = ''; ; ) {
    const rows = await store.read<SealedRow>(sealedRuns(after));
    for (const row of rows) {
      report.runs += 1;
      report.events += row.sequence + 1;
      if (coveredBy(row.log_seal) !== row.sequence) report.withoutDigest += 1;
      const problem = await damageOf(store, row).catch((error: Error) => `it cannot be read (${error.message})`);
      if (problem !== undefined) report.damaged.push({ runId: row.run_id, problem });
    }
    if (rows.length < RUNS_PER_PAGE) return report;
    after = rows.at(-1)!.run_id;
  }
}

function sealedRuns(after: string): Statement {
  return sql(
    'SELECT run_id, tenant, sequence, log_seal FROM runs WHERE run_id > $1 ORDER BY run_id LIMIT $2',
    after,
    RUNS_PER_PAGE,
  );
}

/** Opens a backup to read it. */
export function openBackup(file: string, clock: Clock): ReadOnlyStore {
  if (!existsSync(file)) throw new StoreFailure(`There is no file ${file}.`);
  return openReadOnly(file, clock, () => {});
}

/** Opens the database of a data folder that no process is using, to read it: it is not changed, however damaged it is. */
export function openFolder(folder: string, clock: Clock): ReadOnlyStore {
  const file = databaseFile(folder);
  if (!existsSync(file)) throw new StoreFailure(`There is no ${file}.`);
  return openReadOnly(file, clock, lockFolder(folder));
}

function openReadOnly(file: string, clock: Clock, release: () => void): ReadOnlyStore {
  const connection = new Connection(new DatabaseSync(file, { readOnly: true }), clock);
  return {
    problems: pageProblems(connection),
    read: async <R>(statement: Statement) => connection.all(statement) as R[],
    close: () => {
      connection.close();
      release();
    },
  };
}

function pageProblems(connection: Connection): string[] {
  try {
    const rows = connection.all({ sql: `PRAGMA integrity_check(${PROBLEMS_MAX})`, params: [] });
    return rows.map(({ integrity_check: finding }) => String(finding)).filter((finding) => finding !== 'ok');
  } catch (error) {
    return [(error as Error).message];
  }
}
