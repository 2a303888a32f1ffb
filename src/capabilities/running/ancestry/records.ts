import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';

export const ANCESTRY_TABLES: readonly Migration[] = [
  {
    id: 'ancestry/0001',
    statements: [
      // What the world knows this installation by. There is one row, whatever the number of processes.
      `CREATE TABLE installation (
        place BIGINT PRIMARY KEY,
        host_id TEXT NOT NULL
      ) $clustered`,
    ],
  },
];

const PLACE = 1;

/** The first one stays for good. */
export function nameInstallation(hostId: string): Write {
  return {
    sql: 'INSERT INTO installation (place, host_id) VALUES ($1, $2) ON CONFLICT (place) DO NOTHING',
    params: [PLACE, hostId],
  };
}

export function findInstallation(): Statement {
  return sql('SELECT host_id FROM installation WHERE place = $1', PLACE);
}
