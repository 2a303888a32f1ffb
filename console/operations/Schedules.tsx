import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schedule } from '../../src/protocol/starting/schedules.ts';
import { client } from '../api/client.ts';
import { schedulesQuery } from '../api/operations.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import type { Column } from '../parts/DataTable.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { loaded } from '../parts/loaded.ts';
import { Time } from '../parts/Time.tsx';
import { exactly } from '../parts/time.ts';
import { complain, say } from '../parts/toasts.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';

/** The schedules, each with when it starts its next runs. */
export function Schedules(props: SectionProps) {
  const query = useQuery(schedulesQuery);
  const columns: readonly Column<Schedule>[] = [
    {
      title: 'Schedule',
      show: ({ id, cron, runAt }) => (
        <button type="button" className={styles.open} onClick={() => props.onOpen(id)}>
          {cron ?? (runAt === undefined ? id : `once, ${exactly(runAt)}`)}
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
    { title: 'Zone', isExtra: true, show: ({ timezone }) => timezone },
    { title: 'State', show: ({ enabled }) => (enabled ? '● on' : '‖ off') },
    { title: 'Next', show: ({ nextRunAt }) => (nextRunAt ? <Time at={nextRunAt} /> : '') },
    {
      title: 'Last run',
      isExtra: true,
      show: ({ lastRunId, lastRunAt, lastError }) =>
        lastRunId && lastRunAt ? (
          <Link to="/runs/$runId" params={{ runId: lastRunId }} search={{}}>
            <Time at={lastRunAt} />
          </Link>
        ) : (
          (lastError?.code ?? '')
        ),
    },
  ];
  return (
    <ListSection
      {...props}
      title="Schedules"
      query={query}
      columns={columns}
      keyOf={({ id }) => id}
      emptyText="A schedule starts runs of a workflow at set times. Make one with the command capstan schedules."
      detail={(schedule) => <ScheduleDetail schedule={schedule} />}
    />
  );
}

const SHOWN_NEXT = 5;

function ScheduleDetail({ schedule }: { readonly schedule: Schedule }) {
  const { id, cron, timezone, enabled, workflowId, inputs, runAt, missed, belongsTo } = schedule;
  const may = useMay();
  const cache = useQueryClient();
  const firings = useQuery({
    queryKey: ['firings', cron, timezone],
    queryFn: async () => {
      const { Cron } = await loaded(() => import('croner'));
      return new Cron(cron ?? '', { timezone, mode: '5-or-6-parts' })
        .nextRuns(SHOWN_NEXT)
        .map((time) => time.toISOString());
    },
    enabled: cron !== undefined && enabled,
  });
  const turn = useMutation({
    mutationFn: () => {
      const times = cron === undefined ? (runAt === undefined ? {} : { runAt }) : { cron, timezone };
      return client.replaceSchedule(id, { workflowId, ...times, missed, ...(inputs && { inputs }), enabled: !enabled });
    },
    onSuccess: async () => {
      say(enabled ? 'It starts no more runs.' : 'It starts runs again.');
      await cache.invalidateQueries({ queryKey: ['schedules'] });
    },
    onError: complain,
  });
  return (
    <div className={styles.form}>
      {may('schedules:write') && belongsTo === undefined && (
        <div className={styles.actions}>
          <Button isBusy={turn.isPending} onClick={() => turn.mutate()}>
            {enabled ? 'Turn off' : 'Turn on'}
          </Button>
        </div>
      )}
      {firings.data && (
        <section aria-label="Next runs">
          <h3>Next runs, in your time zone</h3>
          <ol className={styles.list}>
            {firings.data.map((time) => (
              <li key={time} className="number">
                {exactly(time)}
              </li>
            ))}
          </ol>
        </section>
      )}
      <JsonTree value={schedule} />
    </div>
  );
}
