import { ENVELOPE_SCHEMA_VERSION, UNIVERSAL_KINDS } from '../../../protocol/ai/envelopes.ts';
import { defineCapability } from '../../capability.ts';
import { Interrupts } from '../../people/interrupts/door.ts';
import { bindRoutes } from '../../request.ts';
import { LIMITS } from './limits.ts';
import { routes } from './routes.ts';
import { envelopeSettings } from './settings.ts';

/** The envelopes that models send: their kinds and schemas, and how nodes accept them. */
export const envelopes = defineCapability({
  name: 'envelopes',
  // A clarification becomes an interrupt.
  needs: [Interrupts],
  settings: envelopeSettings,
  build: (host, _needs, { envelopeKinds }) => ({
    advertise: () => {
      // A host none of whose nodes reads envelopes supports none.
      const isRead = host.runtime.catalog.types.some(({ readsEnvelopes }) => readsEnvelopes);
      const configured = [...envelopeKinds].map(([kind, { version }]) => [kind, version] as const);
      const universal = UNIVERSAL_KINDS.map((kind) => [kind, ENVELOPE_SCHEMA_VERSION] as const);
      const versions = isRead ? [...universal, ...configured] : [];
      return {
        supportedEnvelopes: versions.map(([kind]) => kind),
        schemaVersions: Object.fromEntries(versions),
        limits: LIMITS,
        ...(isRead ? { envelopeStrictness: 'warn', envelopeContracts: { advertised: true } } : {}),
      };
    },
    routes: bindRoutes(routes, { kinds: envelopeKinds }),
    seams: { envelopeKind: async ({ type }) => ({ kind: envelopeKinds.get(type) ?? null }) },
  }),
});
