import { Menu } from '@base-ui/react/menu';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Ban, Ellipsis, Pause, Play, RotateCcw } from 'lucide-react';
import { useState } from 'react';
import { isTerminalStatus } from '../../src/protocol/running/run-status.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import { client } from '../api/client.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import { Copy } from '../parts/Copy.tsx';
import { Dialog } from '../parts/Dialog.tsx';
import { useKeys } from '../parts/keys.ts';
import { counted, dollars } from '../parts/numbers.ts';
import { Principal } from '../parts/Principal.tsx';
import { StateMark } from '../parts/StateMark.tsx';
import { Duration, Time } from '../parts/Time.tsx';
import { complain, say } from '../parts/toasts.tsx';
import { CompareWith } from './CompareWith.tsx';
import { ForkRun } from './ForkRun.tsx';
import styles from './RunHeader.module.css';
import { StartRun } from './StartRun.tsx';
import type { RunView } from './view.ts';

type Opened = 'fork' | 'start' | 'compare' | 'cancel' | undefined;

interface HeaderProps {
  readonly run: RunSnapshot;
  readonly view: RunView;
  /** Whether attempts wait for a worker. */
  readonly isWithoutWorker: boolean;
}

/** Which run it is, how it stands, and what can be done with it. */
export function RunHeader({ run, view, isWithoutWorker }: HeaderProps) {
  const { runId, workflowId, workflowVersion, status, owner, createdAt, endedAt, parentRunId, forkedFrom } = run;
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <StateMark state={isWithoutWorker && !isAtWork(view) ? 'waiting' : status} isSoft />
        <h1 dir="auto">
          {workflowId}
          <span className={`number ${styles.version}`}>@{workflowVersion}</span>
        </h1>
      </div>
      <Actions run={run} />
      <dl className={styles.facts}>
        <div>
          <dt>Run</dt>
          <dd className="mono">
            {runId}
            <Copy text={runId} label="run id" />
          </dd>
        </div>
        {createdAt && (
          <div>
            <dt>Started</dt>
            <dd>
              <Time at={createdAt} />
              {owner?.principal && (
                <span className="quiet">
                  {' '}
                  by <Principal id={owner.principal} />
                </span>
              )}
            </dd>
          </div>
        )}
        {createdAt && (
          <div>
            <dt>Duration</dt>
            <dd>
              <Duration from={createdAt} to={endedAt} />
            </dd>
          </div>
        )}
        <Cost run={run} view={view} />
        {parentRunId && (
          <div>
            <dt>Part of</dt>
            <dd>
              <Link to="/runs/$runId" params={{ runId: parentRunId }} search={{}} className="mono">
                {parentRunId}
              </Link>
            </dd>
          </div>
        )}
        {forkedFrom && (
          <div>
            <dt>{forkedFrom.mode === 'replay' ? 'Replay of' : 'Branch of'}</dt>
            <dd>
              <Link
                to="/runs/$runId"
                params={{ runId: forkedFrom.runId }}
                search={{ at: forkedFrom.fromSeq }}
                className="mono"
              >
                {forkedFrom.runId}
              </Link>
            </dd>
          </div>
        )}
      </dl>
    </header>
  );
}

/** Whether a node is really at work, and does not only wait for somebody to take it. */
function isAtWork({ nodes }: RunView): boolean {
  return [...nodes.values()].some(({ state }) => state === 'running' || state === 'retrying');
}

function Cost({ run, view }: { readonly run: RunSnapshot; readonly view: RunView }) {
  const cost = run.metrics?.openwopCost;
  const tokens = (cost?.tokens?.input ?? view.tokens.input) + (cost?.tokens?.output ?? view.tokens.output);
  if (!cost && tokens === 0) return null;
  return (
    <div>
      <dt>Cost</dt>
      <dd className="number">
        {cost?.usd === undefined ? '' : `${dollars(cost.usd)} · `}
        {counted(tokens, 'token')}
      </dd>
    </div>
  );
}

