import { defineSettings } from '../../settings.ts';

const DAY_MS = 24 * 60 * 60_000;

/** How often, how long and how soon a failed delivery is retried. */
export const webhookSettings = defineSettings({
  variables: {
    webhookAttempts: { variable: 'CAPSTAN_WEBHOOK_ATTEMPTS', meaning: 'attempts for each webhook delivery (20)' },
    webhookWindowMs: {
      variable: 'CAPSTAN_WEBHOOK_WINDOW_MS',
      meaning: 'time in milliseconds after which a webhook delivery becomes a dead letter (24 hours)',
    },
    webhookRetryMs: {
      variable: 'CAPSTAN_WEBHOOK_RETRY_MS',
      meaning: 'first backoff between webhook attempts in milliseconds; doubles each time (1000)',
    },
  },
  read: (read) => ({
    webhookAttempts: read.integer('webhookAttempts', { otherwise: 20, min: 1, max: 1_000 }),
    webhookWindowMs: read.integer('webhookWindowMs', { otherwise: DAY_MS, min: 1, max: 7 * DAY_MS }),
    webhookRetryMs: read.integer('webhookRetryMs', { otherwise: 1_000, min: 1, max: 1_500 }),
  }),
});
