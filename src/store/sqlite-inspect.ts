import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { AppliedMigration } from './migrations.ts';
import { databaseFile } from './sqlite-folder.ts';
import type { StoreState } from './upgrade.ts';

/** Looks at the store of a data folder without changing it, also while its host runs. There is one host at most. */
export function inspectFolder(folder: string): StoreState {
  const file = databaseFile(folder);
  if (!existsSync(file)) return { kind: 'sqlite', applied: [], hosts: [] };
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    const rows = database.prepare('SELECT * FROM migrations').all();
    const applied: AppliedMigration[] = rows.map(({ id, checksum }) => ({
      id: String(id),
      // Stores from before checksums have no such column.
      checksum: typeof checksum === 'string' ? checksum : null,
    }));
    return { kind: 'sqlite', applied, hosts: [] };
  } finally {
    database.close();
  }
}
