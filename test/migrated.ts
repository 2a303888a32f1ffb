import type { TestProject } from 'vitest/node';
import { capabilities, loadConformance } from '../src/capabilities/index.ts';
import { openPostgres } from '../src/store/postgres.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import { databaseFile } from '../src/store/sqlite-folder.ts';
import { CORE_TABLES } from '../src/store/tables.ts';
import { realClock } from '../src/system/real.ts';
import { createDatabase, freshFolder, MIGRATED } from './support/database.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A SQLite database with every table in it, and nothing else. */
    migratedFile: string;
  }
}

/**
 * Makes the databases that those of test hosts are copies of, with every table in them. To make the tables costs PostgreSQL
 * ten times as much as to copy them.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  const mounted = [...capabilities, ...(await loadConformance())];
  const migrations = [...CORE_TABLES, ...mounted.flatMap(({ tables }) => tables)];
  const url = await createDatabase(project.getProvidedContext().postgresUrl, MIGRATED);
  const store = await openPostgres({ url, clock: realClock, migrations });
  await store.close();
  const folder = freshFolder();
  const file = await openSqlite({ folder: folder.path, clock: realClock, migrations });
  await file.close();
  project.provide('migratedFile', databaseFile(folder.path));
  return folder.remove;
}
