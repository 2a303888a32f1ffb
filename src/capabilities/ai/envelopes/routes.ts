import { Type } from 'typebox';
import { ENVELOPE_KINDS } from '../../../protocol/ai/envelopes.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { route } from '../../request.ts';

/** The kinds of envelope, as discovery lists them. */
export const KINDS = Object.keys(ENVELOPE_KINDS) as (keyof typeof ENVELOPE_KINDS)[];

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

/** The operations on envelopes. */
export const routes = [getEnvelopeSchema];
