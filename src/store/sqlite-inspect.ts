import { existsSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import type { AppliedMigration } from './migrations.ts';
import { databaseFile, isFolderLocked } from './sqlite-folder.ts';
import type { LiveHost, StoreState } from './upgrade.ts';

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
    return { kind: 'sqlite', applied, hosts: isFolderLocked(folder) ? [liveHost(database)] : [] };
  } finally {
    database.close();
  }
}

/**
 * The host whose heartbeat row is the newest. The lock may belong to a host that has not written its heartbeat row yet, or
 * to a command that writes none, such as a backup.
 */
function liveHost(database: DatabaseSync): LiveHost {
  const hasHosts = database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'hosts'").get() !== undefined;
  // Older stores have no column for the version.
  const row = hasHosts ? database.prepare('SELECT * FROM hosts ORDER BY alive_until DESC LIMIT 1').get() : undefined;
  const { host_id: hostId = 'a host', version } = row ?? {};
  return { hostId: String(hostId), version: typeof version === 'string' ? version : null };
}
