import { afterAll } from 'vitest';
import { freshFolder } from './database.ts';
import { type StoreKind, startHostWith, storeSettings, type TestHost } from './host.ts';

type Environment = Record<string, string>;

/** Hosts in this process that a test file starts; what is left of them goes when the file ends. */
export interface LocalHosts {
  /** Starts a host with the settings of an environment, as `serve` reads them. */
  start(environment: Environment): Promise<TestHost>;
  /** The settings for a store of one's own, with every table in it. */
  newStore(kind: StoreKind): Promise<Environment>;
  newFolder(): string;
}

/** To be called at the top of a test file in which hosts start and stop, and it does not matter that they are processes. */
export function localHosts(): LocalHosts {
  const started: TestHost[] = [];
  const folders: { remove(): void }[] = [];
  afterAll(async () => {
    for (const host of started) await host.stop();
    for (const folder of folders) folder.remove();
  });
  const newFolder = (): string => {
    const folder = freshFolder();
    folders.push(folder);
    return folder.path;
  };
  return {
    newFolder,
    async start(environment) {
      const host = await startHostWith(environment);
      started.push(host);
      return host;
    },
    newStore: (kind) => storeSettings(kind, newFolder),
  };
}
