import type {
  PortValue,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
  WorkflowVariable,
} from '../../protocol/running/workflows.ts';
import { compileCondition, compilePort } from '../expressions/condition.ts';
import { compileSchema } from '../expressions/json-schema.ts';
import { isKnownReducer, takesTtl } from '../run/channels.ts';
import { topologicalOrder } from './graph.ts';
import { scheduledEdges } from './orchestration.ts';

/** Something wrong with a definition, named so that its author finds it. */
export interface Problem {
  /** Where, as `nodes[2].config.delayMs`. */
  readonly path: string;
  readonly message: string;
  readonly nodeId?: string;
  /** Set where the definition asks for something that this host does not serve. */
  readonly requiredCapability?: string;
  readonly offendingTypeId?: string;
}

/** Something wrong with the config of a node, by path inside it. */
export type ConfigProblem = Pick<Problem, 'path' | 'message' | 'requiredCapability'>;

/** What the engine has to know about node types, which live above it. */
export interface NodeCatalog {
  has(typeId: string): boolean;
  /** Whether nodes of this type ask for approval: a circle may pass through one. */
  isGate(typeId: string): boolean;
  /** The capability that would bring a type which this host lacks. */
  capabilityFor(typeId: string): string | undefined;
  checkConfig(node: WorkflowNode): readonly ConfigProblem[];
}

const PROBLEMS_MAX = 20;

/** Everything that can be said about a definition before it runs. Its shape must have been validated already. */
export function checkDefinition(definition: WorkflowDefinition, catalog: NodeCatalog): Problem[] {
  const ids: NodeIds = new Set(definition.nodes.map(({ id }) => id));
  return [
    ...duplicates(definition),
    ...unfitIds(definition),
    ...definition.nodes.flatMap((node, index) => checkNode(node, `nodes[${index}]`, ids, catalog)),
    ...definition.edges.flatMap((edge, index) => checkEdge(edge, `edges[${index}]`, ids)),
    ...checkCycles(definition, catalog),
    ...checkVariables(definition),
    ...checkChannels(definition),
    ...checkTriggers(definition, ids),
    ...checkConfigurableSchema(definition),
    ...checkUnserved(definition),
  ].slice(0, PROBLEMS_MAX);
}

type NodeIds = ReadonlySet<string>;

function duplicates({ nodes, edges, variables }: WorkflowDefinition): Problem[] {
  return [
    ...repeated(nodes.map(({ id }) => id)).map(([id, index]) => ({
      path: `nodes[${index}].id`,
      message: `There are two nodes called ${JSON.stringify(id)}.`,
      nodeId: id,
    })),
    ...repeated(edges.map(({ id }) => id)).map(([id, index]) => ({
      path: `edges[${index}].id`,
      message: `There are two edges called ${JSON.stringify(id)}.`,
    })),
    ...repeated(variables.map(({ name }) => name)).map(([name, index]) => ({
      path: `variables[${index}].name`,
      message: `There are two variables called ${JSON.stringify(name)}.`,
    })),
  ];
}

/** Ids go into columns, keys and log lines: text that cannot be kept as it is would lead to another node. */
function unfitIds({ nodes, edges }: WorkflowDefinition): Problem[] {
  const check = (kind: string, entries: readonly { readonly id: string }[]): Problem[] =>
    entries.flatMap(({ id }, index) =>
      id.isWellFormed() && !/\p{Cc}/u.test(id)
        ? []
        : [{ path: `${kind}[${index}].id`, message: 'An id has no control characters and no broken ones.' }],
    );
  return [...check('nodes', nodes), ...check('edges', edges)];
}

function repeated(values: readonly string[]): [string, number][] {
  const seen = new Set<string>();
  return values.flatMap((value, index): [string, number][] => {
    if (seen.has(value)) return [[value, index]];
    seen.add(value);
    return [];
  });
}

function checkNode(node: WorkflowNode, path: string, ids: NodeIds, catalog: NodeCatalog): Problem[] {
  if (!catalog.has(node.typeId)) return [unknownType(node, path, catalog)];
  const config = catalog.checkConfig(node).map((problem) => ({
    ...problem,
    path: `${path}.config${problem.path}`,
    nodeId: node.id,
    ...(problem.requiredCapability ? { offendingTypeId: node.typeId } : {}),
  }));
  const ports = Object.entries(node.inputs).flatMap(([port, value]) =>
    checkPort(value, ids).map((message) => ({ path: `${path}.inputs.${port}`, message, nodeId: node.id })),
  );
  return [...config, ...ports, ...checkAgent(node, path)];
}

function unknownType(node: WorkflowNode, path: string, catalog: NodeCatalog): Problem {
  const requiredCapability = catalog.capabilityFor(node.typeId);
  const problem = { path: `${path}.typeId`, nodeId: node.id };
  if (!requiredCapability) return { ...problem, message: 'This host has no such node type.' };
  const message = `This node type needs the capability ${requiredCapability}, which this host does not serve.`;
  return { ...problem, message, requiredCapability, offendingTypeId: node.typeId };
}

function checkPort(port: PortValue, ids: NodeIds): string[] {
  if (port.type === 'expression') return failure(() => compilePort(port.expression));
  if (port.type === 'connection' && !ids.has(port.nodeId)) {
    return [`There is no node ${JSON.stringify(port.nodeId)} to connect to.`];
  }
  return [];
}

