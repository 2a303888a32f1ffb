import { commitOrThrow } from '../../../runtime/change.ts';
import { defineCapability } from '../../capability.ts';
import { Runs } from '../../running/runs/door.ts';
import { Retention } from './door.ts';
import { RETENTION_TABLES } from './records.ts';
import { RetentionService, retentionWindows } from './service.ts';
import { retentionSettings } from './settings.ts';
import { SWEEP, startSweep, sweepHandler } from './work.ts';

/** Runs are deleted some time after their end. */
export const retention = defineCapability({
  name: 'retention',
  provides: Retention,
  needs: [Runs],
  settings: retentionSettings,
  tables: RETENTION_TABLES,
  build: (host, { runs }, settings) => {
    const { retentionMs } = settings;
    const windows = retentionWindows(settings);
    return {
      service: new RetentionService(host, runs, windows),
      advertise: () => ({
        production: {
          retention: {
            supported: true,
            minWindowSeconds: Math.floor(retentionMs / 1_000),
            testForceExpire: false,
          },
        },
      }),
      work: { [SWEEP]: { handle: sweepHandler(host, windows) } },
      prepare: () => commitOrThrow(host.runtime.store, startSweep()),
    };
  },
});
