import type { JsonObject } from '../protocol/json.ts';
import type { PortValue } from '../protocol/workflows.ts';
import { mayAccess } from './channels.ts';
import type { Scope } from './condition.ts';
import { type Expression, ExpressionError } from './expression.ts';
import type { PlannedNode } from './plan.ts';
import { type NodeInputs, type Run, visibleVariables } from './run.ts';

/** Whatever a node is given when an attempt starts, taken from the state as it is at that moment. */
export function resolveInputs(run: Run, planned: PlannedNode): NodeInputs {
  const delivered = planned.incoming.length === 0 ? { ...run.facts.inputs } : deliveredByEdges(run, planned);
  const declared: JsonObject = {};
  for (const [port, value] of Object.entries(planned.node.inputs)) {
    const resolved = resolvePort(run, planned, port, value);
    if ('problem' in resolved) {
      return { all: delivered, declared, problem: `Input ${JSON.stringify(port)}: ${resolved.problem}` };
    }
    if (resolved.value !== undefined) declared[port] = resolved.value;
  }
  return { all: { ...delivered, ...declared }, declared };
}

/** An edge delivers the port it names, or all outputs of its source where there is no such port. */
function deliveredByEdges(run: Run, planned: PlannedNode): JsonObject {
  const delivered: JsonObject = {};
  for (const { edge, source } of [...planned.incoming, ...planned.loopbacks]) {
    const outputs = run.nodes[source]!.outputs;
    if (!outputs) continue;
    const port = edge.sourceOutput ?? 'output';
    delivered[edge.targetInput ?? 'input'] = Object.hasOwn(outputs, port) ? outputs[port] : outputs;
  }
  return delivered;
}

type Resolved = { readonly value: unknown } | { readonly problem: string };

function resolvePort(run: Run, planned: PlannedNode, name: string, port: PortValue): Resolved {
  switch (port.type) {
    case 'static':
      return { value: port.value };
    case 'expression':
      return evaluatePort(run, planned.expressions.get(name)!);
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
  const channel = run.plan.definition.channels?.[name];
  if (channel && !mayAccess(channel, planned.node, 'readers')) return { problem: `may not read channel ${name}` };
  const value = channel ? run.channels.get(name) : visibleVariables(run)[name];
  if (value !== undefined || optional) return { value };
  return { problem: `variable ${JSON.stringify(name)} has no value` };
}

function evaluatePort(run: Run, expression: Expression): Resolved {
  try {
    return { value: expression({ ...scopeOf(run) }) };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { problem: error.message };
  }
}

/** What expressions in this run can see. */
export function scopeOf(run: Run): Scope {
  return { variables: visibleVariables(run), inputs: run.facts.inputs, nodes: run.outputs };
}
