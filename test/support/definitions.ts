import { randomBytes } from 'node:crypto';
import type {
  PortValue,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../src/protocol/running/workflows.ts';
import type { Api } from './api.ts';

/** A name that no other test uses, without digits: some would look like a telephone number, which is left out of drafts. */
export function unique(prefix: string): string {
  const letters = randomBytes(6)
    .toString('hex')
    .replaceAll(/\d/g, (digit) => 'ghijklmnop'[Number(digit)]!);
  return `${prefix}-${letters}`;
}

export function node(id: string, typeId = 'core.noop', more: Partial<WorkflowNode> = {}): WorkflowNode {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config: {}, inputs: {}, ...more };
}

export function edge(from: string, to: string, more: Partial<WorkflowEdge> = {}): WorkflowEdge {
  return { id: `${from}-${to}`, sourceNodeId: from, targetNodeId: to, ...more };
}

/** Edges that put the nodes into a line. */
export function line(...ids: string[]): WorkflowEdge[] {
  return ids.slice(1).map((id, index) => edge(ids[index]!, id));
}

export function workflow(
  nodes: readonly WorkflowNode[],
  edges: readonly WorkflowEdge[] = [],
  more: Partial<WorkflowDefinition> = {},
): WorkflowDefinition {
  return {
    id: unique('wf'),
    name: 'A workflow of a test',
    version: '1.0',
    nodes: [...nodes],
    edges: [...edges],
    triggers: [{ id: 'manual', type: 'manual' }],
    variables: [],
    metadata: {},
    settings: {},
    ...more,
  };
}

export const fixed = (value: unknown): PortValue => ({ type: 'static', value });
export const variable = (variableName: string, optional = false): PortValue => ({
  type: 'variable',
  variableName,
  optional,
});
export const expression = (text: string): PortValue => ({ type: 'expression', expression: text });
export const connection = (nodeId: string, outputKey: string, optional = false): PortValue => ({
  type: 'connection',
  nodeId,
  outputKey,
  optional,
});

export const WORKFLOWS = '/v1/host/capstan/workflows';

/** Registers a definition and gives its id. */
export async function register(api: Api, definition: WorkflowDefinition): Promise<string> {
  const answer = await api.post(WORKFLOWS, definition);
  if (answer.status !== 201) throw new Error(`not registered: ${answer.status} ${answer.text}`);
  return definition.id;
}
