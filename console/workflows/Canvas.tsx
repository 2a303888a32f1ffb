import {
  Background,
  type Connection,
  Controls,
  type Edge,
  type EdgeChange,
  Handle,
  MarkerType,
  type Node,
  type NodeChange,
  type NodeProps,
  Position,
  ReactFlow,
  useUpdateNodeInternals,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import '../parts/flow.css';
import { type DragEvent, useEffect, useMemo, useRef } from 'react';
import type { NodeTypeSummary, WorkflowEdge, WorkflowNode } from '../../src/protocol/running/workflows.ts';
import styles from './Canvas.module.css';
import {
  changeNode,
  connect,
  connectPorts,
  type Draft,
  freeName,
  removeEdge,
  removeNode,
  type Selection,
} from './draft.ts';
import { unsetPorts } from './input-ports.ts';

const WIDTH = 208;
const HEAD = 48;
const PORT = 22;
/** The handles of the order of nodes; those of ports begin with one of these and a colon. */
const [IN, OUT] = ['in', 'out'];

interface StepData extends Record<string, unknown> {
  readonly node: WorkflowNode;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** How many of the inputs, the last ones, are required and not set. */
  readonly missing: number;
  readonly problem: string | undefined;
}
type StepNode = Node<StepData, 'step'>;

interface CanvasProps {
  readonly draft: Draft;
  readonly types: readonly NodeTypeSummary[];
  readonly selection: Selection;
  readonly onSelect: (selection: Selection) => void;
  readonly onChange: (how: (draft: Draft) => Draft, lasting?: boolean) => void;
  /** A type from the catalogue was dropped here. */
  readonly onDropType: (typeId: string) => void;
  /** The first problem of each node. */
  readonly problems: ReadonlyMap<string, string>;
}

/** The graph of a draft: nodes are moved, ports connected, and what is selected removed with Delete. */
export function Canvas({ draft, types, selection, onSelect, onChange, onDropType, problems }: CanvasProps) {
  const outputsOf = useMemo(() => usedOutputs(draft, types), [draft, types]);
  const nodes = draft.nodes.map((node): StepNode => {
    const missing = unsetPorts(node, draft, types).filter(({ required }) => required);
    const inputs = [...Object.keys(node.inputs), ...missing.map(({ name }) => name)];
    const outputs = outputsOf.get(node.id) ?? [];
    return {
      id: node.id,
      type: 'step',
      position: node.position,
      width: WIDTH,
      height: HEAD + Math.max(inputs.length, outputs.length) * PORT + (inputs.length + outputs.length > 0 ? 6 : 0),
      selected: selection !== undefined && 'node' in selection && selection.node === node.id,
      data: { node, inputs, outputs, missing: missing.length, problem: problems.get(node.id) },
      ariaLabel: `${node.name}, ${node.typeId}${problems.has(node.id) ? ', has a problem' : ''}`,
    };
  });
  const edges = [...draft.edges.map((edge) => orderEdge(edge, selection)), ...draft.nodes.flatMap(dataEdges)];
  const onNodesChange = (changes: NodeChange<StepNode>[]): void => {
    for (const change of changes) {
      if (change.type === 'position' && change.position) {
        const { id, position } = change;
        onChange((old) => changeNode(old, id, (node) => ({ ...node, position })), change.dragging !== true);
      }
      if (change.type === 'remove') {
        onSelect(undefined);
        onChange((old) => removeNode(old, change.id));
      }
      if (change.type === 'select' && change.selected) onSelect({ node: change.id });
    }
  };
  const onEdgesChange = (changes: EdgeChange[]): void => {
    for (const change of changes) {
      if (change.type === 'remove') onChange((old) => removeEdge(old, change.id));
      if (change.type === 'select' && change.selected) onSelect({ edge: change.id });
    }
  };
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    const typeId = event.dataTransfer.getData('application/x-node-type');
    if (typeId !== '') onDropType(typeId);
  };
  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={TYPES}
      fitView
      fitViewOptions={{ padding: 0.2, maxZoom: 1 }}
      minZoom={0.1}
      onNodesChange={onNodesChange}
      onEdgesChange={onEdgesChange}
      onConnect={(connection) => onChange((old) => connected(old, connection))}
      onPaneClick={() => onSelect(undefined)}
      deleteKeyCode={['Delete', 'Backspace']}
      onDrop={onDrop}
      onDragOver={(event) => event.preventDefault()}
      connectionRadius={28}
      proOptions={{ hideAttribution: true }}
      className={styles.canvas ?? ''}
    >
      <Background gap={16} size={1} color="var(--line-strong)" />
      <Controls showInteractive={false} />
    </ReactFlow>
  );
}

