import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schedule, ScheduleRequest } from '../../src/protocol/starting/schedules.ts';
import { client } from '../api/client.ts';
import { workflowsQuery } from '../api/workflows.ts';
import { AreaField, ChoiceField, TextField } from '../parts/Fields.tsx';
import { FormDialog } from '../parts/FormDialog.tsx';
import { problemsOf } from '../parts/field-problems.ts';
import { readJsonObject } from '../parts/json-text.ts';
import { CronField, NextRuns, ZoneField } from '../parts/NextRuns.tsx';
import { localTime, momentOf } from '../parts/time.ts';
import { say } from '../parts/toasts.tsx';

const FIELDS = ['workflowId', 'cron', 'timezone', 'runAt', 'missed', 'inputs'];

/** What the form holds while it is filled in. */
interface Filled {
  readonly workflowId: string;
  readonly kind: 'cron' | 'once';
  readonly cron: string;
  readonly timezone: string;
  readonly runAt: string;
  readonly missed: Schedule['missed'];
  readonly inputs: string;
}

interface FormProps {
  /** The one to change; a new one without it. */
  readonly schedule?: Schedule;
  readonly onClose: () => void;
}

/** Makes a schedule, or changes one. */
export function ScheduleForm({ schedule, onClose }: FormProps) {
  const cache = useQueryClient();
  const { data: workflows = [] } = useQuery(workflowsQuery);
  const [filled, fill] = useState(() => filledFrom(schedule));
  const [inputsProblem, setInputsProblem] = useState<string>();
  const set = (change: Partial<Filled>): void => fill({ ...filled, ...change });
  const save = useMutation({
    mutationFn: (request: ScheduleRequest) =>
      schedule ? client.replaceSchedule(schedule.id, request) : client.createSchedule(request),
    onSuccess: async () => {
      say(schedule ? 'The schedule is changed.' : 'The schedule is made.');
      onClose();
      await cache.invalidateQueries({ queryKey: ['schedules'] });
    },
  });
  const problems = problemsOf(save.error, FIELDS);
  const submit = (): void => {
    const inputs = readJsonObject(filled.inputs);
    setInputsProblem(inputs.problem);
    if (inputs.problem === undefined) save.mutate(requestOf(filled, inputs.value, schedule?.enabled));
  };
  return (
    <FormDialog
      title={schedule ? 'Edit schedule' : 'New schedule'}
      action={schedule ? 'Save' : 'Make schedule'}
      isBusy={save.isPending}
      canSend={filled.workflowId !== ''}
      problem={problems.rest}
      onSubmit={submit}
      onClose={onClose}
    >
      <ChoiceField
        label="Workflow"
        problem={problems.fields.workflowId}
        value={filled.workflowId}
        onChange={(workflowId) => set({ workflowId })}
        choices={[['', 'Choose a workflow …'], ...workflows.map(({ id, name }) => [id, name] as const)]}
      />
      <Times filled={filled} set={set} problems={problems.fields} />
      <AreaField
        label="Inputs (optional)"
        hint="JSON: the inputs of each run."
        problem={inputsProblem ?? problems.fields.inputs}
        value={filled.inputs}
        spellCheck={false}
        placeholder="{ }"
        onChange={(inputs) => set({ inputs })}
      />
    </FormDialog>
  );
}

interface TimesProps {
  readonly filled: Filled;
  readonly set: (change: Partial<Filled>) => void;
  readonly problems: Readonly<Record<string, string>>;
}

function Times({ filled, set, problems }: TimesProps) {
  const { kind, cron, timezone, runAt, missed } = filled;
  return (
    <>
      <ChoiceField
        label="When"
        value={kind}
        onChange={(value) => set({ kind: value === 'once' ? 'once' : 'cron' })}
        choices={[
          ['cron', 'again and again'],
          ['once', 'once'],
        ]}
      />
      {kind === 'once' ? (
        <TextField
          label="Time"
          hint="In your time zone."
          problem={problems.runAt}
          type="datetime-local"
          required
          value={runAt}
          onChange={(value) => set({ runAt: value })}
        />
      ) : (
        <>
          <CronField cron={cron} problem={problems.cron} onChange={(value) => set({ cron: value })} />
          <ZoneField timezone={timezone} problem={problems.timezone} onChange={(value) => set({ timezone: value })} />
          {cron.trim() !== '' && <NextRuns cron={cron} timezone={timezone} />}
        </>
      )}
      <ChoiceField
        label="Times missed while no host was running"
        problem={problems.missed}
        value={missed}
        onChange={(value) => set({ missed: value === 'once' ? 'once' : 'skip' })}
        choices={[
          ['skip', 'are left out'],
          ['once', 'are made up for by one run'],
        ]}
      />
    </>
  );
}

function filledFrom(schedule: Schedule | undefined): Filled {
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  return {
    workflowId: schedule?.workflowId ?? '',
    kind: schedule?.runAt === undefined ? 'cron' : 'once',
    cron: schedule?.cron ?? '0 9 * * 1-5',
    timezone: schedule?.timezone ?? own,
    runAt: schedule?.runAt === undefined ? '' : localTime(schedule.runAt),
    missed: schedule?.missed ?? 'skip',
    inputs: schedule?.inputs === undefined ? '' : JSON.stringify(schedule.inputs, null, 2),
  };
}

function requestOf(
  { workflowId, kind, cron, timezone, runAt, missed }: Filled,
  inputs: Record<string, unknown> | undefined,
  enabled: boolean | undefined,
): ScheduleRequest {
  const times = kind === 'cron' ? { cron: cron.trim(), timezone } : { runAt: momentOf(runAt) };
  return { workflowId, ...times, missed, ...(inputs && { inputs }), ...(enabled === undefined ? {} : { enabled }) };
}
