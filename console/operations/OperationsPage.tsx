import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { Scope } from '../../src/protocol/trust/scopes.ts';
import { useMay } from '../api/session.ts';
import { TabBar } from '../parts/TabBar.tsx';
import { Audit } from './Audit.tsx';
import { HostSection } from './HostSection.tsx';
import { Keys } from './Keys.tsx';
import { Agents, Packs, Prompts, Tools } from './Library.tsx';
import styles from './Operations.module.css';
import { Schedules } from './Schedules.tsx';
import type { Section } from './search.ts';
import { Triggers } from './Triggers.tsx';
import { Webhooks } from './Webhooks.tsx';
import { Workers } from './Workers.tsx';

const route = getRouteApi('/shell/operations');

/** Each part with its title and the scope that reading it needs. */
const PARTS: readonly (readonly [section: Section, title: string, scope: Scope | undefined])[] = [
  ['host', 'Host', undefined],
  ['keys', 'Keys', 'keys:manage'],
  ['audit', 'Audit log', 'audit:read'],
  ['workers', 'Workers', 'workers:serve'],
  ['triggers', 'Triggers', 'manifest:read'],
  ['webhooks', 'Webhooks', 'webhooks:manage'],
  ['schedules', 'Schedules', 'manifest:read'],
  ['prompts', 'Prompts', 'prompts:read'],
  ['agents', 'Agents', 'manifest:read'],
  ['tools', 'Tools', 'manifest:read'],
  ['packs', 'Packs', 'manifest:read'],
];

const SHOWN: Readonly<Record<Section, (props: SectionProps) => React.ReactNode>> = {
  host: HostSection,
  keys: Keys,
  audit: Audit,
  workers: Workers,
  triggers: Triggers,
  webhooks: Webhooks,
  schedules: Schedules,
  prompts: Prompts,
  agents: Agents,
  tools: Tools,
  packs: Packs,
};

/** What every part gets: the item that is opened, and how to open another. */
export interface SectionProps {
  readonly item: string | undefined;
  readonly onOpen: (item: string | undefined) => void;
}

/** Everything around runs and workflows; parts that the caller may not read are not there. */
export function OperationsPage() {
  const { section = 'host', item } = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const parts = PARTS.filter(([, , scope]) => scope === undefined || may(scope));
  const [chosen] = parts.find(([name]) => name === section) ?? ['host' as const];
  const Shown = SHOWN[chosen];
  const missing = PARTS.find(([name, , scope]) => name === section && scope !== undefined && !may(scope));
  return (
    <div className={styles.page}>
      <h1>Operations</h1>
      <TabBar
        label="Parts"
        tabs={parts.map(([name, title]) => [name, title] as const)}
        chosen={chosen}
        controls="operations-part"
        onChoose={(name) => void navigate({ to: '/operations', search: { section: name } })}
      />
      {missing && (
        <p className={styles.notice} role="alert">
          {missing[1]} need the scope {missing[2]}, which your key does not have.
        </p>
      )}
      <div id="operations-part" role="tabpanel" aria-label={chosen} className={styles.part}>
        <Shown
          item={item}
          onOpen={(opened) =>
            void navigate({
              to: '/operations',
              search: { section: chosen, ...(opened === undefined ? {} : { item: opened }) },
            })
          }
        />
      </div>
    </div>
  );
}
