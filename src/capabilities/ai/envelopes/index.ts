import { ENVELOPE_SCHEMA_VERSION } from '../../../protocol/ai/envelopes.ts';
import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { KINDS, routes } from './routes.ts';

const LIMITS = { clarificationRounds: 3, schemaRounds: 2, envelopesPerTurn: 5 };

/** The kinds of envelope that a model may send in any workflow, and their schemas. */
export const envelopes = defineCapability({
  name: 'envelopes',
  build: () => ({
    advertise: () => ({
      supportedEnvelopes: KINDS,
      schemaVersions: Object.fromEntries(KINDS.map((kind) => [kind, ENVELOPE_SCHEMA_VERSION])),
      limits: LIMITS,
    }),
    routes: bindRoutes(routes, {}),
  }),
});
