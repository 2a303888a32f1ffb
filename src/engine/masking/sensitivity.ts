import { own } from '../../protocol/format/json.ts';
import type { PortValue, WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../protocol/running/workflows.ts';
import { portReads } from '../expressions/condition.ts';
import type { Read } from '../expressions/references.ts';

/** The node type that copies a variable to its output `value`. */
const READS_VARIABLE = { typeId: 'core.getVariable', port: 'value' };

/** The node type that outputs its inputs as edited by an approver. */
const EDITS = { typeId: 'core.approvalGate', port: 'editedArtifactData' };

/** The sensitive ports of a node. */
export type Ports = Pick<ReadonlySet<string>, 'has'>;

/** Sensitive output ports by node id; nodes without any are left out. */
export type SensitivePorts = ReadonlyMap<string, Ports>;

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
export class EveryPort implements Ports {
  has(_port: string): boolean {
    return true;
  }
}

/** The result of the taint analysis. */
interface Sensitivity {
  /** Variables and channels: those that the definition marks, and those that nodes write sensitive values to. */
  readonly names: ReadonlySet<string>;
  readonly ports: SensitivePorts;
}

/** How often the nodes are gone through; a definition that needs more has everything masked that its nodes write. */
const PASSES_MAX = 20;

/**
 * Taint analysis: what is computed from a sensitive value is sensitive, and so is the variable or channel that it is
 * written to. Writing may make another node's inputs sensitive, so the analysis is repeated until nothing is added.
 */
export function analyseSensitivity(inOrder: readonly NodeWithEdges[], marked: ReadonlySet<string>): Sensitivity {
  const taint = new Taint(marked);
  for (let pass = 0; taint.pass(inOrder); pass++) {
    if (pass === PASSES_MAX) for (const { node } of inOrder) taint.writes(node);
  }
  return taint;
}

/** The member of the config that names what a node writes its input `value` to, by node type. */
const WRITES: Readonly<Record<string, string>> = { 'core.setVariable': 'name', 'core.channelWrite': 'channelName' };

/** Node types whose outputs are computed from all their inputs. */
const COMPUTING =
  /^(core\.openwop\.data\.|vendor\.capstan\.(data|code)\.|core\.flow\.(sort|limit|distinct|aggregate-|merge|iterator)|core\.(merge|loop)$)/;

/** What is known to be sensitive so far. */
class Taint implements Sensitivity {
  readonly names: Set<string>;
  readonly ports = new Map<string, Ports>();
  /** What other nodes can read of a node: less than its ports by name, for it gives out only what its definition names. */
  readonly #readable = new Map<string, Ports>();
  /** What expressions read, by their text. */
  readonly #reads = new Map<string, readonly Read[]>();

  constructor(marked: ReadonlySet<string>) {
    this.names = new Set(marked);
  }

  /** Goes through the nodes, of which sources come before targets; tells whether a name was added. */
  pass(inOrder: readonly NodeWithEdges[]): boolean {
    const before = this.names.size;
    for (const planned of inOrder) {
      const { node } = planned;
      const ports = this.#portsOf(planned);
      const isEvery = COMPUTING.test(node.typeId) && this.#computesWith(planned, ports);
      const all = isEvery ? new EveryPort() : ports;
      const given = isEvery ? all : givenPorts(node, ports);
      if (all) this.ports.set(node.id, all);
      if (given) this.#readable.set(node.id, given);
      if (all?.has('value')) this.writes(node);
    }
    return this.names.size > before;
  }

  /** Marks what a node writes to as sensitive. */
  writes({ typeId, config }: WorkflowNode): void {
    const member = own(WRITES, typeId);
    if (member !== undefined) this.names.add(String(config[member]));
  }

  /**
   * Besides the ports marked in the definition, a port is sensitive if an input of the same name comes from something
   * sensitive.
   */
  #portsOf(planned: NodeWithEdges): Ports | undefined {
    const { node, incoming } = planned;
    const ports = new Set(this.#delivered(planned, this.ports));
    const clean = new Set<string>();
    for (const [port, value] of Object.entries(node.inputs)) {
      if (this.#isSensitive(value)) ports.add(port);
      else clean.add(port);
    }
    for (const port of clean) ports.delete(port);
    if (node.typeId === READS_VARIABLE.typeId && this.names.has(String(node.config.name)))
      ports.add(READS_VARIABLE.port);
    if (editsSome(node, ports)) ports.add(EDITS.port);
    for (const port of markedPorts(node)) ports.add(port);
    if (incoming.length === 0 && this.names.size > 0) return new StartPorts(ports, clean, this.names);
    return ports.size > 0 ? ports : undefined;
  }

  /** Whether a node computes its outputs with something sensitive: a declared input, or what it was sent otherwise. */
  #computesWith(planned: NodeWithEdges, ports: Ports | undefined): boolean {
    if (Object.keys(planned.node.inputs).some((port) => ports?.has(port))) return true;
    if (planned.incoming.length === 0) return this.names.size > 0;
    return this.#delivered(planned, this.#readable).length > 0;
  }

  /** The inputs to which edges deliver something sensitive. */
  #delivered({ incoming }: NodeWithEdges, found: SensitivePorts): string[] {
    return incoming.flatMap(({ edge: { sourceNodeId, sourceOutput, targetInput = 'input' } }) => {
      const ports = found.get(sourceNodeId);
      if (!ports) return [];
      return sourceOutput === undefined || ports.has(sourceOutput) ? [targetInput] : [];
    });
  }

  #isSensitive(value: PortValue): boolean {
    if (value.type === 'variable') return this.names.has(value.variableName);
    if (value.type === 'connection') return this.#readable.get(value.nodeId)?.has(value.outputKey) === true;
    if (value.type !== 'expression' || this.names.size + this.#readable.size === 0) return false;
    return this.#readsOf(value.expression).some((read) => this.#isRead(read));
  }

  #readsOf(expression: string): readonly Read[] {
    const known = this.#reads.get(expression) ?? portReads(expression);
    this.#reads.set(expression, known);
    return known;
  }

  #isRead({ root, path: [first, second] }: Read): boolean {
    if (root === 'nodes') {
      if (first === undefined) return this.#readable.size > 0;
      const ports = this.#readable.get(first);
      return ports !== undefined && (second === undefined || ports.has(second));
    }
    return first === undefined ? this.names.size > 0 : this.names.has(first);
  }
}

