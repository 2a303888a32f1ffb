import { inject } from 'vitest';
import { openPostgres } from '../../src/store/postgres.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import { freshDatabase, freshFolder } from '../support/database.ts';
import { type OpenedStore, storeContract } from './store-contract.ts';

storeContract('SQLite on disk', async (clock, migrations): Promise<OpenedStore> => {
  const folder = freshFolder();
  const open = () => openSqlite({ folder: folder.path, clock, migrations });
  return { store: await open(), cleanUp: async () => folder.remove() };
});

storeContract('PostgreSQL', async (clock, migrations): Promise<OpenedStore> => {
  const url = await freshDatabase(inject('postgresUrl'));
  const open = () => openPostgres({ url, clock, migrations, useOwnClock: true });
  return { store: await open(), another: open, cleanUp: async () => {} };
});
