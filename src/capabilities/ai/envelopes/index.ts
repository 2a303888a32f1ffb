import { Type } from 'typebox';
import { ENVELOPE_KINDS, ENVELOPE_SCHEMA_VERSION } from '../../../protocol/ai/envelopes.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { route } from '../../request.ts';

const LIMITS = { clarificationRounds: 3, schemaRounds: 2, envelopesPerTurn: 5 };
const KINDS = Object.keys(ENVELOPE_KINDS) as (keyof typeof ENVELOPE_KINDS)[];

const getEnvelopeSchema = route<object>()({
  operationId: 'getEnvelopeSchema',
  summary: 'The JSON Schema of an envelope kind',
  method: 'GET',
  path: '/schemas/envelopes/{file}',
  scope: 'public',
  params: Closed({ file: Type.String({ description: '<kind>.schema.json' }) }),
  replies: { 200: 'application/schema+json' },
  refusals: [404],
  handle: ({ params, origin }) => {
    const kind = KINDS.find((name) => params.file === `${name}.schema.json`);
    if (!kind) return NOT_FOUND;
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: `${origin}/schemas/envelopes/${params.file}`,
      title: kind,
      ...ENVELOPE_KINDS[kind],
    };
    return { status: 200, headers: { 'Content-Type': 'application/schema+json; charset=utf-8' }, body: schema };
  },
});

/** The kinds of envelope that a model may send, whatever the workflow. */
export const envelopes: Capability<'envelopes', object> = {
  name: 'envelopes',
  advertise: () => ({
    supportedEnvelopes: KINDS,
    schemaVersions: Object.fromEntries(KINDS.map((kind) => [kind, ENVELOPE_SCHEMA_VERSION])),
    limits: LIMITS,
  }),
  service: () => ({}),
  routes: [getEnvelopeSchema],
};
