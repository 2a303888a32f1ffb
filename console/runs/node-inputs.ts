import type { RunEvent as ClientEvent } from '../../src/client/index.ts';
import { REDACTED } from '../../src/engine/masking/mask.ts';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { foldedTo } from './folded.ts';

/** What a node got when an attempt at it began. */
export interface ResolvedInputs {
  /** The ports that the definition names. */
  readonly declared: JsonObject;
  /** What the edges deliver besides, or the inputs of the run for a node without incoming edges. */
  readonly delivered: JsonObject;
  /** Why a port has no value. */
  readonly problem?: string;
}

/**
 * The values of a node's inputs after its `node.started`, which is the last of the events. The engine resolves them as it
 * did for the run, from what readers may see: values that are masked stay so.
 */
export function resolvedInputs(
  run: RunSnapshot,
  events: readonly ClientEvent[],
  definition: WorkflowDefinition,
  nodeId: string,
): ResolvedInputs | undefined {
  const folded = foldedTo(run, events, definition);
  const planned = folded?.plan.node(nodeId);
  const inputs = planned && folded?.nodes[planned.index]?.inputs;
  if (!folded || !planned || !inputs) return undefined;
  const sensitive = folded.plan.sensitivePorts.get(nodeId);
  // What is computed from a mask is neither the value nor a mask.
  const isHidden = (port: string): boolean =>
    sensitive?.has(port) === true && planned.node.inputs[port]?.type === 'expression';
  const declared = Object.entries(inputs.declared).map(([port, value]) => [port, isHidden(port) ? REDACTED : value]);
  const delivered = Object.entries(inputs.all).filter(([port]) => !Object.hasOwn(planned.node.inputs, port));
  return {
    declared: Object.fromEntries(declared),
    delivered: Object.fromEntries(delivered),
    ...(inputs.problem && { problem: inputs.problem.message }),
  };
}
