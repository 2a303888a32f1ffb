import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { FlaskConical } from 'lucide-react';
import { useState } from 'react';
import type { PreviewPair, ProposalPreview } from '../../src/protocol/learning/previews.ts';
import type { Proposal } from '../../src/protocol/learning/proposals.ts';
import { client } from '../api/client.ts';
import { previewsQuery } from '../api/proposals.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Field } from '../parts/Field.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Time } from '../parts/Time.tsx';
import { complain } from '../parts/toasts.tsx';
import styles from './ProposalPage.module.css';

const BUDGET = '0.05';
const RESULTS: Readonly<Record<NonNullable<PreviewPair['change']>, string>> = {
  'now-passes': 'now passes',
  worse: 'worse',
  same: 'same',
  undecided: 'undecided',
};

/** What the draft would have done in the runs that it was learnt from, and the way to find out. */
export function Previews({ proposal }: { readonly proposal: Proposal }) {
  const may = useMay();
  const { data: previews = [] } = useQuery(previewsQuery(proposal.id));
  const isPending = proposal.state === 'draft' || proposal.state === 'revised';
  const mayAsk = isPending && may('proposals:write') && may('runs:create');
  if (previews.length === 0 && !mayAsk) return null;
  return (
    <Panel title="Preview">
      {mayAsk && <Ask proposalId={proposal.id} />}
      {previews.map((preview) => (
        <Result key={preview.id} preview={preview} />
      ))}
    </Panel>
  );
}

function Ask({ proposalId }: { readonly proposalId: string }) {
  const [budget, setBudget] = useState(BUDGET);
  const cache = useQueryClient();
  const ask = useMutation({
    mutationFn: () => client.previewProposal(proposalId, { budgetUsd: Number(budget) }),
    onError: complain,
    onSettled: () => cache.invalidateQueries({ queryKey: ['proposal', proposalId, 'previews'] }),
  });
  return (
    <form
      className={styles.pickers}
      onSubmit={(event) => {
        event.preventDefault();
        ask.mutate();
      }}
    >
      <Field label="Budget for models, in dollars">
        {(attributes) => (
          <input
            {...attributes}
            type="number"
            min={0}
            max={100}
            step="any"
            required
            value={budget}
            onChange={({ target }) => setBudget(target.value)}
          />
        )}
      </Field>
      <Button type="submit" disabled={ask.isPending}>
        <FlaskConical aria-hidden="true" /> Repeat the source runs with the draft
      </Button>
    </form>
  );
}

function Result({ preview: { createdAt, state, summary, pairs, calendar } }: { readonly preview: ProposalPreview }) {
  return (
    <div>
      <p>
        <strong>{summary.sentence}</strong>{' '}
        <span className="quiet">
          {state === 'running' ? 'still running' : <Time at={createdAt} />} · spent ${summary.spentUsd}
        </span>
      </p>
      <ul className={styles.sources}>
        {pairs.map((pair) => (
          <Pair key={pair.sourceRunId} pair={pair} />
        ))}
        {calendar?.next.map((at) => (
          <li key={at}>
            would fire <Time at={at} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Pair({ pair: { sourceRunId, runId, state, change, reason } }: { readonly pair: PreviewPair }) {
  return (
    <li>
      {change ? RESULTS[change] : state}
      {reason && <span dir="auto">: {reason}</span>}{' '}
      {runId ? (
        <Link to="/runs/$runId/compare/$otherId" params={{ runId: sourceRunId, otherId: runId }} className="mono">
          {sourceRunId}
        </Link>
      ) : (
        <span className="mono">{sourceRunId}</span>
      )}
    </li>
  );
}
