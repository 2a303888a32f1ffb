import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../../running/runs/door.ts';
import { type ServedWorkflow, ServedWorkflows, WorkflowCompanions } from '../../running/workflows/door.ts';
import { Audit } from '../../trust/audit/door.ts';
import { HORIZON } from '../starter/rules.ts';
import { StarterService } from '../starter/service.ts';
import { StarterWork } from '../starter/work.ts';
import { Schedules } from './door.ts';
import { SCHEDULE_WORK, scheduleFamily } from './family.ts';
import { SCHEDULE_TABLES, SCHEDULED_BY_HOST } from './records.ts';
import { routes } from './routes.ts';
import { ScheduleService } from './service.ts';
import { triggerCompanion } from './triggers.ts';

/** Runs that start at a time, or repeatedly by the clock of a time zone. */
export const schedules = defineCapability({
  name: 'schedules',
  provides: Schedules,
  needs: [Audit, Runs],
  tables: SCHEDULE_TABLES,
  build: (host, needs) => {
    const family = scheduleFamily(host.runtime.clock);
    const starters = new StarterService(host, needs, family);
    const schedules = new ScheduleService(host, needs, starters);
    const { handle } = new StarterWork(host, needs, family);
    return {
      service: starters,
      advertise: () => ({ scheduling: { supported: true, cron: true, delayed: true, maxFutureHorizon: HORIZON } }),
      routes: bindRoutes(routes, { starters, schedules }),
      work: { [SCHEDULE_WORK]: { handle } },
      extensions: [
        WorkflowCompanions.of(triggerCompanion(schedules)),
        ServedWorkflows.of(() => host.runtime.store.read<ServedWorkflow>(SCHEDULED_BY_HOST)),
      ],
    };
  },
});
