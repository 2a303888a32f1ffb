import { MIGRATIONS } from '../host.ts';
import { inspectFolder } from '../store/sqlite-inspect.ts';
import { type LiveHost, planUpgrade, type UpgradePlan } from '../store/upgrade.ts';
import { realClock } from '../system/real.ts';
import { VERSION } from '../version.ts';

export type { Effect } from '../store/upgrade.ts';

/** Whether this version fits a store and the hosts that use it. */
export interface UpgradeReport extends UpgradePlan {
  readonly version: string;
  readonly hosts: readonly LiveHost[];
}

/** Looks at the store and says what a start of this version would do. Nothing is changed. */
export async function reportOnUpgrade({
  url,
  folder,
}: {
  readonly url: string | undefined;
  readonly folder: string;
}): Promise<UpgradeReport> {
  const state = url === undefined ? inspectFolder(folder) : await inspectDatabase(url);
  return { version: VERSION, hosts: state.hosts, ...planUpgrade(MIGRATIONS, state) };
}

async function inspectDatabase(url: string) {
  const { inspectPostgres } = await import('../store/postgres-inspect.ts');
  return inspectPostgres(url, realClock);
}
