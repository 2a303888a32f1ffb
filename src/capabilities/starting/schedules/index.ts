import type { LegacyCapability as Capability } from '../../legacy.ts';
import { WorkflowCompanions } from '../../running/workflows/door.ts';
import { SCHEDULE_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { HORIZON } from './rules.ts';
import { SCHEDULE, type ScheduleService, scheduleService } from './service.ts';
import { triggerCompanion } from './triggers.ts';

/** Runs that begin by themselves: at a time, or again and again by the clock of a time zone. */
export const schedules: Capability<'schedules', ScheduleService> = {
  name: 'schedules',
  advertise: () => ({ scheduling: { supported: true, cron: true, delayed: true, maxFutureHorizon: HORIZON } }),
  migrations: SCHEDULE_TABLES,
  service: scheduleService,
  extensions: (_host, service) => [WorkflowCompanions.of(triggerCompanion(service))],
  routes,
  work: (_host, { firing }) => ({ [SCHEDULE]: { handle: firing.handle } }),
};
