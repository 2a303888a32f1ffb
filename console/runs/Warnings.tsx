import { TriangleAlert } from 'lucide-react';
import type { WorkflowDefinition, WorkflowEdge } from '../../src/protocol/running/workflows.ts';
import { counted } from '../parts/numbers.ts';
import styles from './Outcome.module.css';
import type { LogLine } from './view.ts';

const SHOWN_MAX = 5;

interface WarningsProps {
  readonly lines: readonly LogLine[];
  readonly definition: WorkflowDefinition | undefined;
  readonly onNode: (nodeId: string) => void;
}

/** What went wrong without failing the run, each with the node or the edge that it belongs to. */
export function Warnings({ lines, definition, onNode }: WarningsProps) {
  if (lines.length === 0) return null;
  const rest = lines.length - SHOWN_MAX;
  return (
    <section className={styles.warnings} aria-label="Warnings">
      <h2>
        <TriangleAlert aria-hidden="true" /> {counted(lines.length, 'warning')}
      </h2>
      <ul>
        {lines.slice(0, SHOWN_MAX).map((line) => (
          <li key={line.sequence}>
            <Warning line={line} edge={definition?.edges.find(({ id }) => id === line.edgeId)} onNode={onNode} />
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <p className="quiet">
          {counted(rest, 'more warning is', 'more warnings are')} in the events: filter by log.appended.
        </p>
      )}
    </section>
  );
}

interface WarningProps {
  readonly line: LogLine;
  readonly edge: WorkflowEdge | undefined;
  readonly onNode: (nodeId: string) => void;
}

/** The message as the host wrote it, after the node or the edge that it is about. */
function Warning({ line: { message, nodeId }, edge, onNode }: WarningProps) {
  return (
    <>
      {nodeId !== undefined && (
        <>
          <NodeButton nodeId={nodeId} onNode={onNode} />:{' '}
        </>
      )}
      {nodeId === undefined && edge && (
        <>
          <NodeButton nodeId={edge.sourceNodeId} onNode={onNode} /> →{' '}
          <NodeButton nodeId={edge.targetNodeId} onNode={onNode} />:{' '}
        </>
      )}
      <span dir="auto">{message}</span>
    </>
  );
}

/** The id of a node, which shows it below. */
export function NodeButton({ nodeId, onNode }: { readonly nodeId: string; readonly onNode: (nodeId: string) => void }) {
  return (
    <button type="button" className={styles.node} onClick={() => onNode(nodeId)}>
      {nodeId}
    </button>
  );
}
