import type { EdgeCondition, WorkflowDefinition, WorkflowEdge } from '../protocol/running/workflows.ts';
import { harmless, type Paint } from './text.ts';

/** A workflow as text: each node, in the order of the graph, with the ways that lead on from it. */
export function graphLines(definition: WorkflowDefinition, paint: Paint): string[] {
  const outgoing = Map.groupBy(definition.edges, ({ sourceNodeId }) => sourceNodeId);
  const types = new Map(
    definition.nodes.map(({ id, typeId, disabled }) => [id, disabled ? `${typeId}, disabled` : typeId]),
  );
  return [
    `${paint('bold', harmless(definition.id))}  ${harmless(definition.name)}  ${harmless(definition.version)}`,
    ...(definition.description ? [harmless(definition.description)] : []),
    ...definition.variables.map(
      ({ name, type, required }) =>
        `  ${paint('grey', 'variable')} ${harmless(name)}: ${type}${required ? ', required' : ''}`,
    ),
    '',
    ...inOrder(definition).flatMap((id) => [
      `${harmless(id)}  ${paint('grey', harmless(types.get(id) ?? 'there is no such node'))}`,
      ...(outgoing.get(id) ?? []).map(
        (edge, index, all) => `  ${index === all.length - 1 ? '└' : '├'}─${edgeText(edge)}`,
      ),
    ]),
  ];
}

/** As the edges lead, breadth first from where nothing leads to; what only circles reach comes as it is written. */
function inOrder({ nodes, edges }: WorkflowDefinition): string[] {
  const isReached = new Set(edges.map(({ targetNodeId }) => targetNodeId));
  const order = new Set(nodes.map(({ id }) => id).filter((id) => !isReached.has(id)));
  for (const id of order) {
    for (const { sourceNodeId, targetNodeId } of edges) if (sourceNodeId === id) order.add(targetNodeId);
  }
  return [...order, ...nodes.map(({ id }) => id).filter((id) => !order.has(id))];
}

function edgeText({ targetNodeId, condition, label, triggerRule }: WorkflowEdge): string {
  const when = label ?? (condition ? conditionText(condition) : undefined);
  const rule = triggerRule === undefined || triggerRule === 'all_success' ? '' : `  (${triggerRule})`;
  return harmless(`${when === undefined ? '' : ` ${when} `}> ${targetNodeId}${rule}`);
}

function conditionText({ type, expression, left, right }: EdgeCondition): string {
  if (type === 'expression') return expression ?? '';
  return right === undefined ? `${left} is ${type}` : `${left} ${type} ${JSON.stringify(right)}`;
}
