import type { NodeTypeSummary, WorkflowNode } from '../../src/protocol/running/workflows.ts';
import type { Draft } from './draft.ts';

/** An input that the type of a node reads. */
export type InputPort = NodeTypeSummary['inputs'][number];

/** The inputs that the type of a node reads and nothing gives it yet, required ones first. */
export function unsetPorts(node: WorkflowNode, draft: Draft, types: readonly NodeTypeSummary[]): readonly InputPort[] {
  const ports = types.find(({ typeId }) => typeId === node.typeId)?.inputs ?? [];
  return ports
    .filter(({ name }) => !Object.hasOwn(node.inputs, name) && !isDelivered(node, name, draft))
    .toSorted((one, other) => Number(other.required) - Number(one.required));
}

/** An edge may deliver an input, and a node that the run begins with gets the inputs of the run. */
function isDelivered({ id }: WorkflowNode, name: string, { edges, variables }: Draft): boolean {
  const incoming = edges.filter(({ targetNodeId }) => targetNodeId === id);
  if (incoming.length === 0) return variables.some((variable) => variable.name === name);
  return incoming.some(({ targetInput = 'input' }) => targetInput === name);
}

/** Whether the type of a node cannot do without an input. */
export function isRequired(node: WorkflowNode, name: string, types: readonly NodeTypeSummary[]): boolean {
  const ports = types.find(({ typeId }) => typeId === node.typeId)?.inputs ?? [];
  return ports.some((port) => port.name === name && port.required);
}
