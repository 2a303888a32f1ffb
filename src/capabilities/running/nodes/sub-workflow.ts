import { type Static, Type } from 'typebox';
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import { MapOf, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { ChildResult } from '../../../runtime/child-request.ts';
import type { NodeType, Outcome } from '../../../runtime/node-type.ts';

const Config = Type.Object({
  workflowId: NonEmpty,
  waitForCompletion: Type.Optional(Type.Literal(true)),
  onChildFailure: Type.Optional(OneOf(['fail-parent', 'absorb'])),
  inputMapping: Type.Optional(
    MapOf(Type.String(), { description: 'Variables of the child, from variables of the parent' }),
  ),
  outputMapping: Type.Optional(
    MapOf(Type.String(), { description: 'Variables of the parent, from variables of the child' }),
  ),
  propagateCancellation: Type.Optional(Type.Boolean()),
  outputAttestation: Type.Optional(MapOf(Type.Unknown(), { description: 'Ignored: this host does not attest' })),
});
type Config = Static<typeof Config>;

/** Runs another workflow and waits for its end. Waiting takes no resources. */
export const subWorkflow: NodeType = {
  typeId: 'core.subWorkflow',
  description: 'Runs another workflow and waits for it.',
  writes: ({ config }) => Object.keys((config as Config).outputMapping ?? {}),
  outputs: () => ['childRunId', 'childStatus'],
  role: 'side-effect',
  config: Config,
  run: ({ config, variables, child }) => {
    const { workflowId, inputMapping = {}, ...rest } = config as Config;
    if (child) return finish(rest, child);
    return { child: { workflowId, variables: pickVariables(inputMapping, variables) } };
  },
};

function finish({ onChildFailure, outputMapping = {} }: Omit<Config, 'workflowId'>, child: ChildResult): Outcome {
  const outputs = { childRunId: child.runId, childStatus: child.status };
  if (child.status === 'completed') {
    return { done: { outputs, variables: pickVariables(outputMapping, child.variables) } };
  }
  if (onChildFailure === 'absorb') return { done: { outputs } };
  const reason = child.error ? `: ${child.error.message}` : '.';
  return {
    failed: {
      code: 'child_failed',
      message: `The child run ended as ${child.status}${reason}`,
      details: { ...outputs, ...(child.error ? { childError: child.error.code } : {}) },
      retryable: false,
    },
  };
}

/** Values of the source under the names on the left of the mapping; names without a value are left out. */
export function pickVariables(mapping: Record<string, string>, source: JsonObject): JsonObject {
  const values = Object.entries(mapping).map(([name, from]) => [name, own(source, from)]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}
