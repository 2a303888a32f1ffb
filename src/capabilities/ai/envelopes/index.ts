import { defineCapability } from '../../capability.ts';
import { Interrupts } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { advertisement } from './advertisement.ts';
import { routes } from './routes.ts';
import { envelopeSettings } from './settings.ts';

/** The envelopes that models send: their kinds and schemas, and how nodes accept them. */
export const envelopes = defineCapability({
  name: 'envelopes',
  // A clarification becomes an interrupt.
  needs: [Interrupts],
  settings: envelopeSettings,
  build: (host, _needs, { envelopeKinds }) => ({
    advertise: () => advertisement(host.runtime.catalog.types, envelopeKinds),
    routes: bindRoutes(routes, { kinds: envelopeKinds }),
    seams: { envelopeKind: async ({ type }) => ({ kind: envelopeKinds.get(type) ?? null }) },
  }),
});
