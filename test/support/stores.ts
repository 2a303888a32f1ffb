import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, inject, type SuiteOptions } from 'vitest';
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
  onStores(STORES, title, scenarios, overrides, extra);
}

/**
 * As `onEachStore`, with all scenarios at once, on both stores: for those that mostly wait. None may depend on another, nor
 * on what it alone has made.
 */
export function onStoresAtOnce(
  title: string,
  scenarios: Scenarios,
  overrides: Partial<Config> = {},
  extra: readonly MountedWith<object>[] = [],
): void {
  onStores(STORES, title, scenarios, overrides, extra, { concurrent: true });
}

/** Runs scenarios in which the store cannot matter, as `onEachStore` does, on the store that `storesFor` gives. */
export function onOneStore(
  title: string,
  scenarios: Scenarios,
  overrides: Partial<Config> = {},
  extra: readonly MountedWith<object>[] = [],
): void {
  onStores(storesFor(title), title, scenarios, overrides, extra);
}

/** Whether everything runs on both stores, also that in which the store cannot matter. */
export const isOnAllStores = process.env.CAPSTAN_TEST_STORES === 'all';

/**
 * Where scenarios run in which the store cannot matter: the title decides, so that about half of them are on each store
 * and a failure repeats. With CAPSTAN_TEST_STORES=all they run on both.
 */
export function storesFor(title: string): readonly StoreKind[] {
  if (isOnAllStores) return STORES;
  const index = createHash('sha256').update(title).digest().readUInt32BE() % STORES.length;
  return [STORES[index]!];
}

function onStores(
  stores: readonly StoreKind[],
  title: string,
  scenarios: Scenarios,
  overrides: Partial<Config>,
  extra: readonly MountedWith<object>[],
  options: SuiteOptions = {},
): void {
  describe.each(stores)(`${title}, on %s`, options, (kind) => {
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
