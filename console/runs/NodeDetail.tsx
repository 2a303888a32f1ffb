import { Link } from '@tanstack/react-router';
import { GitFork } from 'lucide-react';
import { useState } from 'react';
import type { RunEvent } from '../../src/client/index.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { EdgeCondition, WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { span } from '../parts/time.ts';
import { Attempts } from './Attempts.tsx';
import { NodeFeedback } from './Feedback.tsx';
import { ForkRun } from './ForkRun.tsx';
import styles from './NodeDetail.module.css';
import { NodeInputs } from './NodeInputs.tsx';
import { nextStepFor } from './next-step.ts';
import { whyEnded } from './reasons.ts';
import type { NodeView, RunView } from './view.ts';

interface DetailProps {
  readonly nodeId: string | undefined;
  readonly view: RunView;
  readonly definition: WorkflowDefinition | undefined;
  readonly run: RunSnapshot;
  readonly events: readonly RunEvent[];
  /** Whether the log of a run that has ended is still being read. */
  readonly isReading: boolean;
}

/** The chosen node: what it got, what it gave, and how it went. */
export function NodeDetail({ nodeId, view, definition, run, events, isReading }: DetailProps) {
  const [fromSeq, forkFrom] = useState<number>();
  const may = useMay();
  if (nodeId === undefined) {
    return (
      <Panel title="Node">
        <p className="quiet">Choose a node in the graph or the timeline to see its inputs, outputs and attempts.</p>
      </Panel>
    );
  }
  const node = view.nodes.get(nodeId);
  const planned = definition?.nodes.find(({ id }) => id === nodeId);
  const started = events.findLast((event) => event.type === 'node.started' && event.nodeId === nodeId);
  const fork = may('runs:create') && started && (
    <Button icon={<GitFork />} onClick={() => forkFrom(started.sequence)}>
      Fork from here
    </Button>
  );
  return (
    <Panel title={planned?.name ?? nodeId} aside={fork}>
      <div className={styles.detail}>
        <p className={styles.line}>
          <StateMark state={node?.state ?? 'idle'} />
          <code className="quiet">{planned?.typeId}</code>
        </p>
        {node?.reason !== undefined && (
          <Part title={node.state === 'skipped' ? 'Why it was skipped' : 'Why it was cancelled'}>
            <p>{whyEnded(node, view, definition)}</p>
            <Conditions nodeId={nodeId} definition={definition} />
          </Part>
        )}
        {node?.error && (
          <Part title="Error">
            <p className={styles.error} dir="auto">
              {node.error.message || node.error.code}
            </p>
            <p className="quiet">{nextStepFor(node.error.code)}</p>
          </Part>
        )}
        {planned && definition && (
          <NodeInputs run={run} events={events} definition={definition} node={planned} started={started} />
        )}
        {node && <Happened node={node} />}
        {planned && Object.keys(planned.config).length > 0 && (
          <Part title="Configuration">
            <JsonTree value={planned.config} />
          </Part>
        )}
      </div>
      {node && node.attempts.length > 0 && may('feedback:read') && (
        <footer className={styles.feedback}>
          <h3>Feedback on this node</h3>
          <NodeFeedback runId={run.runId} nodeId={nodeId} output={node.outputs} isReading={isReading} />
        </footer>
      )}
      {fromSeq !== undefined && <ForkRun run={run} fromSeq={fromSeq} onClose={() => forkFrom(undefined)} />}
    </Panel>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: React.ReactNode }) {
  return (
    <section>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** The conditions on the way to a node. */
function Conditions({ nodeId, definition }: { readonly nodeId: string } & Pick<DetailProps, 'definition'>) {
  const edges = definition?.edges.filter(({ targetNodeId, condition }) => targetNodeId === nodeId && condition) ?? [];
  return (
    <ul>
      {edges.map(({ id, sourceNodeId, condition }) => (
        <li key={id} className={styles.condition}>
          from <code>{sourceNodeId}</code> if <code>{conditionText(condition!)}</code>
        </li>
      ))}
    </ul>
  );
}

function conditionText({ type, expression, left = '', right }: EdgeCondition): string {
  if (type === 'expression') return expression ?? '';
  return right === undefined ? `${left} ${type}` : `${left} ${type} ${JSON.stringify(right)}`;
}

/** A node with code of its own streams text, too. */
function textTitle({ isModelText, state }: NodeView): string {
  const title = isModelText ? 'Model text' : 'Text';
  return state === 'running' ? `${title}, as it comes` : title;
}

function Happened({ node }: { readonly node: NodeView }) {
  return (
    <>
      {node.outputs !== undefined && (
        <Part title="Outputs">
          <JsonTree value={node.outputs} />
        </Part>
      )}
      {node.text !== '' && (
        <Part title={textTitle(node)}>
          <p className={styles.text} dir="auto" aria-live="off">
            {node.text}
          </p>
        </Part>
      )}
      {node.tools.length > 0 && (
        <Part title="Tool calls">
          {node.tools.map(({ callId, tool, inputs, outcome, error, durationMs }) => (
            <details key={callId} className={styles.tool}>
              <summary>
                <code>{tool}</code>{' '}
                <span className="quiet">
                  {error ? 'failed' : outcome === undefined ? 'under way' : 'done'}
                  {durationMs === undefined ? '' : ` · ${span(durationMs)}`}
                </span>
              </summary>
              <JsonTree value={{ inputs, ...(error ? { error } : { outcome }) }} />
            </details>
          ))}
        </Part>
      )}
      {node.children.length > 0 && (
        <Part title="Sub-runs">
          <ul>
            {node.children.map(({ runId, workflowId }) => (
              <li key={runId}>
                <Link to="/runs/$runId" params={{ runId }} search={{}}>
                  {workflowId}
                </Link>{' '}
                <span className="mono quiet">{runId}</span>
              </li>
            ))}
          </ul>
        </Part>
      )}
      {node.attempts.length > 1 && (
        <Part title="Attempts">
          <Attempts attempts={node.attempts} />
        </Part>
      )}
    </>
  );
}
