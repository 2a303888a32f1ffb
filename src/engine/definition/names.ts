import { nearest } from '../../protocol/format/nearest.ts';
import type { PortValue, WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../protocol/running/workflows.ts';
import { conditionReferences, portReferences } from '../expressions/condition.ts';
import type { Reference } from '../expressions/references.ts';
import type { NodeCatalog, Problem } from './check.ts';

/** What a definition refers to by a name that nothing has. */
interface UnknownNames {
  /** What cannot be meant: the run would fail there, or silently take another branch. */
  readonly problems: readonly Problem[];
  /** What may be meant, such as an input that the definition does not declare. */
  readonly doubts: readonly Problem[];
}

/**
 * Finds unknown variables, nodes, inputs and outputs in expressions, conditions, connections, edges and ports. The definition must have
 * no other problem. A run may be given inputs that its definition does not declare, so in a definition without any
 * declared variable an unknown one is a doubt.
 */
export function unknownNames(definition: WorkflowDefinition, catalog: NodeCatalog): UnknownNames {
  const search = new Search(definition, catalog);
  definition.nodes.forEach((node, index) => void search.inNode(node, `nodes[${index}]`));
  definition.edges.forEach((edge, index) => void search.inEdge(edge, `edges[${index}]`));
  return search;
}

type Place = Pick<Problem, 'path' | 'nodeId'>;

class Search implements UnknownNames {
  readonly problems: Problem[] = [];
  readonly doubts: Problem[] = [];
  readonly #catalog: NodeCatalog;
  readonly #nodes: ReadonlyMap<string, WorkflowNode>;
  /** Names that the caller of a run is told of. */
  readonly #declared: readonly string[];
  readonly #variables: readonly string[];
  readonly #channels: readonly string[];
  readonly #edges: readonly WorkflowEdge[];

  constructor({ nodes, edges, variables, channels = {} }: WorkflowDefinition, catalog: NodeCatalog) {
    this.#edges = edges;
    this.#catalog = catalog;
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
    this.#declared = variables.map(({ name }) => name);
    this.#channels = Object.keys(channels);
    const asked = nodes.map(({ id }) => `_askExchanges:${id}`);
    const written = nodes.flatMap((node) => catalog.writtenBy(node)).filter((name) => !this.#channels.includes(name));
    this.#variables = [...this.#declared, ...written, ...asked];
  }

  inNode(node: WorkflowNode, path: string): void {
    for (const [port, value] of Object.entries(node.inputs)) {
      const place = { path: `${path}.inputs.${port}`, nodeId: node.id };
      this.#inPort(value, place);
      this.#input(node, port, place);
    }
  }

  inEdge({ sourceNodeId, sourceOutput, targetNodeId, targetInput, condition }: WorkflowEdge, path: string): void {
    const source = this.#nodes.get(sourceNodeId)!;
    const place = { path: `${path}.condition` };
    this.#delivery(this.#nodes.get(targetNodeId)!, targetInput, `${path}.targetInput`);
    const isLeft = condition !== undefined && condition.type !== 'expression';
    for (const { root, path: names, isGuarded } of condition ? conditionReferences(condition) : []) {
      // A path of `left` may also lead into the object on the port `output`.
      if (isLeft && this.#catalog.outputsOf(source)?.includes('output')) continue;
      this.#reference({ root, path: names, isGuarded }, source, place);
    }
    const outputs = this.#catalog.outputsOf(source) ?? this.#catalog.usualOutputsOf?.(source);
    if (sourceOutput === undefined || sourceOutput === 'output' || outputs?.includes(sourceOutput) !== false) return;
    const message = `${noOutput(sourceNodeId, sourceOutput, outputs)} All its outputs are delivered instead.`;
    this.doubts.push({ path: `${path}.sourceOutput`, message });
  }

  #inPort(port: PortValue, place: Place): void {
    if (port.type === 'expression') {
      for (const reference of portReferences(port.expression)) this.#reference(reference, undefined, place);
    } else if (port.type === 'connection') {
      this.#output(this.#nodes.get(port.nodeId)!, port.outputKey, port.optional ?? false, place);
    } else if (port.type === 'variable' && ![...this.#variables, ...this.#channels].includes(port.variableName)) {
      const otherwise = port.optional ? 'the input is left out' : 'the node fails';
      const message = `${unknown('variable', port.variableName, this.#variables)} Without it ${otherwise}.`;
      this.doubts.push({ ...place, message });
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
    if (!node) this.problems.push({ ...place, message: unknown('node', name, [...this.#nodes.keys()]) });
    else if (member !== undefined) this.#output(node, member, isGuarded, place);
  }

  #variable(name: string, known: readonly string[], isGuarded: boolean, place: Place): void {
    if (known.includes(name)) return;
    const isChannel = this.#channels.includes(name);
    const hint = isChannel ? `It is a channel: read it with an input of type variable.` : 'Declare it under variables.';
    const problem = { ...place, message: `${unknown('variable', name, known)} ${hint}` };
    if (isGuarded || (this.#declared.length === 0 && !isChannel)) this.doubts.push(problem);
    else this.problems.push(problem);
  }

  #output(node: WorkflowNode, name: string, isGuarded: boolean, place: Place): void {
    const outputs = this.#catalog.outputsOf(node);
    if (!outputs) this.#usualOutput(node, name, place);
    if (!outputs || outputs.includes(name)) return;
    const problem = { ...place, message: noOutput(node.id, name, outputs) };
    if (isGuarded) this.doubts.push(problem);
    else this.problems.push(problem);
  }

  /** Whoever answers a gate may add outputs of their own. */
  #usualOutput(node: WorkflowNode, name: string, place: Place): void {
    const usual = this.#catalog.usualOutputsOf?.(node);
    if (!usual || usual.includes(name)) return;
    const message = `${noOutput(node.id, name, usual)} It is there only if an answer brings it.`;
    this.doubts.push({ ...place, message });
  }

  /** An input that is almost the name of one that is missing is meant to be that one; another is not used. */
  #input(node: WorkflowNode, port: string, place: Place): void {
    const known = this.#catalog.inputsOf?.(node);
    if (!known || known.includes(port)) return;
    const missing = known.filter((name) => !Object.hasOwn(node.inputs, name) && !this.#isDelivered(node, name));
    const meant = nearest(port, missing);
    if (meant === undefined)
      this.doubts.push({ ...place, message: `${noInput(node.id, port, known)} It is not used.` });
    else
      this.problems.push({
        ...place,
        message: `${noInput(node.id, port, known)} Did you mean ${JSON.stringify(meant)}?`,
      });
  }

  #isDelivered({ id }: WorkflowNode, port: string): boolean {
    return this.#edges.some(({ targetNodeId, targetInput }) => targetNodeId === id && targetInput === port);
  }

  #delivery(target: WorkflowNode, port: string | undefined, path: string): void {
    const known = this.#catalog.inputsOf?.(target);
    if (port === undefined || port === 'input' || !known || known.includes(port)) return;
    this.doubts.push({ path, message: `${noInput(target.id, port, known)} What the edge delivers is not used.` });
  }
}

function noInput(nodeId: string, name: string, inputs: readonly string[]): string {
  const known = inputs.length > 0 ? `It reads ${inputs.join(', ')}.` : 'It reads none.';
  return `The node ${JSON.stringify(nodeId)} has no input ${JSON.stringify(name)}. ${known}`;
}

function noOutput(nodeId: string, name: string, outputs: readonly string[]): string {
  const known = outputs.length > 0 ? `It has ${outputs.join(', ')}.` : 'It has none.';
  return `The node ${JSON.stringify(nodeId)} has no output ${JSON.stringify(name)}. ${known}`;
}

function unknown(what: string, name: string, known: readonly string[]): string {
  const meant = nearest(name, known);
  const hint = meant === undefined ? '' : ` Did you mean ${JSON.stringify(meant)}?`;
  return `Unknown ${what} ${JSON.stringify(name)}.${hint}`;
}
