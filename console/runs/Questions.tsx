import { Link } from '@tanstack/react-router';
import type { RunEvent } from '../../src/client/index.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { leave, useLeaving } from '../inbox/leaving.ts';
import { OpenQuestion } from '../inbox/OpenQuestion.tsx';
import { type Asked, askedBy, inboxKeyOf, kindInWords, titleOf } from '../inbox/open-interrupt.ts';
import { StateMark } from '../parts/StateMark.tsx';
import { Time } from '../parts/Time.tsx';
import styles from './Outcome.module.css';
import type { RunView } from './view.ts';
import { NodeButton } from './Warnings.tsx';

interface QuestionsProps {
  readonly run: RunSnapshot;
  readonly view: RunView;
  readonly events: readonly RunEvent[];
  readonly definition: WorkflowDefinition | undefined;
  readonly onNode: (nodeId: string) => void;
}

/** What the run waits for a person for, each with the form that answers it: the same as in the inbox. */
export function Questions({ run, view, events, definition, onNode }: QuestionsProps) {
  const leaving = useLeaving();
  const open = [...view.nodes.values()]
    .filter(({ question }) => question !== undefined)
    .flatMap(({ nodeId }) => {
      const asked = askedBy(events, nodeId);
      return asked ? [{ nodeId, asked }] : [];
    });
  return (
    <>
      {open.map(({ nodeId, asked }) => (
        <section key={asked.interruptId} className={styles.waits} aria-label={`Question of ${nodeId}`}>
          <Head
            nodeId={nodeId}
            name={definition?.nodes.find(({ id }) => id === nodeId)?.name ?? nodeId}
            asked={asked}
            onNode={onNode}
          />
          {leaving.has(inboxKeyOf(asked)) ? (
            <p role="status">Your answer is being sent. You can still undo it below.</p>
          ) : (
            <OpenQuestion
              runId={run.runId}
              nodeId={nodeId}
              asked={asked}
              run={run}
              onAnswer={(text, send) => leave(inboxKeyOf(asked), text, send)}
            />
          )}
        </section>
      ))}
      {open.length === 0 && run.status.startsWith('waiting-') && <WaitingChildren run={run} />}
    </>
  );
}

interface HeadProps {
  readonly nodeId: string;
  readonly name: string;
  readonly asked: Asked;
  readonly onNode: (nodeId: string) => void;
}

function Head({ nodeId, name, asked, onNode }: HeadProps) {
  return (
    <header className={styles.question}>
      <p className={styles.about}>
        <span className={styles.kind}>{kindInWords(asked)}</span>
        <span>
          at <NodeButton nodeId={nodeId} onNode={onNode} />
        </span>
        <span>
          asked <Time at={asked.askedAt} />
        </span>
        {asked.expiresAt && (
          <span>
            ends <Time at={asked.expiresAt} />
          </span>
        )}
        <Link to="/inbox" search={{ item: inboxKeyOf(asked) }}>
          Open in the inbox
        </Link>
      </p>
      <h2 dir="auto">{titleOf(asked, name)}</h2>
    </header>
  );
}

/** A run waits, too, when a run that it started does. */
function WaitingChildren({ run: { childRuns = [] } }: { readonly run: RunSnapshot }) {
  const waiting = childRuns.filter(({ status }) => status.startsWith('waiting-'));
  if (waiting.length === 0) return null;
  return (
    <section className={styles.waits} aria-label="Waiting sub-runs">
      <h2>{waiting.length === 1 ? 'A sub-run waits for an answer' : 'Sub-runs wait for an answer'}</h2>
      <ul>
        {waiting.map(({ runId, status }) => (
          <li key={runId} className={styles.about}>
            <StateMark state={status} />
            <Link to="/runs/$runId" params={{ runId }} search={{}} className="mono">
              {runId}
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}