function Actions({ run }: { readonly run: RunSnapshot }) {
  const { runId, status, workflowId, inputs = {} } = run;
  const may = useMay();
  const [opened, open] = useState<Opened>();
  const isOver = isTerminalStatus(status);
  const act = useRunActions(runId);
  const close = (): void => open(undefined);
  const canCancel = may('runs:cancel') && !isOver && status !== 'cancelling';
  useKeys('This run', [
    ...(may('runs:create') ? [{ keys: 'f', label: 'Fork', act: () => open('fork') }] : []),
    ...(may('runs:create') ? [{ keys: 's', label: 'Start a similar run', act: () => open('start') }] : []),
    { keys: 'c', label: 'Compare with another run', act: () => open('compare') },
  ]);
  return (
    <div className={styles.actions}>
      {canCancel && status === 'paused' && (
        <Button icon={<Play />} isBusy={act.resume.isPending} onClick={() => act.resume.mutate()}>
          Resume
        </Button>
      )}
      {canCancel && status !== 'paused' && (
        <Button icon={<Pause />} isBusy={act.pause.isPending} onClick={() => act.pause.mutate()}>
          Pause
        </Button>
      )}
      {canCancel && (
        <Button kind="danger" icon={<Ban />} isBusy={act.cancel.isPending} onClick={() => open('cancel')}>
          Cancel
        </Button>
      )}
      {may('runs:create') && (
        <Button icon={<RotateCcw />} onClick={() => open('start')}>
          Start a similar run
        </Button>
      )}
      <More canStart={may('runs:create')} onOpen={open} onBundle={() => act.bundle.mutate()} />
      {opened === 'fork' && <ForkRun run={run} onClose={close} />}
      {opened === 'start' && <StartRun workflowId={workflowId} inputs={inputs} onClose={close} />}
      {opened === 'compare' && <CompareWith run={run} onClose={close} />}
      {opened === 'cancel' && (
        <Dialog
          title="Cancel this run?"
          isOpen
          onClose={close}
          footer={
            <>
              <Button onClick={close}>Keep it running</Button>
              <Button
                kind="danger"
                onClick={() => {
                  close();
                  act.cancel.mutate();
                }}
              >
                Cancel the run
              </Button>
            </>
          }
        >
          Steps in flight are stopped, open questions are closed, and its sub-runs are cancelled too. A cancelled run
          cannot be resumed; it can be forked.
        </Dialog>
      )}
    </div>
  );
}

interface MoreProps {
  readonly canStart: boolean;
  readonly onOpen: (what: Opened) => void;
  readonly onBundle: () => void;
}

function More({ canStart, onOpen, onBundle }: MoreProps) {
  return (
    <Menu.Root>
      <Menu.Trigger render={<Button aria-label="More actions" icon={<Ellipsis />} />} />
      <Menu.Portal>
        <Menu.Positioner align="end" sideOffset={4} className={styles.positioner}>
          <Menu.Popup className={styles.menu}>
            {canStart && (
              <Menu.Item className={styles.item} onClick={() => onOpen('fork')}>
                Fork …
              </Menu.Item>
            )}
            <Menu.Item className={styles.item} onClick={() => onOpen('compare')}>
              Compare with …
            </Menu.Item>
            <Menu.Item className={styles.item} onClick={onBundle}>
              Download debug bundle
            </Menu.Item>
          </Menu.Popup>
        </Menu.Positioner>
      </Menu.Portal>
    </Menu.Root>
  );
}

/** What changes a run. Nothing is shown as done before the host said so. */
function useRunActions(runId: string) {
  const cache = useQueryClient();
  const onSuccess = (): void => void cache.invalidateQueries({ queryKey: ['run', runId] });
  const options = { onSuccess, onError: complain };
  return {
    cancel: useMutation({ mutationFn: () => client.cancelRun(runId, {}), ...options }),
    pause: useMutation({ mutationFn: () => client.pauseRun(runId, {}), ...options }),
    resume: useMutation({ mutationFn: () => client.resumeRun(runId, {}), ...options }),
    bundle: useMutation({
      mutationFn: () => client.getDebugBundle(runId),
      onSuccess: (bundle) => {
        download(`${runId}.json`, JSON.stringify(bundle, null, 2));
        say('The bundle was downloaded.');
      },
      onError: complain,
    }),
  };
}

function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  Object.assign(document.createElement('a'), { href: url, download: name }).click();
  URL.revokeObjectURL(url);
}
