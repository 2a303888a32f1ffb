import { own } from '../../protocol/format/json.ts';
import type { PortValue, WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../protocol/running/workflows.ts';

/** The node type that copies a variable to its output `value`. */
const READS_VARIABLE = { typeId: 'core.getVariable', port: 'value' };

/** The node type that outputs its inputs as edited by an approver. */
const EDITS = { typeId: 'core.approvalGate', port: 'editedArtifactData' };

/** Sensitive output ports by node id. */
export type SensitivePorts = ReadonlyMap<string, ReadonlySet<string>>;

/** Names of the variables and channels that the definition marks as sensitive. */
export function sensitiveNames({ variables, channels = {} }: WorkflowDefinition): ReadonlySet<string> {
  return new Set([
    ...variables.filter(({ sensitive }) => sensitive).map(({ name }) => name),
    ...Object.keys(channels).filter((name) => channels[name]!.sensitive),
  ]);
}

/** The part of a planned node that the analysis needs. */
interface NodeWithEdges {
  readonly node: WorkflowNode;
  readonly incoming: readonly { readonly edge: WorkflowEdge }[];
}

/** Every port of a node that computes with something sensitive, whatever it is called. */
export class EveryPort extends Set<string> {
  override has(_port: string): boolean {
    return true;
  }
}

/** The result of the taint analysis. */
interface Sensitivity {
  /** Variables and channels: those that the definition marks, and those that nodes write sensitive values to. */
  readonly names: ReadonlySet<string>;
  readonly ports: SensitivePorts;
}

/**
 * Taint analysis: what is computed from a sensitive value is sensitive, and so is the variable or channel that it is
 * written to. Writing may make another node's inputs sensitive, so the analysis is repeated until nothing is added.
 */
export function analyseSensitivity(inOrder: readonly NodeWithEdges[], marked: ReadonlySet<string>): Sensitivity {
  for (let names = marked; ; ) {
    const ports = sensitivePorts(inOrder, names);
    const written = inOrder.flatMap(({ node }) => writtenName(node, names, ports));
    if (written.every((name) => names.has(name))) return { names, ports };
    names = new Set([...names, ...written]);
  }
}

/** The member of the config that names what a node writes its input `value` to, by node type. */
const WRITES: Readonly<Record<string, string>> = { 'core.setVariable': 'name', 'core.channelWrite': 'channelName' };

function writtenName(
  { id, typeId, config }: WorkflowNode,
  names: ReadonlySet<string>,
  ports: SensitivePorts,
): string[] {
  const member = own(WRITES, typeId);
  if (member === undefined || names.size + ports.size === 0) return [];
  return ports.get(id)?.has('value') ? [String(config[member])] : [];
}

/** Node types whose outputs are computed from all their inputs. */
const COMPUTING =
  /^(core\.openwop\.data\.|vendor\.capstan\.(data|code)\.|core\.flow\.(sort|limit|distinct|aggregate-|merge|iterator)|core\.(merge|loop)$)/;

/**
 * Besides the ports marked in the definition, a port is sensitive if an input of the same name comes from something
 * sensitive, and every port is if the node computes with such an input. `inOrder` lists sources before targets.
 */
function sensitivePorts(inOrder: readonly NodeWithEdges[], names: ReadonlySet<string>): SensitivePorts {
  const found = new Map<string, ReadonlySet<string>>();
  // What other nodes can read of a node: less than its ports by name, for it gives out only what its definition names.
  const readable = new Map<string, ReadonlySet<string>>();
  for (const planned of inOrder) {
    const { node } = planned;
    const ports = new Set(deliveredPorts(planned, names, found));
    for (const [port, value] of Object.entries(node.inputs)) {
      if (comesFrom(value, names, readable)) ports.add(port);
      else ports.delete(port);
    }
    if (readsOneOf(node, names)) ports.add(READS_VARIABLE.port);
    if (editsSome(node, ports)) ports.add(EDITS.port);
    for (const port of markedPorts(node)) ports.add(port);
    const all = computesWith(planned, names, ports, readable) ? new EveryPort(ports) : ports;
    const given = all === ports ? givenPorts(node, ports) : all;
    if (all.size > 0) found.set(node.id, all);
    if (given.size > 0) readable.set(node.id, given);
  }
  return found;
}

/** Whether a node computes its outputs with something sensitive: a declared input, or what it was sent otherwise. */
function computesWith(
  planned: NodeWithEdges,
  names: ReadonlySet<string>,
  ports: ReadonlySet<string>,
  readable: SensitivePorts,
): boolean {
  const { node } = planned;
  if (!COMPUTING.test(node.typeId)) return false;
  const declared = Object.keys(node.inputs);
  return declared.some((port) => ports.has(port)) || deliveredPorts(planned, names, readable).length > 0;
}

function givenPorts(node: WorkflowNode, ports: ReadonlySet<string>): ReadonlySet<string> {
  const named = new Set([...Object.keys(node.inputs), ...markedPorts(node), READS_VARIABLE.port, EDITS.port]);
  return new Set([...ports].filter((port) => named.has(port)));
}

function markedPorts({ outputSensitivity = {} }: WorkflowNode): string[] {
  return Object.keys(outputSensitivity).filter((port) => outputSensitivity[port]);
}

/** A start node receives the run's inputs; other nodes receive what their edges deliver. */
function deliveredPorts({ incoming }: NodeWithEdges, names: ReadonlySet<string>, found: SensitivePorts): string[] {
  if (incoming.length === 0) return [...names];
  return incoming.flatMap(({ edge: { sourceNodeId, sourceOutput, targetInput = 'input' } }) => {
    const ports = found.get(sourceNodeId);
    if (!ports) return [];
    return sourceOutput === undefined || ports.has(sourceOutput) ? [targetInput] : [];
  });
}

function comesFrom(value: PortValue, names: ReadonlySet<string>, found: SensitivePorts): boolean {
  if (value.type === 'variable') return names.has(value.variableName);
  if (value.type === 'expression') return mentions(value.expression, names, found);
  return value.type === 'connection' && found.get(value.nodeId)?.has(value.outputKey) === true;
}

function editsSome({ typeId, inputs }: WorkflowNode, ports: ReadonlySet<string>): boolean {
  return typeId === EDITS.typeId && Object.keys(inputs).some((port) => ports.has(port));
}

function readsOneOf({ typeId, config }: WorkflowNode, names: ReadonlySet<string>): boolean {
  return typeId === READS_VARIABLE.typeId && names.has(String(config.name));
}

/** Words of an expression: names, and texts in quotes, which may be names in brackets. */
const WORDS = /[A-Za-z_$][\w$]*|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g;

/** Asks whether a node has run, or a variable is there, and reads neither. */
const MEMBERSHIP = /\bin\s+(variables|inputs|nodes)\b(?!\s*[.[])/g;
/** All variables, inputs or nodes as a whole, or one of them by a computed name. */
const WHOLE = /\b(variables|inputs|nodes)\s*(\[\s*[^'"\s]|[^\s.[\w])|\b(variables|inputs|nodes)\s*$/;

/** Whether an expression may read something sensitive: it names it, or it looks members up by a computed name. */
function mentions(expression: string, names: ReadonlySet<string>, readable: SensitivePorts): boolean {
  if (names.size + readable.size === 0) return false;
  const read = expression.replace(MEMBERSHIP, '');
  if (WHOLE.test(read)) return true;
  const words = new Set((read.match(WORDS) ?? []).map((word) => word.replace(/^['"]|['"]$/g, '')));
  if ([...names].some((name) => words.has(name))) return true;
  return [...readable].some(([nodeId, ports]) => words.has(nodeId) && readsPort(read, nodeId, ports, words));
}

/** Whether an expression that names a node reads a sensitive port of it, or the node as a whole. */
function readsPort(
  expression: string,
  nodeId: string,
  ports: ReadonlySet<string>,
  words: ReadonlySet<string>,
): boolean {
  if (ports instanceof EveryPort || [...ports].some((port) => words.has(port))) return true;
  const rest = expression.slice(expression.indexOf(nodeId) + nodeId.length);
  return !/^['"]?\]?\s*\.\s*[A-Za-z_$]/.test(rest);
}
