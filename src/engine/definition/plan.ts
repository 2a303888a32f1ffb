import type {
  MaskingMode,
  TriggerRule,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../protocol/running/workflows.ts';
import { type Condition, compileCondition, compilePort } from '../expressions/condition.ts';
import type { Expression } from '../expressions/expression.ts';
import { analyseSensitivity, type SensitivePorts, sensitiveNames } from '../masking/sensitivity.ts';
import { compilationCost } from './compilation-cost.ts';
import { type Arc, backEdges, topologicalOrder } from './graph.ts';
import { scheduledEdges } from './orchestration.ts';

/**
 * A definition prepared for running: expressions compiled, edges indexed, defaults filled in. Immutable, and shared by
 * all runs of a version.
 */
export interface Plan {
  readonly definition: WorkflowDefinition;
  /** Number of the registered version; a run keeps the version it started with. */
  readonly version: number;
  readonly nodes: readonly PlannedNode[];
  /** Names of variables and channels whose values readers see only masked. */
  readonly sensitive: ReadonlySet<string>;
  /** Output ports, by node, whose values readers see only masked. */
  readonly sensitivePorts: SensitivePorts;
  readonly maskingMode: MaskingMode;
  /** How often a loopback edge may restart a node. */
  readonly maxLoopbacks: number;
  /** About how much memory the plan takes, in a quarter of a kilobyte each. */
  readonly weight: number;
  node(id: string): PlannedNode | undefined;
}

/** A node of a plan, with its edges and effective settings. */
export interface PlannedNode {
  /** Position in the definition; the run's state is indexed by it. */
  readonly index: number;
  readonly node: WorkflowNode;
  /** Rank in topological order; among ready nodes, a lower rank starts first. */
  readonly order: number;
  /** Edges whose sources must settle before the trigger rule is evaluated; loopbacks excluded. */
  readonly incoming: readonly PlannedEdge[];
  /** Edges that close a cycle here: when one is taken, this node and all nodes after it run again. */
  readonly loopbacks: readonly PlannedEdge[];
  readonly outgoing: readonly PlannedEdge[];
  /** The trigger rule: which results of the incoming edges start the node. */
  readonly rule: TriggerRule;
  /** Compiled expressions of the input ports that have one. */
  readonly expressions: ReadonlyMap<string, Expression>;
  /** Whether a following node handles failures of this one, so that they do not fail the run. */
  readonly isCaught: boolean;
  readonly maxRetries: number;
  readonly retryDelayMs: number;
  readonly timeoutMs: number | undefined;
}

/** An edge of a plan, with its compiled condition. */
export interface PlannedEdge extends Arc {
  readonly edge: WorkflowEdge;
  readonly condition: Condition | undefined;
  readonly isLoopback: boolean;
}

/** Characters of a definition that take as much memory as one character of an expression, when it is compiled. */
const CHARS_PER_WEIGHT = 20;
const RETRY_DELAY_MS = 500;
const LOOPBACKS_MAX = 5;
const DEFAULT_RULE: TriggerRule = 'all_success';
/** Trigger rules with which a node also runs after a failure. */
const CATCHING: readonly TriggerRule[] = ['any_failed', 'all_complete'];

/** Compiles a definition that has passed `checkDefinition`. */
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

  return {
    definition,
    version,
    nodes,
    ...sensitivityOf(nodes, sensitiveNames(definition)),
    maskingMode: definition.metadata.complianceConfig?.maskingMode ?? 'mask',
    maxLoopbacks: definition.settings.maxLoopbackIterations ?? LOOPBACKS_MAX,
    weight: Math.ceil(JSON.stringify(definition).length / CHARS_PER_WEIGHT + compilationCost(definition)),
    node: (id) => {
      const position = index.get(id);
      return position === undefined ? undefined : nodes[position];
    },
  };
}

function sensitivityOf(nodes: readonly PlannedNode[], marked: ReadonlySet<string>) {
  const inOrder = nodes.toSorted((a, b) => a.order - b.order);
  const { names, ports } = analyseSensitivity(inOrder, marked);
  return { sensitive: names, sensitivePorts: ports };
}

/** The plan of a run that gets sensitive values on inputs that its definition does not mark. */
export function withSensitiveInputs(plan: Plan, names: readonly string[]): Plan {
  if (names.length === 0) return plan;
  return { ...plan, ...sensitivityOf(plan.nodes, new Set([...plan.sensitive, ...names])) };
}

function portExpressions(node: WorkflowNode): Map<string, Expression> {
  return new Map(
    Object.entries(node.inputs).flatMap(([port, value]) =>
      value.type === 'expression' ? [[port, compilePort(value.expression)] as const] : [],
    ),
  );
}

/** The trigger rule is a property of the target; if its edges disagree, the first by edge id decides. */
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
