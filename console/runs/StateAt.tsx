import { useQuery } from '@tanstack/react-query';
import type { RunEvent } from '../../src/client/index.ts';
import type { RunSnapshot } from '../../src/protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { JsonTree } from '../parts/JsonTree.tsx';
import { loaded } from '../parts/loaded.ts';
import { Panel } from '../parts/Panel.tsx';
import { Problem, Skeleton } from '../parts/States.tsx';
import styles from './StateAt.module.css';

interface StateProps {
  readonly run: RunSnapshot;
  readonly events: readonly RunEvent[];
  /** Whether a moment before the present was chosen. */
  readonly isPast: boolean;
  readonly definition: WorkflowDefinition | undefined;
}

/** Inputs, variables and channels at the chosen moment; the engine itself computes them, here in the browser. */
export function StateAt({ run, events, isPast, definition }: StateProps) {
  const last = events.at(-1)?.sequence ?? -1;
  const past = useQuery({
    queryKey: ['state', run.runId, last],
    queryFn: async () => (await loaded(() => import('./state-at.ts'))).stateAt(run, events, definition),
    enabled: isPast,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const state = isPast ? past.data : run;
  if (past.isError) return <Problem error={past.error} />;
  if (!state) return <Skeleton lines={4} />;
  return (
    <div className={styles.state}>
      {(['inputs', 'variables', 'channels'] as const).map((part) => (
        <Panel key={part} title={{ inputs: 'Inputs', variables: 'Variables', channels: 'Channels' }[part]}>
          {Object.keys(state[part] ?? {}).length === 0 ? (
            <p className="quiet">None.</p>
          ) : (
            <JsonTree value={state[part]} />
          )}
        </Panel>
      ))}
    </div>
  );
}