/** What an attempt fails with, in words; nothing when it does not. */
export function failure(attempt: () => unknown): string[] {
  try {
    attempt();
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

function checkAgent({ id, agent }: WorkflowNode, path: string): Problem[] {
  if (!agent?.channel) return [];
  const problem = { path: `${path}.agent.channel`, nodeId: id };
  if (agent.version) return [{ ...problem, message: 'An agent is pinned by version or by channel, not by both.' }];
  const requiredCapability = 'agents.deployment';
  return [{ ...problem, message: 'This host does not deploy agents to channels.', requiredCapability }];
}

function checkEdge(edge: WorkflowEdge, path: string, ids: NodeIds): Problem[] {
  const ends = (['sourceNodeId', 'targetNodeId'] as const)
    .filter((end) => !ids.has(edge[end]))
    .map((end) => ({ path: `${path}.${end}`, message: `There is no node ${JSON.stringify(edge[end])}.` }));
  const condition = edge.condition ? failure(() => compileCondition(edge.condition!)) : [];
  return [...ends, ...condition.map((message) => ({ path: `${path}.condition`, message }))];
}

/** A circle must leave an approval gate over a condition, or over the gate's failure; then every round is asked for. */
function checkCycles(definition: WorkflowDefinition, catalog: NodeCatalog): Problem[] {
  const { nodes } = definition;
  const index = new Map(nodes.map((node, position) => [node.id, position]));
  const mayLoop = ({ sourceNodeId, condition, triggerRule }: WorkflowEdge): boolean =>
    (condition !== undefined || triggerRule === 'any_failed') &&
    catalog.isGate(nodes[index.get(sourceNodeId)!]!.typeId);
  const known = scheduledEdges(definition).flatMap((edge) => {
    const source = index.get(edge.sourceNodeId);
    const target = index.get(edge.targetNodeId);
    return source === undefined || target === undefined || mayLoop(edge) ? [] : [{ source, target }];
  });
  const order = topologicalOrder(nodes, known);
  if (order.size === nodes.length) return [];
  const circle = nodes.filter((_node, position) => !order.has(position)).map(({ id }) => id);
  const names = circle.slice(0, 5).map((id) => JSON.stringify(id));
  return [
    {
      path: 'edges',
      message: `The nodes ${names.join(', ')}${circle.length > 5 ? ' …' : ''} wait for each other: a cycle must leave an approval gate over a condition or over its failure.`,
      nodeId: circle[0]!,
    },
  ];
}

const TYPE_TESTS: Record<WorkflowVariable['type'], (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  array: (value) => Array.isArray(value),
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
};

/** Whether a value is of a variable's declared type. */
export function isOfType(type: WorkflowVariable['type'], value: unknown): boolean {
  return TYPE_TESTS[type](value);
}

function checkVariables({ variables, channels }: WorkflowDefinition): Problem[] {
  return variables.flatMap(({ name, type, defaultValue }, index) => {
    const problems: Problem[] = [];
    if (defaultValue !== undefined && defaultValue !== null && !isOfType(type, defaultValue)) {
      problems.push({ path: `variables[${index}].defaultValue`, message: `The default is not of type ${type}.` });
    }
    if (channels && Object.hasOwn(channels, name)) {
      problems.push({ path: `variables[${index}].name`, message: 'A channel has this name already.' });
    }
    return problems;
  });
}

function checkChannels({ channels }: WorkflowDefinition): Problem[] {
  return Object.entries(channels ?? {}).flatMap(([name, { reducer, ttlMs, schema }]): Problem[] => {
    const path = `channels.${name}`;
    const [broken] = schema ? failure(() => compileSchema(schema)) : [];
    if (broken) return [{ path: `${path}.schema`, message: broken }];
    if (!isKnownReducer(reducer)) return [{ path: `${path}.reducer`, message: 'This host has no such reducer.' }];
    if (ttlMs === undefined || takesTtl(reducer)) return [];
    return [{ path: `${path}.ttlMs`, message: `Entries of a ${reducer} channel have no time to live.` }];
  });
}

function checkConfigurableSchema({ configurableSchema }: WorkflowDefinition): Problem[] {
  if (!configurableSchema) return [];
  return failure(() => compileSchema(configurableSchema)).map((message) => ({ path: 'configurableSchema', message }));
}

function checkTriggers({ triggers }: WorkflowDefinition, ids: NodeIds): Problem[] {
  return triggers.flatMap(({ nodeId }, index) =>
    nodeId === undefined || ids.has(nodeId)
      ? []
      : [{ path: `triggers[${index}].nodeId`, message: `There is no node ${JSON.stringify(nodeId)}.` }],
  );
}

/** Parts of the document that would silently do nothing here. */
function checkUnserved({ settings, nodes, triggers }: WorkflowDefinition): Problem[] {
  const compensation = 'This host does not run compensations.';
  return [
    ...('compensation' in settings
      ? [{ path: 'settings.compensation', message: compensation, requiredCapability: 'compensation' }]
      : []),
    ...nodes.flatMap((node, index) =>
      node.compensation
        ? [
            {
              path: `nodes[${index}].compensation`,
              message: compensation,
              nodeId: node.id,
              requiredCapability: 'compensation',
            },
          ]
        : [],
    ),
    ...triggers.flatMap(({ type, enabled }, index) =>
      type === 'channel-write' && enabled !== false
        ? [{ path: `triggers[${index}].type`, message: 'This host does not run channel-write triggers.' }]
        : [],
    ),
  ];
}
