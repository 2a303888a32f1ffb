import dagre from '@dagrejs/dagre';
import {
  Background,
  Controls,
  type Edge,
  Handle,
  MarkerType,
  type Node,
  type NodeProps,
  Position,
  ReactFlow,
} from '@xyflow/react';
import '@xyflow/react/dist/base.css';
import { useLayoutEffect, useRef, useState } from 'react';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { markOf } from '../parts/StateMark.tsx';
import styles from './RunGraph.module.css';
import type { RunView } from './view.ts';

const WIDTH = 168;
const HEIGHT = 48;

type Direction = 'LR' | 'TB';
interface StepData extends Record<string, unknown> {
  readonly name: string;
  readonly typeId: string;
  readonly state: string;
  readonly direction: Direction;
}
type StepNode = Node<StepData, 'step'>;
type Places = ReadonlyMap<string, { readonly x: number; readonly y: number }>;

interface GraphProps {
  readonly definition: WorkflowDefinition;
  readonly view: RunView;
  readonly selected: string | undefined;
  readonly onSelect: (nodeId: string | undefined) => void;
}

/** The workflow as a graph, with the state of each node; edges that were taken are bold. */
export function RunGraph({ definition, view, selected, onSelect }: GraphProps) {
  const box = useRef<HTMLDivElement>(null);
  const [{ places, direction }, place] = useState<{ places: Places; direction: Direction }>({
    places: new Map(),
    direction: 'LR',
  });
  useLayoutEffect(() => {
    const { clientWidth = 1, clientHeight = 1 } = box.current ?? {};
    place(bestLayout(definition, clientWidth, clientHeight));
  }, [definition]);
  const nodes = definition.nodes.map(
    ({ id, name, typeId }): StepNode => ({
      id,
      type: 'step',
      position: places.get(id) ?? { x: 0, y: 0 },
      width: WIDTH,
      height: HEIGHT,
      selected: id === selected,
      data: { name, typeId, state: view.nodes.get(id)?.state ?? 'idle', direction },
      ariaLabel: `${name}: ${markOf(view.nodes.get(id)?.state ?? 'idle')[2]}`,
    }),
  );
  const edges = definition.edges.map((edge): Edge => {
    const isTaken = isReached(view, edge.sourceNodeId, 'completed') && isReached(view, edge.targetNodeId);
    return {
      id: edge.id,
      source: edge.sourceNodeId,
      target: edge.targetNodeId,
      ...(edge.label ? { label: edge.label } : {}),
      className: (isTaken ? styles.taken : styles.edge) ?? '',
      markerEnd: { type: MarkerType.ArrowClosed, color: isTaken ? 'var(--ink-2)' : 'var(--line-strong)' },
      focusable: false,
    };
  });
  return (
    <div ref={box} className={styles.box}>
      {places.size > 0 && (
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={TYPES}
          fitView
          fitViewOptions={{ padding: 0.06, maxZoom: 1 }}
          minZoom={0.1}
          nodesDraggable={false}
          nodesConnectable={false}
          onNodeClick={(_event, { id }) => onSelect(id)}
          onPaneClick={() => onSelect(undefined)}
          onNodesChange={(changes) => {
            const chosen = changes.find((change) => change.type === 'select' && change.selected);
            if (chosen?.type === 'select') onSelect(chosen.id);
          }}
          preventScrolling={false}
          zoomOnScroll={false}
          proOptions={{ hideAttribution: true }}
          className={styles.graph ?? ''}
        >
          <Background gap={16} size={1} color="var(--line)" />
          <Controls showInteractive={false} />
        </ReactFlow>
      )}
    </div>
  );
}

function isReached(view: RunView, nodeId: string, state?: string): boolean {
  const node = view.nodes.get(nodeId);
  if (!node) return false;
  return state === undefined ? node.state !== 'skipped' && node.state !== 'idle' : node.state === state;
}

/** Of the two directions, the one in which the graph can be shown larger. */
function bestLayout(
  definition: WorkflowDefinition,
  width: number,
  height: number,
): { places: Places; direction: Direction } {
  const [across, down] = [layOut(definition, 'LR'), layOut(definition, 'TB')];
  const zoomOf = (laid: { width: number; height: number }): number =>
    Math.min(width / laid.width, height / laid.height);
  return zoomOf(across) >= Math.min(1, zoomOf(down))
    ? { places: across.places, direction: 'LR' }
    : { places: down.places, direction: 'TB' };
}

function layOut(
  { nodes, edges }: WorkflowDefinition,
  rankdir: Direction,
): { places: Places; width: number; height: number } {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir, nodesep: 16, ranksep: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id } of nodes) graph.setNode(id, { width: WIDTH, height: HEIGHT });
  for (const { sourceNodeId, targetNodeId } of edges) graph.setEdge(sourceNodeId, targetNodeId);
  dagre.layout(graph);
  const { width = 1, height = 1 } = graph.graph();
  const places = nodes.map(({ id }): [string, { x: number; y: number }] => {
    const { x = 0, y = 0 } = graph.node(id) ?? {};
    return [id, { x: x - WIDTH / 2, y: y - HEIGHT / 2 }];
  });
  return { places: new Map(places), width: Math.max(1, width), height: Math.max(1, height) };
}

function Step({ data, selected }: NodeProps<StepNode>) {
  const [hue, shape, word] = markOf(data.state);
  return (
    <div
      className={styles.node}
      data-hue={hue}
      data-idle={data.state === 'idle' || undefined}
      data-selected={selected || undefined}
    >
      <Handle
        type="target"
        position={data.direction === 'LR' ? Position.Left : Position.Top}
        className={styles.handle ?? ''}
        isConnectable={false}
      />
      <span className={styles.shape} title={word} aria-hidden="true">
        {shape}
      </span>
      <span className={styles.words}>
        <span className={styles.name} title={data.name} dir="auto">
          {data.name}
        </span>
        <span className={styles.type}>{data.typeId}</span>
      </span>
      <Handle
        type="source"
        position={data.direction === 'LR' ? Position.Right : Position.Bottom}
        className={styles.handle ?? ''}
        isConnectable={false}
      />
    </div>
  );
}

const TYPES = { step: Step };
