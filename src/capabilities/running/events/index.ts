import type { LegacyCapability as Capability } from '../../legacy.ts';
import { routes } from './routes.ts';
import { type EventService, eventService } from './service.ts';

/** Reading the log: streams in every mode, polling, JSON. */
export const events: Capability<'events', EventService> = {
  name: 'events',
  advertise: () => ({ supportedTransports: ['rest'] }),
  service: eventService,
  routes,
};
