import type { TestProject } from 'vitest/node';
import { capabilities, loadConformance } from '../src/capabilities/index.ts';
import { openPostgres } from '../src/store/postgres.ts';
import { CORE_TABLES } from '../src/store/tables.ts';
import { realClock } from '../src/system/real.ts';
import { createDatabase, MIGRATED } from './support/database.ts';

/**
 * Makes the database that those of test hosts are copies of, with every table in it. To make the tables costs PostgreSQL
 * ten times as much as to copy them.
 */
export default async function setup(project: TestProject): Promise<void> {
  const mounted = [...capabilities, ...(await loadConformance())];
  const migrations = [...CORE_TABLES, ...mounted.flatMap(({ tables }) => tables)];
  const url = await createDatabase(project.getProvidedContext().postgresUrl, MIGRATED);
  const store = await openPostgres({ url, clock: realClock, migrations });
  await store.close();
}
