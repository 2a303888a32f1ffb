import { misspeltKeys, unknownKeys } from '../../protocol/format/unknown-keys.ts';
import {
  ComplianceMetadata,
  NodeSettings,
  type PortValue,
  VARIABLES_MAX,
  type WorkflowDefinition,
  type WorkflowEdge,
  type WorkflowNode,
  WorkflowSettings,
  type WorkflowVariable,
} from '../../protocol/running/workflows.ts';
import { compileCondition, compilePort } from '../expressions/condition.ts';
import type { UnknownNameError } from '../expressions/expression-error.ts';
import { isKnownReducer, takesTtl } from '../run/channels.ts';
import { COMPILATION_COST_MAX, compilationCost } from './compilation-cost.ts';
import { topologicalOrder } from './graph.ts';
import { scheduledEdges } from './orchestration.ts';
import { unknownName } from './unknown-name.ts';

/** One error in a workflow definition, with the location that its author has to correct. */
export interface Problem {
  /** Location in the document, such as `nodes[2].config.delayMs`. */
  readonly path: string;
  readonly message: string;
  readonly nodeId?: string;
  /** Set if the definition needs a capability that this host does not provide. */
  readonly requiredCapability?: string;
  /** The node type that needs `requiredCapability`. */
  readonly offendingTypeId?: string;
}

/** An error in a node's config; `path` is relative to the config. */
export type ConfigProblem = Pick<Problem, 'path' | 'message' | 'requiredCapability'>;

/**
 * The node types of a host, as far as the engine needs them. The runtime implements this, because the engine may not
 * import it.
 */
export interface NodeCatalog {
  has(typeId: string): boolean;
  /** Whether nodes of this type ask for approval; a cycle may pass through such a node. */
  isGate(typeId: string): boolean;
  /** Whether nodes of this type accept envelopes from the model that they ask. */
  readsEnvelopes(typeId: string): boolean;
  /** The capability that provides a node type which this host lacks, for the error message. */
  capabilityFor(typeId: string): string | undefined;
  /** The existing type that resembles an unknown one most, for the error message. */
  nearestTo?(typeId: string): string | undefined;
  /** Validates the config of a node whose type exists. */
  checkConfig(node: WorkflowNode): readonly ConfigProblem[];
  /** Finds values that are fixed in the definition and that the node type refuses; `path` is relative to the inputs. */
  checkInputs?(node: WorkflowNode): readonly ConfigProblem[];
  /** Every output that a node can have; undefined if that is not known. The config must be valid. */
  outputsOf(node: WorkflowNode): readonly string[] | undefined;
  /** The outputs that a node usually has, where an answer may add others; undefined if nothing is usual. */
  usualOutputsOf?(node: WorkflowNode): readonly string[] | undefined;
  /** Every input port that a node reads; undefined if it may read any. */
  inputsOf?(node: WorkflowNode): readonly string[] | undefined;
  /** The input ports without which a node fails. */
  requiredInputsOf?(node: WorkflowNode): readonly string[];
  /** The variables that a node sets. The config must be valid. */
  writtenBy(node: WorkflowNode): readonly string[];
  /** The JSON Schemas in the config of a node. The config must be valid otherwise. */
  schemasIn(node: WorkflowNode): readonly SchemaAt[];
}

/** A JSON Schema in a document, and where it stands. */
export interface SchemaAt {
  readonly path: string;
  readonly schema: unknown;
}

/** The times of a trigger may take a millisecond to find. */
const TRIGGERS_MAX = 100;
/** More would not help an author. */
export const PROBLEMS_MAX = 20;

/**
 * Finds what is wrong with a definition before it runs, up to PROBLEMS_MAX problems. The document must already match
 * its schema. The JSON Schemas in it are not compiled here, because that can take long: see `schemasIn`.
 */
export function checkDefinition(definition: WorkflowDefinition, catalog: NodeCatalog): Problem[] {
  return problemsIn(definition, catalog).take(PROBLEMS_MAX).toArray();
}

