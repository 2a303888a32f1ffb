import { Type } from 'typebox';
import { ENVELOPE_KINDS } from '../../../protocol/ai/envelopes.ts';
import { NOT_FOUND } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { route } from '../../request.ts';
import { isUniversal } from './checks.ts';
import type { ConfiguredKinds } from './settings.ts';

interface Services {
  readonly kinds: ConfiguredKinds;
}

const FILE_END = '.schema.json';

const getEnvelopeSchema = route<Services>()({
  operationId: 'getEnvelopeSchema',
  summary: 'The JSON Schema of an envelope kind',
  method: 'GET',
  path: '/schemas/envelopes/{file}',
  scope: 'public',
  params: Closed({ file: Type.String({ description: '<kind>.schema.json' }) }),
  replies: { 200: 'application/schema+json' },
  refusals: [404],
  handle: ({ params: { file }, origin }, { kinds }) => {
    const kind = file.endsWith(FILE_END) ? file.slice(0, -FILE_END.length) : '';
    const payload = isUniversal(kind) ? ENVELOPE_KINDS[kind] : kinds.get(kind)?.schema;
    if (!payload) return NOT_FOUND;
    const body = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: kind,
      ...payload,
      $id: `${origin}/schemas/envelopes/${file}`,
    };
    const headers = {
      'Content-Type': 'application/schema+json; charset=utf-8',
      'Cache-Control': 'public, max-age=300',
    };
    return { status: 200, headers, body };
  },
});

/** The operations on envelopes. */
export const routes = [getEnvelopeSchema];
