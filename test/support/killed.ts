import { afterAll, expect } from 'vitest';
import type { Answer } from './api.ts';
import { freshFolder } from './database.ts';
import { type StoreKind, startHostWith, storeSettings, type TestHost } from './host.ts';
import { type HostProcess, spawnHost } from './process.ts';

/** How often hosts are killed in one test, if not as often as `CAPSTAN_KILLS` says. */
export const killsOr = (usual: number): number => Number(process.env.CAPSTAN_KILLS ?? usual);

/** Real hosts that a test file starts and kills; what is left of them goes when the file ends. */
export interface KillableHosts {
  start(environment: Record<string, string>): Promise<HostProcess>;
  /**
   * Starts the host that follows one which was killed, in this process: it has to go on with what it finds, and nothing
   * happens to it.
   */
  follow(environment: Record<string, string>): Promise<TestHost>;
  kill(host: HostProcess): Promise<void>;
  /** Asks the host to stop and waits until it has, with exit code 0. */
  stop(host: HostProcess, signal?: 'SIGTERM' | 'SIGINT'): Promise<void>;
  /** A new data folder, with nothing in it. */
  newFolder(): string;
  /** The settings for a store of one's own, with every table in it: a start that makes them costs more. */
  newStore(kind: StoreKind): Promise<Record<string, string>>;
}

/** Runs are not to blame for these deaths. */
const INNOCENT = { CAPSTAN_QUARANTINE_AFTER: '1000' };

/** To be called at the top of a test file. */
export function killableHosts(): KillableHosts {
  const alive = new Set<HostProcess>();
  const folders: { remove(): void }[] = [];
  const following: TestHost[] = [];
  afterAll(async () => {
    for (const host of following) await host.stop();
    for (const host of alive) host.signal('SIGKILL');
    for (const host of alive) await host.exit;
    for (const folder of folders) folder.remove();
  });
  const newFolder = (): string => {
    const folder = freshFolder();
    folders.push(folder);
    return folder.path;
  };
  return {
    newFolder,
    newStore: (kind) => storeSettings(kind, newFolder),
    async start(environment) {
      const host = await spawnHost({ ...INNOCENT, ...environment });
      alive.add(host);
      return host;
    },
    async follow(environment) {
      const host = await startHostWith({ ...INNOCENT, ...environment });
      following.push(host);
      return host;
    },
    async kill(host) {
      host.signal('SIGKILL');
      expect(await host.exit).toBe('SIGKILL');
      alive.delete(host);
    },
    async stop(host, signal = 'SIGTERM') {
      host.signal(signal);
      expect(await host.exit).toBe(0);
      alive.delete(host);
    },
  };
}

type Event = Answer['body'];

const TERMINAL = ['run.completed', 'run.failed', 'run.cancelled'];

/** The promises about a log, whatever happened while it was written. */
export function expectSoundLog(events: readonly Event[]): void {
  expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
  const types = events.map(({ type }) => type);
  expect(types.filter((type) => type === 'run.started')).toEqual(['run.started']);
  expect(types[0]).toBe('run.started');
  expect(types.filter((type) => TERMINAL.includes(type))).toEqual([types.at(-1)]);
  const ends = events.filter(({ type }) => /^node\.(completed|failed|skipped|cancelled)$/.test(type));
  expect(new Set(ends.map(({ nodeId }) => nodeId)).size).toBe(ends.length);
}
