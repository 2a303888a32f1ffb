import { Link } from '@tanstack/react-router';
import type { RunEvent } from '../../src/client/index.ts';
import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { counted } from '../parts/numbers.ts';
import { Panel } from '../parts/Panel.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { nextStepFor } from './next-step.ts';
import styles from './Outcome.module.css';
import { Questions } from './Questions.tsx';
import { whyEnded } from './reasons.ts';
import { type ErrorView, errorOf, type RunView, type WorkerWait, warningsIn } from './view.ts';
import { NodeButton, Warnings } from './Warnings.tsx';
import { WorkerNeeded } from './WorkerNeeded.tsx';

const SKIPPED_MAX = 5;

interface OutcomeProps {
  readonly run: RunSnapshot;
  readonly view: RunView;
  readonly events: readonly RunEvent[];
  readonly definition: WorkflowDefinition | undefined;
  /** The attempts that no worker has taken. */
  readonly waits: readonly WorkerWait[];
  readonly onNode: (nodeId: string) => void;
}

/** What the visitor came for: the result, the error with what to do, or what the run waits for. */
export function Outcome({ run, view, events, definition, waits, onNode }: OutcomeProps) {
  const error = view.error ?? errorOf(run.error);
  const { childRuns = [] } = run;
  return (
    <div className={styles.outcome}>
      {run.status === 'failed' && error && <Failure error={error} nodeId={view.failedNodeId} onNode={onNode} />}
      <Questions run={run} view={view} events={events} definition={definition} onNode={onNode} />
      <Warnings lines={warningsIn(view)} definition={definition} onNode={onNode} />
      {run.status === 'completed' && (
        <Panel title="Outputs">
          {isEmpty(view.outputs) ? (
            <NoOutputs view={view} definition={definition} onNode={onNode} />
          ) : (
            <JsonTree value={view.outputs} isUnwrapped />
          )}
        </Panel>
      )}
      {run.status === 'cancelled' && <p className="quiet">The run was cancelled before it had an outcome.</p>}
      <WorkerNeeded waits={waits} onNode={onNode} />
      {!isTerminalStatus(run.status) && !run.status.startsWith('waiting-') && waits.length === 0 && (
        <Progress view={view} />
      )}
      {childRuns.length > 0 && (
        <Panel title="Sub-runs" aside={<span className="quiet number">{childRuns.length}</span>}>
          <ul className={styles.children}>
            {childRuns.map(({ runId, status }) => (
              <li key={runId}>
                <StateMark state={status} />
                <Link to="/runs/$runId" params={{ runId }} search={{}} className="mono">
                  {runId}
                </Link>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </div>
  );
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === 'object' && value !== null && Object.keys(value).length === 0);
}

/** A run without outputs that skipped nodes did less than somebody expected. */
function NoOutputs({ view, definition, onNode }: Pick<OutcomeProps, 'view' | 'definition' | 'onNode'>) {
  const skipped = [...view.nodes.values()].filter(({ state }) => state === 'skipped');
  return (
    <>
      <p className="quiet">The run completed and has no outputs.</p>
      {skipped.length > 0 && (
        <ul className={styles.skipped}>
          {skipped.slice(0, SKIPPED_MAX).map((node) => (
            <li key={node.nodeId}>
              <NodeButton nodeId={node.nodeId} onNode={onNode} /> was skipped.{' '}
              <span className="quiet">{whyEnded(node, view, definition)}</span>
            </li>
          ))}
          {skipped.length > SKIPPED_MAX && (
            <li className="quiet">
              {counted(skipped.length - SKIPPED_MAX, 'more node was', 'more nodes were')} skipped.
            </li>
          )}
        </ul>
      )}
    </>
  );
}

function Progress({ view }: { readonly view: RunView }) {
  const nodes = [...view.nodes.values()];
  const active = nodes.filter(({ state }) => state === 'running' || state === 'retrying').map(({ nodeId }) => nodeId);
  const done = nodes.filter(({ state }) => state === 'completed').length;
  return (
    <p className="quiet" aria-live="polite">
      {active.length > 0 ? `Running: ${active.slice(0, 4).join(', ')}.` : 'No node is running right now.'}{' '}
      {counted(done, 'step')} done.
    </p>
  );
}

interface FailureProps {
  readonly error: ErrorView;
  readonly nodeId: string | undefined;
  readonly onNode: (nodeId: string) => void;
}

function Failure({ error, nodeId, onNode }: FailureProps) {
  const next = nextStepFor(error.code);
  return (
    <section className={styles.failure} aria-label="Error">
      <h2 dir="auto">{error.message || error.code}</h2>
      <p>
        <code>{error.code}</code>
        {nodeId !== undefined && (
          <>
            {' at '}
            <NodeButton nodeId={nodeId} onNode={onNode} />
          </>
        )}
      </p>
      {error.details !== undefined && (
        <details>
          <summary>Cause</summary>
          <JsonTree value={error.details} />
        </details>
      )}
      <p className={styles.next}>{next}</p>
    </section>
  );
}