/** Lazy: stops checking once the caller has taken enough problems. */
function* problemsIn(definition: WorkflowDefinition, catalog: NodeCatalog): Generator<Problem> {
  const ids: NodeIds = new Set(definition.nodes.map(({ id }) => id));
  const names: DeclaredNames = { ids, variables: new Set(definition.variables.map(({ name }) => name)) };
  const tooMuch = checkAmount(definition);
  if (tooMuch.length > 0) return yield* tooMuch;
  yield* duplicates(definition);
  yield* invalidIds(definition);
  for (const [index, node] of definition.nodes.entries()) yield* checkNode(node, `nodes[${index}]`, names, catalog);
  for (const [index, edge] of definition.edges.entries()) yield* checkEdge(edge, `edges[${index}]`, names);
  yield* checkCycles(definition, catalog);
  yield* checkVariables(definition);
  yield* checkChannels(definition);
  yield* checkTriggers(definition, ids);
  yield* checkSettings(definition);
  yield* checkMetadata(definition);
  yield* checkUnsupported(definition);
}

/** The JSON Schemas in a definition that has no other problem, each with the id of its node if it has one. */
export function schemasIn(
  { nodes, channels, configurableSchema }: WorkflowDefinition,
  catalog: NodeCatalog,
): (SchemaAt & Pick<Problem, 'nodeId'>)[] {
  const ofNodes = nodes.flatMap((node, index) =>
    catalog.schemasIn(node).map(({ path, schema }) => ({
      path: `nodes[${index}].config${path}`,
      schema,
      nodeId: node.id,
    })),
  );
  const ofChannels = Object.entries(channels ?? {}).flatMap(([name, { schema }]) =>
    schema ? [{ path: `channels.${name}.schema`, schema }] : [],
  );
  const own = configurableSchema ? [{ path: 'configurableSchema', schema: configurableSchema }] : [];
  return [...ofNodes, ...ofChannels, ...own];
}

/** What a definition may have of each, so that it is checked and compiled while nobody has to wait for it. */
function checkAmount(definition: WorkflowDefinition): Problem[] {
  const problems: Problem[] = [];
  if (compilationCost(definition) > COMPILATION_COST_MAX) {
    const message = `The expressions and patterns of this workflow are too many or too long: together they may have about ${COMPILATION_COST_MAX} characters, and repetitions and classes in patterns count for more. Split it into sub-workflows.`;
    problems.push({ path: 'nodes', message });
  }
  for (const [path, max] of [['triggers', TRIGGERS_MAX] as const, ['variables', VARIABLES_MAX] as const]) {
    if (definition[path].length > max) problems.push({ path, message: `A workflow may have at most ${max} ${path}.` });
  }
  return problems;
}

type NodeIds = ReadonlySet<string>;

/** What expressions can refer to by name. */
interface DeclaredNames {
  readonly ids: NodeIds;
  readonly variables: ReadonlySet<string>;
}

function duplicates({ nodes, edges, variables }: WorkflowDefinition): Problem[] {
  return [
    ...repeated(nodes.map(({ id }) => id)).map(([id, index]) => ({
      path: `nodes[${index}].id`,
      message: `Duplicate node id ${JSON.stringify(id)}.`,
      nodeId: id,
    })),
    ...repeated(edges.map(({ id }) => id)).map(([id, index]) => ({
      path: `edges[${index}].id`,
      message: `Duplicate edge id ${JSON.stringify(id)}.`,
    })),
    ...repeated(variables.map(({ name }) => name)).map(([name, index]) => ({
      path: `variables[${index}].name`,
      message: `Duplicate variable name ${JSON.stringify(name)}.`,
    })),
  ];
}

/**
 * Ids become column values, keys and log lines. One that a database alters when storing it would no longer match its
 * node.
 */
