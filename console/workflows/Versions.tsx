import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import type { WorkflowDefinition, WorkflowVersion } from '../../src/protocol/running/workflows.ts';
import { useMay } from '../api/session.ts';
import { versionQuery, versionsQuery } from '../api/workflows.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { loaded } from '../parts/loaded.ts';
import { Panel } from '../parts/Panel.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import { shadowOf } from '../parts/shadow.ts';
import { Time } from '../parts/Time.tsx';
import { differences } from './differences.ts';
import type { WorkflowSearch } from './search.ts';
import styles from './Versions.module.css';

interface VersionsProps {
  readonly workflowId: string;
  readonly left: number | undefined;
  readonly right: number | undefined;
  readonly onChoose: (change: WorkflowSearch) => void;
}

/** The versions of a workflow, and what differs between two of them: at first the latest two. */
export function Versions({ workflowId, left, right, onChoose }: VersionsProps) {
  const may = useMay();
  const { data, error, isPending } = useQuery(versionsQuery(workflowId));
  if (isPending) return <Skeleton />;
  if (!data) return <Problem error={error} />;
  const to = right ?? data[0]?.registeredVersion ?? 1;
  const from = left ?? data.find(({ registeredVersion }) => registeredVersion < to)?.registeredVersion;
  return (
    <div className={styles.versions}>
      <Panel title="Versions" aside={<span className="quiet number">{data.length}</span>} isFlush>
        <DataTable
          label="Versions"
          columns={columnsFor(workflowId, may('workflows:write'))}
          rows={data}
          keyOf={({ registeredVersion }) => `${registeredVersion}`}
        />
      </Panel>
      {from !== undefined && (
        <Panel
          title="Compare"
          aside={
            <span className={styles.choice}>
              <VersionSelect
                label="Old version"
                versions={data}
                value={from}
                onChange={(value) => onChoose({ left: value })}
              />
              <span aria-hidden="true">→</span>
              <VersionSelect
                label="New version"
                versions={data}
                value={to}
                onChange={(value) => onChoose({ right: value })}
              />
            </span>
          }
        >
          <Comparison workflowId={workflowId} from={from} to={to} />
        </Panel>
      )}
    </div>
  );
}

const columnsFor = (workflowId: string, mayEdit: boolean): readonly Column<WorkflowVersion>[] => [
  {
    title: 'Version',
    show: ({ registeredVersion, current }) => (
      <>
        <span className="number">{registeredVersion}</span>
        {current && <span className={styles.current}>✓ current</span>}
      </>
    ),
  },
  { title: 'Name', show: ({ name }) => <span dir="auto">{name}</span> },
  { title: 'Nodes', isRight: true, show: ({ nodes }) => nodes },
  { title: 'Saved', show: ({ createdAt }) => <Time at={createdAt} /> },
  ...(mayEdit
    ? [
        {
          title: 'Again',
          show: ({ registeredVersion }: WorkflowVersion) => (
            <Link to="/workflows/$workflowId/edit" params={{ workflowId }} search={{ from: registeredVersion }}>
              Edit from version {registeredVersion}
            </Link>
          ),
        },
      ]
    : []),
];

interface SelectProps {
  readonly label: string;
  readonly versions: readonly WorkflowVersion[];
  readonly value: number;
  readonly onChange: (version: number) => void;
}

function VersionSelect({ label, versions, value, onChange }: SelectProps) {
  return (
    <select aria-label={label} value={value} onChange={({ target }) => onChange(Number(target.value))}>
      {versions.map(({ registeredVersion }) => (
        <option key={registeredVersion} value={registeredVersion}>
          version {registeredVersion}
        </option>
      ))}
    </select>
  );
}

const WORDS = { added: ['+', 'Added'], removed: ['−', 'Removed'], changed: ['~', 'Changed'] } as const;

function Comparison({
  workflowId,
  from,
  to,
}: {
  readonly workflowId: string;
  readonly from: number;
  readonly to: number;
}) {
  const old = useQuery(versionQuery(workflowId, from));
  const fresh = useQuery(versionQuery(workflowId, to));
  if (old.isError || fresh.isError) return <Problem error={old.error ?? fresh.error} />;
  if (!old.data || !fresh.data) return <Skeleton />;
  const found = differences(old.data, fresh.data);
  return (
    <div className={styles.comparison}>
      {found.length === 0 ? (
        <p className="quiet">Only the positions of nodes differ.</p>
      ) : (
        <ul className={styles.list} aria-label="Differences">
          {found.map(({ kind, what }) => (
            <li key={`${kind} ${what}`} data-kind={kind}>
              <span aria-hidden="true">{WORDS[kind][0]}</span> {WORDS[kind][1]} {what}
            </li>
          ))}
        </ul>
      )}
      <Texts key={`${from} ${to}`} old={old.data} fresh={fresh.data} />
    </div>
  );
}

/** Both texts side by side, with what differs marked. */
function Texts({ old, fresh }: { readonly old: WorkflowDefinition; readonly fresh: WorkflowDefinition }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let unmount: (() => void) | undefined;
    let isGone = false;
    void loaded(() => import('./merge-view.ts')).then(({ mountMergeView }) => {
      if (isGone || !box.current) return;
      unmount = mountMergeView(shadowOf(box.current), JSON.stringify(old, null, 2), JSON.stringify(fresh, null, 2));
    });
    return () => {
      isGone = true;
      unmount?.();
    };
  }, [old, fresh]);
  return <div ref={box} className={styles.texts} />;
}
