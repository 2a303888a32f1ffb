import { type Static, Type } from 'typebox';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
import { AnyObject, Closed } from '../../../protocol/format/schema.ts';
import type { EnvelopeKind } from '../../../runtime/effects/seams.ts';
import { readOperatorList } from '../../operator-list.ts';
import { defineSettings } from '../../settings.ts';

const Entry = Closed({
  kind: Type.String({ maxLength: 256, pattern: '^vendor\\.[a-z0-9-]+(\\.[a-zA-Z0-9_-]+)+$' }),
  version: Type.Integer({ minimum: 0 }),
  schema: AnyObject,
});
type Entry = Static<typeof Entry>;

/** Kinds of envelope that the operator has configured, by name. */
export type ConfiguredKinds = ReadonlyMap<string, EnvelopeKind>;

/** Reads the configured kinds of envelope. */
export function readKinds(text: string): { readonly kinds: ConfiguredKinds; readonly problems: readonly string[] } {
  const { entries, problems } = readOperatorList<Entry>(text, {
    schema: Entry,
    unique: { what: 'kind', name: 'kind' },
    check: ({ schema }) => schemaProblems(schema),
  });
  return { kinds: new Map(entries.map(({ kind, version, schema }) => [kind, { version, schema }])), problems };
}

function schemaProblems(schema: Entry['schema']): string[] {
  // The protocol forbids `oneOf` here: models that are given one drop it or refuse it.
  if (JSON.stringify(schema).includes('"oneOf":')) return ['.schema must not use oneOf; use anyOf.'];
  try {
    compileSchema(schema);
    return [];
  } catch {
    return ['.schema is not a valid JSON Schema.'];
  }
}

/** The kinds of envelope that models may send besides the universal ones. */
export const envelopeSettings = defineSettings({
  variables: {
    envelopes: {
      variable: 'CAPSTAN_ENVELOPES',
      meaning: 'JSON array of envelope kinds that models may send: { kind: "vendor.…", version, schema }',
    },
  },
  read: (read) => {
    const { kinds, problems } = readKinds(read.text('envelopes') ?? '[]');
    read.report('envelopes', ...problems);
    return { envelopeKinds: kinds };
  },
});
