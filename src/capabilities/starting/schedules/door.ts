import type { Schedule, ScheduleRequest } from '../../../protocol/starting/schedules.ts';
import { door } from '../../capability.ts';
import type { Before, Starters } from '../starter/door.ts';

export { triggersOf } from './rules.ts';
export { isTimeZone, latestSlot, nextSlot, offsetsIn, slotCount, type Timing } from './slots.ts';

/** Which schedules a list shows. */
export interface ScheduleFilter extends Before {
  readonly workflowId?: string | undefined;
}

/** Starts runs at a time, or repeatedly by the clock of a time zone. */
export type Schedules = Starters<ScheduleRequest, Schedule, ScheduleFilter>;

/** The door to schedules. */
export const Schedules = door<Schedules>()('schedules');