/** A start node receives the inputs of the run, but for those that its definition gives it from elsewhere. */
class StartPorts implements Ports {
  readonly #own: ReadonlySet<string>;
  readonly #clean: ReadonlySet<string>;
  readonly #names: ReadonlySet<string>;

  constructor(own: ReadonlySet<string>, clean: ReadonlySet<string>, names: ReadonlySet<string>) {
    this.#own = own;
    this.#clean = clean;
    this.#names = names;
  }

  has(port: string): boolean {
    return this.#own.has(port) || (this.#names.has(port) && !this.#clean.has(port));
  }
}

/** Those of the sensitive ports that other nodes can read. */
function givenPorts(node: WorkflowNode, ports: Ports | undefined): Ports | undefined {
  const named = [...Object.keys(node.inputs), ...markedPorts(node), READS_VARIABLE.port, EDITS.port];
  const given = new Set(named.filter((port) => ports?.has(port)));
  return given.size > 0 ? given : undefined;
}

function markedPorts({ outputSensitivity = {} }: WorkflowNode): string[] {
  return Object.keys(outputSensitivity).filter((port) => outputSensitivity[port]);
}

function editsSome({ typeId, inputs }: WorkflowNode, ports: Ports): boolean {
  return typeId === EDITS.typeId && Object.keys(inputs).some((port) => ports.has(port));
}
