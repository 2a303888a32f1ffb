import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

/** The id of the installation. */
export const ANCESTRY_TABLES: readonly Migration[] = [
  {
    id: 'ancestry/0001',
    statements: [
      // The public id of this installation: one row, however many hosts share the store.
      `CREATE TABLE installation (
        place BIGINT PRIMARY KEY,
        host_id TEXT NOT NULL
      ) $clustered`,
    ],
  },
];

/** The key of the only row. */
const PLACE = 1;

/** Stores the id unless there is one already. */
export function insertInstallation(hostId: string): Write {
  return {
    sql: 'INSERT INTO installation (place, host_id) VALUES ($1, $2) ON CONFLICT (place) DO NOTHING',
    params: [PLACE, hostId],
  };
}

/** The id of the installation. */
export function findInstallation(): Statement {
  return sql('SELECT host_id FROM installation WHERE place = $1', PLACE);
}
