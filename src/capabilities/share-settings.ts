import { NAME } from '../protocol/trust/keys.ts';
import { defineSettings, type SettingsReader } from './settings.ts';
import { storageTenants } from './storage-tenant.ts';

const WEIGHT_MAX = 100;

/** How the host is shared: what one tenant, one key or one address may take, so that the others find room. */
export const shareSettings = defineSettings({
  variables: {
    inFlightMax: {
      variable: 'CAPSTAN_INFLIGHT_CAP',
      meaning: 'limit of concurrent requests, including streams (2000)',
    },
    inFlightPerTenant: {
      variable: 'CAPSTAN_INFLIGHT_PER_TENANT',
      meaning: 'concurrent requests of one tenant, including streams (half of the limit)',
    },
    inFlightPerKey: {
      variable: 'CAPSTAN_INFLIGHT_PER_KEY',
      meaning: 'concurrent requests of one key, including streams (a quarter of the limit)',
    },
    streamsPerTenant: {
      variable: 'CAPSTAN_STREAMS_PER_TENANT',
      meaning: 'open streams of one tenant (a quarter of the limit of requests)',
    },
    streamsPerKey: {
      variable: 'CAPSTAN_STREAMS_PER_KEY',
      meaning: 'open streams of one key (an eighth of the limit of requests)',
    },
    publicInFlightMax: {
      variable: 'CAPSTAN_INFLIGHT_PUBLIC',
      meaning: 'concurrent requests without a credential (a tenth of the limit)',
    },
    requestsPerSecond: { variable: 'CAPSTAN_RATE_LIMIT', meaning: 'requests per second for each key (5000)' },
    addressPerSecond: {
      variable: 'CAPSTAN_ADDRESS_RATE_LIMIT',
      meaning: 'requests per second from one address without a verified credential (500)',
    },
    requestTimeoutMs: {
      variable: 'CAPSTAN_REQUEST_TIMEOUT_MS',
      meaning: 'milliseconds within which a request and its body must arrive (30000)',
    },
    streamUnreadMs: {
      variable: 'CAPSTAN_STREAM_UNREAD_MS',
      meaning: 'milliseconds after which a stream or a long response is cut off if its caller reads nothing (15000)',
    },
    workMax: { variable: 'CAPSTAN_WORK_CAP', meaning: 'work items that one process handles at once (1000)' },
    workPerTenant: {
      variable: 'CAPSTAN_WORK_PER_TENANT',
      meaning: 'work items of one tenant that one process handles at once (half of the limit)',
    },
    storagePerTenant: {
      variable: 'CAPSTAN_STORAGE_PER_TENANT',
      meaning: 'bytes that the runs of one tenant may take in the store (10737418240)',
    },
    tenantWeights: {
      variable: 'CAPSTAN_TENANT_WEIGHTS',
      meaning: 'shares of single tenants, for example "acme=3,beta=2"; all others have 1',
    },
    quarantineAfter: {
      variable: 'CAPSTAN_QUARANTINE_AFTER',
      meaning:
        'host crashes after which a run is tried alone, and quarantined with the next one; stalls that quarantine it (2)',
    },
  },
  read: (read) => {
    const inFlightMax = read.integer('inFlightMax', { otherwise: 2_000, min: 1, max: 1_000_000 });
    const partOf = (whole: number, parts: number) => ({ otherwise: Math.ceil(whole / parts), min: 1, max: 1_000_000 });
    const workMax = read.integer('workMax', { otherwise: 1_000, min: 1, max: 1_000_000 });
    return {
      inFlightMax,
      inFlightPerTenant: read.integer('inFlightPerTenant', partOf(inFlightMax, 2)),
      inFlightPerKey: read.integer('inFlightPerKey', partOf(inFlightMax, 4)),
      streamsPerTenant: read.integer('streamsPerTenant', partOf(inFlightMax, 4)),
      streamsPerKey: read.integer('streamsPerKey', partOf(inFlightMax, 8)),
      publicInFlightMax: read.integer('publicInFlightMax', partOf(inFlightMax, 10)),
      requestsPerSecond: read.integer('requestsPerSecond', { otherwise: 5_000, min: 1, max: 10_000_000 }),
      addressPerSecond: read.integer('addressPerSecond', { otherwise: 500, min: 1, max: 10_000_000 }),
      requestTimeoutMs: read.integer('requestTimeoutMs', { otherwise: 30_000, min: 100, max: 3_600_000 }),
      streamUnreadMs: read.integer('streamUnreadMs', { otherwise: 15_000, min: 100, max: 3_600_000 }),
      workMax,
      workPerTenant: read.integer('workPerTenant', partOf(workMax, 2)),
      storagePerTenant: read.integer('storagePerTenant', {
        otherwise: 10 * 1_024 ** 3,
        min: 1,
        max: Number.MAX_SAFE_INTEGER,
      }),
      /** By the tenant's name in the store, if it differs from 1. */
      tenantWeights: weightsByTenant(read),
      quarantineAfter: read.integer('quarantineAfter', { otherwise: 2, min: 1, max: 1_000_000 }),
    };
  },
});

function weightsByTenant(read: SettingsReader<'tenantWeights'>): ReadonlyMap<string, number> {
  const parts = read.text('tenantWeights')?.split(',') ?? [];
  return new Map(
    parts.flatMap((part): [string, number][] => {
      const [, tenant = '', weight = ''] = /^\s*([^=\s]+)=([0-9]{1,3})\s*$/.exec(part) ?? [];
      if (NAME.test(tenant) && Number(weight) >= 1 && Number(weight) <= WEIGHT_MAX) {
        return storageTenants(tenant).map((stored) => [stored, Number(weight)]);
      }
      read.report(
        'tenantWeights',
        ` must be a comma-separated list of tenant=weight, with weights from 1 to ${WEIGHT_MAX}.`,
      );
      return [];
    }),
  );
}
