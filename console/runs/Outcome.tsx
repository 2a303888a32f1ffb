import { Link } from '@tanstack/react-router';
import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { nextStepFor } from './next-step.ts';
import styles from './Outcome.module.css';
import { type ErrorView, errorOf, type RunView } from './view.ts';

interface OutcomeProps {
  readonly run: RunSnapshot;
  readonly view: RunView;
  readonly onNode: (nodeId: string) => void;
}

/** What the visitor came for: the result, the error with what to do, or what the run waits for. */
export function Outcome({ run, view, onNode }: OutcomeProps) {
  const error = view.error ?? errorOf(run.error);
  const { childRuns = [], interrupt } = run;
  return (
    <div className={styles.outcome}>
      {run.status === 'failed' && error && <Failure error={error} nodeId={view.failedNodeId} onNode={onNode} />}
      {interrupt && (
        <div className={styles.waits}>
          <h2>Waiting for a person at {interrupt.nodeId}</h2>
          <JsonTree value={interrupt.data} />
        </div>
      )}
      {run.status === 'completed' && (
        <Panel title="Outputs">
          {isEmpty(view.outputs) ? (
            <p className="quiet">The run completed and has no outputs.</p>
          ) : (
            <JsonTree value={view.outputs} />
          )}
        </Panel>
      )}
      {run.status === 'cancelled' && <p className="quiet">The run was cancelled before it had an outcome.</p>}
      {!isTerminalStatus(run.status) && !interrupt && <Progress view={view} />}
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

function Progress({ view }: { readonly view: RunView }) {
  const nodes = [...view.nodes.values()];
  const active = nodes.filter(({ state }) => state === 'running' || state === 'retrying').map(({ nodeId }) => nodeId);
  const done = nodes.filter(({ state }) => state === 'completed').length;
  return (
    <p className="quiet" aria-live="polite">
      {active.length > 0 ? `At work: ${active.slice(0, 4).join(', ')}.` : 'Nothing is at work right now.'} {done} steps
      done.
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
            <button type="button" className={styles.node} onClick={() => onNode(nodeId)}>
              {nodeId}
            </button>
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
