import { Compile, type Validator } from 'typebox/compile';
import type { ConfigProblem, NodeCatalog } from '../engine/definition/check.ts';
import { own } from '../protocol/format/json.ts';
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
      const validator = type && validatorOf(type);
      const misfits = validator ? misfitsOf(validator, node.config) : [];
      return misfits.length > 0 ? misfits : (type?.check?.(node.config) ?? []);
    },
  };
}

/** What does not fit a schema, by JSON pointer: to the very member where one is missing, or is not known. */
export function placesOfMisfits(validator: Validator, value: unknown): { path: string; message: string }[] {
  if (validator.Check(value)) return [];
  return validator.Errors(value).flatMap(({ keyword, instancePath, message, params }) => {
    if (keyword === 'required') {
      const { requiredProperties } = params as { requiredProperties: string[] };
      return requiredProperties.map((name) => ({ path: `${instancePath}/${name}`, message: 'is missing' }));
    }
    // Told of each member by itself already.
    if (keyword === 'additionalProperties' || keyword === 'anyOf') return [];
    return [{ path: instancePath, message: wordsFor(keyword, params) ?? message }];
  });
}

/** For what validators say without saying it. */
function wordsFor(keyword: string, params: object): string | undefined {
  const { allowedValues, allowedValue } = params as { allowedValues?: unknown[]; allowedValue?: unknown };
  if (keyword === 'boolean') return 'is not known here';
  if (keyword === 'enum') return `must be one of ${allowedValues!.join(', ')}`;
  return keyword === 'const' ? `must be ${JSON.stringify(allowedValue)}` : undefined;
}

/** What does not fit a schema, by path. */
export function misfitsOf(validator: Validator, value: unknown): ConfigProblem[] {
  return placesOfMisfits(validator, value).map(({ path, message }) => ({ path: path.replaceAll('/', '.'), message }));
}
