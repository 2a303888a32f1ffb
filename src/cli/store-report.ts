import { type ChainReport, verifyChains } from '../capabilities/trust/audit/door.ts';
import { isFolderLocked } from '../store/sqlite-folder.ts';
import { type Store, StoreFailure } from '../store/store.ts';
import { type LogReport, openBackup, openFolder, type ReadOnlyStore, verifyLogs } from '../store/verify-store.ts';
import { realClock } from '../system/real.ts';

export { backUpFolder } from '../store/sqlite-backup.ts';

/** What a look at everything in a store came to. A part that could not be read at all is missing. */
export interface StoreReport {
  readonly isSound: boolean;
  /** What is wrong with the database itself. */
  readonly problems: readonly string[];
  readonly logs?: LogReport;
  readonly chains?: ChainReport;
}

/** Reads a backup whole. */
export function reportOnBackup(file: string): Promise<StoreReport> {
  return reportOn(openBackup(file, realClock));
}

/** Reads the store in a data folder whole; no host may be using it. */
export async function reportOnFolder(folder: string): Promise<StoreReport> {
  if (isFolderLocked(folder)) {
    throw new StoreFailure(
      `Another process, probably a running host, is using the data folder ${folder}. Stop it, or use \`capstan backup\`, which makes a copy while the host runs and verifies it.`,
    );
  }
  return reportOn(openFolder(folder, realClock));
}

/** Reads a PostgreSQL database whole, while hosts use it. */
export async function reportOnPostgres(url: string): Promise<StoreReport> {
  const { openPostgres } = await import('../store/postgres.ts');
  const store = await openPostgres({ url, clock: realClock, migrations: [] });
  try {
    return await contentReport(store, []);
  } finally {
    await store.close();
  }
}

async function reportOn(store: ReadOnlyStore): Promise<StoreReport> {
  try {
    return await contentReport(store, store.problems);
  } finally {
    store.close();
  }
}

async function contentReport(store: Pick<Store, 'read'>, found: readonly string[]): Promise<StoreReport> {
  const problems = [...found];
  const attempt = async <T>(what: string, verify: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await verify();
    } catch (error) {
      const { message } = error as Error;
      // A file that is no database says so at every look.
      if (!problems.includes(message)) problems.push(`${what} cannot be read: ${message}`);
      return undefined;
    }
  };
  const logs = await attempt('the runs', () => verifyLogs(store));
  const chains = await attempt('the audit log', () => verifyChains(store));
  const isSound = problems.length === 0 && logs?.damaged.length === 0 && chains?.broken.length === 0;
  return { isSound, problems, ...(logs ? { logs } : {}), ...(chains ? { chains } : {}) };
}
