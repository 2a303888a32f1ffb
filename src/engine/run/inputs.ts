import type { JsonObject } from '../../protocol/format/json.ts';
import type { PortValue } from '../../protocol/running/workflows.ts';
import type { PlannedNode } from '../definition/plan.ts';
import { Allowance } from '../expressions/allowance.ts';
import type { Scope } from '../expressions/condition.ts';
import type { Expression } from '../expressions/expression.ts';
import { ExpressionError } from '../expressions/expression-error.ts';
import { mayAccess } from './channels.ts';
import type { NodeInputs, Run } from './run.ts';
import { channelState, declaredChannel, visibleVariables } from './visible-variables.ts';

/** Resolves a node's inputs when an attempt starts, from the state at that moment. */
export function resolveInputs(run: Run, planned: PlannedNode): NodeInputs {
  const delivered = planned.incoming.length === 0 ? { ...run.facts.inputs } : deliveredByEdges(run, planned);
  const declared = Object.create(null) as JsonObject;
  const allowance = new Allowance();
  for (const [port, value] of Object.entries(planned.node.inputs)) {
    const resolved = resolvePort(run, planned, allowance, [port, value]);
    if ('problem' in resolved) {
      const { problem, code = 'validation_error', details } = resolved;
      const message = `Input ${JSON.stringify(port)}: ${problem}`;
      return {
        all: delivered,
        declared,
        problem: { code, message, retryable: false, ...(details ? { details } : {}) },
      };
    }
    if (resolved.value !== undefined) declared[port] = resolved.value;
  }
  return { all: { ...delivered, ...declared }, declared };
}

/** An edge delivers the port that it names or, if the source has no such port, all outputs of the source. */
function deliveredByEdges(run: Run, planned: PlannedNode): JsonObject {
  const delivered = Object.create(null) as JsonObject;
  for (const { edge } of [...planned.incoming, ...planned.loopbacks]) {
    const outputs = run.outputs[edge.sourceNodeId] as JsonObject | undefined;
    if (!outputs || run.edgeResults.get(edge.id) !== 'succeeded') continue;
    const port = edge.sourceOutput ?? 'output';
    delivered[edge.targetInput ?? 'input'] = Object.hasOwn(outputs, port) ? outputs[port] : outputs;
  }
  return delivered;
}

type Resolved =
  | { readonly value: unknown }
  | { readonly problem: string; readonly code?: string; readonly details?: JsonObject };

function resolvePort(
  run: Run,
  planned: PlannedNode,
  allowance: Allowance,
  [name, port]: readonly [string, PortValue],
): Resolved {
  switch (port.type) {
    case 'static':
      return { value: port.value };
    case 'expression':
      return evaluatePort(run, planned.expressions.get(name)!, allowance);
    case 'connection':
      return readConnection(run, port.nodeId, port.outputKey, port.optional ?? false);
    case 'variable':
      return readVariable(run, planned, port.variableName, port.optional ?? false);
  }
}

function readConnection(run: Run, nodeId: string, outputKey: string, optional: boolean): Resolved {
  const outputs = run.outputs[nodeId] as JsonObject | undefined;
  const value = outputs && Object.hasOwn(outputs, outputKey) ? outputs[outputKey] : undefined;
  if (value !== undefined || optional) return { value };
  return { problem: `node ${JSON.stringify(nodeId)} has no output ${JSON.stringify(outputKey)}` };
}

function readVariable(run: Run, planned: PlannedNode, name: string, optional: boolean): Resolved {
  const channel = declaredChannel(run, name);
  if (channel && !mayAccess(channel, planned.node, 'readers')) return accessDenied(planned, name);
  const value = channel ? channelState(run, name) : visibleVariables(run)[name];
  if (value !== undefined || optional) return { value };
  return { problem: `variable ${JSON.stringify(name)} has no value` };
}

function accessDenied({ node }: PlannedNode, channel: string): Resolved {
  const requestedBy = { nodeId: node.id, typeId: node.typeId };
  const details = { channel, requestedBy, allowed: 'readers' };
  return { problem: `may not read channel ${JSON.stringify(channel)}`, code: 'channel_access_denied', details };
}

function evaluatePort(run: Run, expression: Expression, allowance: Allowance): Resolved {
  try {
    return { value: expression({ ...scopeOf(run) }, allowance) };
  } catch (error) {
    // No expression may keep a log from being folded.
    return { problem: error instanceof ExpressionError ? error.message : 'the expression could not be evaluated' };
  }
}

/** The names that expressions of this run can refer to. */
export function scopeOf(run: Run): Scope {
  return { variables: visibleVariables(run), inputs: run.facts.inputs, nodes: run.outputs };
}