/** The outputs that each node is known to have, and those that others read. */
function usedOutputs({ nodes }: Draft, types: readonly NodeTypeSummary[]): ReadonlyMap<string, readonly string[]> {
  const read = nodes.flatMap(({ inputs }) => Object.values(inputs)).filter((value) => value.type === 'connection');
  return new Map(
    nodes.map(({ id, typeId }) => {
      const known = types.find((type) => type.typeId === typeId)?.outputs ?? [];
      const others = read.filter(({ nodeId }) => nodeId === id).map(({ outputKey }) => outputKey);
      return [id, [...new Set([...known, ...others])]];
    }),
  );
}

function orderEdge(edge: WorkflowEdge, selection: Selection): Edge {
  const label = edge.label ?? conditionText(edge);
  return {
    id: edge.id,
    source: edge.sourceNodeId,
    target: edge.targetNodeId,
    sourceHandle: OUT,
    targetHandle: IN,
    ...(label === undefined ? {} : { label }),
    selected: selection !== undefined && 'edge' in selection && selection.edge === edge.id,
    className: styles.edge ?? '',
    markerEnd: { type: MarkerType.ArrowClosed, color: 'var(--ink-3)' },
    ariaLabel: `Edge from ${edge.sourceNodeId} to ${edge.targetNodeId}`,
  };
}

/** A condition as a short text, for the label of an edge. */
function conditionText({ condition }: WorkflowEdge): string | undefined {
  if (!condition) return undefined;
  const { type, expression, left, right } = condition;
  const text =
    type === 'expression'
      ? (expression ?? '')
      : `${left ?? ''} ${type} ${right === undefined ? '' : JSON.stringify(right)}`;
  return text.length > 32 ? `${text.slice(0, 31)}…` : text;
}

function dataEdges({ id, inputs }: WorkflowNode): Edge[] {
  return Object.entries(inputs).flatMap(([name, value]): Edge[] =>
    value.type === 'connection'
      ? [
          {
            id: `data:${id}:${name}`,
            source: value.nodeId,
            target: id,
            sourceHandle: `${OUT}:${value.outputKey}`,
            targetHandle: `${IN}:${name}`,
            className: styles.data ?? '',
            selectable: false,
            focusable: false,
            deletable: false,
          },
        ]
      : [],
  );
}

/** An output that is dropped on a node becomes an input of its own name. */
function connected(draft: Draft, { source, target, sourceHandle, targetHandle }: Connection): Draft {
  const [output, input] = [portOf(sourceHandle), portOf(targetHandle)];
  if (output === undefined) return connect(draft, source, target);
  const taken = Object.keys(draft.nodes.find(({ id }) => id === target)?.inputs ?? {});
  return connectPorts(draft, { node: source, output }, { node: target, input: input ?? freeName(output, taken) });
}

function portOf(handle: string | null): string | undefined {
  const colon = handle?.indexOf(':') ?? -1;
  return colon < 0 ? undefined : handle?.slice(colon + 1);
}

function Step({ id, data: { node, inputs, outputs, missing, problem }, selected }: NodeProps<StepNode>) {
  const update = useUpdateNodeInternals();
  const ports = `${inputs.join()}|${outputs.join()}`;
  const seen = useRef(ports);
  useEffect(() => {
    if (seen.current !== ports) update(id);
    seen.current = ports;
  }, [ports, id, update]);
  return (
    <div
      className={styles.node}
      data-selected={selected || undefined}
      data-wrong={problem === undefined ? undefined : ''}
    >
      <Handle type="target" id={IN} position={Position.Left} className={styles.main ?? ''} style={{ top: HEAD / 2 }} />
      <div className={styles.head}>
        <span className={styles.name} dir="auto" title={problem ?? node.name}>
          {problem !== undefined && (
            <span className={styles.wrong} aria-hidden="true">
              ✕
            </span>
          )}
          {node.name}
        </span>
        <span className={styles.type}>{node.typeId}</span>
      </div>
      <Handle
        type="source"
        id={OUT}
        position={Position.Right}
        className={styles.main ?? ''}
        style={{ top: HEAD / 2 }}
      />
      {inputs.map((name, index) => (
        <Port key={name} name={name} side="in" index={index} isMissing={index >= inputs.length - missing} />
      ))}
      {outputs.map((name, index) => (
        <Port key={name} name={name} side="out" index={index} />
      ))}
    </div>
  );
}

interface PortProps {
  readonly name: string;
  readonly side: 'in' | 'out';
  readonly index: number;
  /** The type requires it, and nothing is connected to it yet. */
  readonly isMissing?: boolean;
}

function Port({ name, side, index, isMissing = false }: PortProps) {
  const top = HEAD + index * PORT + PORT / 2;
  return (
    <>
      <Handle
        type={side === 'in' ? 'target' : 'source'}
        id={`${side}:${name}`}
        position={side === 'in' ? Position.Left : Position.Right}
        className={styles.port ?? ''}
        style={{ top }}
      />
      <span
        className={styles.portName}
        data-side={side}
        data-missing={isMissing || undefined}
        title={isMissing ? `${name} is required` : undefined}
        style={{ top: top - PORT / 2 }}
      >
        {isMissing ? `${name} *` : name}
      </span>
    </>
  );
}

const TYPES = { step: Step };
