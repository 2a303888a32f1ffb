import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { Schedule } from '../../src/protocol/starting/schedules.ts';
import { client } from '../api/client.ts';
import { schedulesQuery } from '../api/operations.ts';
import { useMay } from '../api/session.ts';
import { Button } from '../parts/Button.tsx';
import type { Column } from '../parts/DataTable.tsx';
import { JsonTree } from '../parts/JsonTree.tsx';
import { NextRuns } from '../parts/NextRuns.tsx';
import { Time } from '../parts/Time.tsx';
import { exactly } from '../parts/time.ts';
import { complain, say } from '../parts/toasts.tsx';
import { ListSection } from './ListSection.tsx';
import styles from './Operations.module.css';
import type { SectionProps } from './OperationsPage.tsx';
import { ScheduleForm } from './ScheduleForm.tsx';

/** The schedules, each with when it starts its next runs. */
export function Schedules(props: SectionProps) {
  const query = useQuery(schedulesQuery);
  const may = useMay();
  const [isMaking, setMaking] = useState(false);
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
    <>
      <ListSection
        {...props}
        title="Schedules"
        query={query}
        columns={columns}
        keyOf={({ id }) => id}
        aside={may('schedules:write') ? <Button onClick={() => setMaking(true)}>New schedule</Button> : undefined}
        emptyText="A schedule starts runs of a workflow at set times."
        detail={(schedule) => <ScheduleDetail schedule={schedule} onDone={() => props.onOpen(undefined)} />}
      />
      {isMaking && <ScheduleForm onClose={() => setMaking(false)} />}
    </>
  );
}

interface DetailProps {
  readonly schedule: Schedule;
  readonly onDone: () => void;
}

function ScheduleDetail({ schedule, onDone }: DetailProps) {
  const { cron, timezone, enabled, belongsTo, lastError } = schedule;
  const may = useMay();
  return (
    <div className={styles.form}>
      {may('schedules:write') && belongsTo === undefined && <ScheduleActions schedule={schedule} onDone={onDone} />}
      {belongsTo !== undefined && <p className="quiet">It belongs to {belongsTo}, and is changed there.</p>}
      {lastError && (
        <p className={styles.notice}>
          The last run could not be started: {lastError.message} (<Time at={lastError.at} />)
        </p>
      )}
      {enabled && cron !== undefined && <NextRuns cron={cron} timezone={timezone} />}
      <JsonTree value={schedule} />
    </div>
  );
}

function ScheduleActions({ schedule, onDone }: DetailProps) {
  const { id, cron, timezone, enabled, workflowId, inputs, runAt, missed } = schedule;
  const cache = useQueryClient();
  const [asked, ask] = useState<'edit' | 'remove'>();
  const reread = () => cache.invalidateQueries({ queryKey: ['schedules'] });
  const turn = useMutation({
    mutationFn: () => {
      const times = cron === undefined ? (runAt === undefined ? {} : { runAt }) : { cron, timezone };
      return client.replaceSchedule(id, { workflowId, ...times, missed, ...(inputs && { inputs }), enabled: !enabled });
    },
    onSuccess: async () => {
      say(enabled ? 'The schedule is disabled.' : 'The schedule is enabled.');
      await reread();
    },
    onError: complain,
  });
  const remove = useMutation({
    mutationFn: () => client.deleteSchedule(id),
    onSuccess: async () => {
      say('The schedule is deleted.');
      onDone();
      await reread();
    },
    onError: complain,
  });
  if (asked === 'remove') {
    return (
      <>
        <p className="quiet">No more runs start. Runs that have started continue.</p>
        <div className={styles.actions}>
          <Button kind="danger" isBusy={remove.isPending} onClick={() => remove.mutate()}>
            Remove for good
          </Button>
          <Button onClick={() => ask(undefined)}>Keep</Button>
        </div>
      </>
    );
  }
  return (
    <div className={styles.actions}>
      <Button onClick={() => ask('edit')}>Edit</Button>
      <Button isBusy={turn.isPending} onClick={() => turn.mutate()}>
        {enabled ? 'Turn off' : 'Turn on'}
      </Button>
      <Button onClick={() => ask('remove')}>Remove …</Button>
      {asked === 'edit' && <ScheduleForm schedule={schedule} onClose={() => ask(undefined)} />}
    </div>
  );
}
