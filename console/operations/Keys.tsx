import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ApiKey, NewApiKey } from '../../src/protocol/trust/keys.ts';
import { ROLE_SCOPES, ROLES } from '../../src/protocol/trust/scopes.ts';
import { client } from '../api/client.ts';
import { keysQuery } from '../api/operations.ts';
import { Button } from '../parts/Button.tsx';
import type { Column } from '../parts/DataTable.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { Field } from '../parts/Field.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { Panel } from '../parts/Panel.tsx';
import { Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';
import { Secret } from './Secret.tsx';

/** The keys and what the roles may do. */
export function Keys(props: SectionProps) {
  const query = useQuery(keysQuery);
  const [isMaking, setMaking] = useState(false);
  const columns: readonly Column<ApiKey>[] = [
    {
      title: 'Key',
      show: ({ id, name }) => (
        <button type="button" className={styles.open} dir="auto" onClick={() => props.onOpen(id)}>
          {name}
        </button>
      ),
    },
    { title: 'Begins with', show: ({ prefix }) => <code>{prefix}</code> },
    { title: 'Role', show: ({ role, scopes }) => role ?? `${scopes.length} scopes` },
    { title: 'Person', isExtra: true, show: ({ person }) => person },
    { title: 'Last used', isExtra: true, show: ({ lastUsedAt }) => (lastUsedAt ? <Time at={lastUsedAt} /> : 'never') },
    { title: 'State', show: ({ revokedAt }) => (revokedAt === undefined ? '● valid' : '⊘ revoked') },
  ];
  return (
    <>
      <ListSection
        {...props}
        title="Keys"
        query={query}
        columns={columns}
        keyOf={({ id }) => id}
        aside={<Button onClick={() => setMaking(true)}>New key</Button>}
        emptyText="Keys from the configuration are not listed here. Create one for each person and program."
        detail={(key) => <KeyDetail apiKey={key} onDone={() => props.onOpen(undefined)} />}
      />
      <Panel title="Roles">
        <dl className={styles.facts}>
          {ROLES.map((role, rank) => (
            <div key={role}>
              <dt>{role}</dt>
              <dd>
                <ul className={styles.list}>
                  {ROLE_SCOPES[role]
                    .filter((scope) => rank === 0 || !ROLE_SCOPES[ROLES[rank - 1] ?? role].includes(scope))
                    .map((scope) => (
                      <li key={scope} className={styles.id}>
                        {rank === 0 ? scope : `+ ${scope}`}
                      </li>
                    ))}
                </ul>
              </dd>
            </div>
          ))}
        </dl>
      </Panel>
      {isMaking && <MakeKey onClose={() => setMaking(false)} />}
    </>
  );
}

function KeyDetail({ apiKey, onDone }: { readonly apiKey: ApiKey; readonly onDone: () => void }) {
  const cache = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => client.revokeApiKey(apiKey.id),
    onSuccess: async () => {
      say(`${apiKey.name} no longer works.`);
      onDone();
      await cache.invalidateQueries({ queryKey: ['keys'] });
    },
    onError: complain,
  });
  return (
    <div className={styles.form}>
      <JsonTree value={apiKey} />
      {apiKey.revokedAt === undefined && (
        <>
          <p className="quiet">Requests with this key are refused from then on. This cannot be undone.</p>
          <div className={styles.actions}>
            <Button kind="danger" isBusy={revoke.isPending} onClick={() => revoke.mutate()}>
              Revoke {apiKey.name}
            </Button>
          </div>
        </>
      )}
    </div>
  );
}

function MakeKey({ onClose }: { readonly onClose: () => void }) {
  const cache = useQueryClient();
  const [made, setMade] = useState<NewApiKey>();
  const make = useMutation({
    mutationFn: (form: FormData) => {
      const role = ROLES.find((known) => known === form.get('role')) ?? 'viewer';
      return client.createApiKey({ name: String(form.get('name')), role });
    },
    onSuccess: async (key) => {
      setMade(key);
      await cache.invalidateQueries({ queryKey: ['keys'] });
    },
    onError: complain,
  });
  const footer = made ? (
    <Button onClick={onClose}>Done</Button>
  ) : (
    <Button kind="main" type="submit" form="make-key" isBusy={make.isPending}>
      Make key
    </Button>
  );
  return (
    <Dialog title="New key" isOpen onClose={onClose} footer={footer}>
      {made ? (
        <Secret label="the key" text={made.key} />
      ) : (
        <form
          id="make-key"
          className={styles.form}
          onSubmit={(event) => {
            event.preventDefault();
            make.mutate(new FormData(event.currentTarget));
          }}
        >
          <Field label="Name" hint="Who or what uses it.">
            {(field) => <input {...field} name="name" required maxLength={128} autoComplete="off" />}
          </Field>
          <Field label="Role">
            {(field) => (
              <select {...field} name="role" defaultValue="viewer">
                {ROLES.map((role) => (
                  <option key={role}>{role}</option>
                ))}
              </select>
            )}
          </Field>
        </form>
      )}
    </Dialog>
  );
}
