import { Link } from '@tanstack/react-router';
import { GitFork } from 'lucide-react';
import { useState } from 'react';
import type { RunEvent } from '../../src/client/index.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { span } from '../parts/time.ts';
import { ForkRun } from './ForkRun.tsx';
import styles from './NodeDetail.module.css';
import { nextStepFor } from './next-step.ts';
import type { NodeView, RunView } from './view.ts';

interface DetailProps {
  readonly nodeId: string | undefined;
  readonly view: RunView;
  readonly definition: WorkflowDefinition | undefined;
  readonly run: RunSnapshot;
  readonly events: readonly RunEvent[];
}

/** The chosen node: what it got, what it gave, and how it went. */
export function NodeDetail({ nodeId, view, definition, run, events }: DetailProps) {
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
        {node && <Happened node={node} />}
        {planned && Object.keys(planned.inputs).length > 0 && (
          <Part title="Inputs">
            <JsonTree value={planned.inputs} />
          </Part>
        )}
        {planned && Object.keys(planned.config).length > 0 && (
          <Part title="Configuration">
            <JsonTree value={planned.config} />
          </Part>
        )}
      </div>
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

function Happened({ node }: { readonly node: NodeView }) {
  const attempts = node.spans.filter(({ state }) => state === 'running');
  return (
    <>
      {node.error && (
        <Part title="Error">
          <p className={styles.error}>{node.error.message || node.error.code}</p>
          <p className="quiet">{nextStepFor(node.error.code)}</p>
        </Part>
      )}
      {node.outputs !== undefined && (
        <Part title="Outputs">
          <JsonTree value={node.outputs} />
        </Part>
      )}
      {node.text !== '' && (
        <Part title={node.state === 'running' ? 'Model text, as it comes' : 'Model text'}>
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
      {attempts.length > 1 && (
        <Part title="Attempts">
          <ol>
            {attempts.map(({ from, to, attempt }) => (
              <li key={from} className="number quiet">
                {attempt + 1}: {to === undefined ? 'under way' : span(to - from)}
              </li>
            ))}
          </ol>
        </Part>
      )}
    </>
  );
}
