import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { TRIGGER_OUTCOMES, type TriggerOutcome } from '../../src/protocol/format/choices.ts';
import type { TriggerDelivery } from '../../src/protocol/starting/triggers.ts';
import { triggerDeliveriesQuery } from '../api/operations.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { ChoiceField } from '../parts/Fields.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';

const WORDS: Readonly<Record<TriggerOutcome, string>> = {
  started: '✓ started',
  duplicate: '✓ sent again',
  ignored: '⊘ filtered',
  invalid: '✕ invalid',
  failed: '✕ no run',
  refused: '✕ refused',
  limited: '✕ too many',
  challenge: '✓ address checked',
};

const COLUMNS: readonly Column<TriggerDelivery>[] = [
  {
    title: 'Outcome',
    show: ({ outcome, count }) => (count === undefined ? WORDS[outcome] : `${WORDS[outcome]} × ${count}`),
  },
  {
    title: 'Run',
    show: ({ runId }) =>
      runId !== undefined && (
        <Link to="/runs/$runId" params={{ runId }} search={{}}>
          {runId}
        </Link>
      ),
  },
  {
    title: 'Reason',
    show: ({ reason }) => reason && [reason.code, reason.field].filter((part) => part !== undefined).join(': '),
  },
  { title: 'Delivery', isExtra: true, show: ({ deliveryId }) => <bdi>{deliveryId}</bdi> },
  { title: 'At', show: ({ at }) => <Time at={at} /> },
];

/** What came of the requests to a trigger. */
export function TriggerDeliveries({ triggerId }: { readonly triggerId: string }) {
  const [outcome, setOutcome] = useState<TriggerOutcome>();
  const query = useQuery(triggerDeliveriesQuery(triggerId, outcome));
  return (
    <>
      <ChoiceField
        label="Deliveries"
        hint="The last 200 of a week. Refused requests are counted in one line."
        value={outcome ?? ''}
        onChange={(value) => setOutcome(TRIGGER_OUTCOMES.find((known) => known === value))}
        choices={[['', 'all'], ...TRIGGER_OUTCOMES.map((known) => [known, WORDS[known]] as const)]}
      />
      <Lines query={query} isAll={outcome === undefined} />
    </>
  );
}

interface LinesProps {
  readonly query: {
    readonly error: Error | null;
    readonly data: readonly TriggerDelivery[] | undefined;
  };
  readonly isAll: boolean;
}

function Lines({ query: { error, data }, isAll }: LinesProps) {
  if (error) return <Problem error={error} />;
  if (!data) return <Skeleton lines={3} />;
  if (data.length === 0) {
    return <Empty title="No deliveries">{isAll ? 'Nothing was sent to this URL in the last week.' : ''}</Empty>;
  }
  return <DataTable label="Deliveries" columns={COLUMNS} rows={data} keyOf={({ id }) => id} />;
}
