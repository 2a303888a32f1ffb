import { BadConfig, type Config, readConfig, type SettingTexts } from '../config.ts';
import { recoverOwnerKey } from '../host.ts';
import { realClock, realIds } from '../system/real.ts';
import { realLog } from '../system/real-log.ts';
import { UsageError } from './exit.ts';
import { startFailure } from './start-failure.ts';
import type { Terminal } from './terminal.ts';

/** Opens the store that flags and environment name, and makes an owner key in it. */
export async function recoverKey({ environment }: Terminal, tenant: string, flags: SettingTexts): Promise<string> {
  const config = configOf(flags, environment);
  try {
    const log = await realLog('warn', true);
    return await recoverOwnerKey(config, { clock: realClock, ids: realIds(), log }, tenant);
  } catch (error) {
    throw new UsageError(startFailure(error as Error, config));
  }
}

function configOf(flags: SettingTexts, environment: Terminal['environment']): Config {
  try {
    return readConfig(flags, environment);
  } catch (error) {
    throw error instanceof BadConfig ? new UsageError(error.message) : error;
  }
}
