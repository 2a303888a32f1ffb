import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { DELIVERY_STATES, type DeliveryState } from '../../src/protocol/format/choices.ts';
import type { WebhookDelivery, WebhookSubscription } from '../../src/protocol/operations/webhooks.ts';
import { client } from '../api/client.ts';
import { deliveriesQuery, webhooksQuery } from '../api/operations.ts';
import { Button } from '../parts/Button.tsx';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { Field } from '../parts/Field.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';

/** The webhooks, each with what was delivered and what was not. */
export function Webhooks(props: SectionProps) {
  const query = useQuery(webhooksQuery);
  const columns: readonly Column<WebhookSubscription>[] = [
    {
      title: 'Address',
      show: ({ webhookId, url = webhookId }) => (
        <button type="button" className={styles.open} onClick={() => props.onOpen(webhookId)}>
          {url}
        </button>
      ),
    },
    { title: 'Events', show: ({ events }) => events.join(', ') },
    { title: 'Tags', isExtra: true, show: ({ tags }) => tags.join(', ') },
    { title: 'Secret', isExtra: true, show: ({ secretFingerprint }) => <code>{secretFingerprint}…</code> },
    { title: 'Made', isExtra: true, show: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <ListSection
      {...props}
      title="Webhooks"
      query={query}
      columns={columns}
      keyOf={({ webhookId }) => webhookId}
      emptyText="A webhook is told about events of runs. Make one with the command capstan webhooks."
      detail={(webhook) => <WebhookDetail webhook={webhook} />}
    />
  );
}

function WebhookDetail({ webhook }: { readonly webhook: WebhookSubscription }) {
  const [state, setState] = useState<DeliveryState>();
  const query = useQuery(deliveriesQuery(webhook.webhookId, state));
  return (
    <div className={styles.form}>
      <JsonTree value={webhook} />
      <Field label="Deliveries" hint="Dead ones have no attempts left; send them again when the receiver works.">
        {(field) => (
          <select
            {...field}
            value={state ?? ''}
            onChange={({ target }) => setState(DELIVERY_STATES.find((known) => known === target.value))}
          >
            <option value="">all</option>
            {DELIVERY_STATES.map((known) => (
              <option key={known}>{known}</option>
            ))}
          </select>
        )}
      </Field>
      {query.isError ? (
        <Problem error={query.error} />
      ) : !query.data ? (
        <Skeleton lines={3} />
      ) : query.data.length === 0 ? (
        <Empty title="No deliveries">
          {state === undefined ? 'Nothing has happened yet that it wants to know.' : ''}
        </Empty>
      ) : (
        <DataTable label="Deliveries" columns={DELIVERIES} rows={query.data} keyOf={({ deliveryId }) => deliveryId} />
      )}
    </div>
  );
}

const DELIVERIES: readonly Column<WebhookDelivery>[] = [
  { title: 'State', show: ({ state }) => state },
  {
    title: 'Event',
    show: ({ eventType, runId }) => (
      <Link to="/runs/$runId" params={{ runId }} search={{ tab: 'events' }}>
        {eventType}
      </Link>
    ),
  },
  { title: 'Answer', show: ({ lastStatus, lastError }) => lastStatus ?? lastError ?? '' },
  { title: 'Attempts', isRight: true, show: ({ attempts }) => attempts },
  { title: 'Last', show: ({ lastAttemptAt }) => <Time at={lastAttemptAt} /> },
  { title: 'Again', show: (delivery) => (delivery.state === 'dead' ? <Redeliver delivery={delivery} /> : '') },
];

function Redeliver({ delivery: { webhookId, deliveryId } }: { readonly delivery: WebhookDelivery }) {
  const cache = useQueryClient();
  const send = useMutation({
    mutationFn: () => client.redeliverWebhookDelivery(webhookId, deliveryId),
    onSuccess: async () => {
      say('It is sent again.');
      await cache.invalidateQueries({ queryKey: ['deliveries', webhookId] });
    },
    onError: complain,
  });
  return (
    <Button isBusy={send.isPending} onClick={() => send.mutate()}>
      Send again
    </Button>
  );
}
