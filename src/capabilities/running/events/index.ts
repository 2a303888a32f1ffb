import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Events } from './door.ts';
import { routes } from './routes.ts';
import { EventService } from './service.ts';

/** Reading event logs: as a stream in several modes, by polling, or as one JSON document. */
export const events = defineCapability({
  name: 'events',
  provides: Events,
  build: ({ runtime }) => {
    const service = new EventService(runtime);
    return {
      service,
      advertise: () => ({ supportedTransports: ['rest'] }),
      routes: bindRoutes(routes, { events: service }),
    };
  },
});
