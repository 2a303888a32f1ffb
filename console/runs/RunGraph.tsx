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
import '../parts/flow.css';
import { useLayoutEffect, useRef, useState } from 'react';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { markOf } from '../parts/StateMark.tsx';
import { type Direction, type Layout, layoutOf, NODE } from './graph-layout.ts';
import styles from './RunGraph.module.css';
import type { RunView } from './view.ts';

/** A large graph begins with so many nodes in sight. */
const FIRST_SIGHT = 12;

interface StepData extends Record<string, unknown> {
  readonly name: string;
  readonly typeId: string;
  readonly state: string;
  readonly direction: Direction;
}
type StepNode = Node<StepData, 'step'>;

interface GraphProps {
  readonly definition: WorkflowDefinition;
  readonly view: RunView;
  readonly selected: string | undefined;
  readonly onSelect: (nodeId: string | undefined) => void;
}

/** The workflow as a graph, with the state of each node; edges that were taken are bold. */
export function RunGraph({ definition, view, selected, onSelect }: GraphProps) {
  const box = useRef<HTMLDivElement>(null);
  const [{ places, direction, isLarge }, place] = useState<Layout>({
    places: new Map(),
    direction: 'LR',
    isLarge: false,
  });
  useLayoutEffect(() => {
    const { clientWidth = 1, clientHeight = 1 } = box.current ?? {};
    place(layoutOf(definition, clientWidth, clientHeight));
  }, [definition]);
  const nodes = definition.nodes.map(
    ({ id, name, typeId }): StepNode => ({
      id,
      type: 'step',
      position: places.get(id) ?? { x: 0, y: 0 },
      ...NODE,
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
          fitViewOptions={{
            padding: 0.06,
            maxZoom: 1,
            ...(isLarge ? { nodes: firstInSight(definition, selected) } : {}),
          }}
          onlyRenderVisibleElements={isLarge}
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

/** Of a large graph: the node that is selected, such as the one that failed, or else where the run begins. */
function firstInSight({ nodes }: WorkflowDefinition, selected: string | undefined): { id: string }[] {
  const chosen = nodes.filter(({ id }) => id === selected);
  return (chosen.length > 0 ? chosen : nodes.slice(0, FIRST_SIGHT)).map(({ id }) => ({ id }));
}

function isReached(view: RunView, nodeId: string, state?: string): boolean {
  const node = view.nodes.get(nodeId);
  if (!node) return false;
  return state === undefined ? node.state !== 'skipped' && node.state !== 'idle' : node.state === state;
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
