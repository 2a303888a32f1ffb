import { ensureWork } from '../../../store/queue.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { laneHandler } from './deliver.ts';
import { forgetDeliveries, LANE, WEBHOOK_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type WebhookService, webhookService } from './service.ts';
import { SIGNATURE_ALGORITHM } from './signing.ts';

/** Lanes in hand at once; receivers are slow, and runs must not wait for them. */
const LANES_AT_ONCE = 128;
const FORGET = 'forget-deliveries';
const FORGET_EVERY_MS = 60_000;
const FORGET_AT_ONCE = 2_000;

/** Events of runs, signed and sent to whoever asked for them, until they have arrived or are given up. */
export const webhooks: Capability<'webhooks', WebhookService> = {
  name: 'webhooks',
  advertise: () => ({ webhooks: { supported: true, signatureAlgorithms: [SIGNATURE_ALGORITHM], durable: true } }),
  migrations: WEBHOOK_TABLES,
  service: webhookService,
  routes,
  reactions: (_host, { lanes }) => [lanes.reaction],
  work: (host, { keys }) => ({
    [LANE]: { handle: laneHandler(host, keys), atOnce: LANES_AT_ONCE },
    [FORGET]: {
      handle: async () => ({
        writes: [forgetDeliveries(FORGET_AT_ONCE)],
        dueAgainAt: host.runtime.clock.now() + FORGET_EVERY_MS,
      }),
    },
  }),
  prepare: async ({ runtime }, { lanes }) => {
    await lanes.look();
    await runtime.store.commit([ensureWork({ workId: FORGET, kind: FORGET, tenant: '*', dueAt: 0 })]);
  },
};
