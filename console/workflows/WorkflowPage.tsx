import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { Pencil, Play, Trash2 } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';
import type { WorkflowDefinition, WorkflowSummary } from '../../src/protocol/running/workflows.ts';
import { client } from '../api/client.ts';
import { isBlocked } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { workflowQuery, workflowsQuery } from '../api/workflows.ts';
import { Button } from '../parts/Button.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { useKeys } from '../parts/keys.ts';
import { loaded } from '../parts/loaded.ts';
import { Panel } from '../parts/Panel.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { TabBar } from '../parts/TabBar.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { StartRun } from '../runs/StartRun.tsx';
import { viewOf } from '../runs/view.ts';
import type { WorkflowSearch } from './search.ts';
import { Versions } from './Versions.tsx';
import styles from './WorkflowPage.module.css';
import { WorkflowRuns } from './WorkflowRuns.tsx';

const RunGraph = lazy(() =>
  loaded(() => import('../runs/RunGraph.tsx')).then(({ RunGraph }) => ({ default: RunGraph })),
);
const route = getRouteApi('/shell/workflows/$workflowId');
const TABS = [
  ['graph', 'Graph'],
  ['versions', 'Versions'],
  ['runs', 'Runs'],
  ['definition', 'Definition'],
] as const;
const NOTHING_HAPPENED = viewOf([]);

/** One workflow: its graph, its versions, its runs. */
export function WorkflowPage() {
  const { workflowId } = route.useParams();
  const search = route.useSearch();
  const navigate = useNavigate();
  const may = useMay();
  const workflow = useQuery(workflowQuery(workflowId));
  const { data: all } = useQuery(workflowsQuery);
  const set = (change: WorkflowSearch): void =>
    void navigate({
      to: '/workflows/$workflowId',
      params: { workflowId },
      search: { ...search, ...change },
      replace: true,
      resetScroll: false,
    });
  const close = (): void => {
    const { starting: _starting, ...rest } = search;
    void navigate({ to: '/workflows/$workflowId', params: { workflowId }, search: rest, replace: true });
  };
  if (isBlocked(workflow)) return <Problem error={workflow.error} onRetry={() => void workflow.refetch()} />;
  if (!workflow.data) return <Skeleton lines={8} />;
  const tab = search.view ?? 'graph';
  const summary = all?.find(({ id }) => id === workflowId);
  return (
    <div className={styles.page}>
      <Header definition={workflow.data} summary={summary} onStart={() => set({ starting: true })} />
      <TabBar
        label="About this workflow"
        tabs={TABS}
        chosen={tab}
        onChoose={(name) => set({ view: name })}
        controls="workflow-tab"
      />
      <div id="workflow-tab" role="tabpanel" aria-label={tab}>
        {tab === 'graph' && (
          <GraphTab definition={workflow.data} node={search.node} onNode={(node) => set({ node: node ?? '' })} />
        )}
        {tab === 'versions' && (
          <Versions workflowId={workflowId} left={search.left} right={search.right} onChoose={set} />
        )}
        {tab === 'runs' && may('runs:read') && <WorkflowRuns workflowId={workflowId} />}
        {tab === 'definition' && (
          <Panel title="Definition">
            <JsonTree value={workflow.data} />
          </Panel>
        )}
      </div>
      {search.starting && may('runs:create') && <StartRun workflowId={workflowId} onClose={close} />}
    </div>
  );
}

interface HeaderProps {
  readonly definition: WorkflowDefinition;
  readonly summary: WorkflowSummary | undefined;
  readonly onStart: () => void;
}

