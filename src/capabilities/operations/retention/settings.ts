import { NAME } from '../../../protocol/trust/keys.ts';
import { defineSettings, type SettingsReader } from '../../settings.ts';

const DAY_MS = 24 * 60 * 60_000;
const RETENTION_DAYS = { min: 7, max: 36_500 };

/** How long runs are stored after their end. */
export const retentionSettings = defineSettings({
  variables: {
    retention: {
      variable: 'CAPSTAN_RETENTION_DAYS',
      meaning: 'days to keep a run after it has ended (30, at least 7)',
    },
    retentionOf: {
      variable: 'CAPSTAN_RETENTION_TENANTS',
      meaning: 'retention days for single tenants, for example "acme=7,beta=365"',
    },
  },
  read: (read) => ({
    retentionMs: read.integer('retention', { otherwise: 30, ...RETENTION_DAYS }) * DAY_MS,
    /** By tenant, if it differs. */
    retentionOf: retentionByTenant(read),
  }),
});

function retentionByTenant(read: SettingsReader<'retentionOf'>): ReadonlyMap<string, number> {
  const parts = read.text('retentionOf')?.split(',') ?? [];
  const { min, max } = RETENTION_DAYS;
  return new Map(
    parts.flatMap((part): [string, number][] => {
      const [, tenant = '', days = ''] = /^\s*([^=\s]+)=([0-9]{1,5})\s*$/.exec(part) ?? [];
      if (NAME.test(tenant) && Number(days) >= min && Number(days) <= max) return [[tenant, Number(days) * DAY_MS]];
      read.report('retentionOf', ` must be a comma-separated list of tenant=days, with ${min} to ${max} days.`);
      return [];
    }),
  );
}
