import { commitOrThrow } from '../../../runtime/change.ts';
import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { bindRoutes } from '../../request.ts';
import { Events } from '../../running/events/door.ts';
import { Runs } from '../../running/runs/door.ts';
import { type ServedWorkflow, ServedWorkflows, WorkflowCompanions } from '../../running/workflows/door.ts';
import { joinSettings } from '../../settings.ts';
import { Audit } from '../../trust/audit/door.ts';
import { triggerCompanion } from './companion.ts';
import { DeliveryLog, SWEEP_DELIVERIES, sweepDeliveriesWork } from './deliveries.ts';
import { forgetDeliveredRun } from './delivery-records.ts';
import { Triggers } from './door.ts';
import { EventTriggers } from './reactions.ts';
import { HookReceiver } from './receiving.ts';
import { TRIGGER_TABLES, TRIGGER_WORK, TRIGGERED_BY_HOST } from './records.ts';
import { routes } from './routes.ts';
import { triggerSealer } from './secrets.ts';
import { TriggerService } from './service.ts';
import { triggerSettings } from './settings.ts';
import { TriggeredRuns } from './starting.ts';
import { EVENTS_AT_ONCE, eventHandler } from './work.ts';

/** Runs that others start: senders of signed requests, and events of this host. */
export const triggers = defineCapability({
  name: 'triggers',
  provides: Triggers,
  needs: [Audit, Runs, Events],
  settings: joinSettings(hostSettings, triggerSettings),
  tables: TRIGGER_TABLES,
  build: (host, { audit, runs, events }, { secret, triggerPerSecond }) => {
    const { runtime, executor } = host;
    const sealer = triggerSealer(runtime.store, secret);
    const awaited = new EventTriggers(runtime);
    const service = new TriggerService(runtime, { audit, sealer, events: awaited });
    const started = new TriggeredRuns(host, runs);
    const log = new DeliveryLog(runtime);
    const hooks = new HookReceiver({
      runtime,
      runs: started,
      events,
      sealer,
      log,
      perSecond: triggerPerSecond,
      hosts: () => executor.hosts,
    });
    return {
      service,
      routes: bindRoutes(routes, { triggers: service, hooks, log }),
      work: {
        [TRIGGER_WORK]: { handle: eventHandler({ runtime, runs: started }), atOnce: EVENTS_AT_ONCE },
        [SWEEP_DELIVERIES]: { handle: log.sweep },
      },
      forgetRun: (run) => [forgetDeliveredRun(run)],
      reactions: [awaited.reaction],
      onAppend: [awaited.onAppend],
      onHint: awaited.tenants.onHint,
      extensions: [
        WorkflowCompanions.of(triggerCompanion(service)),
        ServedWorkflows.of(() => runtime.store.read<ServedWorkflow>(TRIGGERED_BY_HOST)),
      ],
      prepare: async () => {
        await awaited.tenants.load();
        await commitOrThrow(runtime.store, [sweepDeliveriesWork()]);
      },
      stop: () => log.write(),
    };
  },
});
