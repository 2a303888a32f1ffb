import { Type } from 'typebox';
import { own } from '../../../protocol/format/json.ts';
import { AnyObject, NonEmpty } from '../../../protocol/format/schema.ts';
import type { NodeType } from '../../../runtime/node-type.ts';

const doesNothing = (typeId: string, description: string): NodeType => ({
  typeId,
  description,
  outputs: () => [],
  role: 'pure',
  run: () => ({ done: {} }),
});

/** Completes without outputs, whatever its config says. */
export const noop: NodeType = { ...doesNothing('core.noop', 'Does nothing; joins branches.'), config: AnyObject };
/** Marks where a workflow starts; completes without outputs. */
export const start = doesNothing('core.start', 'Marks where a run starts.');
/** Marks where a workflow ends; completes without outputs. */
export const end = doesNothing('core.end', 'Marks where a run ends.');

/** Copies each declared input port to the output of the same name. */
export const identity: NodeType = {
  typeId: 'core.identity',
  description: 'Copies each input to the output of the same name.',
  outputs: ({ inputs }) => Object.keys(inputs),
  role: 'pure',
  run: ({ declared }) => ({ done: Object.keys(declared).length > 0 ? { outputs: declared } : {} }),
};

/** The code of a `core.fail` that has none, as the protocol fixes it. */
const DEFAULT_CODE = 'conformance_test_failure';

/** Fails with a code and a message of the author. */
export const fail: NodeType = {
  typeId: 'core.fail',
  description: 'Always fails, for testing how errors are handled.',
  outputs: () => [],
  role: 'pure',
  config: Type.Object({ code: Type.Optional(NonEmpty), message: Type.Optional(NonEmpty) }),
  run: ({ config }) => ({
    failed: {
      code: (config.code as string | undefined) ?? DEFAULT_CODE,
      message: (config.message as string | undefined) ?? 'This node always fails.',
    },
  }),
};

/** Sets a variable of the run; an input port `value` wins over the config. */
export const setVariable: NodeType = {
  typeId: 'core.setVariable',
  description: 'Sets a variable of the run.',
  writes: ({ config }) => [String(config.name)],
  inputs: ['value'],
  outputs: () => [],
  role: 'pure',
  config: Type.Object({ name: NonEmpty, value: Type.Optional(Type.Unknown()) }),
  run: ({ config, declared }) => {
    const value = Object.hasOwn(declared, 'value') ? declared.value : (config.value ?? null);
    return { done: { variables: { [config.name as string]: value } } };
  },
};

/** Reads a variable of the run. */
export const getVariable: NodeType = {
  typeId: 'core.getVariable',
  description: 'Reads a variable of the run.',
  inputs: [],
  outputs: () => ['value'],
  role: 'pure',
  config: Type.Object({ name: NonEmpty }),
  run: ({ config, variables }) => {
    const value = own(variables, config.name as string);
    return { done: value === undefined ? {} : { outputs: { value } } };
  },
};
