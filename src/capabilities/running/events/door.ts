import { door } from '../../capability.ts';
import type { EventService } from './service.ts';

export type Events = EventService;
export const Events = door<Events>()('events');
