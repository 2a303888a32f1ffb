import { useMutation, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { GoalEvaluation } from '../../src/protocol/learning/goals.ts';
import { client } from '../api/client.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Mark } from '../parts/Mark.tsx';
import { Principal } from '../parts/Principal.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import styles from './GoalPage.module.css';

const route = getRouteApi('/shell/goals/$goalId');

/** The verdicts in words, each with its run and its evidence. */
export function Verdicts({ items }: { readonly items: readonly GoalEvaluation[] }) {
  const { verdict } = route.useSearch();
  return (
    <ol className={styles.list}>
      {items.map((item) => (
        <Verdict key={item.runId} item={item} isOpen={item.runId === verdict} />
      ))}
    </ol>
  );
}

function Verdict({ item, isOpen }: { readonly item: GoalEvaluation; readonly isOpen: boolean }) {
  const { runId, at, satisfied, confidence, judge, evidence, undecided, disputedBy, objectiveVersion } = item;
  const mark = undecided !== undefined ? UNDECIDED : satisfied ? SATISFIED : OPEN;
  return (
    <li className={styles.verdict}>
      <div className={styles.line}>
        <Mark mark={mark} />
        <Link to="/runs/$runId" params={{ runId }} search={{}} className="mono">
          {runId}
        </Link>
        <span className="number quiet">{confidence === undefined ? '' : `${Math.round(confidence * 100)} % sure`}</span>
        <span className="quiet">
          <Time at={at} />
        </span>
        {disputedBy === undefined ? (
          <Dispute runId={runId} />
        ) : (
          <strong>
            Disputed by <Principal id={disputedBy} />
          </strong>
        )}
      </div>
      {undecided !== undefined && <p dir="auto">{undecided}</p>}
      <details open={isOpen}>
        <summary>
          Evidence of {judge}, objective version {objectiveVersion}
        </summary>
        <JsonTree value={evidence} />
      </details>
    </li>
  );
}

const SATISFIED = ['completed', '✓', 'Satisfied'] as const;
const OPEN = ['cancelled', '○', 'Not yet'] as const;
const UNDECIDED = ['waiting', '◐', 'Undecided'] as const;

/** Says that a verdict is wrong; it stays, and waits in the inbox for a second look. */
function Dispute({ runId }: { readonly runId: string }) {
  const may = useMay();
  const cache = useQueryClient();
  const dispute = useMutation({
    mutationFn: () => client.createAnnotation(runId, { signal: { kind: 'label', label: 'wrong-verdict' } }),
    onSuccess: () => {
      say('The verdict is disputed. It is in the inbox until somebody has reviewed it.');
      for (const name of ['goal', 'inbox']) void cache.invalidateQueries({ queryKey: [name] });
    },
    onError: complain,
  });
  if (!may('feedback:write')) return null;
  return (
    <Button kind="quiet" isBusy={dispute.isPending} onClick={() => dispute.mutate()}>
      Dispute
    </Button>
  );
}
