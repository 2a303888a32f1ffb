import { defineSettings } from '../../settings.ts';

/** How many requests a webhook trigger takes. */
export const triggerSettings = defineSettings({
  variables: {
    triggerPerSecond: {
      variable: 'CAPSTAN_TRIGGER_RATE',
      meaning: 'requests per second that each webhook trigger accepts, on all hosts together (20)',
    },
  },
  read: (read) => ({
    triggerPerSecond: read.integer('triggerPerSecond', { otherwise: 20, min: 1, max: 100_000 }),
  }),
});
