import type { MetricsAccess } from '../system/meter.ts';
import { defineSettings, type SettingsReader } from './settings.ts';

const TOKEN_CHARACTERS_MIN = 16;

/** Who may read the metrics. Capabilities show numbers of all tenants only where everybody may read these. */
export const metricsSettings = defineSettings({
  variables: {
    metrics: {
      variable: 'CAPSTAN_METRICS',
      meaning:
        'who may read /metrics: public (everybody), token (callers that send CAPSTAN_METRICS_TOKEN) or off (nobody) (token if one is set, otherwise public)',
    },
    metricsToken: {
      variable: 'CAPSTAN_METRICS_TOKEN',
      meaning: `token for /metrics, as Authorization: Bearer; at least ${TOKEN_CHARACTERS_MIN} characters`,
    },
  },
  read: (read) => ({ metricsAccess: metricsAccessOf(read) }),
});

/** Everybody, who has the token, or nobody. */
function metricsAccessOf(read: SettingsReader<'metrics' | 'metricsToken'>): MetricsAccess {
  const token = read.textOfLength('metricsToken', TOKEN_CHARACTERS_MIN);
  const access = read.oneOf('metrics', ['public', 'token', 'off'], token === undefined ? 'public' : 'token');
  const isGiven = read.text('metricsToken') !== undefined;
  if (isGiven && read.text('metrics') === 'public') {
    read.report('metrics', ' is public, so CAPSTAN_METRICS_TOKEN would protect nothing. Remove one of the two.');
  }
  if (access !== 'token') return access;
  if (!isGiven) read.report('metrics', ' is token, so CAPSTAN_METRICS_TOKEN must be set.');
  return { token: token ?? '' };
}
