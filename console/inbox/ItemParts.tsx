import { Link, useNavigate } from '@tanstack/react-router';
import { type ReactNode, useMemo } from 'react';
import type { RunEvent } from '../../src/client/index.ts';
import type { InboxItem } from '../../src/protocol/people/inbox.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { useKeys } from '../parts/keys.ts';
import { Panel } from '../parts/Panel.tsx';
import { Principal } from '../parts/Principal.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { Time } from '../parts/Time.tsx';
import { viewOf } from '../runs/view.ts';
import styles from './Item.module.css';

interface HeadProps {
  readonly kind: string;
  readonly title: string;
  readonly at: string;
  /** Where it comes from. */
  readonly origin?: Pick<InboxItem, 'runId' | 'workflowId' | 'nodeId' | 'startedBy'>;
  readonly children?: ReactNode;
}

/** What is asked, since when, and by which node of which run. */
export function ItemHead({ kind, title, at, origin, children }: HeadProps) {
  return (
    <header className={styles.head}>
      <p className={styles.facts}>
        <span className={styles.kind}>{kind}</span>
        <Time at={at} />
        {children}
      </p>
      <h2 dir="auto">{title}</h2>
      {origin?.workflowId !== undefined && (
        <p className={styles.facts}>
          <span dir="auto">
            {origin.workflowId}
            {origin.nodeId !== undefined && ` › ${origin.nodeId}`}
          </span>
          <code>{origin.runId}</code>
          {origin.startedBy !== undefined && (
            <span>
              started by <Principal id={origin.startedBy} />
            </span>
          )}
        </p>
      )}
    </header>
  );
}

interface EvidenceProps {
  readonly runId: string;
  readonly events: readonly RunEvent[];
  readonly run: RunSnapshot | undefined;
  /** The node that asks, whose page the link leads to. */
  readonly nodeId?: string;
}

/** The run behind an item: how it stands, what it was given, and what it has made so far. */
export function RunEvidence({ runId, events, run, nodeId }: EvidenceProps) {
  const view = useMemo(() => viewOf(events), [events]);
  const navigate = useNavigate();
  const search = nodeId === undefined ? {} : { node: nodeId };
  const open = () => void navigate({ to: '/runs/$runId', params: { runId }, search });
  useKeys('The run', [{ keys: 'v', label: 'View the run', act: open }]);
  const made = [...view.nodes.values()].filter(({ outputs }) => hasMembers(outputs));
  return (
    <Panel
      title="The run"
      aside={
        <Link to="/runs/$runId" params={{ runId }} search={search} aria-keyshortcuts="v">
          Open the run
        </Link>
      }
    >
      <div className={styles.evidence}>
        {run && (
          <p className={styles.run}>
            <StateMark state={run.status} />
            <span dir="auto">{run.workflowId}</span>
            {run.owner?.principal && (
              <span className="quiet">
                by <Principal id={run.owner.principal} />
              </span>
            )}
          </p>
        )}
        {run && hasMembers(run.inputs) && (
          <section>
            <h3>Inputs</h3>
            <JsonTree value={run.inputs} />
          </section>
        )}
        {made.map((node) => (
          <section key={node.nodeId}>
            <h3 dir="auto">{node.nodeId}</h3>
            <JsonTree value={node.outputs} />
          </section>
        ))}
        {made.length === 0 && <p className="quiet">No step has outputs yet.</p>}
      </div>
    </Panel>
  );
}

function hasMembers(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
