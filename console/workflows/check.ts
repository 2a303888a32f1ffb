import { checkDefinition, type NodeCatalog, type Problem } from '../../src/engine/index.ts';
import { nearest } from '../../src/protocol/format/nearest.ts';
import { unknownKeys } from '../../src/protocol/format/unknown-keys.ts';
import type { NodeTypeSummary } from '../../src/protocol/running/workflows.ts';
import type { Draft } from './draft.ts';

/** The same checks that the host makes, as far as they need nothing of the host; it makes the others itself. */
export function checkHere(draft: Draft, types: readonly NodeTypeSummary[]): readonly Problem[] {
  return checkDefinition(draft, catalogOf(types));
}

function catalogOf(types: readonly NodeTypeSummary[]): NodeCatalog {
  const byId = new Map(types.map((type) => [type.typeId, type]));
  return {
    has: (typeId) => byId.has(typeId),
    isGate: (typeId) => byId.get(typeId)?.gate === true,
    // What only the host knows must not be reported here.
    readsEnvelopes: () => true,
    capabilityFor: () => undefined,
    nearestTo: (typeId) => nearest(typeId, [...byId.keys()]),
    checkConfig: ({ typeId, config }) => {
      const schema = byId.get(typeId)?.config ?? {};
      return [...unknownKeys(schema, config), ...missingKeys(schema, config)];
    },
    outputsOf: ({ typeId }) => byId.get(typeId)?.outputs,
    writtenBy: () => [],
    schemasIn: () => [],
  };
}

function missingKeys(schema: { readonly required?: unknown }, config: object): { path: string; message: string }[] {
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : [];
  return required
    .filter((key) => typeof key === 'string' && !Object.hasOwn(config, key))
    .map((key) => ({ path: `.${key}`, message: 'is missing' }));
}
