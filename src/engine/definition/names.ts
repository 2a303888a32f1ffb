import { nearest } from '../../protocol/format/nearest.ts';
import type { PortValue, WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../protocol/running/workflows.ts';
import { conditionReferences, portReferences } from '../expressions/condition.ts';
import type { Reference } from '../expressions/references.ts';
import { type NodeCatalog, PROBLEMS_MAX, type Problem } from './check.ts';
import { unknownName } from './unknown-name.ts';

/** What a definition refers to by a name that nothing has. */
interface UnknownNames {
  /** What cannot be intended: the run would fail there, or silently take another branch. */
  readonly problems: readonly Problem[];
  /** What may be intended, such as an input that the definition does not declare. */
  readonly warnings: readonly Problem[];
}

/**
 * Finds unknown variables, nodes, inputs and outputs in expressions, conditions, connections, edges and ports, up to
 * PROBLEMS_MAX of each kind. The definition must have no other problem. A run may be given inputs that its definition
 * does not declare, so in a definition without any declared variable an unknown one is a warning.
 */
export function unknownNames(definition: WorkflowDefinition, catalog: NodeCatalog): UnknownNames {
  const search = new Search(definition, catalog);
  definition.nodes.forEach((node, index) => void search.inNode(node, `nodes[${index}]`));
  definition.edges.forEach((edge, index) => void search.inEdge(edge, `edges[${index}]`));
  return { problems: search.problems.items, warnings: search.warnings.items };
}

/** What an expression outside of a definition reads of runs of that definition. */
export interface ReadingExpression {
  readonly path: string;
  readonly references: readonly Reference[];
}

/**
 * Finds nodes and outputs that expressions read as `outputs.node.name`, and that no run of a definition has. What an
 * expression asks for with `has` or `.?` may be missing.
 */
export function unknownOutputs(
  definition: WorkflowDefinition,
  catalog: NodeCatalog,
  expressions: readonly ReadingExpression[],
): readonly Problem[] {
  const search = new Search(definition, catalog);
  for (const { path, references } of expressions) {
    for (const reference of references) if (reference.root === 'outputs') search.inCriterion(reference, { path });
  }
  return search.problems.items;
}

type Place = Pick<Problem, 'path' | 'nodeId'>;
type Names = ReadonlySet<string>;

/** What was found of one kind. Messages are not worded for more than is shown. */
class Findings {
  readonly items: Problem[] = [];

  add(place: Place, message: () => string): void {
    if (this.items.length < PROBLEMS_MAX) this.items.push({ ...place, message: message() });
  }
}

/** The names that something has, looked up in a set: a node may be referred to as often as it has names. */
class NamesOf {
  readonly #read: (node: WorkflowNode) => readonly string[] | undefined;
  readonly #known = new Map<string, Names | undefined>();

  constructor(read: (node: WorkflowNode) => readonly string[] | undefined) {
    this.#read = read;
  }

  /** Undefined if they are not known. */
  of(node: WorkflowNode): Names | undefined {
    if (!this.#known.has(node.id)) {
      const names = this.#read(node);
      this.#known.set(node.id, names && new Set(names));
    }
    return this.#known.get(node.id);
  }
}

class Search {
  readonly problems = new Findings();
  readonly warnings = new Findings();
  readonly #catalog: NodeCatalog;
  readonly #inputs: NamesOf;
  readonly #outputs: NamesOf;
  /** Outputs of nodes that may have others, too. */
  readonly #usualOutputs: NamesOf;
  readonly #nodes: ReadonlyMap<string, WorkflowNode>;
  /** Names that the caller of a run is told of. */
  readonly #declared: Names;
  readonly #variables: Names;
  readonly #channels: Names;
  /** The inputs to which edges deliver, by node. */
  readonly #delivered: ReadonlyMap<string, Names>;

  constructor({ nodes, edges, variables, channels = {} }: WorkflowDefinition, catalog: NodeCatalog) {
    const toTargets = Map.groupBy(edges, ({ targetNodeId }) => targetNodeId);
    const inputsOf = (of: readonly WorkflowEdge[]): Names =>
      new Set(of.map(({ targetInput = 'input' }) => targetInput));
    this.#delivered = new Map([...toTargets].map(([nodeId, incoming]) => [nodeId, inputsOf(incoming)]));
    this.#catalog = catalog;
    this.#inputs = new NamesOf((node) => catalog.inputsOf?.(node));
    this.#outputs = new NamesOf((node) => catalog.outputsOf(node));
    this.#usualOutputs = new NamesOf((node) => catalog.usualOutputsOf?.(node));
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
    this.#declared = new Set(variables.map(({ name }) => name));
    this.#channels = new Set(Object.keys(channels));
    const asked = nodes.map(({ id }) => `_askExchanges:${id}`);
    const written = nodes.flatMap((node) => catalog.writtenBy(node)).filter((name) => !this.#channels.has(name));
    this.#variables = new Set([...this.#declared, ...written, ...asked]);
  }

  inNode(node: WorkflowNode, path: string): void {
    for (const [port, value] of Object.entries(node.inputs)) {
      const place = { path: `${path}.inputs.${port}`, nodeId: node.id };
      this.#inPort(value, place);
      this.#input(node, port, place);
    }
    this.#missingInputs(node, path);
  }

  inEdge({ sourceNodeId, sourceOutput, targetNodeId, targetInput, condition }: WorkflowEdge, path: string): void {
    const source = this.#nodes.get(sourceNodeId)!;
    const place = { path: `${path}.condition` };
    this.#delivery(this.#nodes.get(targetNodeId)!, targetInput, `${path}.targetInput`);
    const isLeft = condition !== undefined && condition.type !== 'expression';
    for (const { root, path: names, isGuarded } of condition ? conditionReferences(condition) : []) {
      // A path of `left` may also lead into the object on the port `output`.
      if (isLeft && this.#outputs.of(source)?.has('output')) continue;
      this.#reference({ root, path: names, isGuarded }, source, place);
    }
    const outputs = this.#outputs.of(source) ?? this.#usualOutputs.of(source);
    if (sourceOutput === undefined || sourceOutput === 'output' || !outputs || outputs.has(sourceOutput)) return;
    this.warnings.add(
      { path: `${path}.sourceOutput` },
      () => `${noOutput(sourceNodeId, sourceOutput, outputs)} All its outputs are delivered instead.`,
    );
  }

  /** `outputs` of a criterion are what `nodes` are to an edge. */
  inCriterion({ path, isGuarded }: Reference, place: Place): void {
    if (!isGuarded) this.#reference({ root: 'nodes', path, isGuarded }, undefined, place);
  }

  #inPort(port: PortValue, place: Place): void {
    if (port.type === 'expression') {
      for (const reference of portReferences(port.expression)) this.#reference(reference, undefined, place);
    } else if (port.type === 'connection') {
      this.#output(this.#nodes.get(port.nodeId)!, port.outputKey, port.optional ?? false, place);
    } else if (port.type === 'variable') {
      const name = port.variableName;
      if (this.#variables.has(name) || this.#channels.has(name)) return;
      const otherwise = port.optional ? 'the input is left out' : 'the node fails';
      this.warnings.add(place, () => `${unknownName('variable', name, this.#variables)} Without it ${otherwise}.`);
    }
  }

  #reference(
    { root, path: [name = '', member], isGuarded }: Reference,
    source: WorkflowNode | undefined,
    place: Place,
  ) {
    if (root === 'variables') return this.#variable(name, this.#variables, isGuarded, place);
    if (root === 'inputs') return this.#variable(name, this.#declared, isGuarded, place);
    if (root === 'output' && source) return this.#output(source, name, isGuarded, place);
    const node = this.#nodes.get(name);
    if (!node) this.problems.add(place, () => unknownName('node', name, this.#nodes.keys()));
    else if (member !== undefined) this.#output(node, member, isGuarded, place);
  }

  #variable(name: string, known: Names, isGuarded: boolean, place: Place): void {
    if (known.has(name)) return;
    const isChannel = this.#channels.has(name);
    const hint = isChannel ? `It is a channel: read it with an input of type variable.` : 'Declare it under variables.';
    const isWarning = isGuarded || (this.#declared.size === 0 && !isChannel);
    const found = isWarning ? this.warnings : this.problems;
    found.add(place, () => `${unknownName('variable', name, known)} ${hint}`);
  }

  #output(node: WorkflowNode, name: string, isGuarded: boolean, place: Place): void {
    const outputs = this.#outputs.of(node);
    if (!outputs) this.#usualOutput(node, name, place);
    if (!outputs || outputs.has(name)) return;
    const found = isGuarded ? this.warnings : this.problems;
    found.add(place, () => noOutput(node.id, name, outputs));
  }

  /** Whoever answers a gate may add outputs of their own. */
  #usualOutput(node: WorkflowNode, name: string, place: Place): void {
    const usual = this.#usualOutputs.of(node);
    if (!usual || usual.has(name)) return;
    this.warnings.add(place, () => `${noOutput(node.id, name, usual)} It exists only if an answer contains it.`);
  }

  /** An input that is almost the name of one that is missing is meant to be that one; another is not used. */
  #input(node: WorkflowNode, port: string, place: Place): void {
    const known = this.#inputs.of(node);
    if (!known || known.has(port)) return;
    const missing = [...known].filter((name) => !Object.hasOwn(node.inputs, name) && !this.#isDelivered(node, name));
    const meant = nearest(port, missing);
    const remark = () => noInput(node.id, port, known);
    if (meant === undefined) this.warnings.add(place, () => `${remark()} It is not used.`);
    else this.problems.add(place, () => `${remark()} Did you mean ${JSON.stringify(meant)}?`);
  }

  /** A node that the run begins with also gets the inputs of the run. */
  #missingInputs(node: WorkflowNode, path: string): void {
    const isFirst = !this.#delivered.has(node.id);
    for (const port of this.#catalog.requiredInputsOf?.(node) ?? []) {
      if (Object.hasOwn(node.inputs, port) || this.#isDelivered(node, port)) continue;
      if (isFirst && this.#declared.has(port)) continue;
      const otherwise = isFirst ? 'unless the run is given one, the node fails' : 'the node fails';
      this.warnings.add(
        { path: `${path}.inputs`, nodeId: node.id },
        () =>
          `The node ${JSON.stringify(node.id)} needs the input ${JSON.stringify(port)}, and nothing gives it: ${otherwise}.`,
      );
    }
  }

  #isDelivered({ id }: WorkflowNode, port: string): boolean {
    return this.#delivered.get(id)?.has(port) === true;
  }

  #delivery(target: WorkflowNode, port: string | undefined, path: string): void {
    const known = this.#inputs.of(target);
    if (port === undefined || port === 'input' || !known || known.has(port)) return;
    this.warnings.add({ path }, () => `${noInput(target.id, port, known)} What the edge delivers is not used.`);
  }
}

function noInput(nodeId: string, name: string, inputs: Names): string {
  const known = inputs.size > 0 ? `It reads ${listed(inputs)}.` : 'It reads none.';
  return `The node ${JSON.stringify(nodeId)} has no input ${JSON.stringify(name)}. ${known}`;
}

function noOutput(nodeId: string, name: string, outputs: Names): string {
  const known = outputs.size > 0 ? `It has ${listed(outputs)}.` : 'It has none.';
  return `The node ${JSON.stringify(nodeId)} has no output ${JSON.stringify(name)}. ${known}`;
}

/** How many names a message lists. */
const LISTED_MAX = 30;

function listed(names: Names): string {
  const rest = names.size - LISTED_MAX;
  const first = [...names.values().take(LISTED_MAX)].join(', ');
  return rest > 0 ? `${first} and ${rest} more` : first;
}
