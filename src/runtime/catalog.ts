import { Compile, type Validator } from 'typebox/compile';
import type { NodeCatalog } from '../engine/check.ts';
import { own } from '../protocol/json.ts';
import type { NodeType } from './node-type.ts';

/** Types that come with a capability, and the capability they come with. */
const GATED: Record<string, string> = {
  'core.conversationGate': 'conversationPrimitive',
  'core.orchestrator.supervisor': 'orchestrator.supported',
  'core.dispatch': 'dispatch.supported',
};

export interface Catalog extends NodeCatalog {
  get(typeId: string): NodeType | undefined;
}

export function catalogOf(types: readonly NodeType[]): Catalog {
  const byId = new Map(types.map((type) => [type.typeId, type]));
  const validators = new Map<string, Validator>();
  const validatorOf = ({ typeId, config }: NodeType): Validator | undefined => {
    if (config && !validators.has(typeId)) validators.set(typeId, Compile(config));
    return validators.get(typeId);
  };
  return {
    has: (typeId) => byId.has(typeId),
    get: (typeId) => byId.get(typeId),
    isGate: (typeId) => byId.get(typeId)?.isGate === true,
    capabilityFor: (typeId) => own(GATED, typeId),
    checkConfig: (node) => {
      const type = byId.get(node.typeId);
      const errors = (type && validatorOf(type)?.Errors(node.config)) ?? [];
      return errors.map(({ instancePath, message }) => ({ path: instancePath.replaceAll('/', '.'), message }));
    },
  };
}
