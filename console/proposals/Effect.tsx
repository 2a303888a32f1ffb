import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { effectQuery } from '../api/proposals.ts';
import { Panel } from '../parts/Panel.tsx';
import { Time } from '../parts/Time.tsx';
import styles from './ProposalPage.module.css';

const DAY_MS = 86_400_000;
const VERDICTS = { better: 'Better', worse: 'Worse', unclear: 'No clear change', 'too-few': 'Too few runs to tell' };

/** What has changed since the proposal was applied: failures, corrections, ratings and cost, before and after. */
export function Effect({ proposalId }: { readonly proposalId: string }) {
  const { data } = useQuery(effectQuery(proposalId));
  if (!data) return null;
  const { verdict, appliedAt, windowMs, measures, rollbackProposalId } = data;
  const days = Math.max(1, Math.ceil(windowMs / DAY_MS));
  return (
    <Panel title="Since it was applied">
      <p>
        <strong>{VERDICTS[verdict]}</strong>{' '}
        <span className="quiet">
          applied <Time at={appliedAt} /> · {days === 1 ? 'a day' : `${days} days`} before and after
        </span>
      </p>
      <ul className={styles.sources}>
        {measures.map(({ name, sentence }) => (
          <li key={name}>{sentence}</li>
        ))}
      </ul>
      {rollbackProposalId !== undefined && (
        <p className={styles.warning}>
          It did harm.{' '}
          <Link to="/proposals/$proposalId" params={{ proposalId: rollbackProposalId }} search={{}}>
            The rollback is proposed.
          </Link>
        </p>
      )}
    </Panel>
  );
}
