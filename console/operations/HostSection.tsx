import { useQuery } from '@tanstack/react-query';
import { isObject, valueAt } from '../../src/protocol/format/json.ts';
import { hostQuery } from '../api/operations.ts';
import { useMay, useSession } from '../api/session.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { counted } from '../parts/numbers.ts';
import { Panel } from '../parts/Panel.tsx';
import { usePrincipalNames } from '../parts/Principal.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { span } from '../parts/time.ts';
import { Facts } from './Facts.tsx';
import { Health } from './Health.tsx';
import styles from './Operations.module.css';

/** Whether the host answers, how long it keeps runs, and what it says that it can do. */
export function HostSection() {
  const { data, error, isPending, refetch } = useQuery(hostQuery);
  const { principal, role, scopes, tenant, workspace } = useSession();
  const [name = principal] = usePrincipalNames([principal]);
  const may = useMay();
  if (isPending) return <Skeleton />;
  if (!data) return <Problem error={error} onRetry={() => void refetch()} />;
  const { document, tookMs } = data;
  const capabilities = isObject(document.capabilities) ? document.capabilities : document;
  const facts = [
    ['Answers', error ? '✕ It does not answer' : `✓ in ${span(tookMs)}`],
    ['Version', text(document, 'implementation.version') ?? 'not said'],
    ['Protocol', text(document, 'protocolVersion') ?? 'not said'],
    ...(may('tenant:admin') ? [] : [['Ended runs are kept', retentionOf(document)] as const]),
    ['You', `${name === principal ? name : `${name} (${principal})`}, ${role ?? 'own scopes'}`],
    ['Tenant', workspace === undefined ? tenant : `${tenant} / ${workspace}`],
  ] as const;
  return (
    <>
      <Panel title="Host">
        <Facts facts={facts} />
      </Panel>
      {may('tenant:admin') ? <Health /> : <p className="quiet">Owners also see queue, store, limits and slow nodes.</p>}
      <Panel title="What you may do">
        <ul className={styles.facts}>
          {scopes.map((scope) => (
            <li key={scope} className={styles.id}>
              {scope}
            </li>
          ))}
        </ul>
      </Panel>
      <Panel title="Capabilities">
        <JsonTree value={capabilities} />
      </Panel>
    </>
  );
}

function text(document: object, path: string): string | undefined {
  const value = valueAt(document, path);
  return value === undefined ? undefined : String(value);
}

const DAY_S = 86_400;

function retentionOf(document: object): string {
  const seconds = ['', 'capabilities.']
    .map((root) => Number(valueAt(document, `${root}production.retention.minWindowSeconds`)))
    .find(Number.isFinite);
  return seconds === undefined ? 'not said' : `at least ${counted(Math.round(seconds / DAY_S), 'day')}`;
}