function invalidIds({ nodes, edges }: WorkflowDefinition): Problem[] {
  const check = (kind: string, entries: readonly { readonly id: string }[]): Problem[] =>
    entries.flatMap(({ id }, index) =>
      id.isWellFormed() && !/\p{Cc}/u.test(id)
        ? []
        : [
            {
              path: `${kind}[${index}].id`,
              message: 'Ids must not contain control characters or unpaired surrogates.',
            },
          ],
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

function checkNode(node: WorkflowNode, path: string, names: DeclaredNames, catalog: NodeCatalog): Problem[] {
  if (!catalog.has(node.typeId)) return [unknownType(node, path, catalog)];
  const config = catalog.checkConfig(node).map((problem) => ({
    ...problem,
    path: `${path}.config${problem.path}`,
    nodeId: node.id,
    ...(problem.requiredCapability ? { offendingTypeId: node.typeId } : {}),
  }));
  const ports = Object.entries(node.inputs).flatMap(([port, value]) =>
    checkPort(value, names).map((message) => ({ path: `${path}.inputs.${port}`, message, nodeId: node.id })),
  );
  const fixed = (catalog.checkInputs?.(node) ?? []).map((problem) => ({
    ...problem,
    path: `${path}.inputs${problem.path}`,
    nodeId: node.id,
  }));
  return [...config, ...ports, ...fixed, ...checkAgent(node, path), ...checkContract(node, path, catalog)];
}

function unknownType(node: WorkflowNode, path: string, catalog: NodeCatalog): Problem {
  const requiredCapability = catalog.capabilityFor(node.typeId);
  const problem = { path: `${path}.typeId`, nodeId: node.id };
  if (!requiredCapability) {
    const meant = catalog.nearestTo?.(node.typeId);
    const advice = meant === undefined ? '' : ` Did you mean ${JSON.stringify(meant)}?`;
    return { ...problem, message: `Unknown node type ${JSON.stringify(node.typeId)}.${advice}` };
  }
  const message = `Node type ${JSON.stringify(node.typeId)} needs the capability ${requiredCapability}, which this host does not provide.`;
  return { ...problem, message, requiredCapability, offendingTypeId: node.typeId };
}

function checkPort(port: PortValue, names: DeclaredNames): string[] {
  if (port.type === 'expression') return expressionFailure(() => compilePort(port.expression), names);
  if (port.type === 'connection' && !names.ids.has(port.nodeId)) {
    return [unknownName('node', port.nodeId, names.ids)];
  }
  return [];
}

/** As `failure`; a name that the definition declares is told as it has to be written. */
function expressionFailure(compile: () => unknown, { ids, variables }: DeclaredNames): string[] {
  try {
    compile();
    return [];
  } catch (error) {
    const { message, unknownName: name = '' } = error as Partial<UnknownNameError>;
    const root = variables.has(name) ? 'variables' : ids.has(name) ? 'nodes' : undefined;
    return [root === undefined ? String(message) : `unknown name ${name}; write ${root}.${name}`];
  }
}

/** Runs a check that throws, and returns the message of its error as a list of at most one. */
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
  if (agent.version) return [{ ...problem, message: 'Pin the agent by version or by channel, not by both.' }];
  const requiredCapability = 'agents.deployment';
  return [
    {
      ...problem,
      message: 'This host does not support agent deployment channels. Pin a version instead.',
      requiredCapability,
    },
  ];
}

/** A contract that nobody would enforce is a mistake. */
function checkContract({ id, typeId, envelopeContract }: WorkflowNode, path: string, catalog: NodeCatalog): Problem[] {
  if (!envelopeContract || catalog.readsEnvelopes(typeId)) return [];
  const message = `Nodes of type ${JSON.stringify(typeId)} accept no envelopes, so they take no contract.`;
  return [{ path: `${path}.envelopeContract`, nodeId: id, message }];
}

function checkEdge(edge: WorkflowEdge, path: string, names: DeclaredNames): Problem[] {
  const ends = (['sourceNodeId', 'targetNodeId'] as const)
    .filter((end) => !names.ids.has(edge[end]))
    .map((end) => ({ path: `${path}.${end}`, message: unknownName('node', edge[end], names.ids) }));
  const condition = edge.condition ? expressionFailure(() => compileCondition(edge.condition!), names) : [];
  return [...ends, ...condition.map((message) => ({ path: `${path}.condition`, message }))];
}

/**
 * A cycle must pass through an approval gate and leave it by a conditional edge or by its failure, so that every
 * iteration is approved by a person.
 */
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
  const cycle = nodes.filter((_node, position) => !order.has(position)).map(({ id }) => id);
  const names = cycle.slice(0, 5).map((id) => JSON.stringify(id));
  return [
    {
      path: 'edges',
      message: `The nodes ${names.join(', ')}${cycle.length > 5 ? ' …' : ''} form a cycle. A cycle must leave an approval gate by an edge with a condition or with triggerRule any_failed.`,
      nodeId: cycle[0]!,
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

/** Whether a value has a variable's declared type. */
export function isOfType(type: WorkflowVariable['type'], value: unknown): boolean {
  return TYPE_TESTS[type](value);
}

function checkVariables({ variables, channels }: WorkflowDefinition): Problem[] {
  return variables.flatMap(({ name, type, defaultValue }, index) => {
    const problems: Problem[] = [];
    if (defaultValue !== undefined && defaultValue !== null && !isOfType(type, defaultValue)) {
      problems.push({
        path: `variables[${index}].defaultValue`,
        message: `The default value of ${JSON.stringify(name)} is not of type ${type}.`,
      });
    }
    if (channels && Object.hasOwn(channels, name)) {
      problems.push({
        path: `variables[${index}].name`,
        message: `A channel is already called ${JSON.stringify(name)}. Rename one of them.`,
      });
    }
    return problems;
  });
}

function checkChannels({ channels }: WorkflowDefinition): Problem[] {
  return Object.entries(channels ?? {}).flatMap(([name, { reducer, ttlMs }]): Problem[] => {
    const path = `channels.${name}`;
    if (!isKnownReducer(reducer))
      return [{ path: `${path}.reducer`, message: `Unknown reducer ${JSON.stringify(reducer)}.` }];
    if (ttlMs === undefined || takesTtl(reducer)) return [];
    return [{ path: `${path}.ttlMs`, message: `A channel with the reducer ${reducer} does not support ttlMs.` }];
  });
}

function checkTriggers({ triggers }: WorkflowDefinition, ids: NodeIds): Problem[] {
  return triggers.flatMap(({ nodeId }, index) =>
    nodeId === undefined || ids.has(nodeId)
      ? []
      : [{ path: `triggers[${index}].nodeId`, message: unknownName('node', nodeId, ids) }],
  );
}

/** Reports misspelt settings: a limit that is not known is no limit. */
function checkSettings({ settings, nodes }: WorkflowDefinition): Problem[] {
  const ofNodes = nodes.flatMap((node, index) =>
    unknownKeys(NodeSettings, node.settings).map(({ path, message }) => ({
      path: `nodes[${index}].settings${path}`,
      message,
      nodeId: node.id,
    })),
  );
  const own = unknownKeys(WorkflowSettings, settings).filter(({ path }) => path !== '.compensation');
  return [...own.map(({ path, message }) => ({ path: `settings${path}`, message })), ...ofNodes];
}

/** Reports a misspelt key that would leave values unmasked. Other keys of the metadata are the author's own. */
function checkMetadata({ metadata }: WorkflowDefinition): Problem[] {
  return misspeltKeys(ComplianceMetadata, metadata).map(({ path, message }) => ({
    path: `metadata${path}`,
    message,
  }));
}

/** The types of triggers that start runs; a `manual` one is started by a request. */
const SERVED_TRIGGERS: readonly string[] = ['manual', 'schedule', 'webhook', 'event'];

/** Reports parts of the document that this host would otherwise silently ignore. */
function checkUnsupported({ settings, nodes, triggers }: WorkflowDefinition): Problem[] {
  const compensation = 'This host does not support compensation.';
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
    ...nodes.flatMap(({ id: nodeId, credentialsRef }, index) => {
      const message = 'This host takes credentials by name, in the config of the nodes that send them.';
      const path = `nodes[${index}].credentialsRef`;
      return credentialsRef === undefined ? [] : [{ path, message, nodeId, requiredCapability: 'credentials' }];
    }),
    ...triggers.flatMap(({ type, enabled }, index) =>
      SERVED_TRIGGERS.includes(type) || enabled === false
        ? []
        : [
            {
              path: `triggers[${index}].type`,
              message: `This host serves no ${type} triggers, only ${SERVED_TRIGGERS.join(', ')}. Disable or remove this one.`,
            },
          ],
    ),
  ];
}
