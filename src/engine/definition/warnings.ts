import type { TriggerRule, WorkflowDefinition, WorkflowEdge } from '../../protocol/running/workflows.ts';
import type { NodeCatalog, Problem } from './check.ts';
import { unknownNames } from './names.ts';
import { scheduledEdges } from './orchestration.ts';

const WARNINGS_MAX = 20;

/** Rules under which a node starts although the nodes before it were skipped. */
const UNMOVED: ReadonlySet<TriggerRule> = new Set(['all_complete', 'none_failed']);

/** Lists what is allowed in a definition but probably not intended. The definition must have no problem. */
export function definitionWarnings(definition: WorkflowDefinition, catalog: NodeCatalog): Problem[] {
  return [
    ...unknownNames(definition, catalog).warnings,
    ...unconnected(definition),
    ...unreachable(definition),
    ...emptyTemplates(definition),
  ].slice(0, WARNINGS_MAX);
}

/** A node without edges among connected ones starts with the run, which is seldom intended. */
function unconnected({ nodes, edges }: WorkflowDefinition): Problem[] {
  const connected = new Set(edges.flatMap(({ sourceNodeId, targetNodeId }) => [sourceNodeId, targetNodeId]));
  const message = 'No edge leads to or from this node, so it starts together with the run.';
  return nodes.flatMap(({ id }, index) =>
    edges.length === 0 || connected.has(id) ? [] : [{ path: `nodes[${index}]`, nodeId: id, message }],
  );
}

/** A disabled node is skipped, and so is every node that waits for it alone. */
function unreachable(definition: WorkflowDefinition): Problem[] {
  const { nodes } = definition;
  const incoming = Map.groupBy(scheduledEdges(definition), ({ targetNodeId }) => targetNodeId);
  const skipped = new Set(nodes.filter(({ disabled }) => disabled).map(({ id }) => id));
  const starts = ({ sourceNodeId, triggerRule = 'all_success', condition }: WorkflowEdge): boolean =>
    !skipped.has(sourceNodeId) || UNMOVED.has(triggerRule) || condition?.type === 'falsy';
  const message = 'This node can never start: every node before it is disabled.';
  return nodes.flatMap(({ id, disabled }, index) => {
    const edges = incoming.get(id) ?? [];
    if (disabled || edges.length === 0 || edges.some(starts)) return [];
    return [{ path: `nodes[${index}]`, nodeId: id, message }];
  });
}

const TOKEN = /\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)/g;

/** A fixed template whose tokens name no input of its node renders them as empty text. */
function emptyTemplates({ nodes, edges }: WorkflowDefinition): Problem[] {
  const incoming = Map.groupBy(edges, ({ targetNodeId }) => targetNodeId);
  return nodes.flatMap(({ id, typeId, inputs }, index) => {
    const { template, context } = inputs;
    if (typeId !== 'core.openwop.data.string-format' || template?.type !== 'static') return [];
    const fixed = context === undefined ? Object.keys(inputs) : fixedMembers(context);
    const delivered = incoming.get(id)?.map(({ targetInput = 'input' }) => targetInput);
    if (!fixed || !delivered || delivered.includes('context')) return [];
    const known = new Set([...fixed, ...delivered]);
    const names = new Set([...String(template.value).matchAll(TOKEN)].map(([, name]) => name!));
    return [...names]
      .filter((name) => !known.has(name))
      .map((name) => ({
        path: `nodes[${index}].inputs.template`,
        nodeId: id,
        message: `The template has {{${name}}}, but the node has no such value; it renders as empty text.`,
      }));
  });
}

/** The members of a fixed value; undefined if it is computed. */
function fixedMembers(port: WorkflowDefinition['nodes'][number]['inputs'][string]): string[] | undefined {
  return port.type === 'static' ? Object.keys(Object(port.value)) : undefined;
}
