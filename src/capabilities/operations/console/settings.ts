import { defineSettings } from '../../settings.ts';

const HOUR_MS = 60 * 60_000;

/** How long people stay signed in to the console. */
export const consoleSettings = defineSettings({
  variables: {
    sessionHours: {
      variable: 'CAPSTAN_SESSION_HOURS',
      meaning: 'hours after which people sign in to the console again (12)',
    },
  },
  read: (read) => ({ sessionMs: read.integer('sessionHours', { otherwise: 12, min: 1, max: 720 }) * HOUR_MS }),
});
