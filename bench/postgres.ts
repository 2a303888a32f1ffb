import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../test/support/free-port.ts';
import { PostgresServer } from '../test/support/postgres-server.ts';

/** A PostgreSQL server that flushes every commit to the disk, as it does by default. */
export interface BenchPostgres {
  readonly pid: number;
  /** Makes an empty database and says where it is. */
  createDatabase(name: string): Promise<string>;
  /** Bytes that were written to the write-ahead log since it was made. */
  walBytes(): Promise<number>;
  stop(): Promise<void>;
}

const SETTINGS = ['fsync=on', 'synchronous_commit=on', 'shared_buffers=128MB', 'max_connections=200'];

/** Starts one on a folder of its own, on the disk that the embedded store of the others is on too. */
export async function startPostgres(): Promise<BenchPostgres> {
  // Made by the server itself, so that it belongs to whichever user the server runs as.
  const parent = mkdtempSync(join(tmpdir(), 'capstan-bench-'));
  const server = new PostgresServer(`${parent}-postgres`, await freePort());
  rmSync(parent, { recursive: true });
  await server.initialise();
  await server.start(SETTINGS);
  return {
    pid: server.pid,
    createDatabase: async (name) => {
      await server.withClient((client) => client.query(`CREATE DATABASE ${name}`));
      return new URL(`/${name}`, server.url).href;
    },
    walBytes: () =>
      server.withClient(async (client) => {
        const { rows } = await client.query(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint AS bytes`);
        return Number(rows[0].bytes);
      }),
    stop: () => server.remove(),
  };
}
