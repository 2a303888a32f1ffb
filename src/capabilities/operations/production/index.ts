import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { developerLog, endLog } from './run-log.ts';

/** The claim that the host is fit for production: durable, bounded, and logs how every run ended. */
export const production = defineCapability({
  name: 'production',
  settings: hostSettings,
  build: ({ runtime: { log } }, _needs, { isDev }) => ({
    advertise: () => ({ production: { supported: true } }),
    onAppend: [isDev ? developerLog(log) : endLog(log)],
  }),
});
