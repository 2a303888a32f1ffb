import { ENVELOPE_SCHEMA_VERSION, UNIVERSAL_KINDS } from '../../../protocol/ai/envelopes.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import { LIMITS } from './limits.ts';
import type { ConfiguredKinds } from './settings.ts';

/** What discovery says about envelopes. A host none of whose nodes reads them supports no kind. */
export function advertisement(types: readonly NodeType[], kinds: ConfiguredKinds): JsonObject {
  const isRead = types.some(({ readsEnvelopes }) => readsEnvelopes);
  if (!isRead) return { supportedEnvelopes: [], schemaVersions: {}, limits: LIMITS };
  const versions: [kind: string, version: number][] = [
    ...UNIVERSAL_KINDS.map((kind): [string, number] => [kind, ENVELOPE_SCHEMA_VERSION]),
    ...[...kinds].map(([kind, { version }]): [string, number] => [kind, version]),
  ];
  return {
    supportedEnvelopes: versions.map(([kind]) => kind),
    schemaVersions: Object.fromEntries(versions),
    limits: LIMITS,
    envelopeStrictness: 'warn',
    envelopeContracts: { advertised: true },
  };
}
