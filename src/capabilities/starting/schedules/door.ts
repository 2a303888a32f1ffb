import { door } from '../../capability.ts';
import type { ScheduleService } from './service.ts';

export type Schedules = ScheduleService;
export const Schedules = door<Schedules>()('schedules');
