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

/**
 * Taint analysis: a value that is passed on stays sensitive. Besides the ports marked in the definition, a port is
 * sensitive if an input of the same name comes directly from something sensitive. `inOrder` lists sources before
 * targets.
 */
export function sensitivePorts(inOrder: readonly NodeWithEdges[], names: ReadonlySet<string>): SensitivePorts {
  const found = new Map<string, ReadonlySet<string>>();
  for (const planned of inOrder) {
    const ports = new Set(deliveredPorts(planned, names, found));
    for (const [port, value] of Object.entries(planned.node.inputs)) {
      if (comesFrom(value, names, found)) ports.add(port);
      else ports.delete(port);
    }
    if (readsOneOf(planned.node, names)) ports.add(READS_VARIABLE.port);
    if (editsSome(planned.node, ports)) ports.add(EDITS.port);
    for (const port of markedPorts(planned.node)) ports.add(port);
    if (ports.size > 0) found.set(planned.node.id, ports);
  }
  return found;
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
  return value.type === 'connection' && found.get(value.nodeId)?.has(value.outputKey) === true;
}

function editsSome({ typeId, inputs }: WorkflowNode, ports: ReadonlySet<string>): boolean {
  return typeId === EDITS.typeId && Object.keys(inputs).some((port) => ports.has(port));
}

function readsOneOf({ typeId, config }: WorkflowNode, names: ReadonlySet<string>): boolean {
  return typeId === READS_VARIABLE.typeId && names.has(String(config.name));
}
