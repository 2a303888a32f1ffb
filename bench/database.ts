import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port.ts';
import { PostgresServer } from '../test/support/postgres-server.ts';
import { scratchFolder } from '../test/support/scratch.ts';

/** A PostgreSQL for one measurement: the one of DATABASE_URL, or a server that is started for it and removed. */
export async function openDatabase(): Promise<{ readonly url: string; remove(): Promise<void> }> {
  const given = process.env.DATABASE_URL;
  if (given) return { url: given, remove: async () => {} };
  const folder = join(scratchFolder(), `capstan-bench-postgres-${randomBytes(8).toString('hex')}`);
  const server = new PostgresServer(folder, await freePort());
  await server.initialise();
  await server.start();
  return { url: server.url, remove: () => server.remove() };
}
