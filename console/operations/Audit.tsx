import { useQuery } from '@tanstack/react-query';
import type { Static } from 'typebox';
import type { AuditItem } from '../../src/protocol/trust/audit.ts';
import { auditCheckQuery, auditQuery } from '../api/operations.ts';
import type { Column } from '../parts/DataTable.tsx';
import { explain } from '../parts/explain.ts';
import { Principal } from '../parts/Principal.tsx';
import { Time } from '../parts/Time.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';

const OUTCOMES = { success: '✓ success', denied: '⊘ denied', failed: '✕ failed' } as const;

/** Who did what, and whether the log is as it was written. */
export function Audit(props: SectionProps) {
  const query = useQuery(auditQuery);
  const columns: readonly Column<Static<typeof AuditItem>>[] = [
    {
      title: 'Action',
      show: ({ sequence, action }) => (
        <button type="button" className={styles.open} onClick={() => props.onOpen(String(sequence))}>
          {action}
        </button>
      ),
    },
    { title: 'Who', show: ({ actor }) => <Principal id={actor} /> },
    { title: 'What', isExtra: true, show: ({ target }) => <span className={styles.id}>{target}</span> },
    { title: 'Outcome', show: ({ outcome }) => OUTCOMES[outcome as keyof typeof OUTCOMES] ?? outcome },
    { title: 'When', show: ({ at }) => <Time at={at} /> },
    { title: 'Entry', isRight: true, isExtra: true, show: ({ sequence }) => sequence },
  ];
  return (
    <ListSection
      {...props}
      title="Audit log"
      query={query}
      columns={columns}
      keyOf={({ sequence }) => String(sequence)}
      aside={<VerifyBadge />}
      emptyText="What people and keys change is recorded here."
    />
  );
}

/** The host checks the chain of hashes and the signatures of its checkpoints. */
function VerifyBadge() {
  const { data, error, isPending } = useQuery(auditCheckQuery);
  if (isPending) return <span className={styles.badge}>Checking …</span>;
  if (!data) return <span className={styles.badge}>Not checked: {explain(error).text}</span>;
  const isGood = data.chainValid && data.checkpointsValid !== false;
  return (
    <span className={styles.badge} data-state={isGood ? 'good' : 'bad'} role="status">
      {isGood
        ? `✓ Verified, entries ${data.fromSeq} to ${data.toSeq}`
        : `✕ Not as it was written: ${data.anomalies.length} anomalies`}
    </span>
  );
}
