import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { RotateTriggerRequest, Trigger } from '../../src/protocol/starting/triggers.ts';
import { client } from '../api/client.ts';
import { triggersQuery } from '../api/operations.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Copy } from '../parts/Copy.tsx';
import type { Column } from '../parts/DataTable.tsx';
import { Field } from '../parts/Field.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';
import { Secret } from './Secret.tsx';
import { TriggerDeliveries } from './TriggerDeliveries.tsx';

/** What others set off: requests of other systems, and events of this host. */
export function Triggers(props: SectionProps) {
  const query = useQuery(triggersQuery);
  const columns: readonly Column<Trigger>[] = [
    {
      title: 'Trigger',
      show: ({ id, name }) => (
        <button type="button" className={styles.open} dir="auto" onClick={() => props.onOpen(id)}>
          {name}
        </button>
      ),
    },
    {
      title: 'Workflow',
      show: ({ workflowId }) => (
        <Link to="/workflows/$workflowId" params={{ workflowId }} search={{}}>
          {workflowId}
        </Link>
      ),
    },
    { title: 'Set off by', show: (trigger) => setOffBy(trigger) },
    { title: 'State', show: (trigger) => stateOf(trigger) },
    { title: 'In the name of', isExtra: true, show: ({ principal }) => principal },
    {
      title: 'Last problem',
      isExtra: true,
      show: ({ lastError }) =>
        lastError && (
          <>
            {lastError.code}, <Time at={lastError.at} />
          </>
        ),
    },
  ];
  return (
    <ListSection
      {...props}
      title="Triggers"
      query={query}
      columns={columns}
      keyOf={({ id }) => id}
      emptyText="A trigger of type webhook or event in a workflow starts a run when another system sends a request, or when this host records an event."
      detail={(trigger) => <TriggerDetail trigger={trigger} />}
    />
  );
}

function setOffBy({ type, scheme, eventType }: Trigger): string {
  if (type === 'event') return eventType ?? 'an event';
  return scheme === 'path' ? 'whoever knows the address' : `requests signed for ${scheme}`;
}

function stateOf({ enabled, type, scheme, hasSecret }: Trigger): string {
  if (!enabled) return '‖ off';
  return type === 'webhook' && scheme !== 'path' && hasSecret !== true ? '◐ needs a secret' : '● on';
}

function TriggerDetail({ trigger }: { readonly trigger: Trigger }) {
  const may = useMay();
  const { type, url, scheme, lastError } = trigger;
  return (
    <div className={styles.form}>
      {url !== undefined && (
        <section aria-label="Address" className={styles.part}>
          <h3>Send requests to</h3>
          <div className={styles.secret}>
            <code>{url}</code>
            <Copy text={url} label="the address" />
          </div>
          {scheme === 'path' && (
            <p className="quiet">Anyone who knows this URL can start runs: treat it as a secret.</p>
          )}
        </section>
      )}
      {lastError && (
        <p className={styles.notice}>
          The last event could not start a run: {lastError.message} (<Time at={lastError.at} />)
        </p>
      )}
      {type === 'webhook' && may('schedules:write') && <Rotate trigger={trigger} />}
      {type === 'webhook' && may('runs:read') && <TriggerDeliveries triggerId={trigger.id} />}
      <JsonTree value={trigger} />
    </div>
  );
}

const HOUR_S = 3_600;

/** A new secret or address; the former one stays valid for as long as the sender needs. */
function Rotate({ trigger: { id, scheme, hasSecret } }: { readonly trigger: Trigger }) {
  const cache = useQueryClient();
  const [hours, setHours] = useState('1');
  const [secret, setSecret] = useState<string>();
  const rotate = useMutation({
    mutationFn: (request: RotateTriggerRequest) => client.rotateTrigger(id, request),
    onSuccess: async (rotated, { url }) => {
      setSecret(rotated.secret);
      say(url === true ? 'It has a new address.' : 'It has a new secret.');
      await cache.invalidateQueries({ queryKey: ['triggers'] });
    },
    onError: complain,
  });
  const graceSeconds = Math.round((Number(hours) || 0) * HOUR_S);
  if (secret !== undefined) return <Secret label="the secret" text={secret} />;
  return (
    <section aria-label="Replace" className={styles.part}>
      <Field label="Hours that the previous one stays valid" hint="0: it is refused at once.">
        {(field) => (
          <input
            {...field}
            inputMode="decimal"
            value={hours}
            onChange={({ target }) => setHours(target.value)}
            autoComplete="off"
          />
        )}
      </Field>
      <div className={styles.actions}>
        {scheme !== 'path' && (
          <Button isBusy={rotate.isPending} onClick={() => rotate.mutate({ graceSeconds })}>
            {hasSecret ? 'New secret' : 'Make a secret'}
          </Button>
        )}
        <Button isBusy={rotate.isPending} onClick={() => rotate.mutate({ url: true, graceSeconds })}>
          New address
        </Button>
      </div>
    </section>
  );
}
