import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { DELIVERY_STATES, type DeliveryState } from '../../src/protocol/format/choices.ts';
import type { WebhookDelivery, WebhookSubscription } from '../../src/protocol/operations/webhooks.ts';
import { client } from '../api/client.ts';
import { deliveriesQuery, webhooksQuery } from '../api/operations.ts';
import { isBlocked } from '../api/queries.ts';
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
import { Secret } from './Secret.tsx';
import { WebhookForm } from './WebhookForm.tsx';

/** The webhooks, each with what was delivered and what was not. */
export function Webhooks(props: SectionProps) {
  const query = useQuery(webhooksQuery);
  const [isMaking, setMaking] = useState(false);
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
    <>
      <ListSection
        {...props}
        title="Webhooks"
        query={query}
        columns={columns}
        keyOf={({ webhookId }) => webhookId}
        aside={<Button onClick={() => setMaking(true)}>New webhook</Button>}
        emptyText="A webhook sends events of runs to a URL of yours, in signed requests."
        detail={(webhook) => <WebhookDetail webhook={webhook} onDone={() => props.onOpen(undefined)} />}
      />
      {isMaking && <WebhookForm onClose={() => setMaking(false)} />}
    </>
  );
}

interface DetailProps {
  readonly webhook: WebhookSubscription;
  readonly onDone: () => void;
}

function WebhookDetail({ webhook, onDone }: DetailProps) {
  const [state, setState] = useState<DeliveryState>();
  const query = useQuery(deliveriesQuery(webhook.webhookId, state));
  return (
    <div className={styles.form}>
      <WebhookActions webhook={webhook} onDone={onDone} />
      <Field label="Deliveries" hint="Dead deliveries have no attempts left; send them again when the receiver works.">
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
      {isBlocked(query) ? (
        <Problem error={query.error} />
      ) : !query.data ? (
        <Skeleton lines={3} />
      ) : query.data.length === 0 ? (
        <Empty title="No deliveries">{state === undefined ? 'No event has matched this webhook yet.' : ''}</Empty>
      ) : (
        <DataTable label="Deliveries" columns={DELIVERIES} rows={query.data} keyOf={({ deliveryId }) => deliveryId} />
      )}
      <JsonTree value={webhook} />
    </div>
  );
}

const STATES = { pending: '◐ pending', delivered: '✓ delivered', dead: '✕ dead' } as const;

const DELIVERIES: readonly Column<WebhookDelivery>[] = [
  { title: 'State', show: ({ state }) => STATES[state] },
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
      say('The delivery is sent again.');
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

/** A new secret, or the end of it. */
function WebhookActions({ webhook: { webhookId }, onDone }: DetailProps) {
  const cache = useQueryClient();
  const [isAsked, ask] = useState(false);
  const reread = () => cache.invalidateQueries({ queryKey: ['webhooks'] });
  const rotate = useMutation({
    mutationFn: () => client.rotateWebhookSecret(webhookId),
    onSuccess: reread,
    onError: complain,
  });
  const remove = useMutation({
    mutationFn: () => client.unregisterWebhook(webhookId),
    onSuccess: async () => {
      say('The webhook is removed.');
      onDone();
      await reread();
    },
    onError: complain,
  });
  if (rotate.data) return <Secret label="the secret" text={rotate.data.secret} />;
  return (
    <>
      {isAsked && (
        <p className="quiet">The URL gets no more events, and its deliveries are deleted. This cannot be undone.</p>
      )}
      <div className={styles.actions}>
        {isAsked ? (
          <>
            <Button kind="danger" isBusy={remove.isPending} onClick={() => remove.mutate()}>
              Remove for good
            </Button>
            <Button onClick={() => ask(false)}>Keep</Button>
          </>
        ) : (
          <>
            <Button isBusy={rotate.isPending} onClick={() => rotate.mutate()}>
              New secret
            </Button>
            <Button onClick={() => ask(true)}>Remove …</Button>
          </>
        )}
      </div>
    </>
  );
}
