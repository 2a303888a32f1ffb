import type { PortValue, WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../protocol/running/workflows.ts';

/** Hands a variable on as its output `value`. */
const READS_VARIABLE = { typeId: 'core.getVariable', port: 'value' };

/** Hands on what came in on its ports as its approver edited it. */
const EDITS = { typeId: 'core.approvalGate', port: 'editedArtifactData' };

/** Output ports of each node that others do not get to see, by node id. */
export type SensitivePorts = ReadonlyMap<string, ReadonlySet<string>>;

/** Variables and channels that others do not get to see. */
export function sensitiveNames({ variables, channels = {} }: WorkflowDefinition): ReadonlySet<string> {
  return new Set([
    ...variables.filter(({ sensitive }) => sensitive).map(({ name }) => name),
    ...Object.keys(channels).filter((name) => channels[name]!.sensitive),
  ]);
}

export interface NodeWithEdges {
  readonly node: WorkflowNode;
  readonly incoming: readonly { readonly edge: WorkflowEdge }[];
}

/**
 * What is sensitive stays so when it is handed on: besides the ports that the definition marks, those that bear the
 * name of an input which comes straight from something sensitive. `inOrder` are the nodes, sources first.
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

/** A node at the beginning is given the inputs of the run; others what their edges deliver. */
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
