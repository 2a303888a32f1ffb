import type { EdgeCondition, WorkflowDefinition, WorkflowEdge } from '../protocol/running/workflows.ts';
import { type Paint, sanitize } from './text.ts';

/** Formats a workflow as text: each node in graph order, followed by its outgoing edges. */
export function graphLines(definition: WorkflowDefinition, paint: Paint): string[] {
  const outgoing = Map.groupBy(definition.edges, ({ sourceNodeId }) => sourceNodeId);
  const types = new Map(
    definition.nodes.map(({ id, typeId, disabled }) => [id, disabled ? `${typeId}, disabled` : typeId]),
  );
  return [
    `${paint('bold', sanitize(definition.id))}  ${sanitize(definition.name)}  ${sanitize(definition.version)}`,
    ...(definition.description ? [sanitize(definition.description)] : []),
    ...definition.variables.map(
      ({ name, type, required }) =>
        `  ${paint('grey', 'variable')} ${sanitize(name)}: ${type}${required ? ', required' : ''}`,
    ),
    '',
    ...inOrder(definition).flatMap((id) => [
      `${sanitize(id)}  ${paint('grey', sanitize(types.get(id) ?? 'unknown node'))}`,
      ...(outgoing.get(id) ?? []).map(
        (edge, index, all) => `  ${index === all.length - 1 ? '└' : '├'}─${edgeText(edge)}`,
      ),
    ]),
  ];
}

/** Breadth first from the nodes without incoming edges; nodes that only cycles reach follow in written order. */
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
  return sanitize(`${when === undefined ? '' : ` ${when} `}> ${targetNodeId}${rule}`);
}

function conditionText({ type, expression, left, right }: EdgeCondition): string {
  if (type === 'expression') return expression ?? '';
  return right === undefined ? `${left} is ${type}` : `${left} ${type} ${JSON.stringify(right)}`;
}
