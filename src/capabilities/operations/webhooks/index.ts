import { commitOrThrow } from '../../../runtime/change.ts';
import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { Interrupts } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { joinSettings } from '../../settings.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Webhooks } from './door.ts';
import { Subscribers } from './reactions.ts';
import { forgetCallback, WEBHOOK_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { WebhookSealer } from './sealer.ts';
import { WebhookService } from './service.ts';
import { webhookSettings } from './settings.ts';
import { SIGNATURE_ALGORITHM } from './signing.ts';
import { cleanUpWork, webhookWork } from './work.ts';

/** Signed deliveries of run events to subscribers, retried until they arrive or become dead letters. */
export const webhooks = defineCapability({
  name: 'webhooks',
  provides: Webhooks,
  needs: [Audit, Interrupts],
  settings: joinSettings(hostSettings, webhookSettings),
  tables: WEBHOOK_TABLES,
  build: (host, { audit, interrupts }, { secret, webhookAttempts, webhookWindowMs, webhookRetryMs }) => {
    const { runtime } = host;
    const sealer = new WebhookSealer(runtime.store, secret);
    const subscribers = new Subscribers(runtime);
    const service = new WebhookService(runtime, { audit, sealer, subscribers });
    const policy = { attempts: webhookAttempts, windowMs: webhookWindowMs, retryMs: webhookRetryMs };
    return {
      service,
      advertise: () => ({
        webhooks: { supported: true, signatureAlgorithms: [SIGNATURE_ALGORITHM], durable: true },
      }),
      routes: bindRoutes(routes, { webhooks: service }),
      reactions: [subscribers.reaction],
      onAppend: [subscribers.onAppend],
      onHint: subscribers.tenants.onHint,
      work: webhookWork(host, { sealer, interrupts, policy }),
      forgetRun: (run) => [forgetCallback(run)],
      prepare: async () => {
        await subscribers.tenants.load();
        await commitOrThrow(runtime.store, [cleanUpWork()]);
      },
    };
  },
});
