import type {
  MaskingMode,
  TriggerRule,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../protocol/running/workflows.ts';
import { type Condition, compileCondition, compilePort } from '../expressions/condition.ts';
import type { Expression } from '../expressions/expression.ts';
import { compileSchema, type SchemaCheck } from '../expressions/json-schema.ts';
import { type SensitivePorts, sensitiveNames, sensitivePorts } from '../masking/sensitivity.ts';
import { type Arc, backEdges, topologicalOrder } from './graph.ts';
import { scheduledEdges } from './orchestration.ts';

/** A definition prepared for running: everything looked up once, nothing decided yet. */
export interface Plan {
  readonly definition: WorkflowDefinition;
  /** Counts up each time the workflow is registered anew; a run keeps the version it began with. */
  readonly version: number;
  readonly nodes: readonly PlannedNode[];
  /** Variables and channels, and output ports of nodes, that others see only masked. */
  readonly sensitive: ReadonlySet<string>;
  readonly sensitivePorts: SensitivePorts;
  readonly maskingMode: MaskingMode;
  /** How often a node may begin again. */
  readonly maxLoopbacks: number;
  /** Checks on what is written to declared channels, and on the `configurable` a run is created with. */
  readonly channelSchemas: ReadonlyMap<string, SchemaCheck>;
  readonly configurableSchema: SchemaCheck | undefined;
  node(id: string): PlannedNode | undefined;
}

export interface PlannedNode {
  readonly index: number;
  readonly node: WorkflowNode;
  /** Place in topological order: what is ready earlier in it starts first. */
  readonly order: number;
  /** Edges that must come to something before the node is first decided on. */
  readonly incoming: readonly PlannedEdge[];
  /** Edges that lead back here: one that is taken has the node, and what follows it, begin again. */
  readonly loopbacks: readonly PlannedEdge[];
  readonly outgoing: readonly PlannedEdge[];
  readonly rule: TriggerRule;
  /** Ports whose value is an expression. */
  readonly expressions: ReadonlyMap<string, Expression>;
  /** A target waits for failures of this node, so they do not fail the run. */
  readonly isCaught: boolean;
  readonly maxRetries: number;
  readonly retryDelayMs: number;
  readonly timeoutMs: number | undefined;
}

export interface PlannedEdge extends Arc {
  readonly edge: WorkflowEdge;
  readonly condition: Condition | undefined;
  readonly isLoopback: boolean;
}

const RETRY_DELAY_MS = 500;
const LOOPBACKS_MAX = 5;
const DEFAULT_RULE: TriggerRule = 'all_success';
const CATCHING: readonly TriggerRule[] = ['any_failed', 'all_complete'];

/** The definition must have passed `checkDefinition`. */
export function makePlan(definition: WorkflowDefinition, version: number): Plan {
  const index = new Map(definition.nodes.map((node, position) => [node.id, position]));
  const edges = planEdges(definition, index);
  const incoming = Map.groupBy(edges, (edge) => edge.target);
  const outgoing = Map.groupBy(edges, (edge) => edge.source);
  const rules = definition.nodes.map((_node, position) => ruleOf(incoming.get(position) ?? []));
  const order = topologicalOrder(
    definition.nodes,
    edges.filter(({ isLoopback }) => !isLoopback),
  );

  const nodes = definition.nodes.map((node, position): PlannedNode => {
    const retry = node.settings?.retry;
    const out = outgoing.get(position) ?? [];
    return {
      index: position,
      node,
      order: order.get(position) ?? position,
      incoming: (incoming.get(position) ?? []).filter(({ isLoopback }) => !isLoopback),
      loopbacks: (incoming.get(position) ?? []).filter(({ isLoopback }) => isLoopback),
      outgoing: out,
      rule: rules[position]!,
      expressions: portExpressions(node),
      isCaught: out.some((edge) => CATCHING.includes(rules[edge.target]!)),
      maxRetries: retry?.maxRetries ?? definition.settings.maxRetries ?? 0,
      retryDelayMs: retry?.delayMs ?? RETRY_DELAY_MS,
      timeoutMs: node.settings?.timeoutMs,
    };
  });

  const sensitive = sensitiveNames(definition);
  return {
    definition,
    version,
    nodes,
    sensitive,
    sensitivePorts: sensitivePorts(
      nodes.toSorted((a, b) => a.order - b.order),
      sensitive,
    ),
    maskingMode: definition.metadata.complianceConfig?.maskingMode ?? 'mask',
    maxLoopbacks: definition.settings.maxLoopbackIterations ?? LOOPBACKS_MAX,
    channelSchemas: channelSchemas(definition),
    configurableSchema: definition.configurableSchema && compileSchema(definition.configurableSchema),
    node: (id) => {
      const position = index.get(id);
      return position === undefined ? undefined : nodes[position];
    },
  };
}

function channelSchemas({ channels }: WorkflowDefinition): Map<string, SchemaCheck> {
  return new Map(
    Object.entries(channels ?? {}).flatMap(([name, { schema }]) => (schema ? [[name, compileSchema(schema)]] : [])),
  );
}

function portExpressions(node: WorkflowNode): Map<string, Expression> {
  return new Map(
    Object.entries(node.inputs).flatMap(([port, value]) =>
      value.type === 'expression' ? [[port, compilePort(value.expression)] as const] : [],
    ),
  );
}

/** The rule belongs to the target; where its edges disagree, the first by id decides. */
function ruleOf(incoming: readonly PlannedEdge[]): TriggerRule {
  const [first] = incoming.map(({ edge }) => edge).sort((a, b) => (a.id < b.id ? -1 : 1));
  return first?.triggerRule ?? DEFAULT_RULE;
}

function planEdges(definition: WorkflowDefinition, index: ReadonlyMap<string, number>): PlannedEdge[] {
  const arcs = scheduledEdges(definition).map((edge) => ({
    edge,
    source: index.get(edge.sourceNodeId)!,
    target: index.get(edge.targetNodeId)!,
    condition: edge.condition && compileCondition(edge.condition),
  }));
  const back = backEdges(definition.nodes, arcs);
  return arcs.map((arc) => ({ ...arc, isLoopback: back.has(arc) }));
}