function Header({ definition: { id, name, description }, summary, onStart }: HeaderProps) {
  const may = useMay();
  const navigate = useNavigate();
  const [isRemoving, setRemoving] = useState(false);
  const edit = (): void => void navigate({ to: '/workflows/$workflowId/edit', params: { workflowId: id }, search: {} });
  useKeys('Workflow', [
    ...(may('runs:create') ? [{ keys: 's', label: 'Start a run', act: onStart }] : []),
    ...(may('workflows:write') ? [{ keys: 'e', label: 'Edit', act: edit }] : []),
  ]);
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <h1 dir="auto">{name}</h1>
        <p className={styles.facts}>
          <code>{id}</code>
          {summary && <span className="number">version {summary.registeredVersion}</span>}
          {summary?.shared && <span>provided by the host for everybody</span>}
        </p>
        {description && (
          <p className={styles.description} dir="auto">
            {description}
          </p>
        )}
      </div>
      <div className={styles.actions}>
        {may('workflows:write') && summary && !summary.shared && (
          <Button kind="quiet" icon={<Trash2 />} aria-label="Remove" title="Remove" onClick={() => setRemoving(true)} />
        )}
        {may('workflows:write') && (
          <Button icon={<Pencil />} onClick={edit}>
            Edit
          </Button>
        )}
        {may('runs:create') && (
          <Button kind="main" icon={<Play />} onClick={onStart}>
            Start run
          </Button>
        )}
      </div>
      {isRemoving && <Remove workflowId={id} onClose={() => setRemoving(false)} />}
    </header>
  );
}

function Remove({ workflowId, onClose }: { readonly workflowId: string; readonly onClose: () => void }) {
  const cache = useQueryClient();
  const navigate = useNavigate();
  const remove = useMutation({
    mutationFn: () => client.deleteWorkflow(workflowId),
    onSuccess: async () => {
      say(`${workflowId} was removed.`);
      await navigate({ to: '/workflows' });
      await cache.invalidateQueries({ queryKey: ['workflows'] });
    },
    onError: complain,
  });
  const footer = (
    <>
      <Button onClick={onClose}>Keep it</Button>
      <Button kind="danger" isBusy={remove.isPending} onClick={() => remove.mutate()}>
        Remove {workflowId}
      </Button>
    </>
  );
  return (
    <Dialog title="Remove this workflow?" isOpen onClose={onClose} footer={footer}>
      <p>
        No new runs of <code>{workflowId}</code> can be started, and its schedules end. Runs that exist go on with the
        version that they have.
      </p>
    </Dialog>
  );
}

interface GraphTabProps {
  readonly definition: WorkflowDefinition;
  readonly node: string | undefined;
  readonly onNode: (nodeId: string | undefined) => void;
}

function GraphTab({ definition, node, onNode }: GraphTabProps) {
  const chosen = definition.nodes.find(({ id }) => id === node);
  return (
    <div className={styles.pair}>
      <Panel title="Graph" isFlush>
        <div className={styles.graph}>
          <Suspense fallback={<Skeleton />}>
            <RunGraph definition={definition} view={NOTHING_HAPPENED} selected={node} onSelect={onNode} />
          </Suspense>
        </div>
      </Panel>
      <Panel title={chosen ? chosen.name : 'Node'}>
        {chosen ? (
          <JsonTree value={chosen} />
        ) : (
          <Empty title="Choose a node">Its type, config and inputs appear here.</Empty>
        )}
      </Panel>
      <div className={styles.whole}>
        <Variables definition={definition} />
      </div>
    </div>
  );
}

function Variables({ definition: { variables, id } }: { readonly definition: WorkflowDefinition }) {
  if (variables.length === 0) return null;
  return (
    <Panel
      title="Variables"
      aside={
        <Link to="/runs" search={{ workflowId: id }}>
          Its runs
        </Link>
      }
    >
      <dl className={styles.variables}>
        {variables.map(({ name, type, required = false, sensitive = false, description }) => (
          <div key={name}>
            <dt>
              <code>{name}</code>{' '}
              <span className="quiet">
                {[type, required && 'required', sensitive && 'sensitive'].filter(Boolean).join(', ')}
              </span>
            </dt>
            <dd dir="auto">{description}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}
