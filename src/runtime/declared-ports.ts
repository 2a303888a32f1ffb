import { declaredMembers } from '../protocol/format/declared-members.ts';
import type { NodeType } from './node-type.ts';

/** The ports of a node whose code is not part of the host, as far as its schemas tell: misspelt ones are found early. */
export function declaredPorts(schemas: {
  readonly inputs?: unknown;
  readonly outputs?: unknown;
}): Pick<NodeType, 'inputs' | 'requiredInputs' | 'outputs'> {
  const [inputs, outputs] = [declaredMembers(schemas.inputs), declaredMembers(schemas.outputs)];
  return {
    ...(inputs ? { inputs: inputs.names, requiredInputs: inputs.required } : {}),
    ...(outputs ? { outputs: () => outputs.names } : {}),
  };
}
