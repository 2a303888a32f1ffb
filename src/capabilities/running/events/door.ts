import { door } from '../../capability.ts';
import type { Polling } from './polling.ts';

export { isSettled, waitUntilSettled } from './settled.ts';

/** Reading the event logs of runs. */
export type Events = Polling;

/** The door to events. */
export const Events = door<Events>()('events');
