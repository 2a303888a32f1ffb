import type { TestProject } from 'vitest/node';
import { fixturesFor } from '../src/capabilities/conformance/fixtures/index.ts';
import { SEAM_WORKFLOWS } from '../src/capabilities/conformance/fixtures/seam-workflows.ts';
import { capabilities, loadConformance } from '../src/capabilities/index.ts';
import { canonicalJson } from '../src/protocol/format/json.ts';
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { HOST_OWNER, insertDefinition, setCurrentVersion } from '../src/store/definitions.ts';
import { openPostgres } from '../src/store/postgres.ts';
import type { Write } from '../src/store/sql.ts';
import { openSqlite } from '../src/store/sqlite.ts';
import { databaseFile } from '../src/store/sqlite-folder.ts';
import type { Store } from '../src/store/store.ts';
import { CORE_TABLES } from '../src/store/tables.ts';
import { sha256Hex } from '../src/system/digest.ts';
import { realClock } from '../src/system/real.ts';
import { createDatabase, freshFolder, MIGRATED } from './support/database.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    /** A SQLite database with every table in it, and the workflows that every host under the conformance switch has. */
    migratedFile: string;
  }
}

/**
 * Makes the databases that those of test hosts are copies of, with every table in them. To make the tables costs PostgreSQL
 * ten times as much as to copy them. The fixtures are there too: a host finds them as one does that is started again.
 */
export default async function setup(project: TestProject): Promise<() => void> {
  const mounted = [...capabilities, ...(await loadConformance())];
  const migrations = [...CORE_TABLES, ...mounted.flatMap(({ tables }) => tables)];
  const url = await createDatabase(project.getProvidedContext().postgresUrl, MIGRATED);
  await fill(await openPostgres({ url, clock: realClock, migrations }));
  const folder = freshFolder();
  await fill(await openSqlite({ folder: folder.path, clock: realClock, migrations }));
  project.provide('migratedFile', databaseFile(folder.path));
  return folder.remove;
}

/** Stores the workflows of the conformance switch as a host does at its first start, and closes the store. */
async function fill(store: Store): Promise<void> {
  const fixtures = [...SEAM_WORKFLOWS, ...fixturesFor({ mcpServers: [] })];
  await store.commit(fixtures.flatMap((fixture) => firstVersion(fixture)));
  await store.close();
}

function firstVersion(definition: WorkflowDefinition): Write[] {
  const { id } = definition;
  const [digest, body] = [sha256Hex(canonicalJson(definition)), JSON.stringify(definition)];
  const row = { owner: HOST_OWNER, workflow_id: id, version: 1, digest, body, created_at: realClock.now() };
  return [insertDefinition(row), setCurrentVersion(HOST_OWNER, id, 1, row.created_at, null)];
}
