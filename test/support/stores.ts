import { afterAll, beforeAll, describe, inject } from 'vitest';
import type { MountedWith } from '../../src/capabilities/index.ts';
import type { Config } from '../../src/config.ts';
import { type StoreKind, startTestHost, type TestHost } from './host.ts';

export const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];

export type Scenarios = (host: () => TestHost, kind: StoreKind) => void;

/** Runs the same scenarios against a real host on each store. `host()` is the running one. */
export function onEachStore(
  title: string,
  scenarios: Scenarios,
  overrides: Partial<Config> = {},
  extra: readonly MountedWith<object>[] = [],
): void {
  describe.each(STORES)(`${title}, on %s`, (kind) => {
    let host: TestHost | undefined;
    beforeAll(async () => {
      host = await startTestHost(kind, inject('postgresUrl'), overrides, undefined, extra);
    });
    afterAll(async () => {
      await host?.stop();
    });
    scenarios(() => host!, kind);
  });
}
